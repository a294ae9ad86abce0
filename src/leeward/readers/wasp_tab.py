"""WAsP observed wind climates (.tab): frequencies of sectors and of the speed bins in each sector."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from leeward.errors import InputError
from leeward.parsing import LARGEST_DATA, read_text
from leeward.readers.wind_file import WindData

MOST_SECTORS = 360


def read(path: Path) -> WindData:
    """Return the wind rose. Its rows are sectors, the first one centred on north unless the file has an offset.

    Lines of a file: a title; latitude, longitude and height; number of sectors, factor of the speeds and offset of the
    directions (degrees); the frequency of each sector; then, for each speed bin, its upper limit and its frequency in
    each sector. Frequencies are relative: per cent and per mille in files of WAsP.
    """
    lines = read_text(path, "a WAsP table of wind", LARGEST_DATA, or_latin_1=True).splitlines()
    rows = [(number, line.split()) for number, line in enumerate(lines, 1) if number == 1 or line.strip()]
    if len(rows) < 6:
        raise InputError(f"{path}: has {len(rows)} lines; expected a title, three lines of figures and speed bins")
    place = _numbers(path, *rows[1])
    sectors, factor, offset = _header(path, *rows[2])
    frequency = _counted(path, *rows[3], sectors)
    bins = np.array([_counted(path, *row, sectors + 1) for row in rows[4:]])
    edges, share = np.r_[0.0, bins[:, 0] * factor], bins[:, 1:].T
    for (line, _), values in zip(rows[3:], [frequency, *bins[:, 1:]], strict=True):
        if (values < 0.0).any():
            raise InputError(f"{path}, line {line}: has a negative frequency")
    steps = np.diff(edges)
    if (steps <= 0.0).any():
        wrong = int(np.flatnonzero(steps <= 0.0)[0])
        raise InputError(f"{path}, line {rows[4 + wrong][0]}: the upper limits of the speed bins do not increase")
    totals = share.sum(axis=1)
    for sector in np.flatnonzero((totals == 0.0) & (frequency > 0.0))[:1]:
        raise InputError(f"{path}: sector {sector + 1} has a frequency of {frequency[sector]:g} but no wind speeds")
    if not frequency.sum() > 0.0:
        raise InputError(f"{path}, line {rows[3][0]}: all frequencies are 0")
    probability = share / np.where(totals > 0.0, totals, 1.0)[:, None] * (frequency / frequency.sum())[:, None]
    notes = [] if len(place) < 3 else [f"{path.name}: the wind at {place[2]:g} m is used at hub height"]
    settings = {
        "wind_directions_deg": ((np.arange(sectors) * (360.0 / sectors) + offset) % 360.0).tolist(),
        "wind_speeds_m_s": edges.tolist(),
        "probability": probability.tolist(),
        "kind": "bins",
        "speed_bins": "edges",
    }
    return WindData(settings, notes)


def _header(path: Path, line: int, cells: list[str]) -> tuple[int, float, float]:
    sectors, *more = _numbers(path, line, cells)
    if not (sectors.is_integer() and 1 < sectors <= MOST_SECTORS):
        raise InputError(
            f"{path}, line {line}: has {sectors:g} sectors; expected a whole number from 2 to {MOST_SECTORS}"
        )
    factor, offset = [*more, *(1.0, 0.0)[len(more) :]][:2]
    if not factor > 0.0:
        raise InputError(f"{path}, line {line}: the factor of the wind speeds is {factor:g}; expected more than 0")
    return int(sectors), factor, offset


def _counted(path: Path, line: int, cells: list[str], count: int) -> npt.NDArray[np.float64]:
    values = _numbers(path, line, cells)
    if len(values) != count:
        raise InputError(f"{path}, line {line}: has {len(values)} numbers; expected {count}")
    return np.array(values)


def _numbers(path: Path, line: int, cells: list[str]) -> list[float]:
    try:
        values = [float(cell) for cell in cells]
    except ValueError as error:
        raise InputError(f"{path}, line {line}: is {' '.join(cells)!r:.60}; expected numbers") from error
    if not np.isfinite(values).all():
        raise InputError(f"{path}, line {line}: has a number that is not finite")
    return values
