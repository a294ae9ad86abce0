"""The Python blocks of docs/coming-from.md run in order, and the programs agree as the page promises."""

import contextlib
import importlib.util
import io
import re

import numpy as np
import pytest

from test_tutorials import BLOCK, ROOT

PAGE = (ROOT / "docs" / "coming-from.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
NEEDED = {
    "PyWake": ["py_wake"],
    "TopFarm": ["py_wake", "topfarm"],
    "FLORIS": ["floris"],
    "Back to PyWake and FLORIS": ["py_wake", "floris"],
}


def names_after(section, folder):
    """Run the blocks of a section in one namespace, and return it."""
    for package in NEEDED[section]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    names = {}
    blocks = [text for language, _, text in BLOCK.findall(SECTIONS[section]) if language == "python"]
    assert blocks
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        for text in blocks:
            exec(compile(text, f"coming-from.md, {section}", "exec"), names)
    assert printed.getvalue()
    return names


def test_every_block_is_run():
    assert {name for name, text in SECTIONS.items() if "```" in text} == set(NEEDED)


@pytest.mark.slow
def test_pywake(tmp_path):
    n = names_after("PyWake", tmp_path)
    assert n["simulation"].total_aep_gwh == pytest.approx(n["pywake_gwh"], rel=1e-9)
    assert n["farm"].aep_gwh(n["x"], n["y"]) == pytest.approx(n["pywake_gwh"], rel=1e-9)
    assert n["simulation"].total_wake_loss == pytest.approx(n["pywake_loss"], abs=1e-9)
    assert n["gradient_difference"] < 1e-9
    assert n["power_difference_mw"] < 1e-9
    assert n["steps"].total_aep_gwh == pytest.approx(float(n["series"].aep().sum()), rel=1e-9)
    assert n["local_gwh"] == pytest.approx(n["ridge_gwh"], rel=1e-9)
    # what the page says about the gradient below the first point of a curve, and about the sum of probabilities
    _, by_x, _ = n["farm"].aep_gradient(n["x"], n["y"])
    theirs = n["wfm"].aep_gradients(wrt_arg=["x", "y"], x=n["x"], y=n["y"])
    assert 5e-4 < np.abs(by_x - theirs[0]).max() / np.abs(by_x).max() < 2e-3
    assert n["result"].P.values.sum() == pytest.approx(n["site"].conditions.weight.sum(), rel=1e-9)
    assert n["site"].conditions.weight.sum() == pytest.approx(1 - 0.026, abs=5e-4)


@pytest.mark.slow
def test_topfarm(tmp_path):
    n = names_after("TopFarm", tmp_path)
    assert n["start_difference_m"] < 1e-9
    assert n["farm"].aep_gwh(n["state"]["x"], n["state"]["y"]) == pytest.approx(-n["topfarm_cost"], rel=1e-9)
    assert n["solution"].aep_gwh >= -n["topfarm_cost"]
    assert n["problem"].violation(n["solution"].x, n["solution"].y).is_feasible


@pytest.mark.slow
def test_floris(tmp_path):
    n = names_after("FLORIS", tmp_path)
    assert n["simulation"].gross_aep_gwh.sum() == pytest.approx(n["floris_gross_gwh"], rel=1e-9)
    assert 1e-5 < abs(n["simulation"].total_aep_gwh / n["floris_gwh"] - 1) < 0.01  # the wake models differ


@pytest.mark.slow
def test_back(tmp_path):
    n = names_after("Back to PyWake and FLORIS", tmp_path)
    assert n["pywake_gwh"] == pytest.approx(n["stored_gwh"], rel=1e-9)
    shifted = n["campaign"].problem(0, 0).farm.aep_gwh(n["result"].x + 100, n["result"].y)
    assert float(n["shifted"](**n["arguments"]).aep().sum()) == pytest.approx(shifted, rel=1e-9)
    assert n["floris_case"].aep_gwh() == pytest.approx(n["stored_gwh"], rel=0.01)
    assert (n["turbine_weights"] == 1).all()


@pytest.mark.slow
def test_wake_models_of_the_table():
    """The table pairs models of PyWake with those of leeward; each pair has the same AEP."""
    if importlib.util.find_spec("py_wake") is None:
        pytest.skip("py_wake is not installed")
    from py_wake import literature
    from py_wake.deficit_models import BastankhahGaussianDeficit, IEA37SimpleBastankhahGaussianDeficit, NoWakeDeficit
    from py_wake.examples.data.hornsrev1 import V80, Hornsrev1Site
    from py_wake.superposition_models import SquaredSum
    from py_wake.wind_farm_models import PropagateDownwind

    from leeward.wind import Site, Turbine, WindFarm
    from leeward.wind.wake_models import BastankhahGaussian

    x, y = [0, 700, 1500, 100], [0, 150, -50, 600]
    there = Hornsrev1Site(), V80()
    here = Site.from_pywake(there[0]), Turbine.from_pywake(there[1])
    paper = BastankhahGaussian(
        expansion=0.04, induction="momentum", reference_speed="effective", superposition="linear"
    )
    for theirs, ours in (
        (literature.Nygaard_2022(*there), "nygaard_2022"),
        (literature.Jensen_1983(*there), "jensen"),
        (PropagateDownwind(*there, BastankhahGaussianDeficit(), SquaredSum()), "bastankhah_gaussian"),
        (PropagateDownwind(*there, BastankhahGaussianDeficit()), BastankhahGaussian(superposition="linear")),
        (literature.Bastankhah_PorteAgel_2014(*there, k=0.04), paper),
        (PropagateDownwind(*there, IEA37SimpleBastankhahGaussianDeficit(), SquaredSum()), "iea37_gaussian"),
        (PropagateDownwind(*there, NoWakeDeficit()), "no_wake"),
    ):
        assert WindFarm(*here, ours).aep_gwh(x, y) == pytest.approx(float(theirs(x, y).aep().sum()), rel=1e-9), ours
