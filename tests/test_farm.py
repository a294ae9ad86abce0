"""What farms answer, whatever the coordinates, the order of turbines and the number of threads."""

import pickle

import numpy as np
import pytest

from conftest import default_first, random_layout
from leeward.errors import InputError
from leeward.wind import Neighbours, Site, Turbine, WindFarm, known_wake_models


def rose(step, seed=0, speeds=(6.0, 9.0, 12.0)):
    probability = np.random.default_rng(seed).random((round(360 / step), len(speeds)))
    return np.arange(0.0, 360.0, step), np.array(speeds), probability / probability.sum()


@pytest.mark.parametrize("name", known_wake_models())
def test_large_coordinates_lose_no_precision(name, turbine):
    site = Site.from_table(*rose(5.0), 0.08)
    farm = WindFarm(site, turbine, name)
    x, y = random_layout(30, seed=7, origin=(0.0, 0.0))
    x, y = np.round(x, 3), np.round(y, 3)
    here = farm.aep_gwh(x, y)
    assert farm.aep_gwh(x + 700_000.0, y + 6_200_000.0) == pytest.approx(here, rel=1e-10, abs=0)
    assert farm.aep_gwh(x - 1e5, y + 123.456) == pytest.approx(here, rel=1e-10, abs=0)


@pytest.mark.parametrize("name", known_wake_models())
def test_rotating_farm_and_rose_together_changes_nothing(name, turbine):
    step = 5.0
    directions, speeds, probability = rose(step)
    x, y = random_layout(20, seed=9, origin=(0.0, 0.0))
    here = WindFarm(Site.from_table(directions, speeds, probability, 0.08), turbine, name).aep_gwh(x, y)
    for bins in (1, 18, 31):
        angle = np.deg2rad(bins * step)
        turned_x = x * np.cos(angle) + y * np.sin(angle)
        turned_y = -x * np.sin(angle) + y * np.cos(angle)
        site = Site.from_table(directions, speeds, np.roll(probability, bins, axis=0), 0.08)
        assert WindFarm(site, turbine, name).aep_gwh(turned_x, turned_y) == pytest.approx(here, rel=1e-10, abs=0)


def test_a_regular_grid_can_be_shifted_too(site, turbine):
    """Many turbines exactly side by side: rounding must not decide who is in whose wake."""
    x, y = (720.0 * c.ravel() for c in np.meshgrid(np.arange(5.0), np.arange(5.0)))
    farm = WindFarm(site, turbine)
    here = farm.aep_gwh(x, y)
    assert farm.aep_gwh(x + 700_000.0, y + 6_200_000.0) == pytest.approx(here, rel=1e-10, abs=0)
    assert farm.aep_gwh(x + 0.1, y + 0.7) == pytest.approx(here, rel=1e-10, abs=0)


@pytest.mark.parametrize("name", default_first(["nygaard_2022", "jensen"]))
def test_results_do_not_depend_on_threads(name, site, turbine):
    x, y = random_layout(66, seed=1)
    at_x, at_y = random_layout(50, seed=2)
    one, three = (WindFarm(site, turbine, name, threads=n) for n in (1, 3))
    assert one.aep_gwh(x, y) == three.aep_gwh(x, y)
    for ours, theirs in zip(one.aep_gradient(x, y), three.aep_gradient(x, y), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(
        one.next_turbine_aep_gwh(x, y, at_x, at_y), three.next_turbine_aep_gwh(x, y, at_x, at_y)
    )
    ours, theirs = (f.sampled_aep_gradient(x, y, 500, np.random.default_rng(1)) for f in (one, three))
    np.testing.assert_array_equal(ours[1], theirs[1])


def test_the_order_of_turbines_does_not_matter(site, turbines):
    x, y = random_layout(20, seed=3)
    kinds = [turbines[i % 3] for i in range(20)]
    order = np.random.default_rng(3).permutation(20)
    simulation = WindFarm(site, kinds).simulate(x, y)
    shuffled = WindFarm(site, [kinds[i] for i in order]).simulate(x[order], y[order])
    np.testing.assert_allclose(shuffled.aep_gwh, simulation.aep_gwh[order], rtol=1e-12)


def test_a_lone_turbine_has_no_wake_loss(site, turbine):
    farm = WindFarm(site, turbine)
    simulation = farm.simulate([3.0], [4.0])
    assert simulation.wake_loss[0] == pytest.approx(0.0, abs=1e-13)
    assert farm.wake_loss([3.0], [4.0]) == pytest.approx(0.0, abs=1e-13)
    assert simulation.aep_gwh[0] == pytest.approx(simulation.power_mw[0] * 8.76)


def test_simulation_adds_up(site, turbine):
    x, y = random_layout(10, seed=5)
    farm = WindFarm(site, turbine)
    simulation = farm.simulate(x, y, per_condition=True)
    weight = site.conditions.weight
    assert simulation.condition_power_mw.shape == (10, *weight.shape)
    np.testing.assert_allclose(
        (simulation.condition_power_mw * weight).sum(axis=(1, 2)), simulation.power_mw, rtol=1e-12
    )
    np.testing.assert_allclose(
        (simulation.condition_speed_m_s * weight).sum(axis=(1, 2)) / weight.sum(),
        simulation.effective_speed_m_s,
        rtol=1e-12,
    )
    assert simulation.conditions is site.conditions
    loss = simulation.condition_wake_loss
    assert loss.shape == (10, *weight.shape)
    np.testing.assert_allclose(
        (loss * simulation.condition_gross_power_mw * weight).sum(axis=(1, 2)) * 8.76,
        simulation.gross_aep_gwh - simulation.aep_gwh,
        rtol=1e-9,
    )
    assert simulation.total_aep_gwh == pytest.approx(farm.aep_gwh(x, y), rel=1e-14)
    assert 0 < simulation.total_wake_loss < 0.3
    assert farm.simulate(x, y).condition_power_mw is None
    assert farm.simulate(x, y).condition_wake_loss is None


def test_neighbours_cast_wakes_and_yield_nothing(site, turbines):
    x, y = random_layout(12, seed=6)
    near_x, near_y = random_layout(5, seed=7, origin=(697_000.0, 6_240_000.0))
    farm = WindFarm(site, turbines[0], neighbours=Neighbours(near_x, near_y, turbines[1]))
    both = WindFarm(site, [turbines[0]] * 12 + [turbines[1]] * 5).simulate(np.r_[x, near_x], np.r_[y, near_y])
    assert farm.aep_gwh(x, y) == pytest.approx(both.aep_gwh[:12].sum(), rel=1e-13)
    assert farm.aep_gwh(x, y) < WindFarm(site, turbines[0]).aep_gwh(x, y)
    np.testing.assert_allclose(farm.simulate(x, y).aep_gwh, both.aep_gwh[:12], rtol=1e-13)


@pytest.mark.parametrize("name", default_first(["nygaard_2022", "bastankhah_gaussian", "jensen"]))
def test_a_further_turbine_with_its_rotor_is_one_more_turbine(name, site, turbines):
    x, y = random_layout(9, seed=8)
    farm = WindFarm(site, turbines[0], name)
    at_x, at_y = np.array([701_000.0, 702_500.0]), np.array([6_241_500.0, 6_243_000.0])
    foreseen = farm.next_turbine_aep_gwh(x, y, at_x, at_y, turbine=turbines[1])
    for i in range(2):
        more = WindFarm(site, [turbines[0]] * 9 + [turbines[1]], name).simulate(np.r_[x, at_x[i]], np.r_[y, at_y[i]])
        assert foreseen[i] == pytest.approx(more.aep_gwh[9], rel=1e-12)


def test_a_point_in_the_plane_of_a_turbine_is_in_its_wake():
    """As in PyWake's maps: a point where a turbine stands sees the wake it would make just behind itself."""
    site = Site.from_table([270.0], [10.0], [[1.0]], 0.1)
    turbine = Turbine.generic(15, 240, 150)
    farm = WindFarm(site, turbine)
    at, away = farm.next_turbine_aep_gwh([0.0], [0.0], [0.0, -1.0], [0.0, 0.0], rotor_average=False)
    assert at < 0.5 * away


def test_many_conditions_one_speed_each_equal_the_rose(turbine):
    """A rose as a table, and the same conditions as a series: two loops, one answer."""
    directions, speeds, probability = rose(10.0, speeds=(5.0, 8.0, 9.0, 13.0, 20.0))
    x, y = random_layout(15, seed=10)
    table = WindFarm(Site.from_table(directions, speeds, probability, 0.07, kind="exact"), turbine)
    series = WindFarm(
        Site.from_time_series(
            np.repeat(directions, 5), np.tile(speeds, len(directions)), 0.07, weight=probability.ravel()
        ),
        turbine,
    )
    assert series.aep_gwh(x, y) == pytest.approx(table.aep_gwh(x, y), rel=1e-13)
    for ours, theirs in zip(series.aep_gradient(x, y), table.aep_gradient(x, y), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("interpolation", ["nearest", "linear"])
def test_sampled_gradient_is_unbiased_for_the_continuous_integral(interpolation, site_file, turbine):
    """Against very fine bins; the estimates' own spread says how close the mean must come."""
    x, y = random_layout(6, seed=12, density_m=900.0)
    edges = (2.5, 25.5)
    fine = Site.from_netcdf(
        site_file,
        directions=np.arange(0.25, 360, 0.5),
        speeds=np.arange(edges[0] + 0.1, edges[1], 0.2),
        interpolation=interpolation,
    )
    aep, by_x, _ = WindFarm(fine, turbine).aep_gradient(x, y)
    farm = WindFarm(Site.from_netcdf(site_file, interpolation=interpolation), turbine)
    rng = np.random.default_rng(0)
    rounds, count = 200, 1000
    estimates = [farm.sampled_aep_gradient(x, y, count, rng) for _ in range(rounds)]
    for exact, values in ((aep, [e[0] for e in estimates]), (by_x, [e[1] for e in estimates])):
        values = np.array(values)
        error = values.std(axis=0, ddof=1) / np.sqrt(rounds)
        assert (np.abs(values.mean(axis=0) - exact) < 4.5 * error + 1e-4 * np.abs(exact)).all()
    assert np.std([e[0] for e in estimates]) < 0.05 * aep


def test_sampled_gradient_of_a_table_is_unbiased(turbine):
    site = Site.from_table(*rose(30.0), 0.07)
    x, y = random_layout(5, seed=13, density_m=800.0)
    farm = WindFarm(site, turbine)
    aep, _, by_y = farm.aep_gradient(x, y)
    rng = np.random.default_rng(1)
    estimates = [farm.sampled_aep_gradient(x, y, 500, rng) for _ in range(100)]
    means = np.array([e[0] for e in estimates]), np.array([e[2] for e in estimates])
    for exact, values in ((aep, means[0]), (by_y, means[1])):
        error = values.std(axis=0, ddof=1) / 10
        assert (np.abs(values.mean(axis=0) - exact) < 4.5 * error).all()


def test_more_speeds_than_a_kernel_takes_at_once(turbine):
    speeds = np.linspace(3, 25, 1201)
    x, y = random_layout(4, seed=15, density_m=800.0)
    directions = np.array([10.0, 100.0, 250.0])
    probability = np.full((3, 1201), 1 / 3603)
    simulation = WindFarm(Site.from_table(directions, speeds, probability, kind="exact"), turbine).simulate(
        x, y, per_condition=True
    )
    few = WindFarm(Site.from_table(directions, speeds[::100], probability[:, ::100], kind="exact"), turbine)
    np.testing.assert_allclose(
        simulation.condition_speed_m_s[:, :, ::100],
        few.simulate(x, y, per_condition=True).condition_speed_m_s,
        rtol=1e-13,
    )


def test_the_same_seed_draws_the_same_conditions(site, turbine):
    x, y = random_layout(5, seed=14)
    farm = WindFarm(site, turbine)
    first, again = (farm.sampled_aep_gradient(x, y, 10, np.random.default_rng(3)) for _ in range(2))
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1], again[1])


def test_equal_turbines_are_one_type(site):
    x, y = random_layout(40, seed=16)
    many = WindFarm(site, [Turbine.generic(15, 240, 150) for _ in range(40)])
    assert many.aep_gwh(x, y) == WindFarm(site, Turbine.generic(15, 240, 150)).aep_gwh(x, y)
    assert len(many._engine.turbines) == 1
    assert Turbine.generic(15, 240, 150) != Turbine.generic(15, 240, 151)


def test_a_used_farm_can_be_pickled(site, turbine):
    farm = WindFarm(site, turbine)
    x, y = random_layout(5, seed=17)
    aep = farm.aep_gwh(x, y)
    stored = pickle.dumps(farm)
    assert len(stored) < 1_000_000
    assert pickle.loads(stored).aep_gwh(x, y) == aep


def test_the_layout_of_arrays_in_memory_compiles_nothing_new(turbine):
    """Fortran order, read-only: as they come out of pandas and broadcasting."""
    directions, speeds, probability = rose(30.0)
    x, y = random_layout(4, seed=18)
    readonly = probability.copy()
    readonly.flags.writeable = False
    aeps = []
    for table in (probability, np.asfortranarray(probability), readonly):
        farm = WindFarm(Site.from_table(directions, speeds, table, 0.08), turbine)
        aeps.append(farm.aep_gwh(x, y))
        kernel = farm._engine._kernels.energy
    assert len(set(aeps)) == 1
    if hasattr(kernel, "__wrapped__"):
        dispatcher = kernel.__closure__[[*kernel.__code__.co_freevars].index("dispatcher")].cell_contents
        assert len(dispatcher.signatures) == 1


def test_no_turbines_no_energy(site, turbine):
    farm = WindFarm(site, turbine)
    assert farm.aep_gwh([], []) == 0.0
    assert farm.wake_loss([], []) == 0.0
    assert len(farm.simulate([], [], per_condition=True).condition_wake_loss) == 0
    aep, by_x, by_y = farm.aep_gradient([], [])
    assert (aep, len(by_x), len(by_y)) == (0.0, 0, 0)


def test_a_growing_map_is_the_same_as_a_new_one(site, turbines):
    """To the last bit, turbine by turbine, with points that go and with neighbours."""
    there = Neighbours(x=[699_000.0], y=[6_243_000.0], turbine=turbines[2])
    coarse = site.coarser(36, [7.0, 9.0, 11.0])
    farm = WindFarm(coarse, turbines[0], neighbours=there)
    x, y = random_layout(8, seed=21)
    at_x, at_y = random_layout(30, seed=22, density_m=800.0, apart_m=100.0)
    growing = farm.next_turbine_map(at_x, at_y, rotor_average=False)
    for count in range(9):
        if count == 5:
            growing.keep(np.arange(30) % 3 > 0)
            at_x, at_y = at_x[np.arange(30) % 3 > 0], at_y[np.arange(30) % 3 > 0]
        anew = farm.next_turbine_aep_gwh(x[:count], y[:count], at_x, at_y, rotor_average=False)
        np.testing.assert_array_equal(growing.aep_gwh(x[:count], y[:count]), anew)
    elsewhere = growing.aep_gwh(x[:4] + 500.0, y[:4])
    anew = farm.next_turbine_aep_gwh(x[:4] + 500.0, y[:4], at_x, at_y, rotor_average=False)
    np.testing.assert_array_equal(elsewhere, anew)


@pytest.mark.parametrize(
    "wake_model", default_first(["nygaard_2022", "bastankhah_gaussian", "jensen", "iea37_gaussian"])
)
def test_worth_and_gain_of_a_turbine(wake_model, site, turbines):
    """Against the AEP of farms with one turbine fewer or more. About: thrust does not follow."""
    there = Neighbours(x=[699_000.0], y=[6_243_000.0], turbine=turbines[2])
    coarse = site.coarser(72, [7.0, 9.0, 11.0])
    kinds = [turbines[i % 3] for i in range(10)]
    if wake_model == "iea37_gaussian":
        kinds, there = [Turbine.iea37_3_35mw()] * 10, Neighbours([699_000.0], [6_243_000.0], Turbine.iea37_3_35mw())
    farm = WindFarm(coarse, kinds, wake_model, neighbours=there)
    x, y = random_layout(10, seed=23, density_m=900.0)
    whole = farm.aep_gwh(x, y)
    worth = farm.marginal_aep_gwh(x, y)
    for i in range(10):
        fewer = WindFarm(coarse, kinds[:i] + kinds[i + 1 :], wake_model, neighbours=there)
        exact = whole - fewer.aep_gwh(np.delete(x, i), np.delete(y, i))
        own = farm.simulate(x, y).aep_gwh[i]
        assert worth[i] == pytest.approx(exact, abs=0.02 * own)
    at_x, at_y = random_layout(6, seed=24, density_m=1500.0)
    at_x = at_x + 333.0
    gain = farm.next_turbine_gain(x, y, at_x, at_y, turbine=kinds[1])
    for i in range(6):
        more = WindFarm(coarse, [*kinds, kinds[1]], wake_model, neighbours=there)
        exact = more.aep_gwh(np.r_[x, at_x[i]], np.r_[y, at_y[i]]) - whole
        assert gain[i] == pytest.approx(exact, abs=0.02 * max(own, exact))


@pytest.mark.slow
def test_worth_and_gain_are_exact_where_thrust_is_constant():
    site = Site.from_table([0.0, 90.0, 200.0, 270.0], [9.0], np.full((4, 1), 0.25), 0.075, kind="exact")
    farm = WindFarm(site, Turbine.iea37_3_35mw(), "iea37_gaussian")
    x, y = random_layout(8, seed=25, density_m=500.0, apart_m=260.0)
    worth = farm.marginal_aep_gwh(x, y)
    exact = [farm.aep_gwh(x, y) - farm.aep_gwh(np.delete(x, i), np.delete(y, i)) for i in range(8)]
    np.testing.assert_allclose(worth, exact, rtol=1e-9)
    gain = farm.next_turbine_gain(x, y, [x[0] + 301.0], [y[0] - 17.0])
    assert gain[0] == pytest.approx(
        farm.aep_gwh(np.r_[x, x[0] + 301.0], np.r_[y, y[0] - 17.0]) - farm.aep_gwh(x, y), rel=1e-9
    )


def test_a_farm_that_grows_has_no_more_turbines_than_its_list(tiny_site, turbine):
    farm = WindFarm(tiny_site, [turbine] * 3)
    assert len(farm.next_turbine_aep_gwh([0.0, 900.0], [0.0, 0.0], [2000.0], [0.0])) == 1
    with pytest.raises(InputError, match="4 positions for a farm of 3 turbines"):
        farm.next_turbine_aep_gwh(np.arange(4) * 900.0, np.zeros(4), [100.0], [5000.0])


@pytest.mark.tiny
def test_old_names_still_work_with_a_warning(tiny_site):
    farm = WindFarm(tiny_site, Turbine.generic(15, 240, 150), "no_wake")
    simulation = farm.simulate([0.0], [0.0])
    for old, new in (("figures", "settings"), ("turbine_worth", "marginal_aep_gwh"), ("free_aep_gwh", "gross_aep_gwh")):
        owner = next(thing for thing in (tiny_site, farm, simulation) if hasattr(type(thing), old))
        with pytest.warns(DeprecationWarning, match=rf"{old} is now called \w+\.{new}"):
            assert getattr(owner, old) == getattr(owner, new)
