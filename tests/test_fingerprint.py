"""Fingerprints: what counts and what does not; and numbers that do not change unnoticed.

`python tests/test_fingerprint.py --record` writes tests/data/golden.json anew.
"""

import importlib.metadata
import json
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

from campaign_cases import STUDY, load_study
from leeward.campaign import Campaign, builtin_campaign, load
from leeward.campaign.fingerprint import METHOD_VERSION, REFINED_VERSION
from leeward.errors import InputError
from leeward.store.format.keys import Key

GOLDEN = Path(__file__).parent / "data" / "golden.json"
RECORD = "python tests/test_fingerprint.py --record"
NORTH = "polygon_m: [[0, 0], [8000, 0], [8000, 2500], [2500, 2500], [2500, 8000], [0, 8000]]"


def print_of(campaign):
    return campaign.fingerprint(0, 0)


@pytest.fixture
def usual(tmp_path):
    return print_of(load_study(tmp_path))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weibull_k: [2, 2.1", "weibull_k: [2, 2.10000001"),
        ("0.08", "0.09"),
        ("[8, 11]", "[8, 11, 12]"),
        ("[8000, 0]", "[8000.001, 0]"),
        ("rated_power_mw: 15", "rated_power_mw: 15.5"),
        ("hub_height_m: 150", "hub_height_m: 151"),
        ("turbines_per_farm: 12", "turbines_per_farm: 11"),
        ("spacing_diameters: 3", "spacing_diameters: 3.1"),
        ("seeds: 2", "wake_model: {name: nygaard_2022, expansion: 0.05}"),
        ("seeds: 2", "wake_model: jensen"),
        ("seeds: 2", "optimiser: {effort: fast}"),
        ("seeds: 2", "optimiser: {recipe: random+refine}"),
        ("seeds: 2", "optimiser: {grid_size: 20}"),
        ("seeds: 2", "optimiser: {random_pct: 31}"),
        ("seeds: 2", "optimiser: {work: 1000}"),
        ("seeds: 2", "neighbours: [{x_m: [-3000], y_m: [0], turbine: 0}]"),
    ],
)
def test_what_counts(tmp_path, usual, old, new):
    assert print_of(load_study(tmp_path, (old, new))) != usual


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: study", "name: other"),
        ("name: north", "name: south"),
        ("name: north", "farm_idx: 0"),
        ("mw: 15,", "mw: 15.0, name: big, turbulence_intensity: 0.1,"),
        ("turbulence_intensity: 0.08", "turbulence_intensity: [0.08, 0.08, 0.08, 0.08]"),
        ("turbines_per_farm: 12", "capacity_mw: 187"),
        ("seeds: 2", "seeds: 100:200"),
        ("seeds: 2", "wake_model: {name: nygaard_2022, expansion: 0.04}"),
        ("seeds: 2", "execution: {workers: 3, engine: inline, timeout_s: 9, retries: 0}"),
        ("[[0, 0], [8000, 0], [8000, 2500]", "[[0, 0], [8000, -0.0], [8000, 2500]"),
        ("[[0, 0], [8000, 0], [8000, 2500], [2500, 2500]", "[[8000, 0], [8000, 2500], [2500, 2500]"),
    ],
)
def test_what_does_not_count(tmp_path, usual, old, new):
    more = (("[0, 8000]]", "[0, 8000], [0, 0]]"),) if new.startswith("[[8000, 0]") else ()
    assert print_of(load_study(tmp_path, (old, new), *more)) == usual


def test_settings_that_a_recipe_does_not_look_at(tmp_path):
    def of(settings):
        return print_of(load_study(tmp_path, more=f"optimiser: {{{settings}}}\n"))

    assert of("recipe: random") == of("recipe: random, effort: fast, grid_size: 5, random_pct: 5")
    assert of("recipe: smart_start") == of("recipe: smart_start, effort: fast")
    assert of("recipe: random+refine") == of("recipe: random+refine, grid_size: 5")


def test_growth_leaves_fingerprints_alone(tmp_path, usual):
    other = "{farm_idx: 9, polygon_m: [[0, 0], [9000, 0], [0, 9000]]}"
    small = "{type_idx: 4, rated_power_mw: 10, rotor_diameter_m: 195, hub_height_m: 121}"
    grown = load_study(
        tmp_path,
        ("farms:\n  - name: north", f"farms:\n  - {other}\n  - farm_idx: 0"),
        ("turbines:\n  - {", f"turbines:\n  - {small}\n  - {{type_idx: 0, "),
        ("seeds: 2", "seeds: 50"),
    )
    assert grown.n_tasks == 200
    assert grown.fingerprint(0, 0) == usual
    assert len({grown.fingerprint(farm, kind) for farm in (0, 9) for kind in (0, 4)}) == 4


def test_site_file_or_figures(tmp_path, site_file, site_figures):
    lines = STUDY.splitlines(keepends=True)
    weibull = "".join(lines[2:9])
    names = ("sector_frequency", "weibull_a_m_s", "weibull_k", "turbulence_intensity")
    figures = {name: site_figures[name] for name in names}
    inline = load_study(tmp_path, (weibull, f"  weibull: {json.dumps(figures)}\n"))
    assert print_of(load_study(tmp_path, (weibull, f"  file: {site_file}\n"))) == print_of(inline)
    built_in = load_study(tmp_path, ("site:\n" + weibull, "site: danish-energy-island\n"))
    assert print_of(built_in) == print_of(inline)
    other = load_study(tmp_path, (weibull, f"  file: {site_file}\n  interpolation: linear\n"))
    assert print_of(other) != print_of(inline)


def test_geojson_file_or_figures(tmp_path, usual):
    ring = [[0, 0], [8000, 0], [8000, 2500], [2500, 2500], [2500, 8000], [0, 8000]]
    geometry = {"type": "Polygon", "coordinates": [ring], "crs": None}
    for name in ("a.geojson", "b.geojson"):
        (tmp_path / name).write_text(json.dumps(geometry))
        assert print_of(load_study(tmp_path, (NORTH, f"file: {name}"))) == usual
    assert print_of(load_study(tmp_path, (NORTH, f"geojson: {json.dumps(geometry)}"))) == usual


def test_contents_of_files_count_and_paths_do_not(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.yaml").write_text("{rated_power_mw: 15, rotor_diameter_m: 240, hub_height_m: 150}")
    generic = "{rated_power_mw: 15, rotor_diameter_m: 240, hub_height_m: 150}"
    one, two = (load_study(tmp_path, (generic, f"{{file: {folder}/t.yaml}}")) for folder in ("one", "two"))
    assert print_of(one) == print_of(two)
    frozen = one.frozen_text()
    (tmp_path / "one" / "t.yaml").write_text("{rated_power_mw: 14, rotor_diameter_m: 240, hub_height_m: 150}")
    changed = load_study(tmp_path, (generic, "{file: one/t.yaml}"))
    assert print_of(changed) != print_of(two)
    assert print_of(Campaign.from_text(frozen, "frozen")) == print_of(two)
    assert changed.differences(two, 0, 0) == ["turbine.rated_power_mw: 14.0, was 15.0"]


def test_differences(tmp_path):
    old = load_study(tmp_path)
    new = load_study(tmp_path, ("2500, 8000", "2500, 8001"), ("seeds: 2", "wake_model: jensen"))
    said = new.differences(old, 0, 0)
    assert "wake_model.name: 'jensen', was 'nygaard_2022'" in said
    assert "wake_model.thrust_limit: not set, was 0.96" in said
    assert any(line.startswith("area.parts: [{'rings_m': ") and len(line) < 200 for line in said)
    assert old.differences(old, 0, 0) == []


def test_settings_are_json(tmp_path):
    settings = load_study(tmp_path).settings(0, 0)
    assert settings["method_version"] == REFINED_VERSION
    assert json.loads(json.dumps(settings)) == settings


ROWS = """\
from pathlib import Path

import numpy as np

Path(__file__).with_name("imported").touch()


def in_a_row(problem, seed):
    return np.linspace(100, 7900, problem.n_turbines), np.full(problem.n_turbines, 1000.0 + seed)
"""


def test_a_recipe_of_one_s_own(tmp_path, monkeypatch):
    (tmp_path / "my_rows.py").write_text(ROWS)
    campaign = load_study(
        tmp_path, ("turbines_per_farm: 12", "turbines_per_farm: 8"), more="optimiser: {recipe: 'my_rows:in_a_row'}\n"
    )
    assert campaign.import_folders[0] == str(tmp_path)
    frozen = Campaign.from_text(campaign.frozen_text(), "frozen")
    assert print_of(frozen) == print_of(campaign)
    assert "my_rows:in_a_row" in campaign.frozen_text()
    assert not (tmp_path / "imported").exists()  # reading, fingerprints and freezing do not run it
    monkeypatch.syspath_prepend(str(tmp_path))
    solution = frozen.optimise(Key(0, 0, 1))
    assert solution.y[0] == 1001.0
    assert (tmp_path / "imported").exists()
    (tmp_path / "my_rows.py").write_text(ROWS.replace("1000.0", "1500.0"))
    with pytest.raises(InputError, match=r"my_rows\.py, has changed since the campaign was read"):
        campaign.optimise(Key(0, 0, 1))
    assert print_of(load(tmp_path / "study.yaml")) != print_of(campaign)
    (tmp_path / "my_rows.py").unlink()
    assert print_of(Campaign.from_text(campaign.frozen_text(), "frozen")) == print_of(campaign)


def test_a_recipe_in_a_package_is_found_without_importing_it(tmp_path):
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "rows.py").write_text("raise RuntimeError('imported')\n")
    campaign = load_study(tmp_path, more="optimiser: {recipe: 'my_package.rows:f'}\n")
    assert len(campaign.settings(0, 0)["optimiser"]["recipe_sha256"]) == 64


def computed():
    """Quick results that stand for all: SmartStart of the built-in campaign, and a refined layout of a small one."""
    start = builtin_campaign().with_overrides(recipe="smart_start").optimise(Key(0, 5, 0))
    refined = load(_study_data()).optimise(Key(0, 0, 1))
    return {
        name: {"x_m": solution.x.tolist(), "y_m": solution.y.tolist(), "aep_gwh": solution.aep_gwh}
        for name, solution in (("smart_start", start), ("refined", refined))
    }


def _study_data():
    import yaml

    return {**yaml.safe_load(STUDY), "optimiser": {"effort": "fast"}}


def surroundings():
    """What the last bits of a refined layout hang on."""
    import numba

    return {
        "cpu": numba.core.config.CPU_NAME or _cpu(),
        "machine": platform.machine(),
        "numpy": np.__version__,
        "numba": importlib.metadata.version("numba"),
    }


def _cpu():
    import llvmlite.binding

    return llvmlite.binding.get_host_cpu_name()


def test_numbers_change_only_with_the_method_version():
    """SmartStart's layout is one of grid points, and the same everywhere. A refined one is the outcome of hundreds of
    steps, each of which may differ in its last bit on another CPU, numpy or numba: there its AEP must only be near.
    """
    golden = json.loads(GOLDEN.read_text())
    assert golden["method_versions"] == [METHOD_VERSION, REFINED_VERSION], f"one was raised: run `{RECORD}`"
    found = computed()
    same = golden["surroundings"] == surroundings()
    start, refined = golden["results"]["smart_start"], golden["results"]["refined"]
    says = (
        "numbers changed: raise METHOD_VERSION or, if only refined layouts changed, REFINED_VERSION in "
        f"leeward/campaign/fingerprint.py, and run `{RECORD}` to record them"
    )
    for axis in ("x_m", "y_m"):
        assert found["smart_start"][axis] == pytest.approx(start[axis], rel=0, abs=1e-6), says
    assert found["smart_start"]["aep_gwh"] == pytest.approx(start["aep_gwh"], rel=1e-9), says
    assert found["refined"]["aep_gwh"] == pytest.approx(refined["aep_gwh"], rel=1e-9 if same else 5e-3), says


def record():
    versions = [METHOD_VERSION, REFINED_VERSION]
    content = {"method_versions": versions, "surroundings": surroundings(), "results": computed()}
    GOLDEN.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    else:
        sys.exit(f"usage: {RECORD}")
