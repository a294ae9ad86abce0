"""All data of a study as arrays, and the text that stores them."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from leeward.campaign.execution import Device, Execution, matched
from leeward.campaign.site_spec import SiteSpec
from leeward.campaign.spec import TURBINE_FORMS, turbine_form
from leeward.errors import InputError
from leeward.readers.document import Document, dump
from leeward.study.wind import Series, Wind

HEADER = "# A study with the contents of all files that it referred to, as leeward writes it.\n"
KIND = "evaluations"
FORMAT_VERSION = 1
NEVER = -1  # in `Rows.end`: the neighbour stands until the end
NO_NUMBER = -1  # in `Catalogue.keys`: the layout has no key
LARGEST_PACKED = 512_000_000  # bytes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The layouts that a study uses.

    names: such as alone:farm0_t5_s0. starts: where each begins in x and y, and the end of the last. x, y: m.
    turbine: its position in `StudyData.turbines`. keys: farm_idx, type_idx and seed, shape (layouts, 3), or NO_NUMBER.
    """

    names: Sequence[str]
    starts: Ints
    x: Floats
    y: Floats
    turbine: Ints
    keys: Ints

    def __len__(self) -> int:
        return len(self.names)

    def place(self, number: int) -> tuple[Floats, Floats]:
        """Return x and y of a layout, m."""
        part = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return self.x[part], self.y[part]


@dataclass(frozen=True, eq=False)
class Rows:
    """The neighbours of all scenarios, sorted by scenario; shape (rows,).

    scenario: position of the scenario. layout: position in the catalogue. first, end: steps; end may be NEVER.
    """

    scenario: Ints
    layout: Ints
    first: Ints
    end: Ints


@dataclass(frozen=True, eq=False)
class StudyData:
    """A study that refers to no file.

    targets: positions in the catalogue, by target_idx. scenarios: numbers, sorted; names, weights and overrides: of
    each. winds: by name; the first is the default. windows: name, first step and end. device: "cuda", or None for CPUs.
    """

    name: str
    crs: str | None
    turbines: Sequence[Any]
    layouts: Catalogue
    targets: Sequence[int]
    winds: Mapping[str, Wind]
    wake_model: Mapping[str, Any]
    scenarios: Sequence[int]
    scenario_names: Sequence[str]
    weights: Floats
    overrides: Sequence[Mapping[str, Any]]
    rows: Rows
    cases: tuple[str, ...]
    keep: tuple[str, ...]
    windows: Sequence[tuple[str, int, int]]
    execution: Execution
    device: Device | None = None

    def text(self, *, with_execution: bool) -> str:
        """Return the study as YAML; large arrays are compressed in the key `packed`."""
        layouts, rows = self.layouts, self.rows
        arrays: dict[str, npt.NDArray[Any]] = {
            **{f"layouts.{name}": getattr(layouts, name) for name in ("starts", "x", "y", "turbine", "keys")},
            **{f"rows.{name}": getattr(rows, name) for name in ("scenario", "layout", "first", "end")},
            "scenarios": np.array(self.scenarios, dtype=np.int64),
            "weights": self.weights,
        }
        winds: dict[str, Any] = {}
        for name, wind in self.winds.items():
            if isinstance(wind, Series):
                winds[name] = {"hours_per_step": wind.hours_per_step, "start": wind.start}
                if wind.site is not None:
                    winds[name]["site"] = wind.site.model_dump(exclude_none=True)
                for part in ("direction", "speed", "turbulence_intensity"):
                    arrays[f"winds.{name}.{part}"] = getattr(wind, part)
            else:
                winds[name] = {"site": wind.model_dump(exclude_none=True)}
        texts = {
            "layouts": list(layouts.names),
            "scenarios": list(self.scenario_names),
            "overrides": [dict(values) for values in self.overrides] if any(self.overrides) else [],
        }
        data = {
            "kind": KIND,
            "format_version": FORMAT_VERSION,
            "name": self.name,
            **({"crs": self.crs} if self.crs else {}),
            "turbines": [turbine.model_dump(exclude_none=True) for turbine in self.turbines],
            "targets": list(map(int, self.targets)),
            "winds": winds,
            "wake_model": dict(self.wake_model),
            "cases": list(self.cases),
            "keep": list(self.keep),
            "windows": [list(window) for window in self.windows],
            **({"device": self.device} if self.device else {}),
            **({"execution": self.execution.model_dump(exclude_unset=True)} if with_execution else {}),
            "packed": packed(arrays, texts),
        }
        return HEADER + dump(data)


def data_from(text: str, where: str) -> StudyData:
    """Return the study that `StudyData.text` wrote. Raise InputError if it is damaged."""
    document = Document.from_text(text, where)
    try:
        if document.data["kind"] != KIND:
            raise InputError(f"{where}: is not a study")
        if document.data["format_version"] != FORMAT_VERSION:
            raise InputError(f"{where}: was written by a newer leeward (format {document.data['format_version']})")
        return _assembled(document.data)
    except (KeyError, TypeError, ValueError, AttributeError, yaml.YAMLError) as error:
        raise InputError(f"{where}: is damaged or was not written by leeward ({error})") from error


def _assembled(data: Mapping[str, Any]) -> StudyData:
    arrays, texts = unpacked(data["packed"])
    winds: dict[str, Wind] = {}
    for name, wind in data["winds"].items():
        site = SiteSpec.model_validate(wind["site"]) if "site" in wind else None
        if site is not None and "hours_per_step" not in wind:
            winds[name] = site
        else:
            direction, speed, turbulence = (
                arrays[f"winds.{name}.{part}"] for part in ("direction", "speed", "turbulence_intensity")
            )
            times = (float(wind["hours_per_step"]), str(wind["start"]))
            winds[name] = Series(direction, speed, turbulence, *times, site)
    layouts = (arrays[f"layouts.{name}"] for name in ("starts", "x", "y", "turbine", "keys"))
    scenarios = arrays["scenarios"].tolist()
    if data.get("device") not in (None, "cuda"):
        raise ValueError(f"device: is {data['device']!r:.60}; expected cuda, or none")
    execution, device = matched(Execution.model_validate(data.get("execution") or {}), data.get("device"))
    return StudyData(
        name=data["name"],
        crs=data.get("crs"),
        turbines=[turbine_from(entry) for entry in data["turbines"]],
        layouts=Catalogue(texts["layouts"], *layouts),
        targets=data["targets"],
        winds=winds,
        wake_model=data["wake_model"],
        scenarios=scenarios,
        scenario_names=texts["scenarios"],
        weights=arrays["weights"],
        overrides=texts["overrides"] or [{}] * len(scenarios),
        rows=Rows(*(arrays[f"rows.{name}"] for name in ("scenario", "layout", "first", "end"))),
        cases=tuple(data["cases"]),
        keep=tuple(data["keep"]),
        windows=[(str(name), int(first), int(end)) for name, first, end in data["windows"]],
        execution=execution,
        device=device,
    )


def turbine_from(data: Mapping[str, Any]) -> Any:
    """Return a turbine from its plain data."""
    return TURBINE_FORMS[turbine_form(data)].model_validate(dict(data))


def packed(arrays: Mapping[str, npt.NDArray[Any]], texts: Mapping[str, Any]) -> str:
    """Return arrays of float64 and int64, and plain data, as compressed base64 text."""
    values = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = {
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in values.items()],
        "texts": dict(texts),
    }
    start = json.dumps(header).encode()
    content = len(start).to_bytes(8, "little") + start + b"".join(array.tobytes() for array in values.values())
    return base64.b64encode(zlib.compress(content, 6)).decode()


def unpacked(text: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return what `packed` was given. Raise ValueError if the text is damaged or too large."""
    unzip = zlib.decompressobj()
    try:
        content = unzip.decompress(base64.b64decode(text, validate=True), LARGEST_PACKED)
    except zlib.error as error:
        raise ValueError(f"packed: {error}") from error
    if not unzip.eof:
        raise ValueError(f"packed: is truncated, or larger than {LARGEST_PACKED} bytes")
    size = int.from_bytes(content[:8], "little")
    header, place = json.loads(content[8 : 8 + size]), 8 + size
    arrays = {}
    for name, dtype, shape in header["arrays"]:
        if dtype not in ("<f8", "<i8"):
            raise ValueError(f"packed: {name} has the type {dtype}")
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(content, dtype, count, place).reshape(shape).copy()
        place += 8 * count
    return arrays, header["texts"]
