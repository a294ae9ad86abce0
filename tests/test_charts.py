"""What the charts of pages and of plots share: scales, colours, and values ready to draw."""

import math

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from leeward.charts import (
    Scale,
    above_median,
    class_name,
    colour,
    colours_apart,
    decimals,
    is_curve,
    loss_range,
    padded,
    shortened,
    uncovered,
)
from leeward.wind import WindRose


@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 1.0001), (-5, 7), (0, 1e9), (0.001, 0.002), (5300.1, 5312.7)])
def test_ticks_are_round_and_within(low, high):
    ticks = Scale(low, high, 0, 100).ticks()
    assert 1 <= len(ticks) <= 6
    assert all(low - 1e-9 * (high - low) <= tick <= high + 1e-9 * (high - low) for tick in ticks)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[:1])
    if len(steps):
        leading = steps[0] / 10.0 ** math.floor(math.log10(steps[0]) + 1e-9)
        assert min(abs(leading - one) for one in (1, 2, 5, 10)) < 1e-6
        shown = [f"{tick:.{decimals(ticks)}f}" for tick in ticks]
        assert len(set(shown)) == len(shown)


def test_a_scale_without_a_span():
    assert Scale(3, 3, 0, 100)(3) == 50.0
    scale = padded([7.0, 7.0], 0, 100)
    assert 0 < scale(7.0) < 100


def test_colours_go_from_light_to_dark():
    shares = np.linspace(0, 1, 30)
    parts = np.array([[int(colour(share)[i : i + 2], 16) for i in (1, 3, 5)] for share in shares])
    assert (np.diff(parts @ [0.299, 0.587, 0.114]) < 0).all()  # to the eye
    assert colour(-1) == colour(0) == "#fde725"
    assert colour(2) == colour(1) == "#440154"


def test_colours_are_those_of_matplotlib():
    """Pages compute them without it."""
    scale = matplotlib.colormaps["viridis_r"]
    for share in np.linspace(0, 1, 11):
        ours, theirs = ([int(code[i : i + 2], 16) for i in (1, 3, 5)] for code in (colour(share), to_hex(scale(share))))
        assert np.abs(np.subtract(ours, theirs)).max() <= 2


@pytest.mark.parametrize("count", [1, 6, 7, 40])
def test_colours_that_can_be_told_apart(count):
    assert len(set(colours_apart(count))) == count


def test_ticks_have_no_idle_zeros():
    """Steps of 0.1 are a little less in binary, and had two decimals."""
    assert decimals(Scale(351.75, 352.25, 0, 100).ticks()) == 1
    assert decimals([0.0, 2.5, 5.0]) == 1
    assert decimals([100.0, 200.0]) == 0
    assert decimals([1e-9]) == 0
    assert decimals([]) == 0
    assert decimals([1 / 3], most=3) == 3


def test_losses_that_nobody_knows_have_no_range():
    assert loss_range([]) is None
    assert loss_range([None, np.array([])]) is None
    assert loss_range([np.array([0.1, 0.3]), None, np.array([0.2, 0.4])]) == (0.1, 0.4)


def test_values_above_their_median():
    assert above_median(np.array([90.0, 100.0, 120.0])).tolist() == pytest.approx([-10.0, 0.0, 20.0])


def test_a_curve_has_two_points():
    assert not is_curve(None)
    assert not is_curve(np.array([[0.0, 1.0], [5.0, np.nan]]))
    assert is_curve(np.array([[0.0, 1.0, 2.0], [5.0, np.nan, 6.0]]))


def test_words_of_a_rose():
    assert [class_name((0.0, 5.0, 10.0), i, " m/s") for i in range(3)] == [
        "0 to 5 m/s",
        "5 to 10 m/s",
        "10 m/s or more",
    ]
    assert uncovered(WindRose(np.array([[0.5, 0.3]]), (0.0, 5.0))).startswith("20.0 % of the time")
    assert uncovered(WindRose(np.array([[0.5, 0.4999]]), (0.0, 5.0))) == ""


def test_long_words_are_cut():
    assert (shortened("four", 4), shortened("fifth", 4), shortened("x" * 9, 0)) == ("four", "fif…", "…")
