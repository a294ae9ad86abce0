"""Gridded wind resources of WAsP: .grd, .wrg and .rsf."""

import re

import numpy as np
import pytest

from leeward.errors import InputError
from leeward.readers import wasp_field, wasp_grd, wasp_rsf, wasp_wrg
from test_turbine_files import package

WEIBULL = ("Sector_frequency", "Weibull_A", "Weibull_k")
DIMS = ("x", "y", "h", "wd")


def reject(read, path, says):
    """Expect an error of one line that begins with the path and contains `says`."""
    with pytest.raises(InputError, match=re.escape(says)) as error:
        read(path)
    text = str(error.value)
    assert text.startswith(str(path))
    assert "\n" not in text


# --- .grd ---

X, Y, HEIGHTS, SECTORS = [1000.0, 1100.0, 1200.0], [5000.0, 5050.0], [30.0, 80.5], 4
BLANK = 1.70141e38
FREQUENCY = [0.4, 0.3, 0.2, 0.1]


def write_grid(path, values, limits=(1000, 1200, 5000, 5050), width=100):
    """Write values of shape (x, y), `width` of them on a line."""
    rows = np.asarray(values, dtype=float).T
    lines = ["DSAA", f"{rows.shape[1]}  {rows.shape[0]}", f" {limits[0]}   {limits[1]}", f" {limits[2]}   {limits[3]}"]
    lines.append(f" {rows.min()}   {rows.max()}")
    for row in rows:
        lines += ["    ".join(map(repr, row[i : i + width].tolist())) for i in range(0, len(row), width)]
        lines.append("")
    path.write_text("\n".join(lines))


def value(i, j, height, sector):
    """Return a value that differs at each point, height and sector."""
    return 1.0 + i / 8 + j / 64 + height / 1024 + sector / 4


def grd(folder, sector, height, quantity):
    return folder / f"Hill   Sector {sector}   Height {height:g}m   {quantity}.grd"


def write_folder(folder, quantities=("Weibull-A", "Weibull-k"), frequency=FREQUENCY, width=100):
    folder.mkdir(exist_ok=True)
    for height in HEIGHTS:
        for sector in range(1, SECTORS + 1):
            write_grid(grd(folder, sector, height, "Sector frequency"), np.full((3, 2), frequency[sector - 1]))
            for add, quantity in enumerate(quantities):
                values = [[add + value(i, j, height, sector) for j in range(2)] for i in range(3)]
                write_grid(grd(folder, sector, height, quantity), values, width=width)
    return folder


def pywake_grids(folder):
    """Return the dataset of PyWake with the names that ours has."""
    pytest.importorskip("py_wake")
    from py_wake.site.wasp_grid_site import WaspGridSite, load_wasp_grd

    data = WaspGridSite(load_wasp_grd(str(folder), speedup_using_pickle=False)).ds
    return data.isel(wd=slice(0, -1)).rename(ti15ms="TI_15")  # the last sector is that at 360 degrees


def same_as_pywake(folder):
    ours, theirs = wasp_grd.read(folder), pywake_grids(folder)
    assert set(ours) == {*WEIBULL, "Speedup", "Turning", "TI_15", "Elevation"}
    for name in (*DIMS, *ours):
        assert ours[name].dims == theirs[name].dims
        assert ours[name].dtype == np.float64
        np.testing.assert_array_equal(ours[name], theirs[name])
    return ours


def test_parque_ficticio_is_that_of_pywake():
    ours = same_as_pywake(package("py_wake") / "examples" / "data" / "ParqueFicticio")
    assert ours["Weibull_A"].dims == DIMS
    assert dict(ours.sizes) == {"x": 20, "y": 20, "h": 2, "wd": 12}
    assert ours["wd"].values.tolist() == list(range(0, 360, 30))
    assert ours["h"].values.tolist() == [30.0, 200.0]
    assert ours.attrs["notes"] == [
        "ParqueFicticio: ignored Flow inclination, Mean speed",
        "ParqueFicticio: the turbulence intensity is in per cent",
        "ParqueFicticio: left out 3 columns and 13 rows of the grid that have no values",
    ]


def test_all_speed_factors_and_blanks_are_those_of_pywake(tmp_path):
    speeds = ("Orographic speed", "Roughness speed", "Obstacles speed")
    more = ("Orographic turn", "Turbulence intensity")
    folder = write_folder(tmp_path / "grids", ("Weibull-A", "Weibull-k", *speeds, *more))
    write_grid(grd(folder, "All", 30.0, "Elevation"), [[BLANK, BLANK], [BLANK, 120.5], [130.0, 131.0]])
    for quantity in (*speeds, "Weibull-A"):
        write_grid(grd(folder, 2, 30.0, quantity), [[1.5, 1.5], [BLANK, 1.25], [1.1, 1.7]])
    ours = same_as_pywake(folder)
    assert ours["x"].values.tolist() == [1100.0, 1200.0]
    assert ours["Elevation"].values.tolist()[1] == [130.0, 131.0]
    assert np.isnan(ours["Elevation"].values[0, 0])
    assert np.isnan(ours["Weibull_A"].values[0, 0, 0, 1])
    assert ours["Speedup"].values[0, :, 0, 1].tolist() == [1.0, 1.25**3]


def test_a_folder_with_what_is_needed_alone(tmp_path):
    """Lines may be broken anywhere; without elevations, blanks of A count; frequencies may be in per cent."""
    folder = write_folder(tmp_path / "grids", frequency=[40, 30, 20, 10], width=2)
    for height in HEIGHTS:
        for sector in range(1, SECTORS + 1):
            values = [[BLANK, value(i, 1, height, sector)] for i in range(3)]
            write_grid(grd(folder, sector, height, "Weibull-A"), values)
    (folder / "readme.txt").write_text("ignored")
    (folder / "._Hill   Sector 1.grd").write_bytes(b"\0\5\x16\7")
    data = wasp_grd.read(folder)
    assert set(data) == set(WEIBULL)
    assert {data[name].dims for name in data} == {DIMS}
    assert (data["x"].values.tolist(), data["y"].values.tolist()) == (X, [5050.0])
    assert (data["h"].values.tolist(), data["wd"].values.tolist()) == (HEIGHTS, [0.0, 90.0, 180.0, 270.0])
    np.testing.assert_allclose(data["Sector_frequency"].values[2, 0, 1], FREQUENCY, rtol=1e-15)
    assert data["Weibull_A"].values[2, 0, 1, 3] == value(2, 1, 80.5, 4)
    assert data["Weibull_k"].values[1, 0, 0, 2] == 1.0 + value(1, 1, 30.0, 3)
    assert data.attrs["notes"] == [
        "grids: the sector frequencies are in per cent",
        "grids: left out 0 columns and 1 row of the grid that have no values",
    ]


def test_quantities_of_all_sectors(tmp_path):
    folder = write_folder(tmp_path / "grids")
    for number, height in enumerate(HEIGHTS):
        write_grid(grd(folder, "All", height, "Air density"), [[1.2, 1.25]] * 2 + [[1.3 + number, 1.0]])
        write_grid(grd(folder, "All", height, "Elevation"), [[0.0, 1.0]] * 3)
    write_grid(grd(folder, "All", 30.0, "Weibull-A"), np.ones((3, 2)))
    write_grid(grd(folder, "All", 30.0, "RIX"), np.ones((3, 2)))
    data = wasp_grd.read(folder)
    assert data["Air_density"].dims == ("x", "y", "h")
    assert data["Air_density"].values[2].tolist() == [[1.3, 2.3], [1.0, 1.0]]
    assert data["Elevation"].values.tolist() == [[0.0, 1.0]] * 3
    assert data["Weibull_A"].values[0, 0, 0, 0] == value(0, 0, 30.0, 1)
    assert data.attrs["notes"] == ["grids: ignored RIX, Weibull-A of all sectors"]


def test_names_in_other_spellings(tmp_path):
    folder = write_folder(tmp_path / "grids")
    expected = wasp_grd.read(folder)
    for path in list(folder.iterdir()):
        path.rename(folder / re.sub(r"\s+", " ", path.name).upper().replace("80.5M", "80,5 m"))
    assert wasp_grd.read(folder).identical(expected)


GRID = "DSAA\n3 2\n1000 1200\n5000 5050\n1 6\n1 2 3\n\n4 5 6\n"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("DSAA", "DSBB", ": begins with 'DSBB'; expected DSAA, a Surfer grid in ASCII"),
        (GRID, "", ": begins with ''; expected DSAA"),
        (GRID, "DSAA\n3 2\n1000 1200", ": ends in the header; expected the size, the limits and the values"),
        ("4 5 6", "4 5", ": has 5 values; expected 3 x 2 = 6, as in its header"),
        ("4 5 6", "4 5 6 7", ": has more than 6 values; expected 3 x 2 = 6"),
        ("3 2", "100000000000 90000000", ": has 6 values; expected 100000000000 x 90000000 = "),
        ("1 2 3\n\n4 5 6", "", ": has 0 values; expected 3 x 2 = 6"),
        ("4 5 6", "4 five 6", ", line 8: has 'five'; expected a number"),
        ("4 5 6", "4 5,5 6", ", line 8: has '5,5'; expected a number"),
        ("1000 1200", "1000 west", ", line 3: has 'west'; expected a number"),
        ("3 2", "3.5 2", ", line 2: has 3.5 columns and 2 rows; expected whole numbers"),
        ("3 2", "3 -2", ", line 2: has 3 columns and -2 rows; expected whole numbers"),
        ("5000 5050", "5050 5000", ", line 4: y is from 5050 to 5000; expected numbers that increase"),
        ("1000 1200", "1e30 1200", ", line 3: x is from nan to 1200; expected numbers that increase"),
        ("3 2", "2 3", ": has 2 x 3 points from (1000, 5000) to (1200, 5050); expected 3 x 2 points from"),
        ("5000 5050", "5000 5060", "(1200, 5060); expected 3 x 2 points from (1000, 5000) to (1200, 5050), as in Hill"),
        ("4 5 6", "4 -5 6", ": has a negative value, -5; expected 0 or more"),
    ],
)
def test_bad_grids(tmp_path, old, new, says):
    path = grd(write_folder(tmp_path / "grids"), 3, 80.5, "Weibull-k")
    path.write_text(GRID.replace(old, new, 1))
    with pytest.raises(InputError, match=re.escape(f"{path}{says}" if says[0] in ":," else says)) as error:
        wasp_grd.read(path.parent)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_binary_and_huge_grids(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "grids")
    path = grd(folder, 1, 30.0, "Weibull-A")
    path.write_bytes(bytes(range(256)) * 100)
    with pytest.raises(InputError, match=r"Weibull-A.grd: begins with .*; expected DSAA"):
        wasp_grd.read(folder)
    path.write_bytes(b"DSAA\n3 2\n1000 1200\n5000 5050\n1 6\n1 2 3 4 5 \xff\0")
    with pytest.raises(InputError, match=r"Weibull-A.grd, line 6: has 'ÿ\\x00'; expected a number"):
        wasp_grd.read(folder)
    monkeypatch.setattr(wasp_grd, "LARGEST", 1000)
    path.write_text("DSAA 3 2" + " " * 1000)
    with pytest.raises(InputError, match=r"Weibull-A.grd: has 1008 bytes; expected a WAsP grid of at most"):
        wasp_grd.read(folder)


def remove(quantity, places):
    def change(folder):
        for sector, height in places:
            grd(folder, sector, height, quantity).unlink()

    return change


def add(name, values=((1.0, 1.0),) * 3):
    return lambda folder: write_grid(folder / name, values)


EVERY = [(sector, height) for sector in range(1, 5) for height in HEIGHTS]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (remove("Weibull-k", [(2, 30.0)]), "has no Weibull-k at 30 m for sector 2; expected sectors 1 to 4"),
        (remove("Weibull-A", [(2, 80.5), (4, 80.5)]), "has no Weibull-A at 80.5 m for sector 2, 4; expected sectors"),
        (remove("Weibull-k", EVERY[1::2]), "has no Weibull-k at 80.5 m; expected each quantity at 30 m, 80.5 m"),
        (remove("Weibull-k", EVERY), "has no Weibull-k by sector; expected grids of Sector frequency, Weibull-A, Weib"),
        (add("Hill Sector 1 Height 30m Orographic turn.grd"), "has no Orographic turn at 30 m for sector 2, 3, 4"),
        (add("Hill Sector All Height 30m Air density.grd"), "has no Air density at 80.5 m; expected each quantity"),
        (add("Hill.grd"), "Hill.grd: its name gives no sector, height and quantity; expected 'Area   Sector 1   Heig"),
        (add("Hill Sector 1 Weibull-A.grd"), "Weibull-A.grd: its name gives no sector, height and quantity"),
        (add("Hill Sector 0 Height 30m Weibull-A.grd"), "A.grd: is for sector 0; expected All or a number from 1 to"),
        (add("Hill Sector 999999 Height 30m Weibull-A.grd"), "A.grd: is for sector 999999; expected All or a number"),
        (add("Lake Sector 1 Height 30m Weibull-A.grd"), "A.grd: has the sector, height and quantity of Hill   Sector"),
        (add("Hill Sector 1 Height 30m Sector frequency.grd"), "has the sector, height and quantity of Hill"),
    ],
)
def test_bad_folders(tmp_path, change, says):
    folder = write_folder(tmp_path / "grids")
    change(folder)
    with pytest.raises(InputError, match=re.escape(says)) as error:
        wasp_grd.read(folder)
    assert str(error.value).startswith(str(folder))


def test_other_bad_folders(tmp_path):
    reject(wasp_grd.read, tmp_path / "none", ": no such folder; expected a folder of WAsP grids (.grd)")
    reject(wasp_grd.read, tmp_path, ": has no .grd files; expected WAsP grids such as 'Area   Sector 1")
    write_folder(tmp_path / "last", frequency=[0.3, 0.2, 0.2, 0.1])
    reject(wasp_grd.read, tmp_path / "last", "the frequencies of the 4 sectors add up to 0.8; expected 1, or 100 per")
    folder = write_folder(tmp_path / "blank")
    write_grid(grd(folder, "All", 30.0, "Elevation"), [[BLANK, BLANK]] * 3)
    reject(wasp_grd.read, folder, ": all points are blank; expected values")
    write_grid(grd(folder, "All", 80.5, "Elevation"), [[1.0, 1.0]] * 3)
    with pytest.raises(InputError, match=r"Height 80.5m   Elevation.grd: has other elevations than Hill"):
        wasp_grd.read(folder)


# --- .wrg and .rsf ---

SECTOR_CELLS = [(400, 81, 205), (350, 92, 210), (250, 103, 1215)]  # 0.1 %, 0.1 m/s, 0.01


def cells(x, y, z=12, height=50, add=0):
    """Return the cells of a row after its label, of three sectors."""
    sectors = [(frequency, scale + add, shape) for frequency, scale, shape in SECTOR_CELLS]
    return [x, y, z, height, 8.5, 2.06, 412, len(sectors), *(cell for sector in sectors for cell in sector)]


def fixed(label, row):
    """Return a row in columns of fixed width."""
    widths = [10, 10, 8, 5, 5, 6, 15, 3, *(4, 4, 5) * ((len(row) - 8) // 3)]
    return f"{label:<10}" + "".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))


def free(label, row):
    return " ".join(map(str, (label, *row)))


POINTS = [(300, 140, 5), (100, 40, 1), (200, 40, 2), (300, 40, 3), (200, 140, 4), (100, 140, 6)]  # in no order


def grid_rows():
    """Return rows of a grid with cells of 100 m."""
    return [cells(x, y, 10 + number, add=number) for x, y, number in POINTS]


def write_wrg(path, lines, header="   3   2   100  40   100"):
    path.write_text("\n".join([header, *lines, ""]))
    return path


def check_wrg(data):
    assert (data["x"].values.tolist(), data["y"].values.tolist()) == ([100.0, 200.0, 300.0], [40.0, 140.0])
    assert (data["h"].values.tolist(), data["wd"].values.tolist()) == ([50.0], [0.0, 120.0, 240.0])
    assert {data[name].dims for name in WEIBULL} == {DIMS}
    assert {variable.dtype for variable in data.variables.values()} == {np.dtype(np.float64)}
    assert data["Elevation"].values.tolist() == [[11.0, 16.0], [12.0, 14.0], [13.0, 15.0]]
    assert data["Weibull_A"].values[:, :, 0, 0].tolist() == [[8.2, 8.7], [8.3, 8.5], [8.4, 8.6]]
    assert data["Weibull_A"].values[2, 1, 0].tolist() == [8.6, 9.7, 10.8]
    assert (data["Weibull_k"].values == [2.05, 2.1, 12.15]).all()
    assert (data["Sector_frequency"].values == [0.4, 0.35, 0.25]).all()
    assert set(data) == {*WEIBULL, "Elevation"}
    assert data.attrs["notes"] == []


@pytest.mark.parametrize("label", ["GridPoint", "", "1", "Høvsøre", "a b", "a b c d ef", "1 2 3 4"])
def test_a_wrg_file_in_fixed_columns(tmp_path, label):
    check_wrg(wasp_wrg.read(write_wrg(tmp_path / "wind.wrg", [fixed(label, row) for row in grid_rows()])))


@pytest.mark.parametrize("label", ["GridPoint", "", "1", "Høvsøre", "a-long-label"])
def test_a_wrg_file_with_spaces_between_cells(tmp_path, label):
    check_wrg(wasp_wrg.read(write_wrg(tmp_path / "wind.wrg", [free(label, row) for row in grid_rows()])))


def test_labels_with_spaces_before_free_columns(tmp_path):
    lines = [f"{'Mast no 1':<10}" + free("", row).strip() for row in grid_rows()]
    check_wrg(wasp_wrg.read(write_wrg(tmp_path / "wind.wrg", lines)))


def test_latin_1_and_dos_lines(tmp_path):
    path = tmp_path / "wind.wrg"
    lines = ["3 2 100 40 100", "", *(fixed("Åsen \x85 nr", row) for row in grid_rows())]
    path.write_bytes("\r\n".join(lines).encode("latin-1"))
    check_wrg(wasp_wrg.read(path))


def test_columns_that_touch(tmp_path):
    """Coordinates of ten digits, and all wind in one sector."""
    rows = [[x, 6504214.25, 1, 50, 8.5, 2.06, 412, 3, 1000, 100, 10000, 0, 0, 0, 0, 0, 0] for x in (1e5, 1000100.25)]
    path = tmp_path / "wind.rsf"
    path.write_text("\n".join(fixed("touch", row) for row in rows))
    data = wasp_rsf.read(path)
    assert (data["x"].values.tolist(), data["y"].values.tolist()) == ([100000.0, 1000100.25], [6504214.25])
    assert data["Weibull_k"].values[:, 0, 0].tolist() == [[100.0, 0.0, 0.0]] * 2
    assert data["Sector_frequency"].values[:, 0, 0].tolist() == [[1.0, 0.0, 0.0]] * 2


def test_coordinates_that_are_rounded(tmp_path):
    rows = [cells(x, y) for x in (10, 44, 77) for y in (20, 53)]
    lines = [free("P", row) for row in rows]
    data = wasp_wrg.read(write_wrg(tmp_path / "wind.wrg", lines, "3 2 10.3 19.7 33.3"))
    np.testing.assert_allclose(data["x"], [10.3, 43.6, 76.9], rtol=1e-15)
    np.testing.assert_allclose(data["y"], [19.7, 53.0], rtol=1e-15)


def test_a_cell_size_of_0(tmp_path):
    """As WindSim writes it for points that are not evenly spaced."""
    lines = [free("P", cells(x, y)) for x in (10, 50, 55) for y in (20, 21)]
    data = wasp_wrg.read(write_wrg(tmp_path / "wind.wrg", lines, "3 2 10 20 0"))
    assert (data["x"].values.tolist(), data["y"].values.tolist()) == ([10.0, 50.0, 55.0], [20.0, 21.0])


def test_blank_points_and_rounded_frequencies(tmp_path):
    rows = grid_rows()
    rows[0][8:] = [0] * 9
    rows[1][8] = 397  # instead of 400
    data = wasp_wrg.read(write_wrg(tmp_path / "wind.wrg", [fixed("P", row) for row in rows]))
    for name in WEIBULL:
        assert np.isnan(data[name].values[2, 1]).all()
        assert np.isnan(data[name].values).sum() == 3
    assert data["Sector_frequency"].values[0, 0, 0].tolist() == [0.397, 0.35, 0.25]
    assert data.attrs["notes"] == [
        "wind.wrg: 1 of 6 points have no wind",
        "wind.wrg: the frequencies of a point are rounded and add up to 0.997 to 1.000",
    ]


def test_a_rsf_file_with_several_heights(tmp_path):
    path = tmp_path / "wind.rsf"
    rows = [cells(x, y, x + y, height, add=int(height)) for height in (80, 50.5) for x in (3, 1) for y in (2, 7, 4)]
    path.write_text("\n".join(fixed(f"T {i}", row) for i, row in enumerate(rows)))
    data = wasp_rsf.read(path)
    assert dict(data.sizes) == {"x": 2, "y": 3, "h": 2, "wd": 3}
    assert data["h"].values.tolist() == [50.5, 80.0]
    assert data["Elevation"].values.tolist() == [[3.0, 5.0, 8.0], [5.0, 7.0, 10.0]]
    assert data["Weibull_A"].values[0, 1, :, 0].tolist() == [13.1, 16.1]


def lines_of(change):
    rows = grid_rows()
    change(rows)
    return [free("P", row) for row in rows]


def setting(row, column, cell):
    def change(rows):
        rows[row][column] = cell

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows.pop(), ": has 5 points; expected 3 x 2 = 6, as in line 1"),
        (lambda rows: rows.clear(), ": has no points; expected rows of a label, x, y, elevation"),
        (setting(2, 0, 210), ", line 4: x is 210; expected a point of the grid: 100 to 300 in steps of 100"),
        (setting(2, 0, 400), ", line 4: x is 400; expected a point of the grid: 100 to 300 in steps of 100"),
        (setting(5, 1, -60), ", line 7: y is -60; expected a point of the grid: 40 to 140 in steps of 100"),
        (setting(5, 0, 200), ", line 7: has the point and height of line 6; expected one row for each"),
        (setting(1, 3, 60), ": has no row for x 100, y 40 and height 50 m; expected a complete grid of 3 x, 2 y and 2"),
        (setting(1, 8, "calm"), ", line 3: has 'calm'; expected a number"),
        (setting(1, 0, "nan"), ", line 3: x, y, elevation or height is missing; expected numbers"),
        (setting(3, 9, -1), ", line 5: Weibull_A of sector 1 is negative"),
        (setting(3, 8, 40), ", line 5: the frequencies add up to 640; expected about 1000, as they are in units of"),
        (setting(3, 7, 4), ", line 5: has 18 words, 'P 300 40 13 50 8.5 2.06 412 4 400 84 20"),
        (lambda rows: rows[3].pop(), ", line 5: has 17 words, 'P 300 40 13 50"),
        (lambda rows: rows[4].__setitem__(slice(7, 11), [2]), ", line 6: has 2 sectors; expected 3, as in line 2"),
        (lambda rows: rows[0].__setitem__(slice(7, 8), [500, *[1] * 1491]), "has 500 sectors; expected at most 360"),
        (lambda rows: rows[0].extend([1] * 20_000), ", line 2: has "),
    ],
)
def test_bad_wrg_files(tmp_path, change, says):
    reject(wasp_wrg.read, write_wrg(tmp_path / "wind.wrg", lines_of(change)), says)


@pytest.mark.parametrize(
    "header", ["", "GridPoint 1 2 3 4", "3 2 100 40", "3.5 2 1 4 9", "0 2 1 4 9", "3 2 1 4 -9", "3 2 nan 4 9"]
)
def test_bad_headers(tmp_path, header):
    path = tmp_path / "wind.wrg"
    path.write_text(header)
    reject(wasp_wrg.read, path, f", line 1: is {header!r}; expected the numbers of columns and rows, the lowest x and")


def test_grids_of_another_size_than_the_header(tmp_path):
    lines = [free("P", cells(x, y)) for x in (100, 200) for y in (40, 140, 240)]
    path = write_wrg(tmp_path / "wind.wrg", lines, "3 2 100 40 0")
    reject(wasp_wrg.read, path, ": its points form a grid of 2 x 3; expected 3 x 2, as in line 1")
    path = write_wrg(tmp_path / "wind.wrg", lines, "3 2 100 40 1e-300")
    reject(wasp_wrg.read, path, ", line 5: x is 200; expected a point of the grid")


def test_rsf_files_that_are_no_grid(tmp_path):
    path = tmp_path / "wind.rsf"
    rows = [cells(x, y, height=height) for x in (1, 2) for y in (3, 4) for height in (50, 80)]
    for gone, says in (
        (0, "x 1, y 3 and height 50 m"),
        (5, "x 2, y 3 and height 80 m"),
        (7, "x 2, y 4 and height 80 m"),
    ):
        path.write_text("\n".join(free("P", row) for i, row in enumerate(rows) if i != gone))
        reject(
            wasp_rsf.read,
            path,
            f": has no row for {says}; expected a complete grid of 2 x, 2 y and 2 heights: 8 rows, found 7",
        )
    rows[3][2] = 13
    path.write_text("\n".join(free("P", row) for row in rows))
    reject(wasp_rsf.read, path, ", line 4: the elevation is 13 m, but 12 m at another height; expected the same")
    write_wrg(path, lines_of(lambda rows: None))
    reject(wasp_rsf.read, path, ", line 1: has 5 words, '3   2   100  40   100'; expected a label, x, y")
    reject(wasp_rsf.read, path, "; is it a .wrg file?")


@pytest.mark.parametrize("read", [wasp_rsf.read, wasp_wrg.read])
def test_files_that_are_something_else(tmp_path, monkeypatch, read):
    path = tmp_path / "wind"
    reject(read, path, ": no such file; expected a WAsP ")
    path.write_bytes(bytes(range(256)) * 100)
    reject(read, path, ", line 1: ")
    path.write_bytes(b"\0" * 100_000)
    reject(read, path, ", line 1: has 100000 characters; expected a WAsP ")
    monkeypatch.setattr(wasp_rsf, "LARGEST_DATA", 1000)
    reject(read, path, ": has 100000 bytes; expected a WAsP ")


def test_cells_that_are_not_numbers():
    assert wasp_field.first_bad(["1", "1e5", "nan", "x", "y"]) == 3
    assert wasp_field.first_bad(["1"]) == 1
    np.testing.assert_array_equal(wasp_field.as_numbers(["1e20", "1.1e20", "-2e20"]), [1e20, np.nan, np.nan])
