"""Sites, and the files they are read from."""

import numpy as np
import pytest
import xarray

from conftest import BUILTIN
from leeward.campaign import builtin
from leeward.errors import InputError
from leeward.wind import Site, WindFarm


def test_built_in_figures_are_the_reference_file(site):
    np.testing.assert_allclose(builtin.site().conditions.weight, site.conditions.weight, rtol=1e-12)
    assert {path.name for path in BUILTIN.iterdir()} >= {"farms.geojson", "site.yaml", "turbines.yaml"}


def test_default_bins():
    conditions = Site.from_weibull([1.0], [10.0], [2.0], 0.1).conditions
    np.testing.assert_array_equal(conditions.direction, np.arange(360))
    np.testing.assert_array_equal(conditions.speed[0], np.arange(3, 26))
    # the wind blows between 2.5 and 25.5 m/s that often
    expected = np.exp(-(0.25**2)) - np.exp(-(2.55**2))
    assert conditions.weight.sum() == pytest.approx(expected, rel=1e-12)


def test_turbulence_by_sector_is_linear_between_them():
    conditions = Site.from_weibull([0.5, 0.5], [9, 9], [2, 2], [0.1, 0.2], directions=[0, 90, 270]).conditions
    np.testing.assert_allclose(conditions.turbulence_intensity[:, 0], [0.1, 0.15, 0.15])


def test_one_speed_per_direction():
    each = Site.from_table([0, 90], [8, 10], [0.3, 0.7], 0.1).conditions
    np.testing.assert_array_equal(each.speed, [[8], [10]])
    same = Site.from_table([0, 90], 9.8, [0.3, 0.7], 0.1).conditions
    np.testing.assert_array_equal(same.speed, [[9.8], [9.8]])
    np.testing.assert_array_equal(same.weight, [[0.3], [0.7]])


def test_single_numbers_will_do():
    one = Site.from_weibull([1.0], [10.0], [2.0], 0.1, directions=270, speeds=10).conditions
    assert one.weight.shape == (1, 1)
    low = Site.from_weibull([1.0], [10.0], [2.0], 0.1, speeds=0.3).conditions
    assert np.isfinite(low.weight).all()


def test_fine_directions_have_fine_bins():
    """np.arange(0, 50, 0.1) is not quite equidistant; its bins are 0.1 degree wide all the same."""
    fine, coarse = (
        Site.from_weibull([1.0], [10.0], [2.0], 0.1, directions=np.arange(0, 50, step)) for step in (0.1, 0.5)
    )
    assert fine.conditions.weight.sum() == pytest.approx(coarse.conditions.weight.sum(), rel=1e-9)


def test_calms_are_taken(turbine):
    site = Site.from_time_series([10, 20, 30], [0.0, 8.0, 9.0])
    assert site.conditions.speed.min() < 1e-6
    farm = WindFarm(site, turbine, "bastankhah_gaussian")
    assert np.isfinite(farm.aep_gradient([0, 500], [0, 900])[1]).all()


def test_a_site_keeps_its_own_numbers():
    probability = np.array([[0.5], [0.5]])
    site = Site.from_table([0, 180], [8], probability)
    probability[0] = 99
    assert site.conditions.weight.sum() == 1.0


@pytest.mark.parametrize("interpolation", ["nearest", "linear"])
def test_draws_follow_the_distribution(site_file, interpolation):
    site = Site.from_netcdf(site_file, directions=np.arange(0, 360, 10), interpolation=interpolation)
    fine = Site.from_netcdf(site_file, directions=np.arange(0.5, 360, 1.0), interpolation=interpolation).conditions
    drawn = site.draw(200_000, np.random.default_rng(0))
    share = np.histogram(drawn.direction, np.arange(0, 361, 10), weights=drawn.weight[:, 0])[0]
    expected = fine.weight.sum(axis=1).reshape(36, 10).sum(axis=1)
    np.testing.assert_allclose(share, expected, atol=4 * np.sqrt(expected.max() / 200_000))
    speeds = np.histogram(drawn.speed[:, 0], np.arange(2.5, 26), weights=drawn.weight[:, 0])[0]
    np.testing.assert_allclose(speeds, fine.weight.sum(axis=0), atol=4 * np.sqrt(0.1 / 200_000))
    assert drawn.speed.min() >= 2.5
    assert drawn.speed.max() <= 25.5


def dataset(**changes):
    variables = {
        "Weibull_A": ("wd", [9.0, 10.0]),
        "Weibull_k": ("wd", [2.0, 2.0]),
        "Sector_frequency": ("wd", [0.4, 0.6]),
        "TI": 0.1,
        **changes,
    }
    coordinates = {"wd": [0.0, 180.0], "ws": [8.0, 9.0], "x": [0.0, 1.0], "h": [100.0]}
    return xarray.Dataset({k: v for k, v in variables.items() if v is not None}, coords=coordinates)


def test_a_file_without_the_repeated_north_and_with_one_height(tmp_path):
    path = tmp_path / "site.nc"
    dataset(Weibull_A=(("h", "wd"), [[9.0, 10.0]])).to_netcdf(path, engine="h5netcdf")
    expected = Site.from_weibull([0.4, 0.6], [9, 10], [2, 2], 0.1, speeds=[8, 9]).conditions
    np.testing.assert_array_equal(Site.from_netcdf(path).conditions.weight, expected.weight)


def test_a_file_with_a_table(tmp_path):
    path = tmp_path / "site.nc"
    table = np.array([[0.1, 0.2], [0.3, 0.4]])
    xarray.Dataset(
        {"P": (("wd", "ws"), table), "TI": ("ws", [0.1, 0.2])}, coords={"wd": [0, 180], "ws": [8, 10]}
    ).to_netcdf(path, engine="h5netcdf")
    own = Site.from_netcdf(path, directions=[0, 180]).conditions
    np.testing.assert_array_equal(own.weight, table)
    np.testing.assert_array_equal(own.turbulence_intensity, [[0.1, 0.2], [0.1, 0.2]])
    with pytest.raises(InputError, match="its own speeds; they cannot be chosen"):
        Site.from_netcdf(path, speeds=[8.0])


@pytest.mark.parametrize("interpolation", ["nearest", "linear"])
def test_a_file_with_a_table_is_spread_over_directions_as_in_pywake(tmp_path, interpolation):
    peer = pytest.importorskip("pywake_peer", reason="needs PyWake, of the extra `test`")
    path = tmp_path / "site.nc"
    table = np.random.default_rng(1).random((12, 4))
    xarray.Dataset(
        {"P": (("wd", "ws"), table / table.sum()), "TI": ("wd", np.linspace(0.05, 0.1, 12))},
        coords={"wd": np.arange(0.0, 360.0, 30.0), "ws": [6.0, 8.0, 10.0, 12.0]},
    ).to_netcdf(path, engine="h5netcdf")
    ours = Site.from_netcdf(path, interpolation=interpolation).conditions
    theirs = peer.peer_site(path, interpolation).local_wind(x=[0], y=[0], h=[100])
    np.testing.assert_allclose(ours.weight, theirs.P_ilk[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.turbulence_intensity[:, 0], theirs.TI_ilk[0, :, 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"Weibull_A": (("x", "wd"), np.full((2, 2), 9.0))}, "Weibull_A varies with x"),
        ({"Weibull_k": None}, "Weibull_k not in it"),
        ({"TI": None}, "no turbulence intensity"),
        ({"TI": ("h", [0.1]), "Speedup": 1.2}, "it has Speedup, which leeward does not take into account"),
        ({"Turning": ("wd", [1.0, 2.0])}, "it has Turning"),
        ({"TI": ("ws", [0.1, 0.2])}, "TI depends on ws; expected wd alone"),
        ({"P": ("ws", [0.4, 0.6])}, "P depends on ws; expected wd and ws"),
        ({"P": ("wd", [0.4, 0.6])}, "P depends on wd; expected wd and ws"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, changes, says):
    path = tmp_path / "site.nc"
    dataset(**changes).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match=says):
        Site.from_netcdf(path)


def test_a_file_that_is_no_netcdf(tmp_path):
    path = tmp_path / "site.nc"
    path.write_text("not this")
    with pytest.raises(InputError, match=r"site\.nc: cannot be read as NetCDF"):
        Site.from_netcdf(path)
    with pytest.raises(InputError, match="no such file"):
        Site.from_netcdf(tmp_path / "absent.nc")


def test_coarser_sites_have_the_same_wind(site):
    coarse = site.coarser(120, np.arange(3.5, 26.0, 2.0)).conditions
    assert coarse.speed.shape == (120, 12)
    assert coarse.weight.sum() == pytest.approx(site.conditions.weight.sum(), rel=4e-3)
    table = Site.from_table([0.0, 90.0, 200.0], [8.0, 10.0], np.full((3, 2), 1 / 6), 0.08)
    assert table.coarser(3, [8.0, 10.0]) is table
    rng = np.random.default_rng(0)
    series = Site.from_time_series(rng.uniform(0, 360, 5000), rng.weibull(2.0, 5000) * 10, 0.07)
    assert (np.diff(series.draw(300, rng).direction) >= 0).all()
    drawn = series.coarser(50, [8.0, 10.0]).conditions
    assert drawn.weight.size == 100
    assert drawn.weight.sum() == pytest.approx(1.0)


def test_draws_are_spread_evenly(site):
    """Better than drawn one by one: the spread of a mean over 100 conditions."""
    rng = np.random.default_rng(0)
    means = []
    for _ in range(200):
        drawn = site.draw(100, rng)
        assert (np.diff((drawn.direction + 15.0) % 360.0) >= 0).all()
        means.append(float((drawn.weight * drawn.speed).sum() / drawn.weight.sum()))
    conditions = site.conditions
    mean = float((conditions.weight * conditions.speed).sum() / conditions.weight.sum())
    spread = float(np.sqrt((conditions.weight * (conditions.speed - mean) ** 2).sum() / conditions.weight.sum()))
    assert np.std(means) < 0.4 * spread / np.sqrt(100)
