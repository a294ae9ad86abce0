"""The results of a file or a run directory, as `leeward.open_layouts` returns them."""

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from leeward.capacity import capacity_factor, installed_power
from leeward.errors import InputError
from leeward.store.format.keys import Key
from leeward.store.format.kind import Value
from leeward.store.format.layout_result import Result
from leeward.store.grid import grid_dataset
from leeward.store.results import Results

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import xarray

_COLUMNS = (
    "aep_gwh",
    "installed_mw",
    "capacity_factor",
    "wake_loss",
    "min_spacing_m",
    "n_turbines",
    "rotor_diameter_m",
    "steps",
    "seconds",
)
_TEXTS = ("status", "origin", "stop_reason", "fingerprint")


LayoutKey = Key | tuple[int, int, int] | str
RatedPowers = Callable[[str], Mapping[int, float]]


class Layouts(Results[Key, Result]):
    """A mapping from keys to results, sorted by key. A child process reads each result on access.

    `layouts[0, 5, 3]` (farm, turbine type, seed) or `layouts["farm0_t5_s3"]` is a result.

    attributes: of the file itself. campaign_text: the frozen campaign of the results, "" if unknown. bad: damaged files
    and results. Of several results of a key, the first one found counts. also: a second path, read after `path`.
    rated_powers: returns the rated power of each turbine type (MW) from the text of a campaign, for results that do not
    state their installed power.
    """

    KIND = Result.KIND

    def __init__(self, path: Path, also: Path | None = None, *, rated_powers: RatedPowers | None = None) -> None:
        self._rated_powers = rated_powers
        super().__init__(path, also)

    def __getitem__(self, key: LayoutKey) -> Result:
        return super().__getitem__(key)

    @classmethod
    def _key(cls, key: object) -> Key:
        if isinstance(key, str):
            return Key.parse(key)
        if isinstance(key, tuple) and len(key) == 3 and all(isinstance(number, int | np.integer) for number in key):
            return Key(*map(int, key))
        raise InputError(f"{key!r:.60} is not a key; expected farm, type, seed, as in [0, 5, 3], or 'farm0_t5_s3'")

    # --- as tables ---

    def to_xarray(self, *, by_seed: bool = True) -> "xarray.Dataset":
        """Return a dataset with the dimensions `farm_idx`, `type_idx`, `seed` and `turbine`.

        Smaller layouts are padded with NaN. Where there is no result, numbers are NaN, texts are empty and n_turbines
        is 0. by_seed: if False, there is no dimension `seed`: each farm and type may have only one result, and its seed
        becomes a variable.
        """
        found = {result.key: (result.layout, self._row(result)) for result in self.results()}  # the rest is dropped
        dataset = grid_dataset(found, _COLUMNS, _TEXTS, by_seed=by_seed, where=str(self.path))
        return dataset.assign_attrs({name: value for name, value in self.attributes.items() if name != "campaign"})

    def to_pandas(self, per: Literal["layout", "turbine"] = "layout") -> "pandas.DataFrame":
        """Return a table with one row per layout or per turbine. Column names are those of CSV and Parquet files."""
        import pandas

        if per not in ("layout", "turbine"):
            raise InputError(f"per is {per!r:.40}; expected 'layout' or 'turbine'")
        results = sorted(self.results(), key=lambda result: result.key)
        rows = [self._row(result) for result in results]
        names = ["key", *Key._fields]
        if per == "layout":
            return pandas.DataFrame(rows, columns=[*names, *_COLUMNS, *_TEXTS])
        counts = [result.n_turbines for result in results]
        columns = {name: np.repeat([row[name] for row in rows], counts) for name in names}
        columns["turbine"] = np.concatenate([np.arange(count) for count in counts] or [np.zeros(0, int)])
        positions = np.concatenate([result.layout for result in results] or [np.zeros((2, 0))], axis=1)
        columns |= {"x_m": positions[0], "y_m": positions[1]}
        for name, title in (("aep_gwh", "layout_aep_gwh"), ("installed_mw",) * 2, ("capacity_factor",) * 2):
            columns[title] = np.repeat([row[name] for row in rows], counts)
        return pandas.DataFrame(columns)

    def _row(self, result: Result) -> dict[str, Any]:
        """Return a layout as a row of a table."""
        installed = self.installed_mw(result)
        row: dict[str, Any] = {"key": str(result.key), **result.key._asdict()}
        row |= {name: getattr(result, name) for name in ("aep_gwh", "n_turbines", "rotor_diameter_m", "steps")}
        row |= {"installed_mw": installed, "capacity_factor": capacity_factor(result.aep_gwh, installed)}
        for name in _COLUMNS:
            row.setdefault(name, _finite(result.details.get(name)))
        return row | {name: getattr(result, name) for name in _TEXTS}

    def installed_mw(self, result: Result) -> float:
        """Return the installed power of a result, MW; NaN if neither it nor its campaign states it."""
        stated = installed_power(result.details, result.n_turbines, None)
        if not math.isnan(stated):
            return stated
        return installed_power({}, result.n_turbines, self._rated_mw.get(result.key.type_idx))

    @functools.cached_property
    def _rated_mw(self) -> Mapping[int, float]:
        """The rated power of each turbine type in the campaign (MW); empty if unknown."""
        return {} if self._rated_powers is None or not self.campaign_text else self._rated_powers(self.campaign_text)


def _finite(value: Value | None) -> Any:
    """Return the value, or NaN if it is not a finite number.

    The spacing of a single turbine is infinite, and files of other origin may hold text.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
        return math.nan
    return value
