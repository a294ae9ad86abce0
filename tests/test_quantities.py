"""One name per quantity, and its unit: in arrays, tables, JSON and HDF5 files. Old Python names work with a warning."""

import json
import warnings

import h5py
import numpy as np
import pytest
import xarray

import leeward
from evaluation_cases import evaluation, store_study
from export_cases import make_run
from foreign_files import own_result, write_own_file
from leeward.campaign import load
from leeward.export import export_layouts, open_results
from leeward.export.study import COLUMNS as STUDY_COLUMNS
from leeward.formats.rows import LAYOUT_COLUMNS, TURBINE_COLUMNS
from leeward.store import Evaluation, Result, read_files
from leeward.store.directory.shards import shard_bytes
from leeward.store.merging.writer import write_merged
from leeward.wind import Turbine, WindFarm
from run_cases import leeward_here

OLD = {
    "aep",
    "diameter",
    "hub_height",
    "rated_power",
    "x",
    "y",
    "loss",
    "ss_seed",
    "best_aep",
    "median_aep",
    "mean_aep",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), seeds=1)


def names_in(data):
    """Return all keys of nested JSON."""
    if isinstance(data, dict):
        return set(data).union(*map(names_in, data.values()))
    return set().union(*map(names_in, data)) if isinstance(data, list) else set()


def check_units(data, columns):
    """Check that the variables of a dataset are columns of the table, with the same units."""
    known = {column.name: column.unit for column in columns}
    for name, variable in data.variables.items():
        if variable.dtype.kind == "f" and name in known:
            assert variable.attrs.get("units", "") == known[name], name
    assert set(data.data_vars) <= {*known, "crs"}


# --- arrays and tables -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_layouts_as_arrays_and_tables(folder, tmp_path):
    columns = (*LAYOUT_COLUMNS, *TURBINE_COLUMNS)
    with open_results(folder / "layouts.run") as layouts:
        data = layouts.to_xarray()
        check_units(data, columns)
        assert set(layouts.to_pandas()) <= {column.name for column in LAYOUT_COLUMNS}
        assert set(layouts.to_pandas("turbine")) <= {column.name for column in TURBINE_COLUMNS}
        export_layouts(layouts, tmp_path / "a.nc", load(folder / "campaign.yaml"))
    with xarray.open_dataset(tmp_path / "a.nc") as stored:
        check_units(stored, columns)
        assert {"x_m", "y_m", "aep_gwh", "rotor_diameter_m", "hub_height_m", "rated_power_mw"} <= set(stored.data_vars)
        assert OLD.isdisjoint(stored.variables)


def test_a_study_as_arrays_and_tables(tmp_path):
    store_study(tmp_path, [evaluation(0, 0), evaluation(0, 1)])
    with leeward.open_study(tmp_path / "study.h5") as study, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the toy study has no inputs
        data, table = study.to_xarray(), study.to_pandas()
    for name in ("aep_gwh", "gross_aep_gwh", "wake_loss"):
        assert name in table
    units = {name: variable.attrs.get("units") for name, variable in data.data_vars.items()}
    power = dict.fromkeys(("window_power_mw", "farm_power_mw", "turbine_power_mw"), "MW")
    assert units == {"aep_gwh": "GWh", "gross_aep_gwh": "GWh", "wake_loss": "1", **power}
    assert data.weight.attrs["units"] == "1"
    known = {column.name: column.unit for column in STUDY_COLUMNS}
    assert all(known[name] == unit for name, unit in units.items() if name in known)


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_json(folder):
    seen = json.loads(leeward_here("status", "layouts.run", "--json", cwd=folder).stdout)
    assert {"best_aep_gwh", "median_aep_gwh", "installed_mw", "capacity_factor"} <= set(seen["cells"][0])
    yields = json.loads(leeward_here("aep", "--json", cwd=folder).stdout)
    assert {"aep_gwh", "gross_aep_gwh", "wake_loss", "n_turbines", "seed"} <= set(yields["layouts"][0])
    lines = leeward_here("run", "campaign.yaml", "-o", "again.h5", "--json", cwd=folder).stdout.splitlines()
    events = list(map(json.loads, lines))
    done = next(event for event in events if event["event"] == "done")
    result = leeward.open_layouts(folder / "again.h5")[done["key"]]
    assert (done["aep_gwh"], done["rotor_diameter_m"]) == (result.aep_gwh, result.rotor_diameter_m)
    for printed in (seen, yields, events):
        assert OLD.isdisjoint(names_in(printed))


# --- HDF5 files ------------------------------------------------------------------------------------------------------


def units_in(path, key):
    with h5py.File(path) as file:
        return {name: one.attrs["units"].decode() for name, one in file[key].items()}


def test_units_in_files(tmp_path):
    results = [own_result(seed=seed) for seed in range(6)]  # the last ones are copies of a template
    write_merged(tmp_path / "layouts.h5", results, {})
    shard = tmp_path / "shard.h5"
    shard.write_bytes(shard_bytes(results[0]))
    for path, key in ((tmp_path / "layouts.h5", "farm0_t0_s5"), (shard, "farm0_t0_s0")):
        assert units_in(path, key) == Result.UNITS == {"layout": "m", "aep": "GWh", "history": "steps, GWh"}
    write_merged(tmp_path / "study.h5", [evaluation(0, 0)], {})
    assert units_in(tmp_path / "study.h5", "target0_scenario0") == Evaluation.UNITS
    assert set(Evaluation.UNITS) == set(Evaluation.DATASETS)


@pytest.mark.parametrize("unit", ["GWh", "MWh", 5, None])
def test_units_are_compared_but_not_sealed(unit, tmp_path):
    path = write_own_file(tmp_path / "layouts.h5", [own_result()])
    with h5py.File(path, "r+", libver="v110") as file:
        aep = file["farm0_t0_s0/aep"]
        del aep.attrs["units"]  # older files have none
        if unit is not None:
            aep.attrs["units"] = np.bytes_(unit) if isinstance(unit, str) else unit
    found, about = read_files([path], contents=True)
    assert found.result.seal == own_result().seal
    assert found.is_verified
    is_right = unit in ("GWh", None)
    assert about.reason == ("" if is_right else "ignored in it: the attribute units of aep in farm0_t0_s0")


# --- old names -------------------------------------------------------------------------------------------------------


def old_names(folder):
    """Yield an object, an old name, a new name, and the arguments if they name a method."""
    result = own_result()
    yield from ((result, "aep", "aep_gwh", None), (result, "diameter", "rotor_diameter_m", None))
    one = evaluation(0, 0)
    yield from ((one, "aep", "case_aep_gwh", ("all",)), (one, "loss", "wake_loss", ("all",)))
    physics = load(folder / "campaign.yaml").physics
    yield physics, "diameter", "rotor_diameter_m", (1,)
    farm = WindFarm(physics.site, Turbine.generic(15, 240, 150), "no_wake")
    x, y = np.array([0.0, 2000.0]), np.zeros(2)
    yield farm, "aep", "aep_gwh", (x, y)
    yield farm, "next_turbine_aep", "next_turbine_aep_gwh", (x, y, [5000.0], [0.0])
    yield farm.next_turbine_map([5000.0], [0.0]), "aep", "aep_gwh", (x, y)
    yield farm.simulate(x, y, per_condition=True), "condition_free_power_mw", "condition_gross_power_mw", None


def test_old_names_still_work_with_a_warning(folder):
    for owner, old, new, arguments in old_names(folder):
        with pytest.warns(DeprecationWarning, match=rf"{old} is now called \w+\.{new}"):
            before = getattr(owner, old)
        now = getattr(owner, new)
        np.testing.assert_array_equal(*((before, now) if arguments is None else (before(*arguments), now(*arguments))))
    with pytest.warns(DeprecationWarning, match=r"Campaign\.physics\.rotor_diameter_m"):
        assert load(folder / "campaign.yaml").diameter(0) == 195.0
