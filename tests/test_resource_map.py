"""The wind resource at points: what each quantity is defined as, and where it is not known."""

import math

import numpy as np
import pytest

import field_cases as cases
from leeward.errors import InputError
from leeward.wind import Site, Turbine, WindFarm, resource_map
from leeward.wind.field_data import Shear

HUB = 120.0
TURBINE = Turbine.generic(rated_power_mw=5, rotor_diameter_m=150, hub_height_m=HUB)
SPEEDS = [4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
FEW = {"directions": np.arange(0.0, 360.0, 15.0), "speeds": SPEEDS}
X, Y = cases.layout(6, 5, apart_m=200.0)


def uniform_with_shear():
    return Site.from_dataset(cases.uniform_weibull(), shear=Shear.power(0.14, 100.0), **FEW)


SITES = {
    "weibull": lambda: cases.Case(cases.weibull_field()).site(**FEW),
    "linear": lambda: cases.Case(cases.weibull_field(), "linear").site(**FEW),
    "speed-up": lambda: cases.Case(cases.with_speed_up(cases.uniform_weibull()), sector_shear=("power", 0.1)).site(
        **FEW
    ),
    "density": lambda: cases.Case(cases.with_density(cases.uniform_weibull()), sector_shear=("power", 0.1)).site(**FEW),
    "table": lambda: cases.Case(cases.table_field(), sector_shear=("logarithmic", 0.03)).site(
        directions=FEW["directions"]
    ),
    "series": lambda: cases.Case(cases.series_field(), sector_shear=("power", 0.2)).site(),
    "only shear": uniform_with_shear,
    "uniform": lambda: Site.from_weibull([0.2, 0.3, 0.4, 0.1], [9, 10, 11, 8], [2.0, 2.1, 2.2, 1.9], 0.08, **FEW),
    "uniform series": lambda: Site.from_time_series([10.0, 95.0, 200.0], [6.0, 9.0, 11.0]),
}


@pytest.fixture(params=SITES, scope="module")
def site(request):
    return SITES[request.param]()


def one_turbine(site, i):
    return WindFarm(site, TURBINE, "no_wake").simulate(X[i : i + 1], Y[i : i + 1], per_condition=True)


def test_gross_yield_is_that_of_a_farm_of_one(site):
    farm = WindFarm(site, TURBINE, "no_wake")
    expected = [farm.aep_gwh(X[i : i + 1], Y[i : i + 1]) for i in range(len(X))]
    np.testing.assert_allclose(resource_map.gross_aep_gwh(site, TURBINE, X, Y), expected, rtol=1e-12)


def test_mean_speed_is_that_of_a_lone_turbine(site):
    expected = [one_turbine(site, i).effective_speed_m_s[0] for i in range(len(X))]
    np.testing.assert_allclose(resource_map.mean_speed_m_s(site, X, Y, HUB), expected, rtol=1e-12)


def test_sectors_add_up(site):
    """The yields to that of all; the means, weighted by the probability of their conditions, to the mean."""
    conditions = site.conditions
    sectors = resource_map.sector_count(site)
    of = np.floor(conditions.direction / (360.0 / sectors) + 0.5).astype(int) % sectors
    yields, speeds, weights = [], [], []
    for sector in np.unique(of).tolist():
        yields.append(resource_map.gross_aep_gwh(site, TURBINE, X, Y, sector))
        speeds.append(resource_map.mean_speed_m_s(site, X, Y, HUB, sector))
        weights.append([one_turbine(site, i).condition_weight[0, of == sector].sum() for i in range(len(X))])
    np.testing.assert_allclose(sum(yields), resource_map.gross_aep_gwh(site, TURBINE, X, Y), rtol=1e-12)
    mean = np.average(speeds, axis=0, weights=weights)
    np.testing.assert_allclose(mean, resource_map.mean_speed_m_s(site, X, Y, HUB), rtol=1e-12)


def test_frequencies_add_up(site):
    each = [resource_map.sector_frequency(site, X, Y, HUB, sector) for sector in range(resource_map.sector_count(site))]
    np.testing.assert_allclose(sum(each), 1.0, rtol=1e-9)


def test_mean_speed_by_hand():
    """At a point of the grid: Weibull distributions in bins around the speeds, in each sector."""
    data = cases.weibull_field()
    site = cases.Case(data).site(directions=cases.CENTRES, speeds=SPEEDS)
    here = data.isel(x=2, y=1, h=0)
    edges = np.array([3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0])
    total = weighted = 0.0
    for sector in range(cases.SECTORS):
        a, k, f = (float(here[name][sector]) for name in ("Weibull_A", "Weibull_k", "Sector_frequency"))
        share = f * np.diff(1.0 - np.exp(-((edges / a) ** k)))
        total += share.sum()
        weighted += (share * SPEEDS).sum()
        mean = (share * SPEEDS).sum() / share.sum()
        found = resource_map.mean_speed_m_s(site, cases.X[2], cases.Y[1], cases.HEIGHTS[0], sector)
        assert found == pytest.approx(mean, rel=1e-12)
    found = resource_map.mean_speed_m_s(site, cases.X[2], cases.Y[1], cases.HEIGHTS[0])
    assert found.shape == ()
    assert found == pytest.approx(weighted / total, rel=1e-12)


def test_weibull_values_at_and_between_points_of_the_grid():
    data = cases.weibull_field()
    site = cases.Case(data).site(**FEW)
    x, y, height = 0.25 * cases.X[0] + 0.75 * cases.X[1], 0.5 * (cases.Y[2] + cases.Y[3]), 100.0
    for name, function in (("Weibull_A", resource_map.weibull_a_m_s), ("Weibull_k", resource_map.weibull_k)):
        found = function(site, cases.X[3], cases.Y[2], cases.HEIGHTS[1], 5)
        assert found == pytest.approx(float(data[name][3, 2, 1, 5]), rel=1e-14)
        between = data[name].interp(x=x, y=y, h=height).values
        assert function(site, x, y, height, 3) == pytest.approx(between[3], rel=1e-12)
        frequency = data["Sector_frequency"].interp(x=x, y=y, h=height).values
        assert function(site, x, y, height) == pytest.approx(np.average(between, weights=frequency), rel=1e-12)
        assert resource_map.sector_frequency(site, x, y, height, 3) == pytest.approx(frequency[3], rel=1e-12)


@pytest.mark.parametrize("local_bins", [False, True])
@pytest.mark.parametrize("shear", [None, Shear.power([0.1, 0.2], 100.0), Shear.logarithmic(0.05, 100.0)])
def test_the_scale_is_that_of_the_wind_at_the_point(local_bins, shear):
    """A Weibull distribution has the mean A Γ(1 + 1/k). Very narrow bins over all speeds have nearly the same."""
    data = cases.with_speed_up(cases.uniform_weibull())
    data.attrs["speed_bins"] = "local" if local_bins else "reference"
    data = data if shear is not None else data.assign_coords(h=[100.0])
    site = Site.from_dataset(data, directions=cases.CENTRES, speeds=np.arange(0.01, 60.0, 0.02), shear=shear)
    if not local_bins and shear is None:
        height = 100.0
    else:
        height = 160.0 if shear is not None else 100.0
    if shear is None:
        site = Site.from_dataset(
            data.assign_coords(h=[height]), directions=cases.CENTRES, speeds=site.field.data.speeds
        )
    for sector in (0, 3):
        a = resource_map.weibull_a_m_s(site, X, Y, height, sector)
        k = resource_map.weibull_k(site, X, Y, height, sector)
        mean = a * np.array([math.gamma(1.0 + 1.0 / each) for each in k])
        np.testing.assert_allclose(resource_map.mean_speed_m_s(site, X, Y, height, sector), mean, rtol=2e-4)


def test_turbulence_speed_up_and_elevation():
    data = cases.with_elevation(cases.with_speed_up(cases.with_turbulence(cases.uniform_weibull())))
    site = Site.from_dataset(data, directions=cases.CENTRES, speeds=SPEEDS, shear=Shear.power(0.1, 100.0))
    x, y = cases.X[2], cases.Y[1]
    for sector in (0, 6):
        at = resource_map.turbulence_intensity(site, x, y, HUB, sector)
        assert at == pytest.approx(float(data["TI"][2, 1, sector]), rel=1e-12)
        assert resource_map.speed_up(site, x, y, HUB, sector) == pytest.approx(float(data["Speedup"][2, 1, sector]))
    mean = np.average(data["Speedup"][2, 1], weights=data["Sector_frequency"])
    assert resource_map.speed_up(site, x, y, HUB) == pytest.approx(mean, rel=1e-12)
    weight = WindFarm(site, TURBINE, "no_wake").simulate([x], [y], per_condition=True).condition_weight[0].sum(axis=1)
    mean = np.average(data["TI"][2, 1], weights=weight)
    assert resource_map.turbulence_intensity(site, x, y, HUB) == pytest.approx(mean, rel=1e-12)
    assert resource_map.elevation_m(site, x, y) == pytest.approx(float(data["Elevation"][2, 1]))
    middle = float(data["Elevation"].interp(x=x + 100.0, y=y + 300.0))
    assert resource_map.elevation_m(site, x + 100.0, y + 300.0) == pytest.approx(middle)


def test_a_place_without_wind_is_blank():
    data = cases.weibull_field()
    data["Weibull_A"][3, 2] = np.nan
    west, south = cases.X[0], cases.Y[0]
    east, north = cases.X[-1], cases.Y[-1]
    x = np.array([[west - 1.0, west, cases.X[3] - 700.0], [cases.X[3] - 1501.0, east + 1.0, east]])
    y = np.array([[south, south, cases.Y[2] - 800.0], [cases.Y[2], north, north]])
    blank = [[True, False, True], [False, True, True]]
    strict, wide = (cases.Case(data).site(extrapolate=extrapolate, **FEW) for extrapolate in (False, True))
    functions = [
        lambda site: resource_map.mean_speed_m_s(site, x, y, HUB),
        lambda site: resource_map.weibull_a_m_s(site, x, y, HUB),
        lambda site: resource_map.gross_aep_gwh(site, TURBINE, x, y),
        lambda site: resource_map.turbulence_intensity(site, x, y, HUB, 2),
        lambda site: resource_map.sector_frequency(site, x, y, HUB, 2),
    ]
    for function in functions:
        found = function(strict)
        assert np.isnan(found).tolist() == blank
        beyond = function(wide)
        assert np.isnan(beyond).tolist() == [[False, False, True], [False, True, True]]  # the gap stays
        known = ~np.array(blank)
        np.testing.assert_array_equal(beyond[known], found[known])
    assert np.isnan(resource_map.mean_speed_m_s(strict, [west - 1.0], [south], HUB)).all()
    size = max(east - west, north - south)
    for function in (resource_map.mean_speed_m_s, lambda site, *at: resource_map.gross_aep_gwh(site, TURBINE, *at[:2])):
        found = function(wide, [west - 49.0 * size, west - 51.0 * size], [south, south], HUB)
        assert np.isnan(found).tolist() == [False, True]  # extrapolation ends


def test_wind_that_is_the_same_everywhere():
    site = SITES["uniform"]()
    assert not resource_map.varies_over_site(site)
    assert not resource_map.varies_over_site(uniform_with_shear())
    assert resource_map.varies_over_site(SITES["weibull"]())
    assert resource_map.mean_speed_m_s(site, X, Y, HUB) == pytest.approx([site.mean_speed_m_s] * len(X))
    assert resource_map.weibull_a_m_s(site, X, Y, HUB, 2) == pytest.approx([11.0] * len(X))
    assert resource_map.weibull_k(site, 0.0, 0.0, HUB) == pytest.approx(0.4 + 0.63 + 0.88 + 0.19)
    assert resource_map.sector_frequency(site, 0.0, 0.0, HUB, 1) == pytest.approx(0.3)
    assert resource_map.turbulence_intensity(site, 0.0, 0.0, HUB) == pytest.approx(0.08)


def test_parts_and_threads_make_no_difference(monkeypatch):
    site = SITES["weibull"]()
    whole = resource_map.mean_speed_m_s(site, X, Y, HUB), resource_map.gross_aep_gwh(site, TURBINE, X, Y)
    monkeypatch.setattr(resource_map, "MOST_VALUES", 1)
    np.testing.assert_array_equal(resource_map.mean_speed_m_s(site, X, Y, HUB, threads=2), whole[0])
    np.testing.assert_array_equal(resource_map.gross_aep_gwh(site, TURBINE, X, Y, threads=2), whole[1])


def test_wrong_use():
    weibull, table, uniform = (SITES[name]() for name in ("weibull", "table", "uniform"))
    wrong = [
        (lambda: resource_map.mean_speed_m_s(weibull, X, Y, 200.0), "height_m is 200, but the wind .* 80 to 160 m"),
        (lambda: resource_map.mean_speed_m_s(weibull, X, Y, -1.0), "height_m is -1"),
        (lambda: resource_map.mean_speed_m_s(weibull, X, Y[:2], HUB), r"x has the shape \(6,\) and y has \(2,\)"),
        (
            lambda: resource_map.mean_speed_m_s(weibull, X, Y, HUB, 8),
            "sector is 8; expected a whole number from 0 to 7",
        ),
        (lambda: resource_map.weibull_k(weibull, X, Y, HUB, -1), "sector is -1"),
        (lambda: resource_map.weibull_a_m_s(table, X, Y, HUB), "has no Weibull distributions"),
        (lambda: resource_map.speed_up(weibull, X, Y, HUB), "has no speed-up"),
        (lambda: resource_map.elevation_m(weibull, X, Y), "has no elevation of the terrain"),
        (lambda: resource_map.elevation_m(uniform, X, Y), "site: has no elevation of the terrain"),
        (lambda: resource_map.gross_aep_gwh(uniform, TURBINE, X, Y, 4), "sector is 4"),
        (
            lambda: resource_map.mean_speed_m_s(Site.from_time_series([90.0], [8.0]), X, Y, HUB, 0),
            "no wind condition in sector 0",
        ),
    ]
    for call, says in wrong:
        with pytest.raises(InputError, match=says):
            call()
