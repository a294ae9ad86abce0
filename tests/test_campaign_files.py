"""Campaign files: what is wrong with one is said with its file, line and key."""

import hashlib
import json
import sys

import pytest

from campaign_cases import load_study, study
from leeward.campaign import custom, load
from leeward.errors import InputError

NORTH = "polygon_m: [[0, 0], [8000, 0], [8000, 2500], [2500, 2500], [2500, 8000], [0, 8000]]"
GENERIC = "{rated_power_mw: 15, rotor_diameter_m: 240, hub_height_m: 150}"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rated_power_mw", "rated_powr_mw", "[0].rated_powr_mw is not a known key; did you mean rated_power_mw?"),
        ("seeds: 2", "seedz: 2", "line 17: seedz is not a known key; did you mean seeds?"),
        ("polygon_m", "poligon_m", "line 12: farms[0].poligon_m is not a known key; did you mean polygon_m?"),
        ("_farm: 12", "_farm: twelve", "line 15: turbines_per_farm is 'twelve'; expected a whole number"),
        ("_farm: 12", "_farm: 0", "line 15: turbines_per_farm is 0; expected a number of at least 1"),
        ("mw: 15", "mw: '15'", "turbines[0].rated_power_mw is '15'; expected a number, without quotes"),
        ("mw: 15", "mw: -15", "turbines[0].rated_power_mw is -15; expected a number above 0"),
        ("mw: 15", "mw: .nan", "turbines[0].rated_power_mw is nan; expected a finite number"),
        ("mw: 15", "mw: .inf", "turbines[0].rated_power_mw is inf; expected a finite number"),
        ("mw: 15", "mw: true", "turbines[0].rated_power_mw is True; expected a number"),
        ("mw: 15", "mw: 15000", "line 14: turbines[0]: turbine: a rated power of 15000 MW on a rotor of 240 m looks"),
        (", hub_height_m: 150", "", "line 14: turbines[0].hub_height_m is missing; expected the hub's height"),
        ("seeds: 2", "seeds: 0", "line 17: seeds is 0, which gives no seeds; expected at least one"),
        ("seeds: 2", "seeds: [1, 2, 1]", "seeds has 1 twice; expected each seed once"),
        ("seeds: 2", "seeds: [-1]", "seeds contains -1; expected whole numbers from 0 to 4294967295"),
        ("seeds: 2", "seeds: [4294967296]", "seeds contains 4294967296;"),
        ("seeds: 2", "seeds: '5:'", "seeds is '5:', a range without an end"),
        ("seeds: 2", "seeds: 1e3", "seeds is 1000.0; expected a count (50), a list"),
        ("seeds: 2", "seeds: 2\nseeds: 3", "line 18, column 1: seeds is given twice, first in line 17"),
        ("[9, 10, 11, 10]", "[9, 10, 11]", "line 3: site.weibull: weibull_a_m_s has 3 sectors and sector_freq"),
        ("[9, 10, 11, 10]", "[9, 10, x, 10]", "line 5: site.weibull.weibull_a_m_s[2] is 'x'; expected a number"),
        ("[9, 10, 11, 10]", "[9, 10, 11, 10", "line 6, column"),
        ("  weibull:", "\tweibull:", "line 3, column 1: not YAML: found character that cannot start any token; the"),
        ("spacing_diameters: 3\n", "", "expected one of spacing_diameters, spacing_m (the minimum distance"),
        ("spacing_diameters: 3", "spacing_diameters: 3\nspacing_m: 5", "found spacing_diameters and spacing_m"),
        ("turbines_per_farm: 12", "capacity_mw: 14", "line 15: capacity_mw is 14, less than the 15 MW of one turbine"),
        ("turbines_per_farm: 12\n", "", "turbines_per_farm is missing, and so is capacity_mw"),
        ("seeds: 2", "wake_model: jensn", "line 17: wake_model is 'jensn'; did you mean jensen?"),
        ("seeds: 2", "wake_model: {name: jensen, expansio: 1}", "line 17: wake_model.expansio is not a known option"),
        ("seeds: 2", "wake_model: {name: jensen, expansion: -1}", "line 17: wake_model: jensen: expansion is -1"),
        ("seeds: 2", "wake_model: {name: jensen, expansion: x}", "wake_model has expansion = 'x'; expected a number"),
        ("seeds: 2", "optimiser: {recipe: smartstart}", "optimiser.recipe is 'smartstart'; did you mean smart_start?"),
        ("seeds: 2", "optimiser: {recipe: start}", "optimiser.recipe is 'start', which needs an initial layout"),
        ("seeds: 2", "optimiser: {recipe: 'no_such_module:f'}", "optimiser.recipe: no module no_such_module was found"),
        ("seeds: 2", "optimiser: {recipe: 'a b:f'}", "expected module:function"),
        ("seeds: 2", "optimiser: {time_budget_s: 5, work: 9}", "optimiser has both time_budget_s and work; give one"),
        ("seeds: 2", "execution: {engine: cloud}", "execution.engine is 'cloud'; expected one of 'inline', 'local'"),
        ("seeds: 2", "crs: EPSG:4326", "line 17: crs is 'EPSG:4326', which has no coordinates in metres"),
        ("seeds: 2", "crs: somewhere", "line 17: crs is 'somewhere', which is not known"),
        ("seeds: 2", "format_version: 2", "format_version is 2; expected 1: this file is for another"),
        ("[8000, 0], [8000, 2500]", "[8000, 2500], [8000, 0]", "line 11: farms[0]: the polygon is not a valid polygon"),
        ("name: north", "circle_m: {x: 0, y: 0, radius: 9}", "farms[0]: expected one of polygon_m, circle_m"),
        ("name: north", "farm_idx: -1", "farms[0].farm_idx is -1; expected a number of at least 0"),
        ("name: north", "n_turbines: 3\n    capacity_mw: 30", "farms[0] has both n_turbines and capacity_mw"),
        (f"farms:\n  - name: north\n    {NORTH}", "farms: []", "line 10: farms is []; expected at least 1"),
        (f"farms:\n  - name: north\n    {NORTH}", "farms: {file: no.geojson}", "line 10: farms.file: "),
        (GENERIC, "{file: no.yaml}", "line 14: turbines[0]: "),
        (GENERIC, "5", "line 14: turbines[0] is 5; expected keys with values"),
        ("seeds: 2", "neighbours: [{x_m: [1], y_m: [1, 2], turbine: 0}]", "line 17: neighbours[0]: x_m has 1 coord"),
        ("seeds: 2", "neighbours: [{x_m: [1], y_m: [1], turbine: 7}]", "neighbours[0]: turbine is 7; expected one"),
        ("seeds: 2", "neighbours: [{x_m: [1], turbine: 0}]", "neighbours[0]: expected x_m and y_m, or a CSV file"),
        ("name: study", "name: 5", "line 1: name is 5; expected text"),
    ],
)  # fmt: skip
def test_one_error(tmp_path, old, new, says):
    path = study(tmp_path, (old, new))
    with pytest.raises(InputError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert says in message


def test_several_errors_are_one_list(tmp_path):
    path = study(
        tmp_path, ("rated_power_mw: 15", "rated_power_mw: x"), more="optimiser: {effort: fats, grid_size: 1}\n"
    )
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).splitlines() == [
        f"{path}: 3 errors",
        "  line 14: turbines[0].rated_power_mw is 'x'; expected a number",
        "  line 18: optimiser.effort is 'fats'; expected one of 'fast', 'normal', 'thorough'",
        "  line 18: optimiser.grid_size is 1; expected a number of at least 2",
    ]


def test_a_great_many_errors_are_cut_short(tmp_path):
    with pytest.raises(InputError) as caught:
        load_study(tmp_path, more="".join(f"wrong_{number}: 1\n" for number in range(30)))
    lines = str(caught.value).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "  and 10 more"


@pytest.mark.parametrize("text", ["", "- 1\n", "just words\n"])
def test_files_that_are_no_campaign(tmp_path, text):
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match="expected keys with values"):
        load(path)


def test_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        load(path)


def test_yaml_cannot_make_objects(tmp_path):
    with pytest.raises(InputError, match="could not determine a constructor"):
        load_study(tmp_path, ("name: study", "name: !!python/object/apply:os.getcwd []"))


def test_turbines_that_do_not_fit_are_refused_by_check(tmp_path):
    campaign = load_study(tmp_path, ("turbines_per_farm: 12", "turbines_per_farm: 800"))
    with pytest.raises(InputError, match=r"line 11: farms\[0\]: farm 0, type 0: 800 turbines 720 m apart do not fit"):
        campaign.check()
    with pytest.raises(InputError, match=r"line 11: farms\[0\]: 800 turbines"):
        campaign.problem(0, 0)


def test_numbers_of_farms_and_types(tmp_path):
    campaign = load_study(
        tmp_path,
        ("name: north", "name: north\n    farm_idx: 7"),
        ("mw: 15,", "mw: 15, type_idx: 3,"),
    )
    assert dict(campaign.farms) == {7: "north"}
    assert dict(campaign.types) == {3: "generic 15 MW"}
    with pytest.raises(InputError, match=r"farms\[1\] has the farm_idx 1 of another farm"):
        load_study(tmp_path, ("  - name: north", f"  - {{farm_idx: 1, {NORTH}}}\n  - name: north"))
    with pytest.raises(InputError, match=r"turbines\[1\] has type_idx 1, which another turbine also has"):
        load_study(tmp_path, (f"  - {GENERIC}", f"  - {GENERIC[:-1]}, type_idx: 1}}\n  - {GENERIC}"))


def geojson(folder, **properties):
    ring = [[0, 0], [8000, 0], [8000, 2500], [2500, 2500], [2500, 8000], [0, 8000]]
    square = [[20000, 0], [28000, 0], [28000, 8000], [20000, 8000]]
    features = [
        {"type": "Feature", "properties": given, "geometry": {"type": kind, "coordinates": coordinates}}
        for given, kind, coordinates in (
            ({"name": "L", **properties}, "Polygon", [ring]),
            ({}, "Point", [0, 0]),
            ({}, "Polygon", [square]),
        )
    ]
    (folder / "farms.geojson").write_text(json.dumps({"type": "FeatureCollection", "crs": None, "features": features}))
    return f"farms:\n  - name: north\n    {NORTH}"


def test_farms_of_a_file(tmp_path):
    inline = geojson(tmp_path)
    campaign = load_study(tmp_path, (inline, "farms: {file: farms.geojson}"))
    assert dict(campaign.farms) == {0: "L", 2: "farm 2"}
    assert dict(load_study(tmp_path, (inline, "farms: {file: farms.geojson, only: [2]}")).farms) == {2: "farm 2"}
    with pytest.raises(
        InputError, match=r"line 10: farms.only\[0\] is 1, which is not a farm of farms.geojson; expected one of 0, 2"
    ):
        load_study(tmp_path, (inline, "farms: {file: farms.geojson, only: [1]}"))
    geojson(tmp_path, farm_idx=5)
    assert dict(load_study(tmp_path, (inline, "farms: {file: farms.geojson}")).farms) == {5: "L"}
    geojson(tmp_path, farm_idx="x")
    with pytest.raises(InputError, match="feature 0: farm_idx is 'x'"):
        load_study(tmp_path, (inline, "farms: {file: farms.geojson}"))


def test_degrees_are_projected_to_whole_millimetres(tmp_path):
    area = '{wkt: "POLYGON ((3 56, 3.2 56, 3.2 56.1, 3 56.1, 3 56))"}'
    degrees = {"type": "Polygon", "coordinates": [[[3, 56], [3.2, 56], [3.2, 56.1], [3, 56.1], [3, 56]]]}
    (tmp_path / "area.geojson").write_text(json.dumps(degrees))
    campaign = load_study(tmp_path, (f"- name: north\n    {NORTH}", "- {file: area.geojson}"))
    assert campaign.crs == "EPSG:32631"
    corners = campaign.settings(0, 0)["area"]["parts"][0]["rings_m"][0]
    assert all(round(value, 3) == value for corner in corners for value in corner)
    with pytest.raises(InputError, match=r"farms\[0\]: "):  # metres are meant where nothing else is said
        load_study(tmp_path, (f"- name: north\n    {NORTH}", f"- {area}")).check()


def test_turbines_of_files(tmp_path):
    (tmp_path / "own.yaml").write_text("rated_power_mw: 15\nrotor_diameter_m: 240\nhub_height_m: 150\n")
    (tmp_path / "curve.csv").write_text("wind_speed_m_s,power_mw,thrust_coefficient\n3,0,0.8\n12,8,0.8\n25,8,0.1\n")
    inline = load_study(tmp_path)
    campaign = load_study(tmp_path, (GENERIC, "{file: own.yaml}"))
    assert campaign.types[0] == "own"
    assert campaign.fingerprint(0, 0) == inline.fingerprint(0, 0)
    table = load_study(tmp_path, (GENERIC, "{file: curve.csv, rotor_diameter_m: 170, hub_height_m: 110}"))
    assert table.problem(0, 0).farm.turbine.rated_power_mw == 8
    with pytest.raises(InputError, match=r"rotor_diameter_m and hub_height_m missing in curve.csv; add"):
        load_study(tmp_path, (GENERIC, "{file: curve.csv}"))
    (tmp_path / "own.yaml").write_text("rated_power_mw: 15\nrotor_diameter: 240\nhub_height_m: 150\n")
    with pytest.raises(
        InputError, match=r"turbines\[0\]: .*own.yaml: line 2: rotor_diameter is not a known key; did you"
    ):
        load_study(tmp_path, (GENERIC, "{file: own.yaml}"))


def test_all_kinds_of_turbines(tmp_path):
    from leeward.wind import Turbine

    speeds = "cut_in_m_s: 4, rated_speed_m_s: 9.8, cut_out_m_s: 25"
    cubic = f"{{rated_power_mw: 3.35, rotor_diameter_m: 130, hub_height_m: 110, {speeds}}}"
    assert load_study(tmp_path, (GENERIC, cubic)).problem(0, 0).farm.turbine == Turbine.iea37_3_35mw()


def test_neighbours(tmp_path):
    (tmp_path / "there.csv").write_text("x_m,y_m\n-3000,0\n-3000,900\n")
    campaign = load_study(tmp_path, more=f"neighbours: [{{file: there.csv, turbine: {GENERIC}}}]\n")
    same = load_study(tmp_path, more="neighbours: [{x_m: [-3000, -3000], y_m: [0, 900], turbine: 0}]\n")
    assert campaign.fingerprint(0, 0) == same.fingerprint(0, 0) != load_study(tmp_path).fingerprint(0, 0)
    assert len(campaign.problem(0, 0).min_distances_m) == 14


def test_sites_of_files(tmp_path):
    weibull = "".join(load_study_lines()[2:9])
    (tmp_path / "wind.csv").write_text("wind_direction_deg,wind_speed_m_s\n270,9\n280,10\n10,8\n")
    series = load_study(tmp_path, (weibull, "  time_series: {file: wind.csv}\n"))
    same = load_study(
        tmp_path,
        (weibull, "  table: {kind: exact, wind_directions_deg: [270, 280, 10], wind_speeds_m_s: [9, 10, 8], "
                  f"probability: [{1 / 3!r}, {1 / 3!r}, {1 / 3!r}]}}\n"),
    )  # fmt: skip
    assert series.fingerprint(0, 0) == same.fingerprint(0, 0)
    (tmp_path / "wind.csv").write_text("wind_direction_deg,wind_speed_m_s\n270,9\n280,fast\n")
    with pytest.raises(InputError, match=r"site.time_series: .*wind.csv, line 3, column 'wind_speed_m_s': is 'fast'"):
        load_study(tmp_path, (weibull, "  time_series: {file: wind.csv}\n"))


def load_study_lines():
    from campaign_cases import STUDY

    return STUDY.splitlines(keepends=True)


def test_shapes(tmp_path):
    from leeward.layout import Area

    for entry, expected in (
        ("circle_m: {x: 10, y: 20, radius: 5000}", Area.circle(10, 20, 5000)),
        ("wkt: POLYGON ((0 0, 9000 0, 0 9000, 0 0))", Area.from_arrays([0, 9000, 0], [0, 0, 9000])),
        (
            "regions: [{circle_m: {x: 0, y: 0, radius: 3000}}, {circle_m: {x: 9000, y: 0, radius: 3000}}]",
            Area.union([Area.circle(0, 0, 3000), Area.circle(9000, 0, 3000)]),
        ),
        (
            f"{NORTH}\n    exclude: [{{circle_m: {{x: 1000, y: 1000, radius: 100}}, buffer_m: 50}}]",
            Area.from_arrays([0, 8000, 8000, 2500, 2500, 0], [0, 0, 2500, 2500, 8000, 8000]).without(
                Area.circle(1000, 1000, 100), 50
            ),
        ),
    ):
        campaign = load_study(tmp_path, (NORTH, entry))
        assert campaign.problem(0, 0).area == expected
    with pytest.raises(InputError, match=r"farms\[0\]: exclude\[0\]: .* give its buffer_m"):
        load_study(tmp_path, (NORTH, f"{NORTH}\n    exclude: [{{points_m: [[1, 1]]}}]"))


def test_capacity(tmp_path):
    campaign = load_study(
        tmp_path,
        ("turbines_per_farm: 12", "capacity_mw: 3.3"),
        ("mw: 15, rotor_diameter_m: 240, hub_height_m: 150", "mw: 1.1, rotor_diameter_m: 70, hub_height_m: 60"),
    )
    assert campaign.physics.n_turbines(0, 0) == 3  # 3.3 / 1.1 is a little less than 3
    own = load_study(tmp_path, ("name: north", "name: north\n    capacity_mw: 61"))
    assert own.physics.n_turbines(0, 0) == 4
    assert load_study(tmp_path, ("name: north", "name: north\n    n_turbines: 5")).physics.n_turbines(0, 0) == 5


def test_a_custom_recipe_leaves_no_byte_code(tmp_path, monkeypatch):
    """Python does not sync byte code: torn by a power cut, it would fail every task of the resumed run."""
    (tmp_path / "recipe_without_byte_code.py").write_text("def place(problem, seed): ...\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = "recipe_without_byte_code:place"
    digest = hashlib.sha256((tmp_path / "recipe_without_byte_code.py").read_bytes()).hexdigest()
    custom.import_custom(custom.CustomCode("recipe", ("optimiser", "recipe"), path, digest), [str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["recipe_without_byte_code.py"]
    assert sys.dont_write_bytecode is False
