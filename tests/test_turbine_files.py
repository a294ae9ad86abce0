"""Turbines in the files and objects of other programs, compared with what those programs make of them."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from campaign_cases import load_study
from leeward.errors import InputError
from leeward.wind import Turbine
from run_cases import leeward_here

SPEEDS = np.linspace(0.0, 40.0, 4001)
SIZES = {"rotor_diameter_m": 112.0, "hub_height_m": 84.0}
GENERIC = "{rated_power_mw: 15, rotor_diameter_m: 240, hub_height_m: 150}"


def package(name):
    """Return the folder of an installed package, or skip the test."""
    pytest.importorskip(name)
    return Path(importlib.util.find_spec(name).origin).parent


def same_curves(turbine, power_w, thrust):
    np.testing.assert_allclose(turbine.power_mw(SPEEDS), np.asarray(power_w) * 1e-6, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(turbine.thrust_coefficient(SPEEDS), thrust, rtol=1e-12, atol=1e-12)


# --- CSV ---

CURVES = [(3.0, 0.1, 0.9), (10.0, 2.0, 0.8), (12.5, 3.0, 0.4), (25.0, 3.0, 0.1)]


@pytest.mark.parametrize(
    ("header", "factor", "options"),
    [
        ("wind_speed_m_s,power_mw,thrust_coefficient", 1.0, {}),
        ("ws,power_kw,ct", 1e3, {}),
        ("Wind speed [m/s];Power [kW];Ct [-]", 1e3, {}),
        ("wind_speed;power (W);thrust coefficient", 1e6, {}),
        ("ws,power,ct", 1e3, {"power_unit": "kW"}),
        ("WS,POWER_MW,CT", 1.0, {"power_unit": "MW"}),
    ],
)
def test_csv_files_with_names_and_units_in_use(tmp_path, header, factor, options):
    between = ";" if ";" in header else ","
    rows = [between.join(map(repr, (speed, power * factor, thrust))) for speed, power, thrust in CURVES]
    (tmp_path / "curve.csv").write_text("\n".join([header, *rows]) + "\n")
    turbine = Turbine.from_file(tmp_path / "curve.csv", **SIZES, **options)
    expected = Turbine(
        wind_speeds_m_s=[row[0] for row in CURVES],
        power_mw=[row[1] for row in CURVES],
        thrust_coefficient=[row[2] for row in CURVES],
        **SIZES,
    )
    same_curves(turbine, expected.power_mw(SPEEDS) * 1e6, expected.thrust_coefficient(SPEEDS))
    assert (turbine.name, turbine.rotor_diameter_m, turbine.hub_height_m) == ("curve", 112.0, 84.0)


def test_csv_files_with_decimal_commas(tmp_path):
    """As a spreadsheet writes them in much of Europe."""
    (tmp_path / "kurve.csv").write_text("ws;power_kw;ct\n3,5;100,5;0,9\n12;3000;0,4\n")
    turbine = Turbine.from_file(tmp_path / "kurve.csv", **SIZES)
    assert float(turbine.power_mw(3.5)) == pytest.approx(0.1005)
    assert float(turbine.thrust_coefficient(3.5)) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("ws,power,ct\n3,0,0.8\n12,3,0.4\n", {}, "the unit of the column 'power' is not known; expected W, kW or MW"),
        ("ws,power_kw,ct\n3,0,0.8\n", {"power_unit": "MW"}, "'power_kw' and power_unit MW contradict each other"),
        ("ws,power_gw,ct\n3,0,0.8\n", {}, "no column of powers; found ws, power_gw, ct"),
        ("ws [km/h],power_kw,ct\n3,0,0.8\n", {}, r"the column 'ws \[km/h\]' is in km_h; expected wind speeds in m/s"),
        ("ws,power_kw,power_mw,ct\n3,0,0,0.8\n", {}, r"2 columns \(power_kw, power_mw\) of powers"),
        ("ws,power_kw\n3,0\n", {}, "no column of thrust coefficients"),
        ("ws,power_kw,ct\n3,0,0.8\n12,much,0.4\n", {}, "line 3, column 'power_kw': is 'much'; expected a number"),
        ("ws,power_kw,ct\n3,0,0.8\n12,3000\n", {}, "line 3: has 2 cells; expected 3"),
        ("ws,power_kw,ct\n12,3000,0.4\n3,0,0.8\n", {}, "expected increasing speeds"),
        ("ws,power_kw,ct\n3,0,0.8\n12,3000000,0.4\n", {}, r"looks like kilowatts; expected megawatts: 3\?"),
        ("", {}, "no column of wind speeds; found"),
        ("ws;power_kw;ct\n8;800;0.8\n10;1.400;0.7\n12;2.000;0.4\n", {}, "is 1.400; write thousands without a separ"),
        ("ws;power_kw;ct\n8;800;0,8\n10;1,400;0,7\n", {}, "line 3, column 'power_kw': is 1,400; write thousands"),
        ("ws,power,ct\n3,0,0.8\n", {"power_unit": 3}, "power_unit is 3; expected W, kW or MW"),
        ("ws,power_kw,ct\n3,0,0.8\n12,3000,0.4\n", {"mode": 0}, "mode does not apply to this file"),
    ],
)
def test_bad_csv_files(tmp_path, text, options, says):
    path = tmp_path / "curve.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says) as error:
        Turbine.from_file(path, **SIZES, **options)
    assert str(path) in str(error.value)


def test_csv_files_need_the_size(tmp_path):
    (tmp_path / "curve.csv").write_text("ws,power_kw,ct\n3,0,0.8\n12,3000,0.4\n")
    with pytest.raises(InputError, match="hub_height_m of the turbine is missing"):
        Turbine.from_file(tmp_path / "curve.csv", rotor_diameter_m=112)


def test_unknown_files(tmp_path):
    with pytest.raises(InputError, match=r"the extension .xlsx is not known; expected a turbine: a .csv file"):
        Turbine.from_file(tmp_path / "turbine.xlsx")
    with pytest.raises(InputError, match="no such file"):
        Turbine.from_file(tmp_path / "turbine.wtg")


# --- WAsP ---


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), [("NEG-Micon-2750.wtg", None), ("Vestas V112-3.0 MW.wtg", 0)] + [
    ("Vestas V112-3.0 MW.wtg", mode) for mode in (1, 13)
])  # fmt: skip
def test_wasp_turbines_are_those_of_pywake(name, mode):
    path = package("py_wake") / "examples" / "data" / name
    from py_wake.wind_turbines import WindTurbines

    turbine = Turbine.from_file(path, mode=mode, hub_height_m=84)
    theirs = WindTurbines.from_WAsP_wtg(str(path), default_mode=mode or 0)
    same_curves(turbine, theirs.power(SPEEDS), theirs.ct(SPEEDS))
    assert (turbine.name, turbine.rotor_diameter_m) == (theirs.name(), theirs.diameter())


WTG = """<?xml version="1.0" encoding="UTF-8"?>
<WindTurbineGenerator Description="small" RotorDiameter="{diameter}">
  <SuggestedHeights><Height>84</Height>{more}</SuggestedHeights>
  <PerformanceTable AirDensity="1.225">
    <StartStopStrategy LowSpeedCutIn="4" HighSpeedCutOut="20"/>
    <DataTable>
      <DataPoint WindSpeed="4" PowerOutput="100000" ThrustCoEfficient="0.8"/>
      <DataPoint WindSpeed="12" PowerOutput="{power}" ThrustCoEfficient="0.5"/>
      <DataPoint WindSpeed="20" PowerOutput="3000000" ThrustCoEfficient="0.1"/>
    </DataTable>
  </PerformanceTable>
</WindTurbineGenerator>
"""


def test_a_wasp_turbine_stops(tmp_path):
    path = tmp_path / "small.wtg"
    path.write_text(WTG.format(diameter=112, power=3000000, more=""))
    turbine = Turbine.from_file(path)
    assert (turbine.name, turbine.hub_height_m) == ("small", 84.0)
    assert turbine.power_mw([3.9, 4.0, 20.0, 20.1]).tolist() == pytest.approx([0.0, 0.1, 3.0, 0.0])


JUMP = """<DataPoint WindSpeed="10" PowerOutput="1500000" ThrustCoEfficient="0.8"/>
      <DataPoint WindSpeed="10" PowerOutput="1800000" ThrustCoEfficient="0.7"/>
      <DataPoint WindSpeed="12" """


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<DataPoint WindSpeed="12" ', JUMP),
        ('LowSpeedCutIn="4"', 'LowSpeedCutIn="2"'),
        ('HighSpeedCutOut="20"', 'HighSpeedCutOut="34"'),
    ],
)
def test_wasp_curves_between_the_points(tmp_path, old, new):
    """A jump, and curves that end before cut-in or cut-out, as in PyWake."""
    pytest.importorskip("py_wake")
    from py_wake.wind_turbines import WindTurbines

    path = tmp_path / "t.wtg"
    path.write_text(WTG.format(diameter=112, power=3000000, more="").replace(old, new))
    theirs = WindTurbines.from_WAsP_wtg(str(path))
    turbine = Turbine.from_file(path)
    np.testing.assert_allclose(turbine.power_mw(SPEEDS), theirs.power(SPEEDS) * 1e-6, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(turbine.thrust_coefficient(SPEEDS), theirs.ct(SPEEDS), rtol=1e-6, atol=1e-6)


def test_wasp_points_in_any_order(tmp_path):
    path = tmp_path / "t.wtg"
    text = WTG.format(diameter=112, power=3000000, more="")
    path.write_text(text)
    forward = Turbine.from_file(path)
    points = [line for line in text.splitlines(keepends=True) if "DataPoint " in line]
    path.write_text(text.replace("".join(points), "".join(reversed(points))))
    assert Turbine.from_file(path) == forward


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            WTG.format(diameter=112, power=3e6, more="").replace('LowSpeedCutIn="4"', 'LowSpeedCutIn="nan"'),
            "CutIn is 'nan'",
        ),
        (
            WTG.format(diameter=112, power=3e6, more="").replace('CutIn="4"', 'CutIn="30"'),
            "cut-in speed is 30 and the cut",
        ),
        (WTG.format(diameter=112, power="lots", more=""), "DataPoint PowerOutput is 'lots'; expected a number"),
        (WTG.format(diameter="", power=3000000, more=""), "WindTurbineGenerator RotorDiameter is ''"),
        (
            WTG.format(diameter=112, power=3000000, more="<Height>94</Height>"),
            "suggests several hub heights, 84, 94 m; choose one with hub_height_m",
        ),
        ("<Farm/>", "its root element is Farm; expected WindTurbineGenerator"),
        ("<WindTurbineGenerator/>", "has no PerformanceTable"),
        ("not xml", "cannot be read as XML"),
        ("", "cannot be read as XML"),
    ],
)
def test_bad_wasp_turbines(tmp_path, text, says):
    path = tmp_path / "bad.wtg"
    path.write_text(text)
    with pytest.raises(InputError, match=says) as error:
        Turbine.from_file(path)
    assert str(path) in str(error.value)


def test_performance_tables_are_chosen():
    path = package("py_wake") / "examples" / "data" / "Vestas V112-3.0 MW.wtg"
    with pytest.raises(InputError, match=r"has 14 performance tables \(0: air density 1.225 kg/m3; .* choose one with"):
        Turbine.from_file(path)
    with pytest.raises(InputError, match="has no performance table 14; expected a mode from 0 to 13"):
        Turbine.from_file(path, mode=14)
    with pytest.raises(InputError, match="mode is '0'; expected a whole number"):
        Turbine.from_file(path, mode="0")


# --- FLORIS ---


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nrel_5MW", "iea_10MW", "iea_15MW", "iea_22MW"])
def test_floris_turbines_are_those_of_floris(name):
    path = package("floris") / "turbine_library" / f"{name}.yaml"
    from floris.core.turbine.operation_models import SimpleTurbine

    table = {key: np.array(value) for key, value in yaml.safe_load(path.read_text())["power_thrust_table"].items()}
    speeds = np.linspace(0.5, 40.0, 4001)
    found = {
        "power_thrust_table": table,
        "velocities": np.broadcast_to(speeds[:, None, None, None], (len(speeds), 1, 3, 3)),
        "air_density": 1.225,
    }
    turbine = Turbine.from_file(path)
    power = SimpleTurbine.power(**found)[:, 0]
    thrust = SimpleTurbine.thrust_coefficient(**found)[:, 0]
    np.testing.assert_allclose(turbine.power_mw(speeds), power * 1e-6, rtol=1e-6, atol=1e-9)
    # FLORIS keeps the thrust between 0.0001 and 0.9999
    np.testing.assert_allclose(np.clip(turbine.thrust_coefficient(speeds), 1e-4, 0.9999), thrust, rtol=1e-6, atol=1e-9)
    assert turbine.name == name


def test_floris_tables_in_any_order(tmp_path):
    """FLORIS sorts them; two points at one speed are a jump."""
    pytest.importorskip("scipy")
    from scipy.interpolate import interp1d

    for speeds, power in (([25, 12, 8, 3], [5000, 5000, 2000, 0]), ([3, 8, 8, 12, 25], [0, 2000, 3000, 5000, 5000])):
        table = {"wind_speed": speeds, "power": power, "thrust_coefficient": [0.5] * len(speeds)}
        (tmp_path / "own.yaml").write_text(yaml.safe_dump({**FLORIS, "power_thrust_table": table}))
        turbine = Turbine.from_file(tmp_path / "own.yaml")
        at = np.array([4.0, 7.9, 8.1, 12.0, 20.0])
        np.testing.assert_allclose(turbine.power_mw(at), interp1d(speeds, power)(at) * 1e-3, rtol=1e-6)


FLORIS = {
    "turbine_type": "own",
    "hub_height": 90.0,
    "rotor_diameter": 126.0,
    "operation_model": "simple",
    "power_thrust_table": {
        "wind_speed": [3.0, 12.0, 25.0],
        "power": [50.0, 5000.0, 5000.0],
        "thrust_coefficient": [0.9, 0.7, 0.1],
    },
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"operation_model": "peak-shaving"},
            "line 4: operation_model is 'peak-shaving'; expected one that keeps power",
        ),
        ({"multi_dimensional_cp_ct": True}, "multi_dimensional_cp_ct is not supported"),
        ({"correct_cp_ct_for_tilt": True}, "correct_cp_ct_for_tilt is not supported"),
        ({"power_thrust_table": {"wind_speed": [3, 12]}}, "power_thrust_table.power is missing; expected a list"),
        (
            {"power_thrust_table": {**FLORIS["power_thrust_table"], "power": [1.0, 2.0]}},
            "has 3 of wind_speed, 2 of power, 3 of thrust_coefficient; expected the same number",
        ),
        (
            {"power_thrust_table": {**FLORIS["power_thrust_table"], "power": [1.0, "x", 2.0]}},
            r"power_thrust_table.power\[1\] is 'x'; expected a number",
        ),
    ],
)
def test_bad_floris_turbines(tmp_path, change, says):
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({**FLORIS, **change}, sort_keys=False))
    with pytest.raises(InputError, match=says):
        Turbine.from_file(path)


# --- windIO ---


def test_windio_turbines_of_windio():
    """One of each kind of curve: rated figures, and power coefficients."""
    folder = package("windIO") / "examples" / "plant" / "plant_energy_turbine"
    small = Turbine.from_file(folder / "IEA37_3.35MW_turbine.yaml")
    np.testing.assert_allclose(small.power_mw(SPEEDS), Turbine.iea37_3_35mw().power_mw(SPEEDS), atol=1e-6)
    running = (SPEEDS >= 4.0) & (SPEEDS <= 25.0)
    np.testing.assert_allclose(small.thrust_coefficient(SPEEDS), np.where(running, 0.888888889, 0.0), atol=1e-6)
    large = Turbine.from_file(folder / "IEA37_15MW_turbine.yaml")
    curve = yaml.safe_load((folder / "IEA37_15MW_turbine.yaml").read_text())["performance"]["Cp_curve"]
    speeds, cp = np.array(curve["Cp_wind_speeds"]), np.array(curve["Cp_values"])
    expected = 0.5 * 1.225 * np.pi * 120.0**2 * cp * speeds**3 * 1e-6
    np.testing.assert_allclose(large.power_mw(speeds), expected, rtol=1e-12)
    assert large.rated_power_mw == pytest.approx(expected.max())


WINDIO = {
    "name": "own",
    "performance": {
        "power_curve": {"power_wind_speeds": [3.0, 12.0, 30.0], "power_values": [1e5, 5e6, 5e6]},
        "Ct_curve": {"Ct_wind_speeds": [3.0, 10.0, 30.0], "Ct_values": [0.9, 0.8, 0.1]},
    },
    "hub_height": 90.0,
    "rotor_diameter": 126.0,
}


def test_curves_at_different_speeds_and_stops(tmp_path):
    path = tmp_path / "own.yaml"
    data = {**WINDIO, "performance": {**WINDIO["performance"], "cutin_wind_speed": 3.0, "cutout_wind_speed": 25.0}}
    for values, is_stopped in ((WINDIO, False), (data, True)):
        path.write_text(yaml.safe_dump(values))
        turbine = Turbine.from_file(path)
        assert turbine.power_mw([2.9, 12.0, 24.9, 25.1]).tolist() == pytest.approx(
            [0.0 if is_stopped else 0.1, 5.0, 5.0, 0.0 if is_stopped else 5.0]
        )
        assert float(turbine.thrust_coefficient(11.0)) == pytest.approx(0.8 - 0.7 / 20.0)


def test_rated_figures_with_a_thrust_curve(tmp_path):
    rated = {"rated_power": 5e6, "rated_wind_speed": 11.0, "cutin_wind_speed": 4.0, "cutout_wind_speed": 25.0}
    data = {**WINDIO, "performance": {**rated, "Ct_curve": WINDIO["performance"]["Ct_curve"]}}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(data))
    turbine = Turbine.from_file(tmp_path / "own.yaml")
    speeds = np.linspace(4.0, 11.0, 701)
    np.testing.assert_allclose(turbine.power_mw(speeds), 5.0 * ((speeds - 4.0) / 7.0) ** 3, atol=1e-6)
    assert turbine.power_mw([25.0, 25.1]).tolist() == pytest.approx([5.0, 0.0])
    assert float(turbine.thrust_coefficient(10.0)) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hub_height": None}, "hub_height is missing; expected a number"),
        ({"rotor_diameter": 1e300}, "cannot be used"),
        (
            {"performance": {**WINDIO["performance"], "cutin_wind_speed": 26.0, "cutout_wind_speed": 3.0}},
            "line 4: performance: the cut-in speed is 26 and the cut-out speed 3|performance: the cut-in speed is 26",
        ),
        ({"rotor_diameter": "wide"}, "rotor_diameter is 'wide'; expected a number"),
        ({"performance": {"rated_power": 5e6, "Ct_curve": WINDIO["performance"]["Ct_curve"]}}, "rated_wind_speed is"),
        ({"performance": {"power_curve": WINDIO["performance"]["power_curve"]}}, "Ct_curve.Ct_wind_speeds is"),
        (
            {
                "performance": {
                    **WINDIO["performance"],
                    "Ct_curve": {"Ct_wind_speeds": [3, 2, 4], "Ct_values": [0.9, 0.8, 0.7]},
                }
            },
            r"Ct_wind_speeds\[1\] is 2 after 3; expected increasing speeds",
        ),
    ],
)
def test_bad_windio_turbines(tmp_path, change, says):
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({**WINDIO, **change}))
    with pytest.raises(InputError, match=says):
        Turbine.from_file(path)


# --- PyWake's objects ---


@pytest.mark.slow
def test_turbines_of_pywake():
    pytest.importorskip("py_wake")
    from py_wake.examples.data.dtu10mw import DTU10MW
    from py_wake.examples.data.hornsrev1 import V80
    from py_wake.examples.data.iea37 import IEA37_WindTurbines
    from py_wake.wind_turbines import WindTurbines
    from py_wake.wind_turbines.generic_wind_turbines import GenericWindTurbine

    for theirs in (V80(), DTU10MW(), GenericWindTurbine("generic", 100.0, 80.0, 2500)):
        turbine = Turbine.from_pywake(theirs)
        same_curves(turbine, theirs.power(SPEEDS), theirs.ct(SPEEDS))
        assert turbine.rotor_diameter_m == theirs.diameter()
    cubic = Turbine.from_pywake(IEA37_WindTurbines())  # not a table: sampled
    np.testing.assert_allclose(cubic.power_mw(SPEEDS), IEA37_WindTurbines().power(SPEEDS) * 1e-6, atol=2e-5)
    from py_wake.wind_turbines import WindTurbine
    from py_wake.wind_turbines.power_ct_functions import PowerCtTabular

    jump = PowerCtTabular([3, 8, 8, 12, 25], [0, 1000, 1500, 2000, 2000], "kW", [0.8, 0.8, 0.7, 0.4, 0.1])
    theirs = WindTurbine("jump", 80, 70, jump)
    np.testing.assert_allclose(Turbine.from_pywake(theirs).power_mw(SPEEDS), theirs.power(SPEEDS) * 1e-6, atol=1e-8)
    smooth = V80(method="pchip")
    inside = np.linspace(4.0, 25.0, 2101)
    np.testing.assert_allclose(
        Turbine.from_pywake(smooth).power_mw(inside), smooth.power(inside) * 1e-6, rtol=1e-4, atol=1e-5
    )
    two = WindTurbines.from_WindTurbine_lst([V80(), DTU10MW()])
    for number, alone in enumerate((V80(), DTU10MW())):
        same_curves(Turbine.from_pywake(two, type=number), alone.power(SPEEDS), alone.ct(SPEEDS))
    with pytest.raises(InputError, match="type is 2; PyWake's turbines have the types 0 to 1"):
        Turbine.from_pywake(two, type=2)
    with pytest.raises(InputError, match="expected a turbine of PyWake"):
        Turbine.from_pywake("V80")


# --- in campaigns and commands ---


def test_turbine_files_in_campaigns(tmp_path):
    """The frozen campaign has the curves: the file is not needed again."""
    (tmp_path / "v.wtg").write_text(WTG.format(diameter=112, power=3000000, more=""))
    (tmp_path / "f.yaml").write_text(yaml.safe_dump(FLORIS))
    (tmp_path / "w.yaml").write_text(yaml.safe_dump(WINDIO))
    (tmp_path / "c.csv").write_text("ws;power;ct\n3;0;0.8\n12;3000;0.4\n")
    for entry, name, rated in (
        ("{file: v.wtg}", "small", 3.0),
        ("{file: f.yaml, hub_height_m: 100}", "own", 5.0),
        ("{file: w.yaml, name: V}", "V", 5.0),
        ("{file: c.csv, power_unit: kW, rotor_diameter_m: 112, hub_height_m: 84}", "c", 3.0),
    ):
        campaign = load_study(tmp_path, (GENERIC, entry))
        assert campaign.types[0] == name
        assert campaign.physics.rated_power_mw(0) == pytest.approx(rated)
        assert "file:" not in campaign.frozen_text()
        assert type(campaign).from_text(campaign.frozen_text(), "again").fingerprint(0, 0) == campaign.fingerprint(0, 0)
    with pytest.raises(
        InputError, match=r"study.yaml: line 14: turbines\[0\]: .*c.csv: the unit of the column 'power'"
    ):
        load_study(tmp_path, (GENERIC, "{file: c.csv, rotor_diameter_m: 112, hub_height_m: 84}"))
    with pytest.raises(InputError, match=r"turbines\[0\].power_unit is 'PS'; expected one of 'W', 'kW', 'MW'"):
        load_study(tmp_path, (GENERIC, "{file: c.csv, power_unit: PS}"))


def test_turbine_files_in_commands(tmp_path):
    (tmp_path / "c.csv").write_text("ws;power;ct\n3;0;0.8\n12;3000;0.4\n")
    (tmp_path / "layout.csv").write_text("x_m,y_m\n0,0\n900,0\n")
    sizes = ["--rotor-diameter-m", "112", "--hub-height-m", "84"]
    done = leeward_here("aep", "layout.csv", "--turbine", "c.csv", *sizes, cwd=tmp_path)
    assert done.returncode == 2
    assert "the unit of the column 'power' is not known" in done.stderr
    done = leeward_here("aep", "layout.csv", "--turbine", "c.csv", *sizes, "--power-unit", "kW", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["layouts"][0]["installed_mw"] == pytest.approx(6.0)
