"""Tables: exact conditions or bins, centres or edges, and what a table must say."""

import numpy as np
import pytest
import xarray

from conftest import random_layout
from leeward.campaign import Campaign, load
from leeward.errors import InputError
from leeward.wind import Site, WindFarm

SECTORS = np.arange(12) * 30.0
EDGES = np.arange(2.5, 26.0)
SPEEDS = 0.5 * (EDGES[1:] + EDGES[:-1])


def sectors(site_figures):
    """The built-in Weibull sectors as probabilities by sector and speed."""
    scale, shape, frequency = (
        np.array(site_figures[name])[:, None] for name in ("weibull_a_m_s", "weibull_k", "sector_frequency")
    )
    below = 1.0 - np.exp(-((EDGES / scale) ** shape))
    return frequency * np.diff(below, axis=1)


@pytest.fixture(scope="module")
def weibull(site_figures):
    names = ("sector_frequency", "weibull_a_m_s", "weibull_k")
    return Site.from_weibull(*(site_figures[name] for name in names), 0.06)


@pytest.fixture(scope="module")
def probability(site_figures):
    return sectors(site_figures)


def grid():
    return (values.ravel() for values in np.meshgrid(np.arange(6) * 1400.0, np.arange(6) * 1400.0))


def test_a_table_of_sectors_is_the_weibull_climate(weibull, probability, turbine):
    """On a regular grid exact directions are far off: rows stand in each other's wake, or never do."""
    x, y = grid()
    expected = WindFarm(weibull, turbine).aep_gwh(x, y)
    bins = Site.from_table(SECTORS, SPEEDS, probability, 0.06)
    assert WindFarm(bins, turbine).aep_gwh(x, y) == pytest.approx(expected, rel=1e-9)
    exact = Site.from_table(SECTORS, SPEEDS, probability, 0.06, kind="exact")
    assert abs(WindFarm(exact, turbine).aep_gwh(x, y) / expected - 1.0) > 0.01


def test_edges_of_speed_bins(probability):
    edges = Site.from_table(SECTORS, EDGES, probability, speed_bins="edges")
    centres = Site.from_table(SECTORS, SPEEDS, probability)
    assert edges.settings() == centres.settings()
    with pytest.raises(InputError, match="edges of bins, set speed_bins: edges"):
        Site.from_table(SECTORS, EDGES, probability)
    with pytest.raises(InputError, match="kind is exact, but speed_bins is edges"):
        Site.from_table(SECTORS, EDGES, probability, speed_bins="edges", kind="exact")
    with pytest.raises(InputError, match="expected increasing edges"):
        Site.from_table(SECTORS, EDGES[::-1], probability, speed_bins="edges")


@pytest.mark.parametrize(
    ("directions", "speeds", "kind"),
    [
        (np.arange(12) * 30.0, 2, "bins"),
        (15.0 + np.arange(12) * 30.0, 2, "bins"),
        (np.roll(np.arange(8) * 45.0, 3), 2, "bins"),
        (np.arange(60) * 6.0, 2, "bins"),
        (np.arange(72) * 5.0, 2, "exact"),
        (np.arange(360.0), 2, "exact"),
        (np.arange(16) * 22.5, 1, "exact"),
        (np.array([270.0]), 3, "exact"),
    ],
)
def test_what_a_table_is_by_default(directions, speeds, kind):
    count = len(directions)
    site = Site.from_table(directions, np.arange(speeds) + 8.0, np.full((count, speeds), 1.0 / count / speeds))
    assert site.settings()["kind"] == kind
    assert ("read as bins" in site.describe()) == (kind == "bins")
    assert site.covered_hours == pytest.approx(8760.0)
    again = Site.from_table(*list(site.settings().values())[1:], kind=kind)
    np.testing.assert_array_equal(again.conditions.weight, site.conditions.weight)


@pytest.mark.parametrize(
    "directions", [[0.0, 100.0, 250.0], [200.0, 210.0, 220.0], [0.0, 120.0, 240.0, 360.0], [250.0, 270.0]]
)
@pytest.mark.parametrize("speeds", [1, 2])
def test_a_table_that_must_say(directions, speeds):
    table = directions, np.arange(speeds) + 8.0, np.full((len(directions), speeds), 0.1)
    with pytest.raises(InputError, match="not evenly spaced over the full circle: set kind"):
        Site.from_table(*table)
    assert Site.from_table(*table, kind="exact").conditions.direction.tolist() == directions


def test_bins_of_any_width():
    uneven = Site.from_table([350.0, 90.0, 180.0], [8.0, 10.0], np.full((3, 2), 1 / 6), kind="bins")
    directions, weight = uneven.conditions.direction, uneven.conditions.weight.sum(axis=1)
    assert (np.diff(directions) <= 1.5 + 1e-9).all()
    for low, high in ((40.0, 135.0), (135.0, 265.0)):  # half-way to the neighbours
        inside = (directions >= low) & (directions < high)
        assert weight[inside].sum() == pytest.approx(1 / 3, abs=0.005)
    partial = Site.from_table([240.0, 270.0, 300.0], [8.0], np.full((3, 1), 0.2), kind="bins")
    assert partial.conditions.direction[[0, -1]].tolist() == [225.0, 314.0]
    assert partial.covered_hours == pytest.approx(0.6 * 8760.0)
    odd = Site.from_table(np.arange(16) * 22.5, [8.0, 9.0], np.full((16, 2), 1 / 32))
    assert len(odd.conditions.direction) == 16 * 23
    assert odd.covered_hours == pytest.approx(8760.0)
    with pytest.raises(InputError, match="bin of a single direction has no known width"):
        Site.from_table([270.0], [8.0, 9.0], [[0.5, 0.5]], kind="bins")
    with pytest.raises(InputError, match="direction 0 appears twice"):
        Site.from_table([0.0, 120.0, 360.0], [8.0], np.full((3, 1), 0.2), kind="bins")


def test_a_row_is_missing(probability):
    with pytest.raises(InputError, match="11 rows of probabilities for 12 directions; expected a row for each"):
        Site.from_table(SECTORS, SPEEDS, probability[:11])


def test_bad_words():
    with pytest.raises(InputError, match="kind is 'spikes'; expected one of bins, exact"):
        Site.from_table([0, 180], [8, 9], np.full((2, 2), 0.25), kind="spikes")
    with pytest.raises(InputError, match="speed_bins is 'left'; expected one of centres, edges"):
        Site.from_table([0, 180], [8, 9], np.full((2, 2), 0.25), speed_bins="left")
    with pytest.raises(InputError, match="the speeds do not increase"):
        Site.from_table([0, 180], [9, 8], np.full((2, 2), 0.25))


def test_sums_of_probabilities():
    probability = np.full((12, 2), 1.0 / 24)
    assert Site.from_table(SECTORS, [8, 9], probability * 1.009).covered_hours == pytest.approx(1.009 * 8760)
    assert Site.from_table(SECTORS, [8, 9], probability * 0.9).covered_hours == pytest.approx(0.9 * 8760)
    with pytest.raises(InputError, match=r"add up to 1\.011; expected at most 1"):
        Site.from_table(SECTORS, [8, 9], probability * 1.011)


def test_fewer_conditions_keep_the_energy(weibull, probability, turbine):
    bins = Site.from_table(SECTORS, SPEEDS, probability, 0.06)
    x, y = random_layout(20, seed=3)
    few = bins.coarser(120, [5.0, 8.0, 11.0, 14.0, 17.0])
    assert few.conditions.speed.shape == (120, 5)
    peer = weibull.coarser(120, [5.0, 8.0, 11.0, 14.0, 17.0])
    np.testing.assert_allclose(few.conditions.weight.sum(axis=1), peer.conditions.weight.sum(axis=1), rtol=0.02)
    losses = [WindFarm(site, turbine).wake_loss(x, y) for site in (few, peer)]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert bins.coarser(120, [80.0, 90.0]).conditions.weight.sum() == pytest.approx(bins.conditions.weight.sum())


def test_draws_come_from_the_whole_bin(probability):
    bins = Site.from_table(SECTORS, SPEEDS, probability, 0.06)
    drawn = bins.draw(1000, np.random.default_rng(0))
    assert len(np.unique(drawn.direction)) > 300
    assert drawn.weight.sum() == pytest.approx(bins.conditions.weight.sum())


def test_a_site_file_is_not_spread_twice(tmp_path, probability, turbine):
    path = tmp_path / "site.nc"
    xarray.Dataset({"P": (("wd", "ws"), probability), "TI": 0.06}, coords={"wd": SECTORS, "ws": SPEEDS}).to_netcdf(path)
    x, y = random_layout(20, seed=3)
    from_file = WindFarm(Site.from_netcdf(path), turbine).aep_gwh(x, y)
    assert WindFarm(Site.from_table(SECTORS, SPEEDS, probability, 0.06), turbine).aep_gwh(x, y) == pytest.approx(
        from_file, rel=1e-12
    )


STUDY = {
    "name": "rose",
    "farms": [{"circle_m": {"x": 0, "y": 0, "radius": 2000}}],
    "turbines": [{"rated_power_mw": 8, "rotor_diameter_m": 170, "hub_height_m": 110}],
    "turbines_per_farm": 3,
    "spacing_diameters": 3,
}
TABLE = {
    "wind_directions_deg": [0, 90, 180, 270],
    "wind_speeds_m_s": [8, 10],
    "probability": [[0.1, 0.1], [0.1, 0.2], [0.1, 0.1], [0.2, 0.1]],
}


def campaign(**table):
    return load({**STUDY, "site": {"table": {**TABLE, **table}}})


def test_a_campaign_stores_what_its_table_is():
    bins, exact = campaign(), campaign(kind="exact")
    assert len(bins.physics.site.conditions.direction) == 360
    assert bins.fingerprint(0, 0) == campaign(kind="bins").fingerprint(0, 0) != exact.fingerprint(0, 0)
    for made in (bins, exact):
        again = Campaign.from_text(made.frozen_text(), "frozen")
        assert again.physics.site.settings() == made.physics.site.settings()
        assert again.fingerprint(0, 0) == made.fingerprint(0, 0)
    assert campaign(wind_speeds_m_s=[7, 9, 11], speed_bins="edges").fingerprint(0, 0) == bins.fingerprint(0, 0)


def test_old_frozen_tables_are_exact(tmp_path):
    """Versions without bins wrote tables that do not say what they are; their results must stay theirs."""
    exact = campaign(kind="exact")
    text = exact.frozen_text().replace("    kind: exact\n", "").replace("    speed_bins: centres\n", "")
    assert "kind" not in text
    assert "speed_bins" not in text
    (tmp_path / "campaign.yaml").write_text(text)
    for old in (Campaign.from_text(text, "frozen"), load(tmp_path / "campaign.yaml")):
        assert old.physics.site.settings()["kind"] == "exact"
        assert old.fingerprint(0, 0) == exact.fingerprint(0, 0)
