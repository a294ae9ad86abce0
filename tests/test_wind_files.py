"""Wind in the files and objects of other programs."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray
import yaml

from campaign_cases import load_study, study
from leeward.errors import InputError
from leeward.wind import Site, Turbine, WindFarm
from run_cases import leeward_here
from test_turbine_files import package

WEIBULL = """\
  weibull:
    sector_frequency: [0.3, 0.2, 0.2, 0.3]
    weibull_a_m_s: [9, 10, 11, 10]
    weibull_k: [2, 2.1, 2.2, 2]
    turbulence_intensity: 0.08
    wind_directions_deg: [0, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 330]
    wind_speeds_m_s: [8, 11]
"""

# --- WAsP ---

TAB = """\
Test mast, 2012 to 2014
 55.50000 7.90000 62.00
 4 1.00 0.00
 20.0 10.0 30.0 40.0
 1.0 100.0 50.0 20.0 10.0
 2.0 200.0 150.0 80.0 60.0
 4.0 400.0 500.0 300.0 330.0
 8.0 300.0 300.0 600.0 600.0
"""
# the frequencies of sectors and of speed bins that windkit 2.2 reads from it
SECTORS = [0.2, 0.1, 0.3, 0.4]
BINS = [[0.1, 0.2, 0.4, 0.3], [0.05, 0.15, 0.5, 0.3], [0.02, 0.08, 0.3, 0.6], [0.01, 0.06, 0.33, 0.6]]


def test_a_wasp_table(tmp_path):
    (tmp_path / "wind.tab").write_text(TAB)
    site = Site.from_file(tmp_path / "wind.tab", turbulence_intensity=0.07)
    probability = np.array(SECTORS)[:, None] * np.array(BINS)
    same = Site.from_table([0, 90, 180, 270], [0.5, 1.5, 3.0, 6.0], probability, 0.07, kind="bins")
    np.testing.assert_allclose(site.conditions.weight, same.conditions.weight, rtol=1e-12)
    np.testing.assert_array_equal(site.conditions.speed, same.conditions.speed)
    np.testing.assert_array_equal(site.conditions.direction, same.conditions.direction)
    assert site.notes == ("wind.tab: the wind at 62 m is used at hub height",)


def test_a_title_in_latin_1(tmp_path):
    """As WAsP writes it."""
    (tmp_path / "wind.tab").write_bytes(TAB.replace("Test mast", "Mast ved Høvsøre").encode("latin-1"))
    assert Site.from_file(tmp_path / "wind.tab").conditions.weight.sum() == pytest.approx(1.0)


def test_speeds_in_knots_and_turned_sectors(tmp_path):
    (tmp_path / "wind.tab").write_text(TAB.replace(" 4 1.00 0.00", " 4 0.5 10"))
    settings = Site.from_file(tmp_path / "wind.tab").settings()
    assert settings["wind_speeds_m_s"] == pytest.approx([0.25, 0.75, 1.5, 3.0])
    assert settings["wind_directions_deg"] == [10.0, 100.0, 190.0, 280.0]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (" 20.0 10.0 30.0 40.0", " 20.0 10.0 30.0", "line 4: has 3 numbers; expected 4"),
        (" 2.0 200.0", " 2.0 many", "line 6: is '2.0 many 150.0 80.0 60.0'; expected numbers"),
        (" 2.0 200.0", " 0.5 200.0", "line 6: the upper limits of the speed bins do not increase"),
        (" 2.0 200.0", " 2.0 -200.0", "line 6: has a negative frequency"),
        (" 4 1.00", " 4.5 1.00", "line 3: has 4.5 sectors; expected a whole number"),
        (" 4 1.00", " 4 0", "line 3: the factor of the wind speeds is 0"),
        (TAB, "title\n", "has 1 lines; expected a title"),
        (" 20.0 10.0 30.0 40.0", " 0 0 0 0", "line 4: all frequencies are 0"),
    ],
)
def test_bad_wasp_tables(tmp_path, old, new, says):
    (tmp_path / "wind.tab").write_text(TAB.replace(old, new, 1))
    with pytest.raises(InputError, match=says) as error:
        Site.from_file(tmp_path / "wind.tab")
    assert str(tmp_path / "wind.tab") in str(error.value)


# --- windIO ---


@pytest.mark.parametrize("name", ["UniformResource", "UniformWeibullResource"])
@pytest.mark.parametrize("form", ["", "_nc"])
def test_resources_of_windio(name, form):
    """The same in YAML and in NetCDF."""
    folder = package("windIO") / "examples" / "plant" / "plant_energy_resource"
    site = Site.from_file(folder / f"{name}{form}.yaml")
    given = yaml.safe_load((folder / f"{name}.yaml").read_text())["wind_resource"]
    settings = site.settings()
    if "weibull_k" in given:
        for ours, theirs in (("weibull_a_m_s", "weibull_a"), ("weibull_k", "weibull_k")):
            np.testing.assert_allclose(settings[ours], given[theirs]["data"])
        assert len(site.conditions.direction) == 360
    else:
        np.testing.assert_allclose(settings["probability"], given["probability"]["data"])
        assert settings["wind_speeds_m_s"] == [9.8] * 16
    assert settings["turbulence_intensity"] == [0.075] * len(settings["turbulence_intensity"])


def test_probabilities_within_sectors():
    """IEA37 case study 3 gives the probability of each speed in its sector."""
    path = (
        package("windIO") / "examples" / "plant" / "plant_energy_resource" / "IEA37_case_study_3_energy_resource.yaml"
    )
    given = yaml.safe_load(path.read_text())["wind_resource"]
    expected = np.array(given["probability"]["data"]) * np.array(given["sector_probability"]["data"])[:, None]
    np.testing.assert_allclose(Site.from_file(path).settings()["probability"], expected)


RESOURCE = {
    "time": ["2020-01-01", "2020-01-02", "2020-01-03"],
    "wind_direction": {"data": [270.0, 280.0, 10.0], "dims": ["time"]},
    "wind_speed": [9.0, 10.0, 8.0],
    "turbulence_intensity": {"data": 0.07, "dims": []},
}


def resource(path, **changes):
    data = {key: value for key, value in {**RESOURCE, **changes}.items() if value is not None}
    path.write_text(yaml.safe_dump({"name": "own", "wind_resource": data}))
    return path


def test_a_series_of_windio(tmp_path):
    site = Site.from_file(resource(tmp_path / "wind.yaml"))
    same = Site.from_time_series([270.0, 280.0, 10.0], [9.0, 10.0, 8.0], 0.07)
    assert site.settings() == same.settings()
    assert Site.from_file(resource(tmp_path / "wind.yaml", turbulence_intensity=None)).notes == (
        "no turbulence intensity is given: 0.1 is used",
    )
    assert Site.from_file(resource(tmp_path / "wind.yaml", z0={"data": 0.01, "dims": []})).notes == (
        "not used by leeward's wake models: z0",
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"wind_speed": [9.0, 10.0]}, "wind_resource.wind_speed has 2 values for 3 times; expected as many"),
        ({"wind_speed": [9.0, "fast", 8.0]}, "wind_resource.wind_speed contains .*; expected numbers"),
        ({"wind_speed": None}, "wind_resource.wind_speed is missing"),
        ({"operating": {"data": [1, 1, 0], "dims": ["time"]}}, "wind_resource.operating is not supported"),
        ({"shear": {"alpha": "strong", "h_ref": 100.0}}, "wind_resource.shear.alpha is 'strong'; expected a number"),
        (
            {"wind_speed": {"data": [9.0] * 3, "dims": 3}},
            "wind_resource.wind_speed has dims 3; expected a list of names",
        ),
        ({"time": None}, "wind_resource.time is missing; expected a time series, probability, or Weibull parameters"),
        ({"turbulence_intensity": {"data": 7.0, "dims": []}}, r"a fraction from 0 to 1, for example 0.06 \(per cent\?"),
    ],
)
def test_bad_resources_of_windio(tmp_path, changes, says):
    path = resource(tmp_path / "wind.yaml", **changes)
    with pytest.raises(InputError, match=says) as error:
        Site.from_file(path)
    assert str(path) in str(error.value)


def test_included_files(tmp_path):
    """Errors name the included file and its line; a circle ends."""
    resource(tmp_path / "inner.yaml", wind_speed=[9.0, 10.0])
    (tmp_path / "outer.yaml").write_text("name: site\nenergy_resource: !include inner.yaml\n")
    with pytest.raises(
        InputError, match=r"outer.yaml: in .*inner.yaml: line \d+: energy_resource.wind_resource.wind_s"
    ):
        Site.from_file(tmp_path / "outer.yaml")
    (tmp_path / "outer.yaml").write_text("energy_resource: !include outer.yaml\n")
    with pytest.raises(InputError, match="more than 10 files include each other; is there a circle"):
        Site.from_file(tmp_path / "outer.yaml")
    (tmp_path / "outer.yaml").write_text("name: x\nenergy_resource: !include none.yaml\n")
    with pytest.raises(InputError, match=r"outer.yaml, line 2: !include none.yaml: .*no such file"):
        Site.from_file(tmp_path / "outer.yaml")
    (tmp_path / "outer.yaml").write_text("energy_resource: !include secret.txt\n")
    (tmp_path / "secret.txt").write_text("x")
    with pytest.raises(InputError, match=r"expected a file that ends in .yaml, .yml or .nc"):
        Site.from_file(tmp_path / "outer.yaml")


def test_campaigns_include_no_files(tmp_path):
    with pytest.raises(InputError, match="!include"):
        load_study(tmp_path, (WEIBULL, "  !include wind.yaml\n"))


# --- PyWake's objects ---


@pytest.mark.slow
def test_sites_of_pywake():
    """The same AEP in PyWake, from its own objects."""
    pytest.importorskip("py_wake")
    from py_wake.examples.data.hornsrev1 import V80, Hornsrev1Site
    from py_wake.examples.data.iea37 import IEA37Site
    from py_wake.literature.noj import Jensen_1983

    x, y = np.array([0.0, 500.0, 1100.0]), np.array([0.0, 300.0, -100.0])
    for theirs in (Hornsrev1Site(), IEA37Site(16)):
        farm = WindFarm(Site.from_pywake(theirs), Turbine.from_pywake(V80()), "jensen")
        expected = Jensen_1983(theirs, V80(), k=0.1)(x, y).aep().sum()
        assert farm.aep_gwh(x, y) == pytest.approx(float(expected), rel=1e-9)
    sixteen = IEA37Site(16)
    sixteen.default_wd = np.arange(16) * 22.5  # as in IEA37CaseStudy1
    assert len(Site.from_pywake(sixteen).conditions.direction) == 16
    directions = Site.from_pywake(Hornsrev1Site(), directions=[0.0, 90.0], turbulence_intensity=0.05)
    assert directions.conditions.direction.tolist() == [0.0, 90.0]
    assert (directions.conditions.turbulence_intensity == 0.05).all()


def test_bad_sites_of_pywake():
    pytest.importorskip("py_wake")
    from py_wake.examples.data.hornsrev1 import Hornsrev1Site
    from py_wake.examples.data.ParqueFicticio import ParqueFicticioSite
    from py_wake.site.shear import PowerShear

    site = Hornsrev1Site()
    site.shear = PowerShear(70, 0.1, interp_method="linear")
    with pytest.raises(InputError, match="Hornsrev1Site: has the shear PowerShear, which leeward lacks"):
        Site.from_pywake(site)
    with pytest.raises(InputError, match="expected an XRSite"):
        Site.from_pywake("Hornsrev1Site")
    site = ParqueFicticioSite()
    site.interp_method = "nearest"
    with pytest.raises(InputError, match="ParqueFicticioSite: interpolates x to the nearest point"):
        Site.from_pywake(site)


# --- in campaigns and commands ---


def test_wind_files_in_campaigns(tmp_path):
    (tmp_path / "wind.tab").write_text(TAB)
    campaign = load_study(tmp_path, (WEIBULL, "  file: wind.tab\n"))
    assert list(campaign.remarks) == [
        "wind: wind.tab: the wind at 62 m is used at hub height",
        "wind: no turbulence intensity is given: 0.1 is used",
    ]
    assert (campaign.physics.site.conditions.turbulence_intensity == 0.1).all()
    again = type(campaign).from_text(campaign.frozen_text(), "again")
    assert again.fingerprint(0, 0) == campaign.fingerprint(0, 0)
    set_ = load_study(tmp_path, (WEIBULL, "  file: wind.tab\n  turbulence_intensity: 0.07\n"))
    assert (set_.physics.site.conditions.turbulence_intensity == 0.07).all()
    with pytest.raises(InputError, match="interpolation apply to Weibull distributions only"):
        load_study(tmp_path, (WEIBULL, "  file: wind.tab\n  interpolation: linear\n"))
    with pytest.raises(InputError, match="site has turbulence_intensity, which applies only to a site file"):
        load_study(tmp_path, (WEIBULL, f"{WEIBULL}  turbulence_intensity: 0.07\n"))
    (tmp_path / "wind.csv").write_text("x\n")
    with pytest.raises(InputError, match=r"is a table; give a time series as time_series: \{file: wind.csv\}"):
        load_study(tmp_path, (WEIBULL, "  file: wind.csv\n"))


def test_a_site_file_with_other_turbulence(tmp_path, site_file):
    campaign = load_study(tmp_path, (WEIBULL, f"  file: {site_file}\n  turbulence_intensity: 0.05\n"))
    np.testing.assert_allclose(campaign.physics.site.conditions.turbulence_intensity, 0.05, rtol=1e-12)


def test_a_site_file_without_turbulence(tmp_path):
    path = tmp_path / "site.nc"
    sectors = {"Sector_frequency": [0.25] * 4, "Weibull_A": [9.0] * 4, "Weibull_k": [2.0] * 4}
    data = xarray.Dataset({name: ("wd", values) for name, values in sectors.items()}, {"wd": [0.0, 90.0, 180.0, 270.0]})
    data.to_netcdf(path, engine="h5netcdf")
    site = Site.from_file(path, turbulence_intensity=0.07)
    np.testing.assert_allclose(site.conditions.turbulence_intensity, 0.07, rtol=1e-12)
    with pytest.raises(InputError, match="has no turbulence intensity"):
        Site.from_file(path)


def test_missing_values_of_a_series(tmp_path):
    (tmp_path / "wind.csv").write_text("wind_direction_deg,wind_speed_m_s\n270,9\n280,9999\n")
    with pytest.raises(InputError, match=r"speed\[1\] is 9999; expected at most 100 m/s"):
        load_study(tmp_path, (WEIBULL, "  time_series: {file: wind.csv}\n"))


@pytest.mark.parametrize("ending", ["csv", "nc", "parquet"])
def test_time_series_with_named_columns(tmp_path, ending):
    columns = {"WD": [270.0, 280.0, 10.0], "WS": [9.0, 10.0, 8.0], "TI": [0.07, 0.08, 0.09]}
    path = tmp_path / f"wind.{ending}"
    if ending == "csv":
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join([";".join(columns), *(";".join(map(str, row)) for row in rows)]))
    elif ending == "nc":
        xarray.Dataset({name: ("time", values) for name, values in columns.items()}).to_netcdf(path, engine="h5netcdf")
    else:
        pytest.importorskip("pyarrow")
        import pandas

        pandas.DataFrame(columns).to_parquet(path)
    names = "{wind_direction_deg: WD, wind_speed_m_s: WS, turbulence_intensity: TI}"
    campaign = load_study(tmp_path, (WEIBULL, f"  time_series: {{file: wind.{ending}, columns: {names}}}\n"))
    same = Site.from_time_series(*columns.values())
    assert campaign.physics.site.settings() == same.settings()
    for wrong, says in (
        ("{wind_direction_deg: WD, wind_speed_m_s: speed}", "no column 'speed'; found WD, WS, TI"),
        ("{wind_direction_deg: WD, wind_speed_m_s: WS, weight: W}", "no column 'W'; found WD, WS, TI"),
        ("{speed: WS}", "site.time_series.columns.speed"),
    ):
        with pytest.raises(InputError, match=says):
            load_study(tmp_path, (WEIBULL, f"  time_series: {{file: wind.{ending}, columns: {wrong}}}\n"))


@pytest.mark.slow
def test_wind_files_in_commands(tmp_path):
    (tmp_path / "wind.tab").write_text(TAB)
    (tmp_path / "layout.csv").write_text("x_m,y_m\n0,0\n900,0\n")
    done = leeward_here("aep", "layout.csv", "--site", "wind.tab", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the wind at 62 m is used at hub height" in done.stderr
    farm = WindFarm(Site.from_file(tmp_path / "wind.tab"), Turbine.generic(15, 240, 150))
    expected = farm.aep_gwh([0, 900], [0, 0])
    assert json.loads(done.stdout)["layouts"][0]["aep_gwh"] == pytest.approx(expected, rel=1e-12)
    done = leeward_here("run", study(tmp_path, (WEIBULL, "  file: wind.tab\n")), "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no turbulence intensity is given: 0.1 is used" in done.stdout
    assert Path(tmp_path / "layouts.run").exists() is False
