"""Bad wind on grids: each error names the file, the quantity and the place, and says what to do."""

import numpy as np
import pytest
import shapely
import xarray

import field_cases as cases
from field_cases import CENTRES, HEIGHTS, STEPS, WEIBULL_FIELD, X, Y
from leeward.errors import InputError
from leeward.layout import Area, LayoutProblem
from leeward.wind import Neighbours, Shear, Site, Turbine, WindFarm
from test_wind_files import TAB

BINS = {"directions": [0.0, 90.0, 180.0, 270.0], "speeds": [6.0, 9.0, 12.0]}
HOLE = (0, 0, 0, 0)  # of x, y, h and wd


def changed(dataset, name, value, at=(2, 1, 1, 3)):
    """Return a dataset with another value at a place."""
    dataset = dataset.copy(deep=True)
    dataset[name].values[at] = value
    return dataset


def with_steps(name, value):
    """Return a time series with another value in step 3 of a variable by time."""
    dataset = cases.series_with_speed_up()
    values = dataset[name].values.copy()
    values[3] = value
    return dataset.assign({name: ("time", values)})


def site_of(dataset, **options):
    return Site.from_dataset(dataset, **BINS, **options)


def rejected(make, *says):
    """Expect an error of one line that contains each of these texts."""
    with pytest.raises(InputError) as error:
        make()
    text = str(error.value)
    for words in says:
        assert words in text, text
    assert "\n" not in text
    return text


def test_turning_of_wind_that_is_the_same_everywhere(turbine):
    uniform = cases.uniform_weibull()
    sectors = uniform.sizes["wd"]
    site = site_of(uniform.assign(Turning=("wd", np.linspace(-4.0, 4.0, sectors))))
    assert any("Turning is not used" in note for note in site.notes)
    farms = [WindFarm(each, turbine) for each in (site, site_of(uniform))]
    assert farms[0].aep_gwh([0, 500], [0, 100]) == farms[1].aep_gwh([0, 500], [0, 100])


def test_a_rose_without_directions_beside_a_speed_up_by_sector():
    table = xarray.Dataset(
        {"P": ("ws", [0.5, 0.5]), "TI": 0.08, "Speedup": ("wd", [1.0, 1.1, 1.2])},
        {"ws": [6.0, 9.0], "wd": [0.0, 120.0, 240.0]},
    )
    rejected(lambda: Site.from_dataset(table), "speed_up has 3 sectors; expected 1, as probability has")


def test_dense_air_and_a_model_with_a_limit_of_the_thrust():
    """The kernels multiply thrust by the density. Above the limit, the formulas give NaN, which would be an index."""

    def turbine_of(thrust):
        curve = {"wind_speeds_m_s": [3, 25], "power_mw": [1, 1], "thrust_coefficient": [thrust, thrust]}
        return Turbine(**curve, rotor_diameter_m=100, hub_height_m=100)

    high = turbine_of(0.97)
    dense = cases.uniform_weibull().assign(Air_density=1.3)
    text = rejected(lambda: WindFarm(site_of(dense), high, "iea37_gaussian"), "goes up to 1.029", "needs it below 1")
    assert "at an air density of 1.3 kg/m3" in text
    thin = WindFarm(site_of(dense.assign(Air_density=1.2)), high, "iea37_gaussian")
    assert np.isfinite(thin.aep_gwh([0, 20], [0, 0]))
    usual = site_of(cases.uniform_weibull())
    assert "density" not in rejected(lambda: WindFarm(usual, turbine_of(1.0), "iea37_gaussian"))


# --- values ---

PLACE = "at x = 703000, y = 6241600, height 160 m"
VALUES = {
    "negative scale": (changed(WEIBULL_FIELD, "Weibull_A", -8.0), f"weibull_a is -8 {PLACE}", "metres per second"),
    "scale of 0": (changed(WEIBULL_FIELD, "Weibull_A", 0.0), f"weibull_a is 0 {PLACE}", "above 0"),
    "scale in other units": (changed(WEIBULL_FIELD, "Weibull_A", 92.0), f"weibull_a is 92 {PLACE}", "at most 60"),
    "infinite scale": (changed(WEIBULL_FIELD, "Weibull_A", np.inf), f"weibull_a is inf {PLACE}", "at most 60"),
    "shape of 0": (changed(WEIBULL_FIELD, "Weibull_k", 0.0), f"weibull_k is 0 {PLACE}", "a shape from 0.2 to 20"),
    "shape in hundredths": (changed(WEIBULL_FIELD, "Weibull_k", 212.0), f"weibull_k is 212 {PLACE}", "a shape"),
    "frequency below 0": (changed(WEIBULL_FIELD, "Sector_frequency", -0.1), f"frequency is -0.1 {PLACE}", "fraction"),
    "frequency in per cent": (
        changed(WEIBULL_FIELD, "Sector_frequency", 13.0),
        f"frequency is 13 {PLACE}",
        "per cent? divide by 100",
    ),
    "turbulence in per cent": (
        changed(WEIBULL_FIELD, "TI", 8.0),
        f"turbulence is 8 {PLACE}",
        "per cent? divide by 100",
    ),
    "turbulence below 0": (changed(WEIBULL_FIELD, "TI", -0.1), f"turbulence is -0.1 {PLACE}", "such as 0.08"),
    "speed-up of 0": (changed(cases.EVERYTHING, "Speedup", 0.0), f"speed_up is 0 {PLACE}", "a factor from 0.05 to 10"),
    "probability below 0": (
        changed(cases.table_field(), "P", -0.1, (2, 1, 1, 3, 2)),
        f"probability is -0.1 {PLACE}",
        "a fraction from 0 to 1",
    ),
    "probability above 1": (
        changed(cases.table_field(), "P", 1.5, (2, 1, 1, 3, 2)),
        f"probability is 1.5 {PLACE}",
        "a fraction from 0 to 1",
    ),
    "thin air": (
        changed(cases.EVERYTHING, "Air_density", 0.1, (2, 1, 3)),
        "density is",
        "at x = 703000, y = 6241600",
        "0.49 to 1.96 kg/m3",
    ),
    "air as heavy as water": (
        changed(cases.EVERYTHING, "Air_density", 1000.0, (2, 1, 3)),
        "density is",
        "at x = 703000, y = 6241600",
        "0.49 to 1.96 kg/m3",
    ),
    "elevation in feet, of the highest mountain": (
        changed(cases.EVERYTHING, "Elevation", 29_032.0, (2, 1)),
        "elevation is 29032 at x = 703000, y = 6241600",
        "metres from -1000 to 9000",
    ),
    "speed of a step": (
        changed(cases.series_field(), "WS", -1.0, (2, 1, 3)),
        "series_speed is -1 at x = 703000, y = 6241600",
        "(value 3)",
        "0 to 100",
    ),
    "turbulence of a step": (
        changed(cases.series_field(), "TI", 7.0, (2, 1, 3)),
        "series_turbulence is 7 at x = 703000, y = 6241600",
        "(value 3)",
        "per cent? divide by 100",
    ),
    "frequencies of all points": (
        WEIBULL_FIELD.assign(Sector_frequency=0.9 * WEIBULL_FIELD["Sector_frequency"]),
        "frequency adds up to 0.9 over all sectors at x = 700000, y = 6240000",
        "expected 1 (are sectors missing?)",
    ),
    "frequencies of one point": (
        changed(WEIBULL_FIELD, "Sector_frequency", 0.9, (2, 1, 1, 3)),
        "frequency adds up to 1.7",
        "at x = 703000, y = 6241600",
        "expected 1",
    ),
    "probabilities above 1 at one point": (
        changed(cases.table_field(), "P", 0.5, (2, 1, 1, 3, 2)),
        "probability adds up to 1.4",
        "at x = 703000, y = 6241600",
        "expected 1",
    ),
    "nothing but NaN": (
        WEIBULL_FIELD.assign(Weibull_A=np.nan * WEIBULL_FIELD["Weibull_A"]),
        "weibull_a is missing (NaN) at all points",
    ),
    "NaN in one sector": (
        changed(WEIBULL_FIELD, "Weibull_A", np.nan, (slice(None), slice(None), slice(None), 3)),
        "weibull_a is missing (NaN) at all points in sector 3",
    ),
    "NaN in one step": (
        changed(cases.series_field(), "WS", np.nan, (slice(None), slice(None), 3)),
        "series_speed is missing (NaN) at all points in step 3",
    ),
    "no probability at all": (
        cases.table_field().assign(P=0.0 * cases.table_field()["P"]),
        "probability is 0 everywhere",
    ),
    "text": (WEIBULL_FIELD.assign(TI=("x", list("abcde"))), "TI contains values that are not numbers"),
    "NaN as a weight": (
        cases.series_field().assign(weight=("time", np.r_[np.nan, np.full(STEPS - 1, 1.0 / STEPS)])),
        "weight[0] is nan; expected a finite number",
    ),
    "no weight at all": (cases.series_field().assign(weight=("time", np.zeros(STEPS))), "weight is 0 in all steps"),
    "a direction that stands for a gap": (with_steps("WD", -999.0), "WD[3] is -999; expected degrees from -360 to 360"),
    "NaN as the speed of a step": (with_steps("ws", np.nan), "ws[3] is nan", "a finite number"),
    "NaN as the direction of a step": (with_steps("WD", np.nan), "wd[3] is nan", "a finite number"),
    "NaN as a bin": (
        cases.table_field().assign_coords(ws=np.r_[np.nan, cases.BINS[1:]]),
        "ws[0] is nan",
        "a finite number",
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_that_are_no_wind(name):
    dataset, *says = VALUES[name]
    rejected(lambda: Site.from_dataset(dataset), *says)


@pytest.mark.parametrize(
    "dataset",
    [
        pytest.param(with_steps("ws", -4.0), id="negative speed of a step"),
        pytest.param(with_steps("ws", 500.0), id="absurd speed of a step"),
        pytest.param(cases.table_field().isel(ws=slice(None, None, -1)), id="bins in descending order"),
        pytest.param(cases.table_field().assign_coords(ws=np.r_[-4.0, cases.BINS[1:]]), id="negative bin"),
    ],
)
def test_reference_speeds_that_are_no_wind(dataset):
    rejected(lambda: Site.from_dataset(dataset), "ws")


def test_slightly_rounded_frequencies_are_taken():
    Site.from_dataset(WEIBULL_FIELD.assign(Sector_frequency=1.005 * WEIBULL_FIELD["Sector_frequency"]))


def test_a_table_may_leave_out_calms():
    data = cases.table_field()
    Site.from_dataset(data.assign(P=0.9 * data["P"]))


@pytest.mark.parametrize("turbulence", [8.0, -0.1])
def test_a_bad_turbulence_intensity_as_an_option(turbulence):
    rejected(lambda: site_of(WEIBULL_FIELD, turbulence_intensity=turbulence), f"turbulence is {turbulence:g}")


# --- coordinates and sectors ---


def rotated():
    """Return a field whose coordinates depend on both axes of its grid."""
    east, north = np.meshgrid(X, Y, indexing="ij")
    axes = {"x": (("column", "row"), east + 0.2 * north), "y": (("column", "row"), north - 0.2 * east)}
    values = {name: (("column", "row", "h", "wd"), each.values) for name, each in WEIBULL_FIELD.items()}
    return xarray.Dataset(values, {**axes, "h": HEIGHTS, "wd": CENTRES})


def with_units(units):
    return WEIBULL_FIELD.assign_coords(x=("x", X / 1000.0, {"units": units}))


AXES = {
    "unsorted x": (WEIBULL_FIELD.isel(x=[0, 2, 1, 3, 4]), "x[2] is 701500 after 703000", "sort the file by x"),
    "descending y": (WEIBULL_FIELD.isel(y=slice(None, None, -1)), "y[1] is 6243200 after 6244800", "sort the file"),
    "repeated x": (WEIBULL_FIELD.isel(x=[0, 1, 1, 2]), "x[2] is 701500 after 701500", "increasing coordinates"),
    "descending h": (WEIBULL_FIELD.isel(h=[1, 0]), "h[1] is 80 after 160", "increasing coordinates"),
    "NaN as x": (WEIBULL_FIELD.assign_coords(x=np.r_[X[:2], np.nan, X[3:]]), "x[2] is nan", "a finite number"),
    "x without coordinates": (WEIBULL_FIELD.drop_vars("x"), "the dimension x has no coordinates", "expected metres"),
    "h without coordinates": (WEIBULL_FIELD.drop_vars("h"), "frequency has the shape", "(y, x, heights, n)"),
    "wd without coordinates": (WEIBULL_FIELD.drop_vars("wd"), "wd[1] is 1; expected 45", "are sectors missing?"),
    "one sector less": (WEIBULL_FIELD.isel(wd=slice(7)), "wd[1] is 45; expected 51.4286", "are sectors missing?"),
    "half the circle": (WEIBULL_FIELD.isel(wd=slice(4)), "wd[1] is 45; expected 90", "cover the full circle"),
    "turned sectors": (WEIBULL_FIELD.assign_coords(wd=CENTRES + 22.5), "wd[0] is 22.5; expected 0", "start at 0"),
    "kilometres by their unit": (with_units("km"), "x is in kilometres", "expected metres"),
    "degrees by their unit": (with_units("degrees_east"), "x is in degrees", "expected metres"),
    "more dimensions": (WEIBULL_FIELD.expand_dims(model=2), "depends on model", "not one of x, y, h, time, wd, ws"),
    "values by point": (
        WEIBULL_FIELD.isel(y=0, drop=True).rename(x="i"),
        "depends on i",
        "expected values on a grid of x and y",
    ),
}


@pytest.mark.parametrize("name", AXES)
def test_axes_that_are_no_grid(name):
    dataset, *says = AXES[name]
    rejected(lambda: Site.from_dataset(dataset), "the dataset: ", *says)


def test_rotated_grids_are_rejected():
    rejected(lambda: Site.from_dataset(rotated()), "the dataset: ", "column, row")


def test_rotated_grids_are_named():
    rejected(lambda: Site.from_dataset(rotated()), "rotated grids are not supported")


def test_one_value_by_point_in_wind_that_is_the_same_everywhere():
    data = cases.uniform_weibull().assign(TI=("i", [0.1, 0.2]))
    rejected(lambda: Site.from_dataset(data), "TI varies with i", "grid of x and y")


@pytest.mark.parametrize("name", ["Sector_frequency", "Weibull_A", "Weibull_k", "TI"])
def test_a_variable_that_is_missing(name):
    found = "turbulence intensity" if name == "TI" else f"{name}; expected P, or Sector_frequency, Weibull_A, Weibull_k"
    rejected(lambda: Site.from_dataset(WEIBULL_FIELD.drop_vars(name)), f"the dataset: has no {found}")


@pytest.mark.parametrize(("name", "given"), [("Speedup", "SpeedUp"), ("Weibull_A", "weibull_a"), ("TI", "ti")])
def test_a_name_in_another_case(name, given):
    """Without it, the wind would be another one."""
    rejected(
        lambda: Site.from_dataset(cases.EVERYTHING.rename({name: given})), f"has {given}; expected the name {name}"
    )


def test_other_variables_are_named_in_a_note():
    data = WEIBULL_FIELD.assign(p=1013.0, weibull_a=9.0)  # pressure, and a mean beside the values
    assert site_of(data).notes == ("the dataset: ignored p, weibull_a",)


def test_frequency_without_sectors():
    data = WEIBULL_FIELD.assign(Sector_frequency=1.0)
    rejected(lambda: Site.from_dataset(data), "weibull_a has 8 sectors; expected 1, as frequency has")


def test_arguments_that_are_no_wind():
    rejected(lambda: Site.from_dataset("wind.nc"), "the dataset is 'wind.nc'; expected an xarray.Dataset", "from_file")
    rejected(lambda: site_of(WEIBULL_FIELD, shear=0.14), "shear is 0.14; expected Shear.power(...)")
    rejected(lambda: site_of(WEIBULL_FIELD).with_shear(0.14), "shear is 0.14; expected Shear.power(...)")


@pytest.mark.parametrize("speeds", [[0.0, 5.0, 10.0]])
def test_a_bin_around_0(speeds):
    rejected(lambda: Site.from_dataset(WEIBULL_FIELD, speeds=speeds), "the dataset: ws[0] is 0; expected speeds")


def test_one_bin_that_moves_with_the_local_speed():
    data = cases.with_local_bins(cases.SPEED_UP)
    rejected(
        lambda: Site.from_dataset(data, speeds=[10.0]), "ws has one speed; bins that move with the local speed need"
    )


@pytest.mark.parametrize("unit", [1e-3, 1e-5], ids=["kilometres", "degrees"])
def test_extrapolation_does_not_hide_a_wrong_unit(unit, turbine):
    data = WEIBULL_FIELD.assign_coords(x=X * unit, y=Y * unit)
    farm = WindFarm(site_of(data, extrapolate=True), turbine)
    rejected(lambda: farm.aep_gwh(X[1:3], Y[1:3]), "outside the grid of the wind", "expected metres")
    rejected(lambda: problem(site_of(data, extrapolate=True), turbine, rectangle(X[0], Y[0])), "expected metres")


# --- time ---


def by_time(*dims, value=1.0):
    return ("time", *dims), np.full((STEPS, *(len({"x": X, "y": Y}[dim]) for dim in dims)), value)


SERIES = cases.series_field()
TIMES = {
    "direction by place": (
        SERIES.drop_vars("wd").assign(WD=by_time("x", "y", value=270.0)),
        "WD depends on time, x, y",
        "add a variable wd (time)",
    ),
    "no direction": (SERIES.drop_vars("wd"), "has no wd", "a variable wd (time)"),
    "speed-up by time": (SERIES.assign(Speedup=by_time("x")), "Speedup depends on time", "only WS, TI and"),
    "density by time": (SERIES.assign(Air_density=by_time(value=1.2)), "Air_density depends on time", "only WS"),
    "elevation by time": (SERIES.assign(Elevation=by_time(value=9.0)), "Elevation depends on time", "only WS"),
    "Weibull scale by time": (WEIBULL_FIELD.expand_dims(time=3), "has no ws", "its series"),
    "weights twice": (SERIES.assign(weight=by_time(), P=by_time()), "has both weight and P", "remove one"),
    "probability by place": (SERIES.assign(P=by_time("x")), "P depends on time, x; expected time"),
    "WS without time": (WEIBULL_FIELD.assign(WS=("x", X / 1e5)), "WS does not depend on time", "expected Speedup"),
    "speeds by bin": (SERIES.assign(WS=SERIES["WS"].expand_dims(ws=[1.0, 2.0])), "WS depends on ws", "and time"),
    "no steps": (SERIES.isel(time=[]), "the time series is empty", "at least one condition"),
}


@pytest.mark.parametrize("name", TIMES)
def test_what_may_depend_on_time(name):
    dataset, *says = TIMES[name]
    rejected(lambda: Site.from_dataset(dataset), "the dataset: ", *says)


def test_probabilities_of_steps_are_their_weights():
    """As in PyWake's time series."""
    share = ("time", np.linspace(0.0, 2.0, STEPS) / STEPS)
    found, same = (Site.from_dataset(SERIES.assign({name: share})) for name in ("P", "weight"))
    np.testing.assert_array_equal(found.conditions.weight, same.conditions.weight)


def test_a_single_time_is_no_series():
    """Such as that of a file cut from a longer one."""
    assert site_of(WEIBULL_FIELD.expand_dims(time=[0])).field.data.kind == "weibull"


def test_one_direction_in_each_step_counts_beside_those_by_place():
    farms = [
        WindFarm(Site.from_dataset(data), Turbine.generic(8, 170, 110))
        for data in (SERIES, SERIES.assign(WD=by_time("x", "y", value=270.0)))
    ]
    x, y = cases.layout(4, 1)
    assert farms[0].aep_gwh(x, y) == farms[1].aep_gwh(x, y)


# --- missing values ---


def holed(**options):
    return site_of(changed(WEIBULL_FIELD, "Weibull_A", np.nan, HOLE), **options)


def rectangle(left, low, right=X[-1], high=Y[-1]):
    return Area.from_arrays([left, right, right, left], [low, low, high, high])


def problem(site, turbine, area):
    return LayoutProblem(WindFarm(site, turbine), area, 3, spacing_m=500)


def test_a_turbine_near_a_missing_value(turbine):
    farm = WindFarm(holed(), turbine)
    text = "turbine 1 at (700010, 6240010) is where the dataset has no weibull_a (NaN)"
    for method in (farm.aep_gwh, farm.aep_gradient, farm.simulate):
        rejected(lambda method=method: method([X[2], X[0] + 10], [Y[1], Y[0] + 10]), text)
    rejected(lambda: WindFarm(holed(), turbine, neighbours=Neighbours([X[0] + 1], [Y[0] + 1], turbine)), "neighbour 0")
    rejected(lambda: farm.next_turbine_aep_gwh([X[2]], [Y[2]], [X[0] + 1], [Y[0] + 1]), "point 0")


def test_missing_values_change_nothing_elsewhere(turbine):
    x, y = cases.layout(6, 1, X[1:], Y[1:])
    whole, some = (WindFarm(site, turbine) for site in (site_of(WEIBULL_FIELD), holed()))
    assert whole.aep_gwh(x, y) == some.aep_gwh(x, y)
    for ours, theirs in zip(whole.aep_gradient(x, y), some.aep_gradient(x, y), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_area_around_a_missing_value(turbine):
    says = ("the dataset: weibull_a is missing (NaN) near (700000, 6240000)", "exclude this part", "complete the file")
    rejected(lambda: problem(holed(), turbine, rectangle(X[0], Y[0])), *says)


@pytest.mark.parametrize(
    "area",
    [
        rectangle(X[1] + 1.0, Y[0]),
        rectangle(X[0], Y[1] + 1.0),
        Area.from_arrays(
            np.r_[X[1] + 1, X[4], X[4], X[0], X[0], X[1] + 1], np.r_[Y[0], Y[0], Y[3], Y[3], Y[1] + 1, Y[1] + 1]
        ),
        rectangle(X[0], Y[0]).without([shapely.box(X[0] - 1, Y[0] - 1, X[1] + 1, Y[1] + 1)]),
    ],
    ids=["east", "north", "corner", "excluded"],
)
def test_an_area_that_avoids_a_missing_value(area, turbine):
    problem(holed(), turbine, area)


def test_extrapolation_does_not_fill_gaps(turbine):
    """Only optimisers, which pass through any place, use the wind of the next point of the grid."""
    known = WEIBULL_FIELD.copy(deep=True)
    known["Weibull_A"].values[0, 0] = known["Weibull_A"].values[0, 1]
    x, y = [X[2], X[0] + 10.0], [Y[1], Y[0] + 10.0]
    site = holed()
    rejected(lambda: WindFarm(holed(extrapolate=True), turbine).aep_gwh(x, y), "has no weibull_a (NaN)")
    rejected(lambda: problem(holed(extrapolate=True), turbine, rectangle(X[0], Y[0])), "weibull_a is missing (NaN)")
    site = site.unchecked()
    assert WindFarm(site, turbine).aep_gwh(x, y) == WindFarm(site_of(known), turbine).aep_gwh(x, y)


def test_quantities_that_do_not_count_may_be_missing_everywhere(turbine):
    data = cases.with_turning(cases.with_elevation(WEIBULL_FIELD))
    for name in ("Elevation", "Turning"):
        data[name].values[:] = np.nan
    x, y = cases.layout(4, 1)
    expected = WindFarm(site_of(WEIBULL_FIELD), turbine).aep_gwh(x, y)
    assert WindFarm(site_of(data), turbine).aep_gwh(x, y) == expected
    rejected(lambda: site_of(data, distances="elevated"), "elevation is missing (NaN) at all points")


def test_another_turbulence_intensity_keeps_gaps(turbine):
    site = holed().with_turbulence(0.11)
    rejected(lambda: WindFarm(site, turbine).aep_gwh([X[0] + 10], [Y[0] + 10]), "has no weibull_a (NaN)")


@pytest.mark.parametrize("name", ["Elevation", "Turning"])
def test_missing_values_of_what_does_not_count(name, turbine):
    data = cases.with_turning(cases.with_elevation(cases.SPEED_UP))
    data[name].values[0, 0] = np.nan
    WindFarm(Site.from_dataset(data, **BINS), turbine).aep_gwh([X[0] + 10.0], [Y[0] + 10.0])


def one_axis():
    """Return a field with a speed-up by y alone, which is missing in the first row."""
    factor = np.r_[np.nan, np.linspace(0.9, 1.1, len(Y) - 1)]
    data = cases.with_turbulence(cases.WEIBULL)
    return site_of(data.assign(Speedup=("y", factor)))


def test_missing_values_along_one_axis(turbine):
    says = "the dataset: speed_up is missing (NaN) near (700000, 6240000)"
    rejected(lambda: problem(one_axis(), turbine, rectangle(X[0], Y[0])), says)
    problem(one_axis(), turbine, rectangle(X[0], Y[1] + 1.0))


def test_places_beside_missing_values_along_one_axis(turbine):
    farm = WindFarm(one_axis(), turbine)
    farm.aep_gwh([X[3]], [Y[2]])
    rejected(lambda: farm.aep_gwh([X[3]], [Y[0] + 10.0]), "has no speed_up (NaN)")


def test_an_area_in_the_east_of_missing_values_along_one_axis(turbine):
    rejected(lambda: problem(one_axis(), turbine, rectangle(X[2], Y[0])), "speed_up is missing (NaN)")


def test_a_missing_value_of_a_sector_is_named():
    shape = cases.WEIBULL["Weibull_k"].values.copy()
    shape[2] = np.nan
    rejected(lambda: site_of(WEIBULL_FIELD.assign(Weibull_k=("wd", shape))), "the dataset: weibull_k")


# --- outside the grid ---


def test_turbines_neighbours_and_points_outside(turbine):
    farm = WindFarm(site_of(WEIBULL_FIELD), turbine)
    extent = "the grid of the wind in the dataset, x 700000 to 706000, y 6240000 to 6244800"
    x, y = [X[1], X[1] + 2000.0, X[2]], [Y[0], Y[0] - 77.0, Y[0] - 5.0]
    for method in (farm.aep_gwh, farm.aep_gradient, farm.simulate):
        says = (f"turbine 1 at (703500, 6239923) is 77 m outside {extent}", "same coordinate system", "extrapolate")
        rejected(lambda method=method: method(x, y), *says)
    there = Neighbours([X[1], X[-1] + 5.0], [Y[0], Y[1]], turbine)
    rejected(lambda: WindFarm(farm.site, turbine, neighbours=there), "neighbour 1 at (706005, 6241600) is 5 m outside")
    rejected(lambda: farm.next_turbine_aep_gwh([X[1]], [Y[1]], [X[0] - 3.0], [Y[2]]), "point 0 at", "3 m outside")


@pytest.mark.parametrize(
    ("moved", "says"),
    [
        ((-120.0, 0.0, 0.0, 30.0), ": 120 m to the west, 30 m to the north;"),
        ((0.0, -1.5, 4000.0, 0.0), ": 1.5 m to the south, 4000 m to the east;"),
    ],
)
def test_an_area_that_reaches_outside(moved, says, turbine):
    area = rectangle(*(np.array([X[0], Y[0], X[-1], Y[-1]]) + moved))
    known = "the area reaches outside the grid of the wind in the dataset, x 700000 to 706000, y 6240000 to 6244800"
    rejected(lambda: problem(site_of(WEIBULL_FIELD), turbine, area), known + says, "extrapolate: true")
    problem(site_of(WEIBULL_FIELD, extrapolate=True), turbine, area)


def test_rounded_coordinates_are_not_outside(turbine):
    """On a grid up to 6240 km from the origin, coordinates are rounded to about 1e-9 m."""
    farm, y = WindFarm(site_of(WEIBULL_FIELD), turbine), [Y[1], Y[2]]
    on_border = farm.aep_gwh([X[0], X[-1]], y)
    assert farm.aep_gwh([X[0] - 1e-8, X[-1] + 1e-8], y) == pytest.approx(on_border, rel=1e-12)
    rejected(lambda: farm.aep_gwh([X[0] - 1e-3, X[-1]], y), "turbine 0", "m outside the grid")


def test_an_area_as_large_as_the_grid(turbine):
    """Rounding of its coordinates does not count."""
    problem(site_of(WEIBULL_FIELD), turbine, rectangle(X[0] - 1e-7, Y[0] - 1e-7, X[-1] + 1e-7, Y[-1] + 1e-7))


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        (X / 1000.0, Y / 1000.0, "its coordinates look like kilometres; expected metres"),
        (np.linspace(8.0, 8.1, 5), np.linspace(56.0, 56.1, 4), "its coordinates look like degrees; expected metres"),
        (X - 650_000.0, Y - 6_000_000.0, "check that both have the same coordinate system"),
    ],
)
def test_the_likely_reason_is_named(x, y, says, turbine):
    site = site_of(WEIBULL_FIELD.assign_coords(x=x, y=y))
    rejected(lambda: problem(site, turbine, rectangle(X[0], Y[0])), says)
    rejected(lambda: WindFarm(site, turbine).aep_gwh([X[2]], [Y[2]]), says)


# --- height ---


def test_heights_that_do_not_bracket_a_hub(turbine):
    for height in (79.0, 161.0):
        other = Turbine.generic(5, 100, height)
        says = (
            f"generic has its hub at {height:g} m",
            "the dataset",
            "from 80 to 160 m",
            "heights that bracket the hub",
        )
        rejected(lambda other=other: WindFarm(site_of(WEIBULL_FIELD), [turbine, other]), *says)
        there = Neighbours([X[1]], [Y[1]], other)
        rejected(lambda there=there: WindFarm(site_of(WEIBULL_FIELD), turbine, neighbours=there), *says)


def test_a_single_level(turbine):
    level = WEIBULL_FIELD.isel(h=[0])
    says = ("generic has its hub at 150 m", "is given at 80 m above ground", "or set shear")
    rejected(lambda: WindFarm(site_of(level), turbine), *says)
    WindFarm(site_of(level), Turbine.generic(5, 100, 80))
    WindFarm(site_of(level, shear=Shear.power(0.1, 80.0)), turbine)
    WindFarm(site_of(level.drop_vars("h").squeeze("h")), turbine)


def test_shear_at_another_height_than_the_file():
    shear = Shear.power(0.1, 100.0)
    says = ("the dataset: gives the wind at 80 m", "shear has reference_height_m 100", "the same height")
    rejected(lambda: site_of(WEIBULL_FIELD.isel(h=[0]), shear=shear), *says)


def test_a_single_level_of_wind_that_is_the_same_everywhere():
    """It is used at hub height, as that of a mast; shear must start from it."""
    data = cases.WEIBULL.expand_dims(h=[80.0])
    assert site_of(data).notes == ("the dataset: the wind at 80 m is used at hub height",)
    assert site_of(data, shear=Shear.power(0.1, 80.0)).notes == ()
    rejected(lambda: site_of(data, shear=Shear.power(0.1, 100.0)), "the dataset: gives the wind at 80 m", "same height")


def test_shear_at_another_height_than_the_site():
    site = site_of(WEIBULL_FIELD.isel(h=[0]))
    rejected(lambda: site.with_shear(Shear.power(0.1, 100.0)), "the same height")


@pytest.mark.parametrize(
    ("kind", "value", "height", "says"),
    [
        ("power", 2.0, 100.0, "the exponent is 2; expected -0.5 to 1"),
        ("power", [0.1, np.nan], 100.0, "shear: values[1] is nan"),
        ("power", [], 100.0, "shear: values is empty"),
        ("power", 0.1, 0.0, "reference_height_m is 0; expected a finite number above 0"),
        ("logarithmic", 0.0, 100.0, "the roughness length is 0 m; expected more than 0"),
        ("logarithmic", 120.0, 100.0, "less than reference_height_m, 100"),
    ],
)
def test_bad_shear(kind, value, height, says):
    rejected(lambda: getattr(Shear, kind)(value, height), says)


def test_hubs_below_the_roughness_length():
    site = site_of(cases.WEIBULL, shear=Shear.logarithmic([0.1, 60.0], 100.0))
    says = ("generic has its hub at 60 m", "not above the roughness length of the shear, 60 m")
    rejected(lambda: WindFarm(site, Turbine.generic(5, 100, 60)), *says)
    WindFarm(site, Turbine.generic(5, 100, 61))


# --- options ---


def test_distances():
    for distances in ("elevated", "terrain_following"):
        for data in (WEIBULL_FIELD, cases.WEIBULL):
            says = f"the dataset: distances is {distances!r}, which needs the elevation of the terrain"
            rejected(lambda data=data, distances=distances: site_of(data, distances=distances), says)
    says = "the dataset: distances is 'curved'; expected one of straight, elevated, terrain_following"
    rejected(lambda: site_of(WEIBULL_FIELD, distances="curved"), says)


def test_other_options():
    rejected(lambda: site_of(WEIBULL_FIELD, interpolation="cubic"), "interpolation is 'cubic'; expected one of")
    rejected(lambda: Site.from_dataset(WEIBULL_FIELD, directions=[400.0]), "is 400; expected degrees from 0 to 360")
    rejected(lambda: Site.from_dataset(WEIBULL_FIELD, speeds=[9.0, 5.0]), "ws[1] is 5 after 9")
    rejected(lambda: site_of(cases.table_field()), "its table has its own speeds; leave `speeds` out")


def test_bins_for_a_series():
    rejected(lambda: site_of(cases.series_field()), "speeds")


# --- files ---


@pytest.mark.parametrize("name", ["negative scale", "frequencies of one point", "speed of a step"])
def test_errors_name_the_file(name, tmp_path):
    dataset, *says = VALUES[name]
    dataset.to_netcdf(tmp_path / "hills.nc", engine="h5netcdf")
    rejected(lambda: Site.from_file(tmp_path / "hills.nc"), "hills.nc: ", *says)


def test_places_outside_name_the_file(tmp_path, turbine):
    WEIBULL_FIELD.to_netcdf(tmp_path / "hills.nc", engine="h5netcdf")
    farm = WindFarm(Site.from_file(tmp_path / "hills.nc", **BINS), turbine)
    rejected(lambda: farm.aep_gwh([X[0] - 1.0], [Y[0]]), "turbine 0", "the grid of the wind in", "hills.nc, x 700000")
    low = Turbine.generic(5, 100, 60)
    rejected(lambda: WindFarm(farm.site, low), "generic has its hub at 60 m, but the wind in", "hills.nc is given")


@pytest.mark.parametrize("content", [b"", b"abc", b"\x89HDF\r\n\x1a\n" + bytes(500)])
def test_files_that_are_no_netcdf(tmp_path, content):
    path = tmp_path / "hills.nc"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"hills\.nc: cannot be read as NetCDF"):
        Site.from_file(path)


def test_half_a_file(tmp_path):
    path = tmp_path / "hills.nc"
    WEIBULL_FIELD.to_netcdf(path, engine="h5netcdf")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r"hills\.nc: cannot be read as NetCDF"):
        Site.from_file(path)


def test_a_file_that_does_not_exist(tmp_path):
    for name in ("ridge", "ridge.nc", "ridge.wrg", "ridge.tab"):
        rejected(lambda name=name: Site.from_file(tmp_path / name), f"{name}: no such file")


def test_a_single_column_or_row_is_named():
    """Its values hold everywhere along the axis."""
    column = WEIBULL_FIELD.isel(x=slice(2, 3))
    notes = site_of(column).notes
    assert f"the dataset: has a single x, {X[2]:.10g}: its values are used everywhere east and west" in notes
    assert not [note for note in notes if "single y" in note]


def test_extrapolation_is_true_or_false():
    rejected(lambda: site_of(WEIBULL_FIELD, extrapolate="no"), "extrapolate is 'no'; expected True or False")


def test_options_of_fields_for_other_files(tmp_path):
    path = tmp_path / "rose.tab"
    path.write_text(TAB)
    for options in ({"distances": "elevated"}, {"extrapolate": True}):
        rejected(lambda options=options: Site.from_file(path, **options), "rose.tab: distances and extrapolate apply")


# --- parts, and what cannot be stored ---


def test_a_part_of_the_conditions_cannot_be_changed_or_stored():
    """Changes would be lost, or apply to conditions that were not chosen."""
    site = site_of(WEIBULL_FIELD)
    part = site.with_conditions(site.draw(5, np.random.default_rng(0)))
    says = "the site has only some conditions of another one; change that one first"
    rejected(lambda: part.with_turbulence(0.1), says)
    rejected(lambda: part.with_shear(Shear.power(0.1, 100.0)), says)
    rejected(part.settings, "a part of the wind on a grid has no settings; use those of the whole site")


def test_a_grid_that_is_too_large_to_store(monkeypatch):
    site = site_of(WEIBULL_FIELD)
    site.settings()
    monkeypatch.setattr("leeward.wind.field_settings.MOST_STORED", 10_000)
    rejected(site.settings, "the dataset: the values of the grid take 0 MB", "select a part of the grid")
