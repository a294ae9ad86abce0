"""Bad input gets an error that says which number, where, and what was expected."""

import numpy as np
import pytest

from campaign_cases import load_study
from leeward.errors import InputError, LeewardError
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from leeward.wind.wake_models import BastankhahGaussian, Jensen, Nygaard2022, wake_model

CURVE = {"wind_speeds_m_s": [3, 10, 25], "power_mw": [0, 8, 10], "thrust_coefficient": [0.8, 0.8, 0.1]}
SIZE = {"rotor_diameter_m": 198, "hub_height_m": 119}
NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def farm(turbine):
    return WindFarm(Site.from_table([0.0, 90.0], [8.0, 10.0], np.full((2, 2), 0.25), kind="exact"), turbine)


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ([0, NAN], [0, 1], r"x\[1\] is nan; expected a finite number"),
        ([0, 1], [INF, 1], r"y\[0\] is inf"),
        ([0, 1, 2], [0, 1], r"x has 3 coordinates and y has 2"),
        ([0, 5, 0], [7, 1, 7], r"turbines 0 and 2 are at the same point \(0, 7\)"),
        ([[0, 1]], [[0, 1]], r"x: expected 1 dimension\(s\), found the shape \(1, 2\)"),
        (["a"], [1], r"x: expected numbers"),
        ([0, 1e170, 1e180], [0, 1, 2], r"x\[1\] is 1e\+170 m; expected metres, at most 1e\+08"),
        ([0, 1], [0, -2e8], r"y\[1\] is -2e\+08 m; expected metres"),
    ],
)
def test_positions(farm, x, y, says):
    for question in (farm.aep_gwh, farm.aep_gradient, farm.simulate):
        with pytest.raises(InputError, match=says):
            question(x, y)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"wind_speeds_m_s": [3, 10, 10]}, r"\[2\] is 10 after 10; expected increasing speeds"),
        ({"wind_speeds_m_s": [3, 10, NAN]}, r"wind_speeds_m_s\[2\] is nan"),
        ({"power_mw": [0, -1, 10]}, r"power_mw\[1\] is -1; expected 0 or more"),
        ({"power_mw": [0, 10]}, r"3 wind speeds, 2 powers and 3 thrust"),
        ({"thrust_coefficient": [0.8, 1.7, 0.1]}, r"thrust_coefficient\[1\] is 1.7"),
        ({"thrust_coefficient": [-0.1, 0.7, 0.1]}, r"thrust_coefficient\[0\] is -0.1"),
        ({"wind_speeds_m_s": [3], "power_mw": [10], "thrust_coefficient": [0.8]}, "at least 2"),
        ({"power_mw": [0, 8000, 10000]}, "looks like kilowatts; expected megawatts: 10"),
        ({"power_mw": [0, 8e6, 10e6]}, "looks like watts; expected megawatts: 10"),
        ({"power_mw": [0, 0.008, 0.01]}, "looks like gigawatts"),
        ({"power_mw": [0, 0, 0]}, "W/m"),
        ({"rotor_diameter_m": -5}, "rotor_diameter_m is -5; expected a finite number above 0"),
        ({"hub_height_m": 80}, "blades would reach the ground"),
        ({"hub_height_m": "high"}, "hub_height_m: expected a number, found 'high'"),
    ],
)
def test_turbines(change, says):
    with pytest.raises(InputError, match=says):
        Turbine(**{**CURVE, **SIZE, **change}, name="T")


@pytest.mark.parametrize(("rated", "unit"), [(15e6, "watts"), (15_000, "kilowatts")])
def test_a_generic_turbine_in_the_wrong_unit(rated, unit):
    with pytest.raises(InputError, match=f"looks like {unit}; expected megawatts: 15"):
        Turbine.generic(rated_power_mw=rated, rotor_diameter_m=240, hub_height_m=150)


def test_a_small_turbine_in_kilowatts():
    with pytest.raises(InputError, match="kilowatts"):
        Turbine.generic(rated_power_mw=25, rotor_diameter_m=12, hub_height_m=20)


def test_thrust_that_a_model_cannot_take(farm):
    strong = Turbine(**{**CURVE, "thrust_coefficient": [1.0, 0.8, 0.1]}, **SIZE, name="strong")
    with pytest.raises(InputError, match=r"thrust coefficient of strong goes up to 1; .* needs it below 1"):
        WindFarm(farm.site, strong, "iea37_gaussian")
    assert WindFarm(farm.site, strong, "nygaard_2022").aep_gwh([0, 900], [0, 0]) > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([0, 90], [8], [[0.5], [0.6]]), "add up to 1.1; expected at most 1"),
        (([0, 90], [8], [[60], [40]]), "per cent"),
        (([0, 90], [8], [[-0.1], [0.6]]), r"\[0, 0\] is -0.1; expected 0 or more"),
        (([0, 90], [8], [[0.5], [NAN]]), r"probability\[1, 0\] is nan"),
        (([0, 90], [8, 9], [[0.5], [0.5]]), r"2 directions, 2 speeds and probabilities of the shape \(2, 1\)"),
        (([0, 400], [8], [[0.5], [0.5]]), r"direction \[1\] is 400"),
        (([0, 90], [-1], [[0.5], [0.5]]), r"speed \[0\] is -1; expected 0 m/s or more"),
        (([0, 90], ["fast"], [[0.5], [0.5]]), "speeds: expected numbers, found"),
        (([0, 90], [8], [[0.5], [0.5, 0.1]]), "probability: expected numbers"),
        (([0, 90], [8], [[0.5], [0.5]], "calm"), "turbulence_intensity: expected numbers, found 'calm'"),
        (([0, 90], [8], [[0], [0]]), "all probabilities are 0"),
        (([0, 90], [8], [[0.5], [0.5]], 8), "expected a fraction from 0 to 1, for example 0.06 .per cent"),
        (([0, 90], [8], [[0.5], [0.5]], [0.1, 0.2, 0.3]), "turbulence_intensity has the shape"),
    ],
)
def test_tables(arguments, says):
    with pytest.raises(InputError, match=says):
        Site.from_table(*arguments)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sector_frequency": [0.5, 0.6]}, "add up to 1.1"),
        ({"sector_frequency": [50, 50]}, "per cent"),
        ({"weibull_a_m_s": [9, 0]}, r"weibull_a_m_s\[1\] is 0; expected a number above 0"),
        ({"weibull_k": [2, 2, 2]}, "weibull_k has 3 sectors and sector_frequency has 2"),
        ({"interpolation": "cubic"}, "interpolation is 'cubic'; expected one of"),
        ({"directions": [0, 90, 90]}, r"directions\[2\] is 90 after 90"),
        ({"directions": [0, 180, 360]}, "count twice"),
        ({"directions": []}, "directions is empty"),
        ({"speeds": [5, 4]}, r"speeds\[1\] is 4 after 5"),
        ({"speeds": []}, "speeds is empty"),
        ({"turbulence_intensity": [0.1, 0.1, 0.1]}, "one for each of the 2 sectors"),
        ({"sector_frequency": [0, 0]}, "adds up to 0"),
        ({"sector_frequency": []}, "sector_frequency is empty"),
    ],
)
def test_weibull_sites(change, says):
    good = {"sector_frequency": [0.5, 0.5], "weibull_a_m_s": [9, 9], "weibull_k": [2, 2], "turbulence_intensity": 0.1}
    assert Site.from_weibull(**good).conditions.weight.shape == (360, 23)
    with pytest.raises(InputError, match=says):
        Site.from_weibull(**{**good, **change})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([], []), "the time series is empty"),
        (([1, 2], [3]), "direction has 2 values and speed has 1"),
        (([1, 2], [3, NAN]), r"speed\[1\] is nan"),
        (([1, -2], [3, 4]), r"direction \[1\] is -2"),
        (([1, 2], [3, 4], 0.1, [0.9, 0.2]), "add up to 1.1"),
        (([1, 2], [3, 4], 0.1, [0.9]), "probabilities of the shape"),
    ],
)
def test_time_series(arguments, says):
    with pytest.raises(InputError, match=says):
        Site.from_time_series(*arguments)


def test_unknown_wake_models(farm, turbine):
    with pytest.raises(InputError, match=r"Did you mean 'jensen'.*iea37_gaussian, jensen, no_wake, nygaard_2022"):
        WindFarm(farm.site, turbine, "jenssen")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: BastankhahGaussian(expansion=0), "expansion is 0"),
        (lambda: BastankhahGaussian(induction="glauert"), "induction is 'glauert'; expected one of"),
        (lambda: BastankhahGaussian(thrust_limit=1.0), "thrust_limit is 1.0"),
        (lambda: BastankhahGaussian(superposition="max"), "superposition is 'max'"),
        (lambda: Jensen(expansion=-1), "expansion is -1"),
        (lambda: Jensen(expansion=NAN), "expansion is nan; expected a finite number"),
        (lambda: Jensen(expansion=None), "expansion: expected a number, found None"),
        (lambda: Nygaard2022(thrust_limit=1.2), "thrust_limit is 1.2"),
        (lambda: Turbine.generic(15, 240, 150, max_power_coefficient=0.7), "expected at most 0.5926, the Betz limit"),
        (lambda: Turbine.generic(15, 240, 150, air_density_kg_m3=0), "air_density_kg_m3 is 0"),
    ],
)
def test_options_of_wake_models(make, says):
    with pytest.raises(InputError, match=says):
        make()


def test_turbulence_that_the_default_model_cannot_take(turbine):
    calm = Site.from_table([0.0], [8.0], [[1.0]], 0.0)
    with pytest.raises(InputError, match="nygaard_2022: the site's turbulence intensity goes down to 0"):
        WindFarm(calm, turbine)
    assert WindFarm(calm, turbine, "jensen").aep_gwh([0], [0]) > 0
    quiet = Site.from_table([0.0], [8.0], [[1.0]], 0.001)
    with pytest.raises(InputError, match=r"goes down to 0.001; .* at least 0.01"):
        WindFarm(quiet, turbine, Nygaard2022(ambient_turbulence=0.01))


def test_farms(farm, turbine):
    with pytest.raises(InputError, match="2 turbines for 3 positions; expected one for each"):
        WindFarm(farm.site, [turbine, turbine]).aep_gwh([0, 1, 2], [0, 1, 2])
    with pytest.raises(InputError, match="threads is 0"):
        WindFarm(farm.site, turbine, threads=0)
    with pytest.raises(InputError, match="farm and neighbours: turbines 0 and 1 are at the same point"):
        WindFarm(farm.site, turbine, neighbours=Neighbours([5.0], [6.0], turbine)).aep_gwh([5.0], [6.0])
    with pytest.raises(InputError, match=r"neighbours: x\[0\] is nan"):
        WindFarm(farm.site, turbine, neighbours=Neighbours([NAN], [6.0], turbine))
    with pytest.raises(InputError, match="count is 0"):
        farm.sampled_aep_gradient([0], [0], 0, np.random.default_rng(0))
    with pytest.raises(InputError, match="at_x has 1 coordinates and at_y has 2"):
        farm.next_turbine_aep_gwh([0], [0], [1], [1, 2])
    other = Turbine.generic(10, 195, 121)
    with pytest.raises(InputError, match="choose one with turbine="):
        WindFarm(farm.site, [turbine, other]).next_turbine_aep_gwh([0, 900], [0, 0], [1], [1])
    with pytest.raises(InputError, match="neighbours: 2 turbines for 1 positions"):
        WindFarm(farm.site, turbine, neighbours=Neighbours([5.0], [6.0], [turbine, turbine]))
    with pytest.raises(InputError, match=r"neighbours is .*; expected Neighbours\(x, y, turbine\)"):
        WindFarm(farm.site, turbine, neighbours=([5.0], [6.0]))
    with pytest.raises(InputError, match=r"site is 'ref_site\.nc'; expected a Site"):
        WindFarm("ref_site.nc", turbine)
    for wrong in ("V80", [], [turbine, "V80"]):
        with pytest.raises(InputError, match="expected a Turbine, or one Turbine for each position"):
            WindFarm(farm.site, wrong)
    with pytest.raises(InputError, match=r"count is 10\.0; expected a whole number"):
        farm.sampled_aep_gradient([0], [0], 10.0, np.random.default_rng(0))
    with pytest.raises(InputError, match="rng is 42; expected a generator"):
        farm.sampled_aep_gradient([0], [0], 10, 42)
    with pytest.raises(InputError, match=r"Write Jensen\(\) for an object"):
        WindFarm(farm.site, turbine, Jensen)


def test_all_errors_are_of_one_family():
    assert issubclass(InputError, LeewardError)
    assert issubclass(InputError, ValueError)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TurboPark", "nygaard_2022"),
        ("TurbOPark", "nygaard_2022"),
        ("Nygaard_2022", "nygaard_2022"),
        ("NOJ", "jensen"),
        ("Jensen_1983", "jensen"),
        ("BastankhahGaussian", "bastankhah_gaussian"),
        ("gauss", "bastankhah_gaussian"),
        ("IEA37", "iea37_gaussian"),
        ("NoWake", "no_wake"),
        ("jenson", "jensen"),
    ],
)
def test_wake_models_by_their_names_elsewhere(name, meant, tmp_path):
    with pytest.raises(InputError, match=f"unknown wake model '{name}'. Did you mean '{meant}'?"):
        wake_model(name)
    with pytest.raises(InputError, match=rf"line 18: wake_model is '{name}'; did you mean {meant}\? Allowed: bastan"):
        load_study(tmp_path, more=f"wake_model: {name}\n")
