"""Studies in wind that varies over the site: equal to the wake engine, from scenarios to stored results."""

import json

import numpy as np
import pytest

import field_cases as cases
from field_cases import CASES, STEPS, Case
from leeward.errors import InputError
from leeward.store import EvaluationKey
from leeward.study import load_study
from leeward.study.spec import WindSpec
from leeward.study.wind import site_wind, wind_differences
from leeward.wind import Neighbours, Shear, Site, Turbine, WindFarm, scenarios
from leeward.wind.scenarios import Group, ScenarioFarm
from run_cases import leeward_here, results
from small_studies import write_study
from test_scenarios import LARGE, SMALL, THRUSTLESS

DIRECTIONS = np.arange(0.0, 360.0, 15.0)
SPEEDS = np.arange(4.0, 17.0, 2.0)
TARGET = 4
KINDS = (
    "weibull",
    "everything",
    "local bins linear",
    "turbulence at 15 m/s",
    "table linear",
    "power shear on a speed-up",
    "series",
    "series with linear speed-up",
    "terrain following with speed-up",
)


def site_of(name):
    return CASES[name].site(DIRECTIONS, SPEEDS)


def around():
    """Return a target, and three groups of neighbours between its turbines; two of them stand part of the time."""
    x, y = cases.layout(12, 1, apart_m=600.0)
    parts = [slice(TARGET, 7), slice(7, 9), slice(9, 12)]
    kinds = [LARGE, [SMALL, LARGE], SMALL]
    rows = [(0, None), (5, 20), (11, None)]
    groups = [Group(x[part], y[part], kind, *row) for part, kind, row in zip(parts, kinds, rows, strict=True)]
    return x[:TARGET], y[:TARGET], groups


def standing(groups, row):
    return tuple(one.first <= row and (one.end is None or row < one.end) for one in groups)


def farm_among(site, turbine, model, groups):
    """Return the farm with all of these neighbours."""
    if not groups:
        return WindFarm(site, turbine, model)
    types = [
        t for one in groups for t in ([one.turbine] * len(one.x) if isinstance(one.turbine, Turbine) else one.turbine)
    ]
    x, y = (np.concatenate([getattr(one, axis) for one in groups]) for axis in "xy")
    return WindFarm(site, turbine, model, neighbours=Neighbours(x, y, types))


def simulated(site, turbine, model, x, y, groups):
    """Return the power in each condition with the neighbours that stand then, from a farm for each set of them."""
    rows = len(site.conditions.direction)
    sets = [standing(groups, row) for row in range(rows)]
    power = np.empty((len(x), *site.conditions.speed.shape))
    for each in set(sets):
        chosen = np.array([one == each for one in sets])
        farm = farm_among(site, turbine, model, [one for one, stands in zip(groups, each, strict=True) if stands])
        power[:, chosen] = farm.simulate(x, y, per_condition=True).condition_power_mw[:, chosen]
    return power


def assert_cases(site, model, x, y, groups):
    """Compare all cases, and their AEP, with farms among the neighbours that stand."""
    farm = ScenarioFarm(site, SMALL, x, y, model, types=[LARGE])
    found = farm.evaluate(groups)
    weight = WindFarm(site, SMALL, model).simulate(x, y, per_condition=True).condition_weight
    turbines = {"all": SMALL, "external": THRUSTLESS, "internal": SMALL, "none": THRUSTLESS}
    for case, turbine in turbines.items():
        power = simulated(site, turbine, model, x, y, groups if case in ("all", "external") else [])
        np.testing.assert_allclose(found[case], power, rtol=1e-12, atol=1e-12, err_msg=case)
        assert farm.aep_gwh(found[case]) == pytest.approx((power * weight).sum() * 8.76, rel=1e-12)
    assert (found["all"] < found["external"] - 1e-3).any()
    assert (found["all"] < found["internal"] - 1e-3).any()
    return farm, found


@pytest.mark.parametrize("name", KINDS)
def test_every_case_equals_the_wake_engine(name):
    site = site_of(name)
    x, y, groups = around()
    farm, found = assert_cases(site, "nygaard_2022", x, y, groups)
    internal = WindFarm(site, SMALL).simulate(x, y)
    assert farm.aep_gwh(found["internal"]) == pytest.approx(internal.total_aep_gwh, rel=1e-12)
    assert farm.aep_gwh(found["none"]) == pytest.approx(internal.gross_aep_gwh.sum(), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("model", ["bastankhah_gaussian", "iea37_gaussian", "jensen"])
def test_every_case_of_other_wake_models(model, name):
    assert_cases(site_of(name), model, *around())


def test_aep_of_neighbours_that_always_stand():
    """The AEP of the farm among them, with the weights at each of its turbines."""
    x, y, groups = around()
    groups = [Group(one.x, one.y, one.turbine) for one in groups]
    for name in ("weibull", "table", "series"):
        site = site_of(name)
        farm = ScenarioFarm(site, SMALL, x, y)
        among = farm_among(site, SMALL, "nygaard_2022", groups)
        aep = farm.aep_gwh(farm.evaluate(groups, ["all"])["all"])
        assert aep == pytest.approx(among.aep_gwh(x, y), rel=1e-12)


@pytest.mark.parametrize("name", ["everything", "series", "table linear", "terrain following with speed-up"])
def test_parts_of_the_rows_make_no_difference(name, monkeypatch):
    """To the last bit. Parts of one row, and of some rows, the last of which has fewer."""
    x, y, groups = around()
    site = site_of(name)
    whole = ScenarioFarm(site, SMALL, x, y, types=[LARGE]).evaluate(groups)
    lanes = site.conditions.speed.shape[1]
    for most in (1, 7 * 12 * max(8, lanes)):
        monkeypatch.setattr(scenarios, "MOST_ELEMENTS", most)
        found = ScenarioFarm(site, SMALL, x, y, types=[LARGE]).evaluate(groups)
        for case, power in whole.items():
            np.testing.assert_array_equal(found[case], power, err_msg=case)


def test_many_steps():
    """So many that they are computed in several parts."""
    steps = 90_000
    rng = np.random.default_rng(5)
    chosen = rng.integers(0, STEPS, steps)
    data = cases.series_field().isel(time=chosen).drop_vars("time")
    site = Case(data).site()
    x, y, groups = around()
    groups = [Group(one.x, one.y, one.turbine) for one in groups]
    assert steps * 12 > scenarios.MOST_ELEMENTS
    found = ScenarioFarm(site, SMALL, x, y).evaluate(groups, ["all", "external"])
    few = ScenarioFarm(site_of("series"), SMALL, x, y).evaluate(groups, ["all", "external"])
    for case, power in few.items():
        np.testing.assert_array_equal(found[case], power[:, chosen])


def test_turbines_outside_the_grid():
    x, y, groups = around()
    away = Group([cases.X[0] - 40.0], [cases.Y[0]], SMALL)
    farm = ScenarioFarm(site_of("weibull"), SMALL, x, y)
    with pytest.raises(InputError, match=r"neighbour 3 at \(699960, 6240000\) is 40 m outside the grid"):
        farm.evaluate([groups[0], away])
    with pytest.raises(InputError, match=r"turbine 0 at .* is 1000 m outside the grid"):
        ScenarioFarm(site_of("weibull"), SMALL, x[:1], [cases.Y[0] - 1000.0]).evaluate([groups[0]])
    with pytest.raises(InputError, match=r"hub at 60 m, but the wind in the dataset"):
        ScenarioFarm(site_of("weibull"), Turbine.generic(2, 80, 60), x, y)


# --- stored studies ---

EAST, NORTH = np.linspace(485_000.0, 515_000.0, 7), np.linspace(6_085_000.0, 6_115_000.0, 6)
WEIBULL = cases.weibull_field(EAST, NORTH)
SERIES = cases.series_field(EAST, NORTH).isel(time=slice(40))
BINS = {"wind_directions_deg": DIRECTIONS.tolist(), "wind_speeds_m_s": SPEEDS.tolist()}
SITE = {"site": {"file": "field.nc", **BINS}}
STEPPED = {"site": {"file": "field.nc"}, "hours_per_step": 24, "start": "2020-02-20"}
ALL_CASES = ["all", "external", "internal"]


def made(folder, dataset, wind, **changes):
    dataset.to_netcdf(folder / "field.nc", engine="h5netcdf")
    wind = {**wind, "site": {**wind["site"], "file": str(folder / "field.nc")}}
    if "hours_per_step" not in wind:
        changes = {"keep": ["aep"], "windows": {}, **changes}
    return write_study(folder, wind=wind, **changes)


def ran(folder, *arguments):
    done = leeward_here(*arguments, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


LISTED = [  # of neighbours of each scenario
    {"neighbours": [{"farm": 1, "type": 0, "seed": 1}, {"farm": 2, "type": 1, "seed": 0}]},
    {"neighbours": [{"farm": 3, "type": 1, "seed": 2}], "turbulence_intensity": 0.13},
    {"neighbours": [], "turbulence_intensity": 0.13},
]


def assert_stored(study, output, site_of_scenario):
    """Compare the yields of a study with those of farms among the neighbours that stand."""
    stored = results(output)
    assert sorted(stored) == sorted(map(str, study.tasks()))
    for key in study.tasks():
        target, result = study.target(key.target_idx), stored[str(key)]
        near = [Group(one.x, one.y, one.turbine, one.first, one.end) for one in study.neighbours(key.scenario_idx)]
        site = site_of_scenario(key.scenario_idx)
        alone = WindFarm(site, target.turbine).simulate(target.x, target.y, per_condition=True)
        for case, groups in (("all", near), ("internal", [])):
            power = simulated(site, target.turbine, "nygaard_2022", target.x, target.y, groups)
            aep = (power * alone.condition_weight).sum() * 8.76
            assert result.aep_gwh[result.cases.index(case)] == pytest.approx(aep, rel=1e-12), (key, case)
        assert result.gross_aep_gwh == pytest.approx(alone.gross_aep_gwh.sum(), rel=1e-12)


def test_a_study_in_a_field(tmp_path):
    path = made(tmp_path, WEIBULL, SITE, scenarios=LISTED, cases=ALL_CASES)
    ran(tmp_path, "evaluate", "study.yaml", "-o", "study.h5")
    study = load_study(path)
    options = {"directions": DIRECTIONS, "speeds": SPEEDS}
    usual = Site.from_dataset(WEIBULL, **options)
    other = Site.from_dataset(WEIBULL, turbulence_intensity=0.13, **options)
    assert_stored(study, tmp_path / "study.h5", lambda scenario: other if scenario else usual)
    (tmp_path / "field.nc").unlink()
    assert "No errors." in ran(tmp_path, "check", "study.h5", "--deep")
    assert "No errors." in ran(tmp_path, "check", "study.run", "--deep")


def test_a_study_of_a_time_series_on_a_grid(tmp_path):
    """Neighbours that come on a date, windows of the series, and another turbulence intensity."""
    scenarios = [*LISTED, {"neighbours": [{"farm": 1, "type": 1, "seed": 0, "from_date": "2020-03-01"}]}]
    path = made(tmp_path, SERIES, STEPPED, scenarios=scenarios)
    ran(tmp_path, "evaluate", "study.yaml", "-o", "study.h5")
    study = load_study(path)
    assert (study.n_steps, study.times[10]) == (40, "2020-03-01")
    usual, other = (Site.from_dataset(SERIES, turbulence_intensity=value) for value in (None, 0.13))
    assert_stored(study, tmp_path / "study.h5", lambda scenario: other if scenario in (1, 2) else usual)
    stored = results(tmp_path / "study.h5")[str(EvaluationKey(0, 3))]
    power = stored.farm_power_mw[stored.cases.index("all")]
    assert power.mean() * 8.76 == pytest.approx(stored.aep_gwh[stored.cases.index("all")], rel=1e-12)
    one = {"all": stored.cases.index("all"), "internal": stored.cases.index("internal")}
    np.testing.assert_array_equal(*(stored.farm_power_mw[case, :10] for case in one.values()))
    assert (stored.farm_power_mw[one["all"], 10:] < stored.farm_power_mw[one["internal"], 10:]).any()
    (tmp_path / "field.nc").unlink()
    assert "No errors." in ran(tmp_path, "check", "study.h5", "--deep")


def test_a_table_with_shear(tmp_path):
    """It is a site, not a series of steps."""
    table = {
        "wind_directions_deg": [0.0, 120.0, 240.0],
        "wind_speeds_m_s": [8.0, 12.0],
        "probability": [[0.1, 0.2], [0.1, 0.1], [0.3, 0.2]],
        "kind": "exact",
    }
    wind = {"site": {"table": table, "shear": {"exponent": 0.1, "reference_height_m": 100.0}}}
    path = write_study(tmp_path, wind=wind, scenarios=LISTED[:1], cases=ALL_CASES, keep=["aep"], windows={})
    ran(tmp_path, "evaluate", "study.yaml", "-o", "study.h5")
    site = Site.from_table(*(table[name] for name in list(table)[:3]), kind="exact")
    assert_stored(load_study(path), tmp_path / "study.h5", lambda _: site.with_shear(Shear.power(0.1, 100.0)))


def test_the_same_grid_in_another_file(tmp_path):
    """The difference between two studies is told by the values, not by the name of the file."""
    winds = []
    for name, data in (("a", SERIES), ("b", SERIES), ("c", SERIES.assign(TI=1.001 * SERIES["TI"]))):
        (tmp_path / name).mkdir()
        data.to_netcdf(tmp_path / name / f"{name}.nc", engine="h5netcdf")
        spec = WindSpec.model_validate({"site": {"file": str(tmp_path / name / f"{name}.nc")}, "hours_per_step": 24})
        winds.append({"wind": site_wind(spec, tmp_path)})
    assert wind_differences(winds[1], winds[0]) == []
    assert wind_differences(winds[2], winds[0]) == [
        "other turbulence_intensity and values on the grid of wind (40 steps, was 40)"
    ]


def test_the_warm_up_takes_two_steps_of_a_grid(tmp_path, monkeypatch):
    study = load_study(made(tmp_path, SERIES, STEPPED, scenarios=LISTED))
    sites, usual = [], ScenarioFarm.__init__

    def noted(self, site, *arguments, **options):
        sites.append(site)
        usual(self, site, *arguments, **options)

    monkeypatch.setattr(ScenarioFarm, "__init__", noted)
    study.warm_up()
    (site,) = sites
    assert site.field is not None
    assert site.conditions.speed.shape == (2, 1)


def test_the_fingerprint_of_a_study_depends_on_the_values(tmp_path):
    key = EvaluationKey(0, 0)
    found = []
    for number, data in enumerate((SERIES, SERIES, SERIES.assign(TI=1.001 * SERIES["TI"]))):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(load_study(made(folder, data, STEPPED, scenarios=LISTED)).fingerprint(key))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("dataset", "wind", "says"),
    [
        (WEIBULL, STEPPED, "is no time series, so hours_per_step and start do not apply"),
        (SERIES, {"site": {"file": "field.nc"}}, "is a time series on a grid; give hours_per_step"),
        (WEIBULL, {"site": {**SITE["site"], "distances": "elevated"}}, "which needs the elevation of the terrain"),
        (SERIES.assign(weight=("time", np.r_[[0.05] * 10, [0.5 / 30] * 30])), STEPPED, "has weights of time steps"),
    ],
)
def test_bad_winds_of_a_study(dataset, wind, says, tmp_path):
    path = made(tmp_path, dataset, wind, scenarios=LISTED)
    with pytest.raises(InputError, match=says):
        load_study(path)


@pytest.mark.parametrize("part", [slice(2, None), slice(None, 2)], ids=["neighbours", "targets"])
def test_a_grid_that_is_too_small(part, tmp_path):
    """The study is rejected before its first task. The error names scenario, layout and turbine."""
    data = WEIBULL.isel(y=part)
    path = made(tmp_path, data, SITE, scenarios=LISTED)
    whose = r"farm\d_t\d_s\d"
    with pytest.raises(
        InputError, match=rf"scenarios\S* .*{whose}, turbine \d+ at .* is .* m outside the grid of the wind"
    ):
        load_study(path)
    load_study(made(tmp_path, data, {"site": {**SITE["site"], "extrapolate": True}}, scenarios=LISTED))


def test_notes_on_the_wind_of_a_study(tmp_path):
    study = load_study(made(tmp_path, WEIBULL, SITE, scenarios=LISTED))
    assert [remark for remark in study.remarks if "names no coordinate system" in remark]
    text = ran(tmp_path, "evaluate", "study.yaml", "--dry-run")
    assert "wind: Weibull distributions on a grid of 7 × 6 points" in text
    assert "warning: wind: field.nc names no coordinate system" in text
    facts = json.loads(ran(tmp_path, "evaluate", "study.yaml", "--dry-run", "--json"))
    assert facts["warnings"] == list(study.remarks)


def test_the_coordinate_system_of_the_grid_is_another_than_that_of_the_layouts(tmp_path):
    path = made(tmp_path, WEIBULL.assign_attrs(crs="EPSG:25831"), SITE, scenarios=LISTED)
    with pytest.raises(InputError, match=r"the wind is in ETRS89 / UTM zone 31N, but the .* are in EPSG:25832"):
        load_study(path)
    load_study(made(tmp_path, WEIBULL.assign_attrs(crs="EPSG:25832"), SITE, scenarios=LISTED))
