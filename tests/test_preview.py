"""What a run says before it starts, and the dry run: farms, turbines, wind, room, time, and every error."""

import json
import os
from types import SimpleNamespace

import pytest
import yaml

from leeward.campaign import load
from leeward.campaign.estimate import Estimate, estimate
from leeward.campaign.remarks import farm_places, place_remarks, projection
from leeward.campaign.selection import task_counts
from leeward.cli.preview import estimate_lines, preview, rose_line, wind_lines
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem
from leeward.layout.objective import effort_unit
from leeward.layout.recipes import EFFORTS
from leeward.layout.starts import room_for
from leeward.store.directory.lock import Lock
from leeward.store.format.keys import Key
from leeward.wind import Site, Turbine, WindFarm
from run_cases import leeward_here

ROSE = {"wind_directions_deg": [0, 90, 180, 270], "wind_speeds_m_s": [8, 10], "probability": [[0.1, 0.1]] * 4}


@pytest.fixture(autouse=True)
def _short_measurement(monkeypatch):
    monkeypatch.setattr("leeward.campaign.estimate.MEASURED_S", 0.2)


def study(**changes):
    return {
        "name": "study",
        "site": {"table": ROSE},
        "farms": [{"name": "North", "polygon_m": [[0, 0], [5000, 0], [5000, 5000], [0, 5000]]}],
        "turbines": [
            {"rated_power_mw": 10, "rotor_diameter_m": 200, "hub_height_m": 120},
            {"rated_power_mw": 7, "rotor_diameter_m": 170, "hub_height_m": 110},
        ],
        "capacity_mw": 60,
        "spacing_diameters": 4,
        "optimiser": {"recipe": "random", "effort": "fast"},
        **changes,
    }


def degrees(longitude, latitude, side=0.1):
    ring = [[longitude, latitude], [longitude + side, latitude], [longitude + side, latitude + side]]
    ring = [*ring, [longitude, latitude + side], ring[0]]
    return {"geojson": {"type": "Polygon", "coordinates": [ring]}}


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(**changes):
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(study(**changes)))
        return "study.yaml"

    return write


@pytest.fixture
def run(tmp_path):
    """`leeward run` within this process: exit code, standard output, standard error."""

    def call(*arguments):
        ended = leeward_here("run", *arguments, cwd=tmp_path)
        return ended.returncode, ended.stdout, ended.stderr

    return call


# --- where the farms lie ---


def test_centre_projection_and_area():
    campaign = load(study(farms=[degrees(7.95, 55.95)]))
    (place,) = farm_places(campaign)
    assert (place.longitude, place.latitude) == pytest.approx((8.0, 56.0), abs=0.001)
    assert place.centre() == "56.00° N 8.00° E"
    assert place.area_km2 == pytest.approx(69.5, abs=0.5)
    assert projection(campaign) == "EPSG:32632, WGS 84 / UTM zone 32N"
    assert place_remarks(campaign, [place]) == []


def test_swapped_coordinates():
    campaign = load(study(farms=[degrees(55.95, 7.95)]))
    (remark,) = place_remarks(campaign, farm_places(campaign))
    assert "8.00° N 56.00° E. Latitude and longitude look swapped: swapped back, it is 56.00° N 8.00° E" in remark


def test_a_farm_outside_of_its_projection():
    campaign = load(study(crs="EPSG:25831", farms=[{"circle_m": {"x": 5e5, "y": 1e6, "radius": 3000}}]))
    (remark,) = place_remarks(campaign, farm_places(campaign))
    assert "lies outside the area of use of EPSG:25831" in remark


def test_huge_areas_and_far_farms():
    ring = [[0, 0], [150e3, 0], [150e3, 150e3], [0, 150e3]]
    campaign = load(study(farms=[{"polygon_m": ring}, {"circle_m": {"x": 700e3, "y": 0, "radius": 3000}}]))
    huge, far = place_remarks(campaign, farm_places(campaign))
    assert "22500 km², more than 20000 km²" in huge
    assert "farms 0 and 1 are 629 km apart" in far
    named = load(study(crs="EPSG:25831", farms=[degrees(3, 55), degrees(3, 61)]))
    (far,) = place_remarks(named, farm_places(named))
    assert "667 km apart" in far


def feature(name, longitude, key="Name"):
    return {"type": "Feature", "properties": {key: name}, "geometry": degrees(longitude, 55.0)["geojson"]}


def test_polygons_of_a_file_and_their_names(tmp_path, monkeypatch):
    """One polygon gives its farm its name; several that become one area are said to do so."""
    monkeypatch.chdir(tmp_path)
    for name, features in (("one", [feature("Horns", 7.0)]), ("two", [feature("A", 7.0), feature("B", 7.3, "NAME")])):
        (tmp_path / f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    listed = [{"file": "one.geojson"}, {"file": "two.geojson"}, {"file": "two.geojson", "feature": "B"}]
    campaign = load(study(farms=listed))
    assert list(campaign.farms.values()) == ["Horns", "farm 1", "B"]
    (remark,) = preview(campaign, task_counts(campaign, None)).warning_lines()
    assert "farm 1: the 2 polygons of two.geojson (A, B) are one area" in remark
    assert "farms: {file: two.geojson}" in remark
    assert list(load(study(farms={"file": "two.geojson"})).farms.values()) == ["A", "B"]


def test_swapped_coordinates_with_a_projection():
    with pytest.raises(InputError, match=r"longitude 56\.00, latitude 8\.00, .* longitude and latitude swapped"):
        load(study(crs="EPSG:25832", farms=[degrees(55.95, 7.95)]))


# --- whether the turbines fit ---


def problem(count, side=3000.0, **spacing):
    farm = WindFarm(Site.from_table([270.0], [10.0], [[1.0]]), Turbine.generic(10, 200, 120))
    area = Area.from_arrays([0, side, side, 0], [0, 0, side, side])
    return LayoutProblem(farm, area, count, **(spacing or {"spacing_m": 1000.0}))


def test_room_by_a_quick_packing():
    assert room_for(problem(2)).fits
    assert room_for(problem(12)).fits
    cramped = room_for(problem(17))
    assert not cramped.fits
    assert 9 <= cramped.packed <= 16
    assert problem(17).most_turbines == 17  # the theoretical bound does not see it


# --- the wind ---


def test_lines_about_the_wind():
    campaign = load(study())
    said = list(wind_lines(campaign.physics.site, with_rose=True))
    assert "read as bins of 90° that are spread over 360 directions; speeds are bin centres" in said[0]
    assert "mean speed 9.00 m/s, 7008 of 8760 hours covered" in said[0]
    assert said[1].strip() == "the probabilities add up to 0.8: 1752 hours a year yield nothing"
    assert "4 sectors from north clockwise: ████  most from 0°, 20.0% of the time" in said[2]
    more = load(study(site={"table": {**ROSE, "probability": [[0.12525, 0.12525]] * 4}}))
    (warning,) = preview(more, task_counts(more, None)).warning_lines()
    assert "The probabilities of the wind add up to 1.002: every AEP is 0.2 % too high" in warning
    part = load(study(site={"table": {**ROSE, "kind": "bins", "wind_directions_deg": [0, 30, 60, 90]}}))
    (warning,) = preview(part, task_counts(part, None)).warning_lines()
    assert "cover 120 of 360 degrees" in warning
    weibull = Site.from_weibull([0.25] * 4, [9.0] * 4, [2.0] * 4, 0.07)
    assert len(list(wind_lines(weibull, with_rose=False))) == 1  # what lies beyond the speed bins is not missing
    assert "4 sectors" in rose_line(weibull)


# --- all of it ---


def test_a_dry_run_says_everything_and_writes_nothing(file, run, tmp_path):
    code, out, err = run(file(), "--dry-run")
    assert (code, err) == (0, "")
    for part in (
        "study: 1 farm × 2 turbine types × 1 seed = 2 layouts; recipe random",
        "metres, without a coordinate system",
        "0 North",
        "25.0 km²",
        "6 turbines, 60 MW of 60 MW",
        "8 turbines, 56 MW of 60 MW, 4 MW (6.7%) short",
        "compared by capacity factor",
        "The turbine types have different hub heights, but this does not change the wind",
        "wind: table of 4 directions × 2 speeds, read as bins",
        "room: all turbines fit",
        "time: about",
        "memory: about",
        "no errors; nothing was computed or written",
    ):
        assert part in out
    assert os.listdir(tmp_path) == ["study.yaml"]


def test_every_run_says_the_short_form(file, run):
    code, out, err = run(file(), "--engine", "inline")
    assert code == 0
    assert "study: 1 farm × 2 turbine types" in err
    assert "read as bins" in err
    assert "25.0 km²" in err
    assert "sectors from north" not in err
    assert "no errors" not in err
    code, out, err = run(file(), "--engine", "inline", "--json")
    first = json.loads(out.splitlines()[0])
    assert (first["event"], first["wind"]["kind"], first["tasks"]) == ("preview", "bins", 2)
    code, out, err = run(file(), "--engine", "inline", "--quiet")
    assert err == ""


def test_all_errors_at_once(file, run, tmp_path):
    crowded = [{"name": "North", "polygon_m": [[0, 0], [900, 0], [900, 900], [0, 900]]}]
    elsewhere = ("-o", "missing/layouts.h5", "--adopt", "nothing")
    code, out, _ = run(file(farms=crowded), "--dry-run", *elsewhere)
    assert code == 2
    errors = [line for line in out.splitlines() if line.startswith("error:")]
    assert len(errors) == 3
    assert "nothing" in errors[0]
    assert "study.yaml: 2 errors" in errors[1]
    assert "do not fit" in out
    assert "no such folder" in errors[2]
    assert "the run would stop with an error; nothing was computed or written" in out
    assert "all turbines fit" not in out
    data = json.loads(run(file(farms=crowded), "--dry-run", "--json")[1])
    assert (data["event"], len(data["errors"])) == ("dry-run", 1)
    assert os.listdir(tmp_path) == ["study.yaml"]


def test_turbines_that_a_run_could_not_place(file, run):
    tight = [{"name": "North", "polygon_m": [[0, 0], [2400, 0], [2400, 2400], [0, 2400]]}]
    code, out, _ = run(file(farms=tight, turbines_per_farm=17, capacity_mw=None), "--dry-run")
    assert code == 0
    assert "17 turbines do not fit; a quick packing places" in out
    assert "--retry-failed does not help" in out


@pytest.mark.slow
def test_what_is_there_already(file, run, tmp_path):
    assert run(file(), "--engine", "inline", "-q")[0] == 0
    before = sorted(tmp_path.rglob("*"))
    code, out, _ = run(file(), "--dry-run")
    assert code == 0
    assert "2 layouts exist, 0 are to be computed" in out
    assert "time:" not in out
    assert "2 layouts exist, 2 are to be computed" in run(file(seeds=2), "--dry-run")[1]
    assert "layouts exist" not in run(file(seeds=2), "--dry-run", "--only", "seed=1")[1]
    code, out, _ = run(file(spacing_diameters=5), "--dry-run")
    assert code == 2
    assert "were made with other settings" in out
    lock = Lock.take(tmp_path / "layouts.run" / "lock")
    try:
        code, out, _ = run(file(), "--dry-run")
    finally:
        lock.release()
    assert code == 1
    assert "held by" in out
    assert sorted(tmp_path.rglob("*")) == before


def test_a_hundred_million_seeds(file, run):
    """Nothing is counted one by one; the error says what to do."""
    code, out, _ = run(file(seeds=100_000_000), "--dry-run")
    assert code == 2
    assert "100,000,000 seeds = 200,000,000 layouts" in out
    assert "expected at most 10000000" in out
    code, out, _ = run(file(seeds=100_000_000), "--dry-run", "--only", "seed=0:3 type=1")
    assert code == 0
    assert "3 of them selected" in out


def test_the_picture(file, run, tmp_path):
    assert run(file(), "--dry-run", "--picture", "wind.png")[0] == 0
    assert (tmp_path / "wind.png").read_bytes()[:4] == b"\x89PNG"
    code, _, err = run(file(), "--picture", "wind.png")
    assert code == 2
    assert "--picture is given without --dry-run" in err


def test_counts_of_tasks():
    campaign = load(study(seeds=5))
    assert task_counts(campaign, None) == {(0, 0): 5, (0, 1): 5}
    assert task_counts(campaign, "seed=1:3 type=1") == {(0, 1): 2}
    assert task_counts(campaign, [Key(0, 1, 2), Key(0, 0, 4), Key(0, 0, 1)]) == {(0, 0): 2, (0, 1): 1}


def test_estimates(monkeypatch):
    refine = load(study(optimiser={"recipe": "random+refine", "effort": "fast"}))
    measured = estimate(refine, {(0, 0): 10, (0, 1): 10})
    assert measured.core_s > measured.task_s > 0
    assert 50e6 < measured.memory_bytes < 5e9
    meter = SimpleNamespace(placed=8, placing_s=1.0, placing_work=10, refining_s=2.0, work=1_000_000)
    monkeypatch.setattr("leeward.campaign.estimate._measured", lambda campaign, problem: meter)
    fast = estimate(refine, {(0, 0): 10, (0, 1): 10})  # 6 and 8 turbines
    work = EFFORTS["fast"].steps * effort_unit(8)
    assert fast.task_s == pytest.approx(1.0 + 2.0 * work / 1e6)
    assert fast.core_s == pytest.approx(10 * (fast.task_s + 0.75 + effort_unit(6) / effort_unit(8) * 2.0 * work / 1e6))
    thorough = estimate(refine.with_overrides(effort="thorough"), {(0, 1): 10})
    assert thorough.task_s == pytest.approx(1.0 + 36 * 2.0 * work / 1e6)
    assert estimate(load(study(optimiser={"time_budget_s": 7.0})), {(0, 0): 3}).core_s == 21.0
    assert "fewer workers" in list(estimate_lines(Estimate(60.0, 1.0, 2**50, False), 4))[-1]
    assert "time: not known" in next(estimate_lines(None, 2))


def test_the_preview_of_a_campaign_with_many_farms():
    farms = [{"circle_m": {"x": 7000 * i, "y": 0, "radius": 3000}} for i in range(20)]
    campaign = load(study(farms=farms))
    lines = "\n".join(preview(campaign, task_counts(campaign, None)).lines(is_short=True))
    assert "and 8 more (--dry-run lists all); areas from" in lines
    assert "19 farm 19" not in lines
    assert "19 farm 19" in "\n".join(preview(campaign, task_counts(campaign, None)).lines(is_short=False))
