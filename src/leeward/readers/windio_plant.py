"""Whole plants of windIO 2 (`wind_energy_system`): site, wind, turbines, layouts and wake model."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.parsing import read_text
from leeward.readers import windio_turbine
from leeward.readers.document import LARGEST_TEXT, Document, Place
from leeward.readers.wind_file import WindData
from leeward.readers.windio_resource import wind_of
from leeward.readers.windio_site import area_of
from leeward.readers.windio_variables import Runs
from leeward.readers.windio_wakes import wake_model_of

WHAT = "a windIO plant (wind_energy_system)"
DEFAULT_SPACING_DIAMETERS = 3.0
RUNS: Place = ("attributes", "model_outputs_specification", "run_configuration")
OPTIMISATION: Place = ("optimisation", "constraints")
_PLANT = re.compile(r"""(?:^|[{,])\s*["']?wind_farm["']?\s*:""", re.MULTILINE)


@dataclass(frozen=True)
class Layout:
    """Positions of turbines (m), and the number of the turbine type of each."""

    x: list[float]
    y: list[float]
    types: list[int]


@dataclass(frozen=True)
class WindioPlant:
    """A plant. layouts: the farm's own, then those of its neighbours. turbines: as in a campaign file.

    data: the whole file, with the contents of included files. remarks: how it was read.
    """

    path: Path
    data: dict[str, Any]
    name: str
    crs: str | None
    farm: dict[str, Any]
    wind: WindData
    turbines: list[dict[str, Any]]
    layouts: list[Layout]
    wake_model: dict[str, Any]
    spacing_m: float | None
    remarks: list[str]

    def campaign(self, site: dict[str, Any]) -> dict[str, Any]:
        """Return the plant as a campaign: its first layout is the farm, the others are neighbours.

        site: the wind as in a campaign file.
        """
        own = self.layouts[0]
        kinds = list(dict.fromkeys(own.types))
        if len(kinds) > 1:
            raise InputError(
                f"{self.path}: the layout has {len(kinds)} turbine types; leeward optimises layouts of one type. "
                "`leeward aep` evaluates it"
            )
        has_spacing = self.spacing_m is not None
        spacing = ("spacing_m", self.spacing_m) if has_spacing else ("spacing_diameters", DEFAULT_SPACING_DIAMETERS)
        return {
            "name": self.name,
            **({} if self.crs is None else {"crs": self.crs}),
            "site": site,
            "farms": [{**self.farm, "n_turbines": len(own.x)}],
            "turbines": [self.turbines[kinds[0]]],
            "neighbours": [
                {"x_m": x, "y_m": y, "turbine": self.turbines[kind]}
                for layout in self.layouts[1:]
                for kind, x, y in _by_type(layout)
            ],
            "wake_model": self.wake_model,
            spacing[0]: spacing[1],
        }

    @property
    def campaign_remarks(self) -> list[str]:
        """Return how the plant was read as a campaign."""
        found = list(self.remarks)
        if self.spacing_m is None:
            found.append(f"the plant gives no minimum_spacing: {DEFAULT_SPACING_DIAMETERS:g} rotor diameters are used")
        return found

    def with_layout(self, x: list[float], y: list[float]) -> dict[str, Any]:
        """Return the file's data with other positions in the first layout."""
        farm = dict(_first(self.data["wind_farm"]))
        first = dict(_first(farm["layouts"]))
        first["coordinates"] = {**first["coordinates"], "x": x, "y": y}
        first["coordinates"].pop("z", None)
        farm["layouts"] = [first, *farm["layouts"][1:]] if isinstance(farm["layouts"], list) else first
        whole = self.data["wind_farm"]
        return {**self.data, "wind_farm": [farm, *whole[1:]] if isinstance(whole, list) else farm}


def is_plant(path: Path) -> bool:
    """Return whether a file is a windIO plant."""
    if path.suffix.lower() not in (".yaml", ".yml") or not path.is_file():
        return False
    return _PLANT.search(read_text(path, WHAT, LARGEST_TEXT)) is not None


def read_plant(path: Path) -> WindioPlant:
    """Return the plant in a file, or raise InputError with the key of whatever leeward cannot represent."""
    document = Document.with_includes(path, WHAT)
    validate(document)
    remarks: list[str] = []
    farms = document.data["wind_farm"]
    if not farms or not all(isinstance(farm, dict) for farm in (farms if isinstance(farms, list) else [farms])):
        raise document.error(("wind_farm",), f"is {farms!r:.60}; expected a wind farm, or a list of them")
    turbines: list[dict[str, Any]] = []
    layouts = [layout for place in _farm_places(document) for layout in _layouts(document, place, turbines)]
    if len(layouts) > 1:
        remarks.append(f"the first layout is the farm; the other {len(layouts) - 1} are neighbours")
    heights = [turbines[kind]["hub_height_m"] for layout in layouts for kind in dict.fromkeys(layout.types)]
    resource = ("site", "energy_resource", "wind_resource")
    wake_model = wake_model_of(document, remarks)
    uses_turbulence = wake_model["name"] == "nygaard_2022"
    wind = wind_of(document, resource, _runs(document), heights, uses_turbulence)
    crs, farm = _area(document)
    return WindioPlant(
        path=path,
        data=document.data,
        name=str(document.data.get("name") or path.stem),
        crs=crs,
        farm={"name": str(_first(farms).get("name") or "farm"), **farm},
        wind=wind,
        turbines=turbines,
        layouts=layouts,
        wake_model=wake_model,
        spacing_m=_spacing(document),
        remarks=remarks + [f"wind: {note}" for note in wind.notes],
    )


def validate(document: Document) -> None:
    """Raise InputError unless windIO's own schema accepts the plant."""
    try:
        import windIO
    except ImportError as error:
        raise InputError(f"{document.where}: windIO plants need windIO; pip install 'leeward[windio]'") from error
    from jsonschema import ValidationError

    try:
        windIO.validate(document.data, "plant/wind_energy_system")
    except (ValidationError, ValueError) as error:
        lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
        raise InputError(f"{document.where}: windIO's schema rejects it: {'; '.join(lines[:6])}") from error


def _layouts(document: Document, place: Place, turbines: list[dict[str, Any]]) -> list[Layout]:
    """Return the layouts of one farm, and add its turbine types to `turbines`."""
    farm = document.value(place)
    keys: dict[str, int] = {}  # the position in `turbines` of each type of this farm
    if "turbine_types" in farm:
        for kind in farm["turbine_types"]:
            at = (*place, "turbine_types", kind)
            keys[str(kind)] = _added(turbines, windio_turbine.read(document, at))
    elif "turbines" in farm:
        keys[""] = _added(turbines, windio_turbine.read(document, (*place, "turbines")))
    else:
        raise document.error(place, "has neither turbines nor turbine_types; expected one of them")
    if not farm.get("layouts"):
        raise document.error((*place, "layouts"), "is missing or empty; expected the positions of turbines")
    return [_layout(document, at, keys) for at in _each(document, (*place, "layouts"))]


def _farm_places(document: Document) -> list[Place]:
    return _each(document, ("wind_farm",))


def _layout_places(document: Document) -> list[Place]:
    return [at for place in _farm_places(document) for at in _each(document, (*place, "layouts"))]


def _each(document: Document, place: Place) -> list[Place]:
    """Return the places of the entries of a list; of anything else, its own place."""
    given = document.value(place)
    return [(*place, number) for number in range(len(given))] if isinstance(given, list) else [place]


def _layout(document: Document, place: Place, keys: dict[str, int]) -> Layout:
    x, y = (document.numbers((*place, "coordinates", axis)) for axis in ("x", "y"))
    if len(x) != len(y):
        raise document.error((*place, "coordinates"), f"has {len(x)} x and {len(y)} y; expected as many")
    kinds = document.value((*place, "turbine_types"))
    if "" in keys and kinds:
        if len(set(map(str, kinds))) > 1:
            found = "has several types, but the farm has `turbines`, not `turbine_types`"
            raise document.error((*place, "turbine_types"), found)
        kinds = None
    if not kinds:
        if len(keys) > 1:
            found = f"is missing, but the farm has {len(keys)} turbine types; expected the type of each turbine"
            raise document.error((*place, "turbine_types"), found)
        kinds = [next(iter(keys))] * len(x)
    if len(kinds) != len(x):
        raise document.error((*place, "turbine_types"), f"has {len(kinds)} types for {len(x)} turbines")
    for position, kind in enumerate(kinds):
        if str(kind) not in keys:
            found = f"is {kind!r:.40}; expected one of {', '.join(map(str, keys))}"
            raise document.error((*place, "turbine_types", position), found)
    return Layout(x, y, [keys[str(kind)] for kind in kinds])


def _added(turbines: list[dict[str, Any]], turbine: dict[str, Any]) -> int:
    """Return the position of a turbine, which is added unless an equal one is there."""
    if turbine not in turbines:
        turbines.append(turbine)
    return turbines.index(turbine)


def _by_type(layout: Layout) -> list[tuple[int, list[float], list[float]]]:
    """Return type and positions of the turbines of each type."""
    found = []
    for kind in dict.fromkeys(layout.types):
        chosen = [i for i, each in enumerate(layout.types) if each == kind]
        found.append((kind, [layout.x[i] for i in chosen], [layout.y[i] for i in chosen]))
    return found


def _area(document: Document) -> tuple[str | None, dict[str, Any]]:
    """Return the coordinate system of the plant, and its area as the shape of a farm in a campaign file."""
    area = area_of(document, ("site",))
    crs = area.crs
    for place in _layout_places(document):
        given = document.value((*place, "coordinates", "crs"))
        if isinstance(given, str) and crs is not None and given != crs:
            raise document.error((*place, "coordinates", "crs"), f"is {given}, but the rest is in {crs}")
        crs = crs or (given if isinstance(given, str) else None)
    shape = area.regions[0] if len(area.regions) == 1 else {"regions": area.regions}
    return crs, {**shape, **({"exclude": area.exclusions} if area.exclusions else {})}


def _spacing(document: Document) -> float | None:
    if document.value((*OPTIMISATION, "area_constraints")):
        found = "is not supported; put it into the boundaries and exclusions of the site"
        raise document.error((*OPTIMISATION, "area_constraints"), found)
    given = document.value((*OPTIMISATION, "minimum_spacing"))
    if not given:
        return None
    if set(given) != {"radius"}:
        found = f"has {', '.join(given)}; leeward has one distance for all directions: expected radius"
        raise document.error((*OPTIMISATION, "minimum_spacing"), found)
    return document.number((*OPTIMISATION, "minimum_spacing", "radius"))


def _runs(document: Document) -> Runs:
    """Return the conditions that the plant asks for."""
    given = document.value(RUNS)
    if not given:
        return Runs()
    times = document.value((*RUNS, "times_run"))
    if times and not times.get("all_occurences", "subset" not in times):
        steps = times.get("subset") or []
        if not steps or not all(isinstance(step, int) and not isinstance(step, bool) for step in steps):
            raise document.error((*RUNS, "times_run", "subset"), f"is {steps!r:.60}; expected numbers of steps, from 0")
        return Runs(times=steps, is_exact=True)
    directions, speeds = (_run_values(document, name) for name in ("directions_run", "wind_speeds_run"))
    is_exact = bool(document.value((*RUNS, "directions_run")))
    return Runs(directions, speeds, is_exact=is_exact, has_cases=bool(times))


def _run_values(document: Document, name: str) -> list[float] | None:
    """Return the listed values, or None for all."""
    given = document.value((*RUNS, name))
    if "specific_values" not in given or given.get("all_values"):
        return None
    return document.numbers((*RUNS, name, "specific_values"))


def _first(given: Any) -> Any:
    return given[0] if isinstance(given, list) else given
