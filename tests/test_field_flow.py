"""Flow maps and maps of a further turbine in wind that varies over a site."""

import numpy as np
import pytest

import field_cases as cases
from field_cases import CASES, CENTRES, HEIGHTS, WEIBULL, Case
from leeward.errors import InputError
from leeward.wind import Site, WindFarm

SPEEDS = np.array([5.0, 8.0, 11.0, 14.0])


def farm_in(name, turbine, model="nygaard_2022"):
    return WindFarm(CASES[name].site(CENTRES, SPEEDS), turbine, model)


def test_parts_of_a_map_along_the_terrain_make_no_difference(monkeypatch, turbine):
    x, y = cases.layout(6, 1)
    at_x, at_y = cases.layout(20, 2, apart_m=50.0)
    flow = farm_in("terrain following with speed-up", turbine).flow(x, y)
    whole = flow.mean_speed(at_x, at_y)
    monkeypatch.setattr("leeward.wind.flow.MOST_STRETCHES", 10)  # one or two points at a time
    np.testing.assert_array_equal(flow.mean_speed(at_x, at_y), whole)


@pytest.mark.parametrize("name", ["everything", "series", "terrain following with speed-up"])
def test_a_map_whose_wind_is_not_kept_is_the_same(name, monkeypatch, turbine):
    """Turbine by turbine, and after points have gone."""
    x, y = cases.layout(5, 3)
    at_x, at_y = cases.layout(20, 4, apart_m=50.0)
    farm = farm_in(name, turbine)

    def growing():
        found = farm.next_turbine_map(at_x, at_y, rotor_average=False)
        for count in range(5):
            if count == 3:
                found.keep(np.arange(20) % 3 > 0)
            yield found.aep_gwh(x[:count], y[:count])

    kept = list(growing())
    monkeypatch.setattr("leeward.wind.flow.MOST_KEPT", 0)
    for ours, theirs in zip(growing(), kept, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_heights_of_maps_lie_between_the_levels(turbine):
    flow = farm_in("weibull", turbine).flow(*cases.layout(3, 5))
    at_x, at_y = cases.layout(2, 6)
    for height in HEIGHTS:
        flow.mean_speed(at_x, at_y, height_m=height)
    for height in (79.0, 161.0):
        with pytest.raises(InputError, match=rf"height_m is {height:g}, but the wind .* from 80 to 160 m above ground"):
            flow.mean_speed(at_x, at_y, height_m=height)


@pytest.mark.parametrize("speed", [7.3, 12.0])
def test_the_turbulence_intensity_of_a_single_wind_depends_on_its_speed(speed, turbine):
    """Where it applies at 15 m/s, a map of any wind speed has that of IEC 61400-1 at this speed."""
    x, y = cases.layout(6, 7)
    at_x, at_y = cases.layout(20, 8, apart_m=50.0)
    name = "turbulence at 15 m/s"
    data = CASES[name].dataset
    at_speed = Case(data.rename(TI_15="TI").assign(TI=data["TI_15"] * (0.75 + 3.8 / speed)), "linear")
    farms = farm_in(name, turbine), WindFarm(at_speed.site(CENTRES, SPEEDS), turbine)
    one, other = (farm.flow(x, y).speed(at_x, at_y, direction_deg=45.0, speed_m_s=speed) for farm in farms)
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert not np.allclose(one, farms[0].flow(x, y).speed(at_x, at_y, direction_deg=45.0, speed_m_s=15.0) * speed / 15)


def test_the_mean_speed_by_energy_counts_the_air_density(turbine):
    data = WEIBULL.assign(Air_density=("wd", np.linspace(1.0, 1.3, len(CENTRES))))
    farm = WindFarm(Case(data).site(CENTRES, SPEEDS), turbine, "no_wake")
    plain = Site.from_weibull(
        *(WEIBULL[name].values for name in ("Sector_frequency", "Weibull_A", "Weibull_k")),
        0.08,
        directions=CENTRES,
        speeds=SPEEDS,
    ).conditions
    density = data["Air_density"].values[:, None] / 1.225
    energy = plain.weight * density * turbine.power_mw(plain.speed)
    expected = (energy * plain.speed).sum() / energy.sum()
    flow = farm.flow([cases.EAST + 100.0], [cases.NORTH + 100.0])
    assert flow.free_mean_speed() == pytest.approx(expected, rel=1e-12)
