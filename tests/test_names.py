"""Names of farms and turbine types in the place of numbers: in GeoJSON files, `--only`, `--farm`, `--type` and keys."""

import csv
import json

import pytest
import yaml

from foreign_files import own_result, write_own_file
from leeward.campaign import load
from leeward.campaign.selection import as_keys, chosen_tasks, duplicate_names, key_of
from leeward.errors import InputError
from leeward.layout import Area
from leeward.store.format.keys import Key
from run_cases import INLINE, leeward_here, make_campaign

FARMS = ["Nordsee I", "a, b", "x=y", "1", "King's Lynn", "A/B", "Ostsee", "Ostsee"]
TYPES = ["V236", "V174", "2"]


def square(left):
    return [[left, 0.0], [left + 5000.0, 0.0], [left + 5000.0, 5000.0], [left, 5000.0]]


def make(folder, farms=FARMS, types=TYPES, **changes):
    """Write a campaign with farms and types of these names."""
    areas = [{"name": name, "polygon_m": square(9000.0 * number)} for number, name in enumerate(farms)]
    machines = [{"name": name, "rated_power_mw": 10, "rotor_diameter_m": 195, "hub_height_m": 121} for name in types]
    return with_farms(make_campaign(folder, turbines=machines, **{"seeds": 12, **changes}), areas)


def with_farms(path, farms):
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "farms": farms}))
    return path


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return load(make(tmp_path_factory.mktemp("campaign")))


# --- --only ----------------------------------------------------------------------------------------------------------


def chosen(campaign, text):
    """Return the farms, types and seeds that a text selects."""
    keys = chosen_tasks(campaign, text)
    farms, types, seeds = (sorted({key[field] for key in keys}) for field in range(3))
    assert len(keys) == len(farms) * len(types) * len(seeds)
    return farms, types, seeds


@pytest.mark.parametrize(
    ("text", "farms", "types", "seeds"),
    [
        ("farm=0,3 type=1 seed=0:10", [0, 3], [1], range(10)),
        ("seed=:2", range(8), range(3), [0, 1]),
        ("seed=10: farm=1:7:3", [1, 4], range(3), [10, 11]),
        ("seed=0:10:4,11", range(8), range(3), [0, 4, 8, 11]),
        ("farm=Nordsee I,3 type='V236' seed=0", [0, 3], [0], [0]),
        ("type=V174, V236 farm= King's Lynn seed=1", [4], [0, 1], [1]),
        ("farm='a, b',\"x=y\" seed=0", [1, 2], range(3), [0]),
        ("farm=1 seed=0", [1], range(3), [0]),  # a number is an index
        ("farm='1' seed=0", [3], range(3), [0]),  # and a name in quotation marks
        ("type='2',0 seed=0", range(8), [0, 2], [0]),
        ("farm=A/B seed=0", [5], range(3), [0]),
        ("farm=6,7 seed=0", [6, 7], range(3), [0]),
        ("farm=Nordsee  I seed=0", [0], range(3), [0]),
    ],
)
def test_a_selection_in_words(campaign, text, farms, types, seeds):
    assert chosen(campaign, text) == (list(farms), list(types), list(seeds))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("farm", "not understood"),
        ("park=1", "'park=1' is not understood"),
        ("farm=0 park=1", "'park=1' is not understood"),
        ("0 farm=1", "'0' is not understood; expected a field first"),
        ("farm=", "not understood"),
        ("farm=1 farm=2", "twice"),
        ("seed=1:2:3:4", "not understood"),
        ("seed=a", "not understood"),
        ("seed='1'", "is quoted; expected a seed"),
        ("farm=x=y", "put such a name in quotation marks"),
        ("farm=a, b", "no farm has the name 'a'"),
        ("farm=Nordsee 1", "no farm has the name 'Nordsee 1'; did you mean 'Nordsee I'"),
        ("type=Nordsee I", "no type has the name 'Nordsee I'; the types are 0 'V236', 1 'V174', 2 '2'"),
        ("farm='Nordsee I", "not closed"),
        ("farm='Nordsee' I", "'I' after a name in quotation marks"),
        ("farm=Ostsee", "'Ostsee' is the name of the farms 6 and 7; give the number"),
    ],
)
def test_a_selection_that_is_none(campaign, text, said):
    with pytest.raises(InputError, match="--only") as caught:
        chosen_tasks(campaign, text)
    assert said in str(caught.value)


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("farm0_t5_s3", Key(0, 5, 3)),
        ("0 5 3", Key(0, 5, 3)),
        ("0,5,3", Key(0, 5, 3)),
        ("0/1/3", Key(0, 1, 3)),
        ("Nordsee I/V174/4", Key(0, 1, 4)),
        (" King's Lynn / 2 / 4", Key(4, 2, 4)),
        ("'A/B'/'2'/4", Key(5, 2, 4)),
        ("'1'/V236/0", Key(3, 0, 0)),
        ("a, b/V236/0", Key(1, 0, 0)),
    ],
)
def test_keys_with_names(campaign, text, key):
    assert key_of(text, lambda: campaign) == key
    if key in campaign:
        assert as_keys([text], campaign) == {key}


@pytest.mark.parametrize(
    "text", ["A/B/V236/0", "Nordsee I/V236", "Nordsee I/V236/x", "Nordsee I", "farm0", "0/0/'0'", ""]
)
def test_what_is_no_key(campaign, text):
    with pytest.raises(InputError, match="is not a key; expected farm"):
        key_of(text, lambda: campaign)


def test_numbers_need_no_campaign():
    def nobody():
        raise AssertionError("the campaign was read")

    assert key_of("3/4/5", nobody) == Key(3, 4, 5)


# --- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_on_the_command_line(campaign, tmp_path):
    results = [own_result(farm, kind, 0, turbines=3) for farm in range(8) for kind in range(2)]
    write_own_file(tmp_path / "layouts.h5", results, campaign=campaign.frozen_text())

    def keys(*options):
        done = leeward_here("export", "-o", "a.csv", "--per", "layout", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        with (tmp_path / "a.csv").open(newline="") as file:
            return [row["key"] for row in csv.DictReader(file)]

    assert keys("--farm", "a, b", "--farm", "x=y", "--type", "V174") == ["farm1_t1_s0", "farm2_t1_s0"]
    assert keys("--farm", "'1'", "--key", "'1'/V236/0") == ["farm3_t0_s0"]
    shown = leeward_here("show", "Nordsee I/V174/0", cwd=tmp_path)
    assert (shown.returncode, "farm0_t1_s0  in layouts.h5" in shown.stdout) == (0, True)
    ambiguous = leeward_here("show", "Ostsee/V236/0", cwd=tmp_path)
    assert (ambiguous.returncode, ambiguous.stderr.count("\n")) == (2, 1)
    assert "'Ostsee' is the name of the farms 6 and 7" in ambiguous.stderr
    write_own_file(tmp_path / "layouts.h5", results[:1])
    unknown = leeward_here("show", "Nordsee I/V174/0", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "holds no campaign, but a name needs one; give it with --campaign" in unknown.stderr


def test_a_run_warns_about_equal_names_and_takes_names(tmp_path):
    make(tmp_path, farms=["Nord", "Süd", "Nord"], types=["V236"], seeds=1, execution=INLINE)
    done = leeward_here("run", "campaign.yaml", "--only", "farm=Su\u0308d", "--quiet", cwd=tmp_path)  # ü as u and dots
    assert done.returncode == 0, done.stderr
    assert "warning: farms 0 and 2 have the same name 'Nord'; select them by number\n" in done.stderr
    assert "1 of 1 layouts" in done.stdout
    assert [path.stem for path in tmp_path.glob("layouts.run/results/*/*.h5")] == ["farm1_t0_s0"]


def test_names_are_in_no_fingerprint(tmp_path):
    ours = load(make(tmp_path, farms=["a"], types=["b"]))
    theirs = load(make(tmp_path, farms=["c"], types=["d"]))
    assert ours.fingerprint(0, 0) == theirs.fingerprint(0, 0)
    assert duplicate_names(ours) == []
    same = load(make(tmp_path, farms=["a"], types=["b", "b", "b"]))
    assert duplicate_names(same) == ["types 0, 1, 2 have the same name 'b'; select them by number"]


# --- GeoJSON ---------------------------------------------------------------------------------------------------------


def features(*properties):
    """Return a collection of squares in the North Sea with these properties."""
    found = []
    for number, each in enumerate(properties):
        left = 3.0 + 0.2 * number
        ring = [[left, 56.0], [left + 0.1, 56.0], [left + 0.1, 56.1], [left, 56.1], [left, 56.0]]
        found.append({"type": "Feature", "properties": each, "geometry": {"type": "Polygon", "coordinates": [ring]}})
    return {"type": "FeatureCollection", "features": found}


NAMED = [{"name": "a"}, {"Name": "b"}, {"NAME": "c"}, {"title": "d"}, {"NAME": "no", "name": "e"}]
NAMED += [{"name": "", "title": "f"}, {"name": None}, {"name": 7}, {}]


def test_names_of_features(tmp_path):
    (tmp_path / "farms.geojson").write_text(json.dumps(features(*NAMED)))
    campaign = load(with_farms(make_campaign(tmp_path), {"file": "farms.geojson"}))
    assert list(campaign.farms.values()) == ["a", "b", "c", "d", "e", "f", "farm 6", "7", "farm 8"]
    for number, name in enumerate("abcdef"):
        assert Area.from_geojson(features(*NAMED), name=name) == Area.from_geojson(features(*NAMED), farm_idx=number)
    one = load(with_farms(make_campaign(tmp_path), [{"file": "farms.geojson", "feature": "c"}]))
    assert one.fingerprint(0, 0) == campaign.fingerprint(2, 0)


def test_features_of_one_name():
    two = features({"NAME": "Ost"}, {"title": "Ost"})
    with pytest.raises(InputError, match="2 features have name 'Ost'; expected one: choose by number"):
        Area.from_geojson(two, name="Ost")
    two["features"][0]["geometry"] = {"type": "Point", "coordinates": [3.05, 56.05]}  # its substation
    assert Area.from_geojson(two, name="Ost") == Area.from_geojson(two, farm_idx=1)
