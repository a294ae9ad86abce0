"""PyWake's numbers: AEP to 1e-9, effective wind speeds to 1e-8, probabilities to 1e-12."""

import json

import numpy as np
import pytest

from conftest import DATA, random_layout
from leeward.wind import Site, Turbine, WindFarm
from leeward.wind.wake_models import BastankhahGaussian, Jensen, Nygaard2022, wake_model

peer = pytest.importorskip("pywake_peer", reason="needs PyWake, of the extra `test`")

MODELS = [
    wake_model("nygaard_2022"),
    wake_model("bastankhah_gaussian"),
    BastankhahGaussian(induction="momentum"),
    BastankhahGaussian(reference_speed="effective", expansion=0.04, initial_width=0.25),
    BastankhahGaussian(superposition="linear", induction="momentum", reference_speed="effective"),
    wake_model("iea37_gaussian"),
    wake_model("jensen"),
    Jensen(expansion=0.05),
    wake_model("no_wake"),
    Nygaard2022(expansion=0.06, ambient_turbulence=1.2, added_turbulence=0.6, initial_width=0.2, thrust_limit=0.9),
    BastankhahGaussian(thrust_limit=0.5),
]
ALL_DIRECTIONS = np.arange(360.0)
SOME_DIRECTIONS = np.arange(0.0, 360.0, 7.5)
SPEEDS = np.arange(3.0, 26.0)


def names(model):
    options = [f"{k}={v}" for k, v in vars(model).items() if v != getattr(type(model), k)]
    return " ".join([model.name, *options])


def assert_same(model, farm, peer_site, turbines, x, y, kinds, directions, speeds):
    ours = farm.simulate(x, y, per_condition=True)
    theirs, their_speeds = peer.peer_simulation(model, peer_site, turbines, x, y, kinds, directions, speeds)
    assert ours.total_aep_gwh == pytest.approx(theirs, rel=1e-9, abs=0)
    assert farm.aep(x, y) == pytest.approx(theirs, rel=1e-9, abs=0)
    np.testing.assert_allclose(ours.condition_speed_m_s, their_speeds, rtol=0, atol=1e-8)


@pytest.mark.parametrize("count", [1, 2, 17, 100])
@pytest.mark.parametrize("model", MODELS, ids=names)
def test_random_farms_on_the_weibull_site(model, count, site_file, turbine):
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS)
    x, y = random_layout(count, seed=count)
    farm = WindFarm(site, turbine, model)
    peer_site = peer.peer_site(site_file)
    assert_same(model, farm, peer_site, [turbine], x, y, np.zeros(count, int), SOME_DIRECTIONS, SPEEDS)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_mixed_types_and_hub_heights(model, site_file, turbines):
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS, interpolation="linear")
    count = 30
    x, y = random_layout(count, seed=5, density_m=900.0, apart_m=300.0)
    kinds = np.random.default_rng(5).integers(0, len(turbines), count)
    farm = WindFarm(site, [turbines[k] for k in kinds], model)
    peer_site = peer.peer_site(site_file, "linear")
    assert_same(model, farm, peer_site, turbines, x, y, kinds, SOME_DIRECTIONS, SPEEDS)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_a_tabulated_rose(model, turbine):
    rng = np.random.default_rng(3)
    directions, speeds = np.arange(0.0, 360.0, 22.5), np.array([6.0, 8.0, 9.5, 11.0, 14.0])
    probability = rng.random((16, 5))
    probability /= probability.sum()
    site = Site.from_table(directions, speeds, probability, 0.07)
    x, y = random_layout(25, seed=8)
    farm = WindFarm(site, turbine, model)
    peer_site = peer.peer_table(directions, speeds, probability, 0.07)
    assert_same(model, farm, peer_site, [turbine], x, y, np.zeros(25, int), directions, speeds)


@pytest.mark.parametrize("name", ["farm0_t5_s0", "farm3_t2_s0", "farm5_t5_s49", "farm9_t4_s24"])
def test_reference_layouts(name, site):
    """Layouts of TopFarm 2.7.1 with the AEP that PyWake 2.6.20 gave them."""
    layout = json.loads((DATA / f"{name}.json").read_text())
    turbine = Turbine.generic(layout["rated_power_mw"], layout["rotor_diameter_m"], layout["hub_height_m"])
    assert WindFarm(site, turbine).aep(layout["x_m"], layout["y_m"]) == pytest.approx(layout["aep_gwh"], rel=1e-9)


def test_heavily_loaded_rotors(site_file):
    """A thrust coefficient above 1, where PyWake's models differ in what they limit."""
    turbine = Turbine(
        wind_speeds_m_s=[3, 10, 25],
        power_mw=[0.1, 8, 10],
        thrust_coefficient=[1.4, 1.2, 0.1],
        rotor_diameter_m=198,
        hub_height_m=119,
    )
    x, y = random_layout(10, seed=21)
    for name in ("nygaard_2022", "bastankhah_gaussian", "jensen"):
        farm = WindFarm(Site.from_netcdf(site_file, directions=SOME_DIRECTIONS), turbine, name)
        peer_site = peer.peer_site(site_file)
        assert_same(farm.wake_model, farm, peer_site, [turbine], x, y, np.zeros(10, int), SOME_DIRECTIONS, SPEEDS)


def test_very_different_rotors(site_file):
    """A small rotor's narrow wake on a large rotor: the end of the overlap table."""
    types = [Turbine.generic(15, 240, 150), Turbine.generic(0.03, 12, 20)]
    x, y = random_layout(12, seed=22, density_m=400.0, apart_m=150.0)
    kinds = np.arange(12) % 2
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS)
    for name in ("nygaard_2022", "jensen"):
        farm = WindFarm(site, [types[k] for k in kinds], name)
        peer_site = peer.peer_site(site_file)
        assert_same(farm.wake_model, farm, peer_site, types, x, y, kinds, SOME_DIRECTIONS, SPEEDS)


def test_default_bins_and_the_default_model(site, site_file, turbine):
    x, y = random_layout(20, seed=1)
    farm = WindFarm(site, turbine)
    theirs = peer.peer_farm(farm.wake_model, peer.peer_site(site_file), [turbine]).aep(x, y)
    assert farm.aep(x, y) == pytest.approx(float(theirs), rel=1e-9)


def test_the_analytic_turbine(site_file):
    from py_wake.examples.data.iea37 import IEA37_WindTurbines

    turbine = Turbine.iea37_3_35mw()
    theirs = IEA37_WindTurbines()
    speeds = np.r_[np.linspace(0, 30, 601), 4.0, 9.8, 25.0]
    np.testing.assert_allclose(turbine.power_mw(speeds), theirs.power(speeds) * 1e-6, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(turbine.thrust_coefficient(speeds), theirs.ct(speeds), rtol=1e-14)
    assert (turbine.rotor_diameter_m, turbine.hub_height_m) == (theirs.diameter(), theirs.hub_height())


def test_the_10_mw_turbine():
    from py_wake.wind_turbines.power_ct_functions import CubePowerSimpleCt

    turbine = Turbine.iea37_10mw()
    theirs = CubePowerSimpleCt(4.0, 25.0, 11.0, 10.0, "MW", ct=8 / 9, ct_idle=None)
    speeds = np.linspace(0, 30, 601)
    np.testing.assert_allclose(turbine.power_mw(speeds), theirs(speeds, run_only=0) * 1e-6, rtol=1e-13, atol=1e-15)
    assert (turbine.rotor_diameter_m, turbine.hub_height_m, turbine.rated_power_mw) == (198.0, 119.0, 10.0)


@pytest.mark.parametrize(("rated", "diameter", "hub"), [(15, 240, 150), (10, 195, 121), (2, 80, 70), (0.5, 40, 45)])
def test_the_generic_turbine(rated, diameter, hub):
    from py_wake.wind_turbines.generic_wind_turbines import GenericWindTurbine

    ours = Turbine.generic(rated, diameter, hub)
    theirs = GenericWindTurbine("generic", diameter, hub, power_norm=rated * 1000)
    speeds = np.linspace(0, 35, 2000)
    np.testing.assert_allclose(ours.power_mw(speeds), theirs.power(speeds) * 1e-6, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.thrust_coefficient(speeds), theirs.ct(speeds), rtol=1e-12)


@pytest.mark.parametrize("turbulence", [0.0, 0.3, 0.5])
def test_the_generic_turbine_in_other_turbulence(turbulence):
    from py_wake.wind_turbines.generic_wind_turbines import GenericWindTurbine

    ours = Turbine.generic(8, 164, 110, turbulence_intensity=turbulence)
    theirs = GenericWindTurbine("generic", 164, 110, power_norm=8000, turbulence_intensity=turbulence)
    speeds = np.linspace(0, 35, 2000)
    np.testing.assert_allclose(ours.power_mw(speeds), theirs.power(speeds) * 1e-6, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.thrust_coefficient(speeds), theirs.ct(speeds), rtol=1e-12)


@pytest.mark.parametrize("interpolation", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("directions", "speeds"),
    [
        (ALL_DIRECTIONS, SPEEDS),
        (np.arange(0.0, 360.0, 2.5), np.array([4.0, 5.0, 7.5, 8.0, 12.0])),
        (np.array([3.0, 10.0, 200.0]), np.array([10.0])),
    ],
)
def test_probabilities(interpolation, directions, speeds, site_file):
    ours = Site.from_netcdf(site_file, directions=directions, speeds=speeds, interpolation=interpolation).conditions
    theirs = peer.peer_site(site_file, interpolation).local_wind(x=[0], y=[0], h=[150], wd=directions, ws=speeds)
    np.testing.assert_allclose(ours.weight, theirs.P_ilk[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.turbulence_intensity, 0.1)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_a_time_series(model, turbine):
    rng = np.random.default_rng(2)
    direction, speed = rng.uniform(0, 360, 300), rng.uniform(4, 20, 300)
    intensity = rng.uniform(0.05, 0.15, 300)
    x, y = random_layout(12, seed=4)
    site = Site.from_time_series(direction, speed, intensity)
    ours = WindFarm(site, turbine, model).simulate(x, y, per_condition=True)
    site = peer.peer_table([0.0, 180.0], [3.0, 25.0], np.full((2, 2), 0.25), 0.1)
    theirs = peer.peer_farm(model, site, [turbine])(x, y, wd=direction, ws=speed, time=True, TI=intensity)
    assert ours.total_aep_gwh == pytest.approx(float(theirs.aep().sum()), rel=1e-9)
    np.testing.assert_allclose(ours.condition_speed_m_s[:, :, 0], theirs.WS_eff.values, rtol=0, atol=1e-8)


@pytest.mark.parametrize("model", ["nygaard_2022", "bastankhah_gaussian", "jensen"])
def test_the_map_of_a_further_turbine(model, site_file, turbine):
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS, speeds=[6.0, 8.0, 10.0, 12.0, 14.0])
    x, y = random_layout(15, seed=6)
    rng = np.random.default_rng(6)
    at_x = rng.uniform(x.min() - 1000, x.max() + 1000, 40)
    at_y = rng.uniform(y.min() - 1000, y.max() + 1000, 40)
    farm = WindFarm(site, turbine, model)
    ours = farm.next_turbine_aep(x, y, at_x, at_y, rotor_average=False)
    result = peer.peer_farm(farm.wake_model, peer.peer_site(site_file), [turbine])(
        x, y, wd=SOME_DIRECTIONS, ws=[6.0, 8.0, 10.0, 12.0, 14.0]
    )
    from py_wake.flow_map import Points

    theirs = result.aep_map(Points(at_x, at_y, np.full(40, 150.0))).values
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
