"""PyWake's numbers: AEP to 1e-9, effective wind speeds to 1e-8, probabilities to 1e-12."""

import json

import numpy as np
import pytest

from conftest import DATA, default_first, random_layout
from leeward.wind import Site, Turbine, WindFarm
from leeward.wind.wake_models import BastankhahGaussian, Jensen, Nygaard2022, wake_model
from references import model_name as names

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


def assert_same(pywake, farms, site_of, turbines, x, y, kinds, directions, speeds):
    """farms: one or several of ours; site_of: from the peer module to PyWake's site."""

    def compute():
        import pywake_peer

        numbers = {}
        for farm in farms:
            case = (farm.wake_model, site_of(pywake_peer), turbines, x, y, kinds, directions, speeds)
            aep, effective = pywake_peer.peer_simulation(*case)
            numbers |= {f"aep {farm.wake_model.name}": aep, f"speed {farm.wake_model.name}": effective}
        return numbers

    theirs = pywake.numbers(compute)
    for farm in farms:
        ours = farm.simulate(x, y, per_condition=True)
        theirs.assert_close(f"aep {farm.wake_model.name}", ours.total_aep_gwh, rtol=1e-9)
        theirs.assert_close(f"aep {farm.wake_model.name}", farm.aep_gwh(x, y), rtol=1e-9)
        theirs.assert_close(f"speed {farm.wake_model.name}", ours.condition_speed_m_s, atol=1e-8)


def weibull(site_file, interpolation="nearest"):
    return lambda peer: peer.peer_site(site_file, interpolation)


@pytest.mark.parametrize("count", [1, 2, 17, 100])
@pytest.mark.parametrize("model", MODELS, ids=names)
def test_random_farms_on_the_weibull_site(model, count, site_file, turbine, pywake):
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS)
    x, y = random_layout(count, seed=count)
    farm = WindFarm(site, turbine, model)
    kinds = np.zeros(count, int)
    assert_same(pywake, [farm], weibull(site_file), [turbine], x, y, kinds, SOME_DIRECTIONS, SPEEDS)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_mixed_types_and_hub_heights(model, site_file, turbines, pywake):
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS, interpolation="linear")
    count = 30
    x, y = random_layout(count, seed=5, density_m=900.0, apart_m=300.0)
    kinds = np.random.default_rng(5).integers(0, len(turbines), count)
    farm = WindFarm(site, [turbines[k] for k in kinds], model)
    site_of = weibull(site_file, "linear")
    assert_same(pywake, [farm], site_of, turbines, x, y, kinds, SOME_DIRECTIONS, SPEEDS)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_a_tabulated_rose(model, turbine, pywake):
    rng = np.random.default_rng(3)
    directions, speeds = np.arange(0.0, 360.0, 22.5), np.array([6.0, 8.0, 9.5, 11.0, 14.0])
    probability = rng.random((16, 5))
    probability /= probability.sum()
    site = Site.from_table(directions, speeds, probability, 0.07, kind="exact")
    x, y = random_layout(25, seed=8)
    farm = WindFarm(site, turbine, model)

    def site_of(peer):
        return peer.peer_table(directions, speeds, probability, 0.07)

    assert_same(pywake, [farm], site_of, [turbine], x, y, np.zeros(25, int), directions, speeds)


@pytest.mark.parametrize("sectors", [4, 8, 12, 36])
def test_a_table_of_bins_is_spread_as_pywake_spreads_it(sectors, turbine, pywake):
    rng = np.random.default_rng(sectors)
    directions, speeds = np.arange(sectors) * 360.0 / sectors, np.arange(4.0, 24.0, 2.0)
    probability = rng.random((sectors, len(speeds)))
    probability /= probability.sum()
    intensity = np.repeat(rng.uniform(0.05, 0.1, (sectors, 1)), len(speeds), axis=1)
    site = Site.from_table(directions, speeds, probability, intensity)
    assert site.settings()["kind"] == "bins"
    x, y = random_layout(25, seed=8)

    def site_of(peer):
        return peer.peer_table(directions, speeds, probability, (("wd", "ws"), intensity))

    everywhere = np.arange(360.0)
    assert_same(pywake, [WindFarm(site, turbine)], site_of, [turbine], x, y, np.zeros(25, int), everywhere, speeds)


@pytest.mark.parametrize("name", ["farm0_t5_s0", "farm3_t2_s0", "farm5_t5_s49", "farm9_t4_s24"])
def test_reference_layouts(name, site):
    """Layouts of TopFarm 2.7.1 with the AEP that PyWake 2.6.20 gave them."""
    layout = json.loads((DATA / f"{name}.json").read_text())
    turbine = Turbine.generic(layout["rated_power_mw"], layout["rotor_diameter_m"], layout["hub_height_m"])
    assert WindFarm(site, turbine).aep_gwh(layout["x_m"], layout["y_m"]) == pytest.approx(layout["aep_gwh"], rel=1e-9)


def test_heavily_loaded_rotors(site_file, pywake):
    """A thrust coefficient above 1, where PyWake's models differ in what they limit."""
    turbine = Turbine(
        wind_speeds_m_s=[3, 10, 25],
        power_mw=[0.1, 8, 10],
        thrust_coefficient=[1.4, 1.2, 0.1],
        rotor_diameter_m=198,
        hub_height_m=119,
    )
    x, y = random_layout(10, seed=21)
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS)
    farms = [WindFarm(site, turbine, name) for name in ("nygaard_2022", "bastankhah_gaussian", "jensen")]
    kinds = np.zeros(10, int)
    assert_same(pywake, farms, weibull(site_file), [turbine], x, y, kinds, SOME_DIRECTIONS, SPEEDS)


def test_very_different_rotors(site_file, pywake):
    """A small rotor's narrow wake on a large rotor: the end of the overlap table."""
    types = [Turbine.generic(15, 240, 150), Turbine.generic(0.03, 12, 20)]
    x, y = random_layout(12, seed=22, density_m=400.0, apart_m=150.0)
    kinds = np.arange(12) % 2
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS)
    farms = [WindFarm(site, [types[k] for k in kinds], name) for name in ("nygaard_2022", "jensen")]
    assert_same(pywake, farms, weibull(site_file), types, x, y, kinds, SOME_DIRECTIONS, SPEEDS)


def test_default_bins_and_the_default_model(site, site_file, turbine, pywake):
    x, y = random_layout(20, seed=1)
    farm = WindFarm(site, turbine)

    def compute():
        import pywake_peer as peer

        return {"aep": peer.peer_farm(farm.wake_model, peer.peer_site(site_file), [turbine]).aep(x, y)}

    pywake.numbers(compute).assert_close("aep", farm.aep_gwh(x, y), rtol=1e-9)


def test_the_analytic_turbine(pywake):
    turbine = Turbine.iea37_3_35mw()
    speeds = np.r_[np.linspace(0, 30, 601), 4.0, 9.8, 25.0]

    def compute():
        from py_wake.examples.data.iea37 import IEA37_WindTurbines

        theirs = IEA37_WindTurbines()
        sizes = [theirs.diameter(), theirs.hub_height()]
        return {"power": theirs.power(speeds) * 1e-6, "thrust": theirs.ct(speeds), "sizes": sizes}

    theirs = pywake.numbers(compute)
    theirs.assert_close("power", turbine.power_mw(speeds), rtol=1e-13, atol=1e-15)
    theirs.assert_close("thrust", turbine.thrust_coefficient(speeds), rtol=1e-14)
    theirs.assert_close("sizes", [turbine.rotor_diameter_m, turbine.hub_height_m])


def test_the_10_mw_turbine(pywake):
    turbine = Turbine.iea37_10mw()
    speeds = np.linspace(0, 30, 601)

    def compute():
        from py_wake.wind_turbines.power_ct_functions import CubePowerSimpleCt

        theirs = CubePowerSimpleCt(4.0, 25.0, 11.0, 10.0, "MW", ct=8 / 9, ct_idle=None)
        return {"power": theirs(speeds, run_only=0) * 1e-6}

    pywake.numbers(compute).assert_close("power", turbine.power_mw(speeds), rtol=1e-13, atol=1e-15)
    assert (turbine.rotor_diameter_m, turbine.hub_height_m, turbine.rated_power_mw) == (198.0, 119.0, 10.0)


def assert_generic(pywake, rated_power_mw, ours, **options):
    speeds = np.linspace(0, 35, 2000)

    def compute():
        from py_wake.wind_turbines.generic_wind_turbines import GenericWindTurbine

        rated_kw = rated_power_mw * 1000
        theirs = GenericWindTurbine("generic", ours.rotor_diameter_m, ours.hub_height_m, power_norm=rated_kw, **options)
        return {"power": theirs.power(speeds) * 1e-6, "thrust": theirs.ct(speeds)}

    theirs = pywake.numbers(compute)
    theirs.assert_close("power", ours.power_mw(speeds), rtol=1e-12, atol=1e-14)
    theirs.assert_close("thrust", ours.thrust_coefficient(speeds), rtol=1e-12)


@pytest.mark.parametrize(("rated", "diameter", "hub"), [(15, 240, 150), (10, 195, 121), (2, 80, 70), (0.5, 40, 45)])
def test_the_generic_turbine(rated, diameter, hub, pywake):
    assert_generic(pywake, rated, Turbine.generic(rated, diameter, hub))


@pytest.mark.parametrize("turbulence", [0.0, 0.3, 0.5])
def test_the_generic_turbine_in_other_turbulence(turbulence, pywake):
    ours = Turbine.generic(8, 164, 110, turbulence_intensity=turbulence)
    assert_generic(pywake, 8, ours, turbulence_intensity=turbulence)


@pytest.mark.parametrize("interpolation", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("directions", "speeds"),
    [
        (ALL_DIRECTIONS, SPEEDS),
        (np.arange(0.0, 360.0, 2.5), np.array([4.0, 5.0, 7.5, 8.0, 12.0])),
        (np.array([3.0, 10.0, 200.0]), np.array([10.0])),
    ],
    ids=["default bins", "finer", "three directions"],
)
def test_probabilities(interpolation, directions, speeds, site_file, pywake):
    ours = Site.from_netcdf(site_file, directions=directions, speeds=speeds, interpolation=interpolation).conditions

    def compute():
        import pywake_peer as peer

        site = peer.peer_site(site_file, interpolation)
        return {"probability": site.local_wind(x=[0], y=[0], h=[150], wd=directions, ws=speeds).P_ilk[0]}

    pywake.numbers(compute).assert_close("probability", ours.weight, atol=1e-12)
    np.testing.assert_allclose(ours.turbulence_intensity, 0.1)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_a_time_series(model, turbine, pywake):
    rng = np.random.default_rng(2)
    direction, speed = rng.uniform(0, 360, 300), rng.uniform(4, 20, 300)
    intensity = rng.uniform(0.05, 0.15, 300)
    x, y = random_layout(12, seed=4)
    site = Site.from_time_series(direction, speed, intensity)
    ours = WindFarm(site, turbine, model).simulate(x, y, per_condition=True)

    def compute():
        import pywake_peer as peer

        site = peer.peer_table([0.0, 180.0], [3.0, 25.0], np.full((2, 2), 0.25), 0.1)
        theirs = peer.peer_farm(model, site, [turbine])(x, y, wd=direction, ws=speed, time=True, TI=intensity)
        return {"aep": float(theirs.aep().sum()), "speed": theirs.WS_eff.values}

    theirs = pywake.numbers(compute)
    theirs.assert_close("aep", ours.total_aep_gwh, rtol=1e-9)
    theirs.assert_close("speed", ours.condition_speed_m_s[:, :, 0], atol=1e-8)


@pytest.mark.parametrize("model", default_first(["nygaard_2022", "bastankhah_gaussian", "jensen"]))
def test_the_map_of_a_further_turbine(model, site_file, turbine, pywake):
    speeds = [6.0, 8.0, 10.0, 12.0, 14.0]
    site = Site.from_netcdf(site_file, directions=SOME_DIRECTIONS, speeds=speeds)
    x, y = random_layout(15, seed=6)
    rng = np.random.default_rng(6)
    at_x = rng.uniform(x.min() - 1000, x.max() + 1000, 40)
    at_y = rng.uniform(y.min() - 1000, y.max() + 1000, 40)
    farm = WindFarm(site, turbine, model)

    def compute():
        from py_wake.flow_map import Points

        import pywake_peer as peer

        farm_of_theirs = peer.peer_farm(farm.wake_model, peer.peer_site(site_file), [turbine])
        result = farm_of_theirs(x, y, wd=SOME_DIRECTIONS, ws=speeds)
        return {"aep": result.aep_map(Points(at_x, at_y, np.full(40, 150.0))).values}

    ours = farm.next_turbine_aep_gwh(x, y, at_x, at_y, rotor_average=False)
    pywake.numbers(compute).assert_close("aep", ours, rtol=1e-9)
