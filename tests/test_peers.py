"""Layouts as models of PyWake and FLORIS."""

import sys

import numpy as np
import pytest

from export_cases import LEFT, LOW, campaign_data, make_run
from leeward.campaign import load, open_layouts
from leeward.errors import InputError
from leeward.export.write import export_layouts
from leeward.peers.floris import floris_case
from leeward.peers.pywake import pywake_case
from leeward.peers.setup import Setup
from leeward.wind import Site, Turbine, WindFarm
from test_export_plants import CASES, CUBIC, NEIGHBOURS, X, Y, needs_floris, needs_pywake

EVEN = {
    "kind": "exact",
    "wind_directions_deg": [0.0, 120.0, 240.0],
    "wind_speeds_m_s": [8.0, 12.0],
    "probability": [[0.1, 0.2], [0.1, 0.1], [0.3, 0.2]],
    "turbulence_intensity": [[0.06, 0.05], [0.1, 0.09], [0.08, 0.07]],
}
MORE = {
    "even table": {"site": {"table": EVEN}},
    "sectors": {"site": {"table": {**EVEN, "kind": "bins"}}},
    "cubic turbine": {"turbines": [CUBIC]},
}


QUICK = ("table", "neighbours", "cubic turbine")


def slow_unless_quick(case):
    return case if case in QUICK else pytest.param(case, marks=pytest.mark.slow)


@needs_pywake
@pytest.mark.parametrize("case", [slow_unless_quick(case) for case in (*CASES, *MORE)])
def test_pywake_has_the_same_aep(case):
    """Every wake model, every kind of site, curves of all kinds, neighbours."""
    campaign = load(campaign_data(**{**CASES, **MORE}[case]))
    aep = campaign.problem(0, 0).farm.aep_gwh(X, Y)
    found = campaign.to_pywake(0, 0, X, Y)
    assert found.aep_gwh() == pytest.approx(aep, rel=1e-9)
    model, layout = found
    power = model(**layout).aep().values
    assert power[: len(X)].sum() == pytest.approx(aep, rel=1e-9)
    assert (len(layout["x"]) > len(X)) == (case == "neighbours")
    if case != "no wake":
        assert campaign.to_pywake(0, 0, X * 1.001, Y).aep_gwh() != pytest.approx(aep, rel=1e-9)


@pytest.mark.slow
@needs_pywake
@pytest.mark.parametrize("steps", [3, 4, 5])
def test_as_many_steps_as_turbines(steps):
    """PyWake would take four turbulence intensities for those of the four turbines."""
    site = Site.from_time_series([270.0] * steps, [8.0] * steps, [0.02, 0.1, 0.2, 0.3, 0.4][:steps])
    farm = WindFarm(site, Turbine.generic(10, 195, 121))
    x = LEFT + np.arange(4) * 800.0
    found = pywake_case(Setup(farm, x, np.full(4, LOW)))
    assert found.aep_gwh() == pytest.approx(farm.aep_gwh(x, np.full(4, LOW)), rel=1e-9)


def test_bad_positions():
    campaign = load(campaign_data())
    for x, y, says in (([0.0, float("nan")], [0.0, 0.0], "is nan"), ([0.0, 1000.0], [0.0], "x has 2 coord")):
        with pytest.raises(InputError, match=says):
            campaign.setup(0, x, y)


@pytest.mark.slow
@needs_pywake
def test_farms_of_several_types():
    site = Site.from_time_series([260.0, 270.0], [8.0, 9.0], 0.08, [0.3, 0.4])
    turbines = [Turbine.generic(10, 195, 121), Turbine.generic(15, 240, 150)] * 2
    farm = WindFarm(site, turbines, "jensen")
    found = pywake_case(Setup(farm, X, Y))
    assert found.layout["type"].tolist() == [0, 1, 0, 1]
    assert found.aep_gwh() == pytest.approx(farm.aep_gwh(X, Y), rel=1e-9)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"turbines": campaign_data()["turbines"][:1], "seeds": 1, "neighbours": NEIGHBOURS}
    return make_run(tmp_path_factory.mktemp("run"), **settings)


@needs_pywake
def test_stored_layouts_in_pywake(run):
    """A file of results is enough: it holds its campaign."""
    with open_layouts(run / "layouts.h5") as layouts:
        for key, result in layouts.items():
            assert layouts.to_pywake(key).aep_gwh() == pytest.approx(result.aep_gwh, rel=1e-9)
        assert layouts.to_pywake("farm1_t0_s0").n_turbines == 5
        with pytest.raises(KeyError, match="no result farm7_t0_s0"):
            layouts.to_pywake("farm7_t0_s0")
        campaign = layouts.campaign
    _, layout = campaign.to_pywake(0, 0)
    assert layout["x"].tolist() == NEIGHBOURS[0]["x_m"]  # the farm's own turbines are the caller's
    assert {"x", "y", "type", "wd", "ws"} == set(layout)
    with pytest.raises(InputError, match="farm_idx is 9"):
        campaign.to_pywake(9, 0)


def test_results_without_a_campaign(tmp_path, run):
    from leeward.campaign.layouts import CampaignLayouts

    with CampaignLayouts(run / "layouts.h5") as layouts:
        layouts.campaign_text = ""
        with pytest.raises(InputError, match="does not hold its campaign; use the methods of a campaign"):
            layouts.to_pywake("farm0_t0_s0")


def test_without_pywake_and_floris(monkeypatch):
    campaign = load(campaign_data())
    for name in ("py_wake", "floris"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match="PyWake is not installed; pip install 'py_wake"):
        campaign.to_pywake(0, 0, X, Y)
    with pytest.raises(InputError, match="FLORIS is not installed; pip install 'floris"):
        campaign.to_floris(0, 0, X, Y)


@pytest.mark.slow
@needs_floris
@pytest.mark.parametrize("case", ["weibull", "table", "time series", "neighbours", "jensen"])
def test_floris_has_the_same_gross_yield(case):
    """`run` and `get_farm_AEP` need no other argument where there are no neighbours."""
    campaign = load(campaign_data(**CASES[case]))
    simulation = campaign.problem(0, 0).farm.simulate(X, Y)
    found = campaign.to_floris(0, 0, X, Y)
    model, weights = found
    model.run_no_wake()
    gross = model.get_farm_AEP(turbine_weights=weights) * 1e-9
    assert gross == pytest.approx(simulation.gross_aep_gwh.sum(), rel=1e-6)
    assert found.aep_gwh() == pytest.approx(simulation.total_aep_gwh, rel=0.02)
    if case != "neighbours":
        assert model.get_farm_AEP() * 1e-9 == found.aep_gwh()


@pytest.mark.slow
@needs_floris
def test_mixed_types_in_floris():
    site = Site.from_time_series([260.0, 270.0], [8.0, 9.0], 0.08)
    turbines = [Turbine.generic(10, 195, 121), Turbine.generic(15, 240, 150)] * 2
    farm = WindFarm(site, turbines, "no_wake")
    assert floris_case(Setup(farm, X, Y)).aep_gwh() == pytest.approx(farm.aep_gwh(X, Y), rel=1e-6)


@pytest.mark.slow
@needs_floris
def test_the_files_for_floris(run, tmp_path):
    """The input and the wind rose beside it give what the model of `to_floris` gives."""
    import pandas
    from floris import FlorisModel

    with open_layouts(run / "layouts.h5") as layouts:
        chosen = layouts.only([next(iter(layouts))])
        export_layouts(chosen, tmp_path / "one.yaml", layouts.campaign, format_name="floris")
        expected = layouts.to_floris("farm0_t0_s0")
    model = FlorisModel(str(tmp_path / "one.yaml"))
    rose = pandas.read_csv(tmp_path / "one_wind_rose.csv")
    model.run()
    weights = expected.turbine_weights
    aep = model.get_farm_AEP(freq=rose["freq"].to_numpy(), turbine_weights=weights) * 1e-9
    assert aep == pytest.approx(expected.aep_gwh(), rel=1e-12)


def test_positions_are_those_of_the_layout():
    campaign = load(campaign_data())
    setup = campaign.setup(0, [LEFT, LEFT + 900.0], [LOW, LOW])
    assert setup.x.tolist() == [LEFT, LEFT + 900.0]
    assert setup.types == [0, 0]


@pytest.mark.slow
@needs_pywake
def test_a_farm_without_a_campaign():
    """For a layout that `optimise` returned."""
    from leeward.peers import to_floris, to_pywake

    farm = WindFarm(Site.from_time_series([260.0, 270.0], [8.0, 9.0], 0.08), Turbine.generic(10, 195, 121))
    assert to_pywake(farm, X, Y).aep_gwh() == pytest.approx(farm.aep_gwh(X, Y), rel=1e-9)
    with pytest.raises(InputError, match="expected"):
        to_pywake(farm, X, Y[:2])
    pytest.importorskip("floris")
    assert to_floris(farm, X, Y).aep_gwh() == pytest.approx(farm.aep_gwh(X, Y), rel=0.05)
