"""Campaigns: tasks, overrides, the built-in one, the frozen text."""

import subprocess
import sys

import numpy as np
import pytest

from campaign_cases import load_study
from leeward.campaign import Campaign, builtin, builtin_campaign, load
from leeward.campaign.seeds import LARGEST_SEED
from leeward.campaign.spec import RECIPES, OptimiserSpec
from leeward.campaign.template import template_text
from leeward.errors import InputError
from leeward.layout.driver import LARGEST_SEED as LAYOUT_LARGEST_SEED
from leeward.layout.recipes import EFFORTS
from leeward.layout.registry import RECIPES as ALL_RECIPES
from leeward.store.format.keys import Key


@pytest.fixture(scope="module")
def built_in():
    return builtin_campaign()


def test_built_in(built_in):
    assert built_in.name == "danish-energy-island"
    assert built_in.crs == "EPSG:25831"
    assert [built_in.physics.n_turbines(3, kind) for kind in built_in.types] == [100, 90, 83, 76, 71, 66]
    assert built_in.n_tasks == 60
    assert built_in.with_overrides(seeds=50).n_tasks == 3000
    assert built_in.farms[0] == "dk0w_tender_3"
    assert built_in.types[5] == "generic 15 MW"
    assert (built_in.spec.optimiser.grid_size, built_in.spec.optimiser.random_pct) == (18, 30.0)
    assert load("danish-energy-island").fingerprint(0, 0) == built_in.fingerprint(0, 0)


def test_built_in_problems_are_those_of_the_library(built_in):
    built_in.check()
    problem = built_in.problem(4, 2)
    assert problem.area == builtin.area(4)
    assert problem.farm.turbine == builtin.turbines()[2]
    np.testing.assert_array_equal(problem.farm.site.conditions.weight, builtin.site().conditions.weight)
    assert problem.min_distances_m[0] == 3 * 214
    assert built_in.problem(4, 2) is problem


def test_tasks_go_seed_by_seed(tmp_path):
    campaign = load_study(tmp_path, ("seeds: 2", "seeds: [7, 3]"))
    assert list(campaign.tasks()) == [Key(0, 0, 7), Key(0, 0, 3)]
    two = builtin_campaign().with_overrides(seeds=2)
    assert [key.seed for key in two.tasks()] == [0] * 60 + [1] * 60
    assert list(two.tasks())[:3] == [Key(0, 0, 0), Key(0, 1, 0), Key(0, 2, 0)]
    assert Key(9, 5, 1) in two
    assert Key(9, 5, 2) not in two
    assert Key(10, 5, 0) not in two
    assert "farm0_t0_s0" not in two


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        ("3", [0, 1, 2]),
        ("[4, 0]", [4, 0]),
        ("10:13", [10, 11, 12]),
        (":2", [0, 1]),
        ("0:6:2", [0, 2, 4]),
        ("{first: 5, count: 2}", [5, 6]),
        (f"[{LARGEST_SEED}]", [LARGEST_SEED]),
    ],
)
def test_seeds(tmp_path, given, seeds):
    campaign = load_study(tmp_path, ("seeds: 2", f"seeds: {given}"))
    assert list(campaign.seeds) == seeds
    assert list(Campaign.from_text(campaign.frozen_text(), "frozen").seeds) == seeds


def test_overrides(tmp_path):
    campaign = load_study(tmp_path)
    other = campaign.with_overrides(
        seeds="5:7", recipe="random", effort="fast", workers=3, engine="inline", timeout_s=5, retries=0
    )
    assert list(other.seeds) == [5, 6]
    asked = {"engine": "inline", "workers": 3, "timeout_s": 5.0, "retries": 0}
    assert other.execution.model_dump(include=set(asked)) == asked
    assert other.execution.model_fields_set == set(asked)  # what nobody asked for is left to the user's defaults
    assert other.settings(0, 0)["optimiser"] == {"recipe": "random"}
    assert other.frozen_text() != campaign.frozen_text()
    assert campaign.with_overrides().frozen_text() == campaign.frozen_text()
    assert list(campaign.with_overrides(seeds=range(4, 6)).seeds) == [4, 5]
    assert list(campaign.with_overrides(seeds=np.array([9, 1])).seeds) == [9, 1]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"seeds": -1}, "seeds is -1"),
        ({"effort": "fats"}, "optimiser.effort is 'fats'; expected one of 'fast', 'normal', 'thorough'"),
        ({"recipe": "smartstart"}, "did you mean smart_start?"),
        ({"workers": 0}, "execution.workers is 0"),
        ({"engine": "cloud"}, "execution.engine is 'cloud'"),
    ],
)
def test_wrong_overrides(tmp_path, overrides, says):
    campaign = load_study(tmp_path)
    with pytest.raises(InputError, match=r"the overrides of .*study.yaml") as caught:
        campaign.with_overrides(**overrides)
    assert says in str(caught.value)


def test_unknown_farm_and_type(tmp_path):
    campaign = load_study(tmp_path)
    with pytest.raises(InputError, match="farm_idx is 3; expected a number of the campaign study: 0"):
        campaign.fingerprint(3, 0)
    with pytest.raises(InputError, match="type_idx is 1"):
        campaign.physics.n_turbines(0, 1)
    with pytest.raises(InputError, match="farm0_t0_s9 is not a task"):
        campaign.optimise(Key(0, 0, 9))


def test_limits_are_those_of_the_optimiser():
    assert LARGEST_SEED == LAYOUT_LARGEST_SEED
    efforts = OptimiserSpec.model_fields["effort"].annotation
    assert set(efforts.__args__) == set(EFFORTS)
    assert set(RECIPES) == {name for name in ALL_RECIPES if not name.startswith("start")}


def test_optimise_is_the_library_s(tmp_path):
    campaign = load_study(tmp_path, more="optimiser: {recipe: smart_start, grid_size: 12, random_pct: 0}\n")
    solution = campaign.optimise(Key(0, 0, 1))
    from leeward.layout import SmartStart, optimise

    expected = optimise(campaign.problem(0, 0), 1, recipe="smart_start", smart_start=SmartStart(12, 0))
    np.testing.assert_array_equal(solution.x, expected.x)
    aep, loss, spacing = campaign.recompute(Key(0, 0, 1), solution.x, solution.y)
    assert (aep, loss, spacing) == (solution.aep_gwh, solution.wake_loss, solution.min_spacing_m)
    with pytest.raises(InputError, match="x has 3 coordinates; expected 12"):
        campaign.recompute(Key(0, 0, 1), [0, 1, 2], [0, 1, 2])


def test_sections_without_keys(tmp_path):
    campaign = load_study(tmp_path, more="optimiser:\nexecution:\n  # workers: 3\n")
    assert campaign.frozen_text() == load_study(tmp_path).frozen_text()


def test_time_budget_is_not_reproducible(tmp_path):
    assert load_study(tmp_path).spec.optimiser.reproducible
    assert not load_study(tmp_path, more="optimiser: {time_budget_s: 5}\n").spec.optimiser.reproducible


def test_frozen_text_is_a_fixed_point(built_in):
    text = built_in.frozen_text()
    again = Campaign.from_text(text, "frozen")
    assert again.frozen_text() == text
    assert list(again.tasks()) == list(built_in.tasks())
    assert {again.fingerprint(f, t) for f in range(10) for t in range(6)} == {
        built_in.fingerprint(f, t) for f in range(10) for t in range(6)
    }
    assert again.problem(7, 1).area == built_in.problem(7, 1).area


def test_frozen_text_that_somebody_loads_from_a_file(tmp_path, built_in):
    path = tmp_path / "frozen.yaml"
    path.write_text(built_in.frozen_text(), encoding="utf-8")
    assert load(path).frozen_text() == built_in.frozen_text()


def test_names_that_look_like_something_else(tmp_path):
    for name in ("no", "1e3", "12:30", "2024-01-01", "~", "yes: no", "Ærø"):
        campaign = load_study(tmp_path, ("name: north", f"name: {name!r}"))
        assert campaign.farms[0] == name
        assert Campaign.from_text(campaign.frozen_text(), "frozen").farms[0] == name


def test_frozen_text_may_not_refer_to_files(tmp_path):
    text = load_study(tmp_path).frozen_text().replace("frozen: true", "frozen: false")
    assert Campaign.from_text(text, "text").n_tasks == 2
    i = text.index("turbines:")
    lines = text[i:].splitlines()
    bad = text[:i] + "turbines:\n- {file: turbine.yaml}\n" + "\n".join(lines[3:]) + "\n"
    with pytest.raises(InputError, match=r"text: line \d+: turbines\[0\] refers to the file turbine.yaml"):
        Campaign.from_text(bad, "text")


def test_listing_a_frozen_campaign_is_light(tmp_path, built_in):
    path = tmp_path / "frozen.yaml"
    path.write_text(built_in.with_overrides(seeds=50).frozen_text(), encoding="utf-8")
    program = (
        "import sys, pathlib; from leeward.campaign import Campaign; "
        "campaign = Campaign.from_text(pathlib.Path(sys.argv[1]).read_text(), 'frozen'); "
        "count = sum(key in campaign for key in campaign.tasks()); "
        "campaign.fingerprint(0, 0); campaign.physics.n_turbines(0, 5); "
        "print(count, [m for m in ('numpy', 'numba', 'shapely', 'xarray', 'pyproj', 'h5py') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=600)
    assert result.stdout.strip() == "3000 []", result.stderr


def test_template(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(template_text(), encoding="utf-8")
    campaign = load(path)
    campaign.check()
    assert campaign.name == "my-campaign"
    assert campaign.n_tasks == 12
    assert campaign.with_overrides(effort="fast").optimise(Key(1, 0, 0)).aep_gwh > 0


def test_template_shows_every_key():
    from leeward.campaign import site_spec, spec

    models = (spec.CampaignSpec, site_spec.WeibullSpec, spec.OptimiserSpec, spec.Execution, spec.GenericTurbine)
    hidden = {"format_version", "frozen", "recipe_sha256", "objective_sha256", "built_in"}
    for model in models:
        for name in set(model.model_fields) - hidden:
            assert f"{name}:" in template_text(), name


def test_dicts_of_numpy_things(tmp_path):
    import yaml

    from campaign_cases import STUDY

    data = yaml.safe_load(STUDY)
    data["farms"][0]["polygon_m"] = np.array(data["farms"][0]["polygon_m"], dtype=float)
    data["site"]["weibull"]["weibull_k"] = tuple(np.array([2, 2.1, 2.2, 2]))
    data["turbines_per_farm"] = np.int64(12)
    assert load(data).fingerprint(0, 0) == load_study(tmp_path).fingerprint(0, 0)
    with pytest.raises(InputError, match="the campaign: turbines_per_farm is 0; expected a number of at least 1"):
        load({**data, "turbines_per_farm": 0})


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nowhere.yaml", "nowhere.yaml: no such file; expected a campaign file"),
        ("danish-energy-iland", "did you mean danish-energy-island?"),
        (5, "expected the path of a YAML file, a dict, or a name"),
    ],
)
def test_sources_that_are_none(source, says):
    with pytest.raises(InputError) as caught:
        load(source)
    assert says in str(caught.value)


def test_unknown_farms_and_types(built_in):
    """Damaged files can have any number."""
    for farm, kind, says in ((3003, 0, "farm_idx is 3003"), (0, 77, "type_idx is 77")):
        with pytest.raises(InputError, match=says):
            built_in.problem(farm, kind)
        with pytest.raises(InputError, match=says):
            built_in.recompute(Key(farm, kind, 0), [0.0], [0.0])
