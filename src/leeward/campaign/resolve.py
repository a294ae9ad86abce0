"""Complete a campaign: read the files that it refers to, look up names, and fill in defaults."""

from collections.abc import Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from leeward.campaign import shapes
from leeward.campaign.physics import farm_place, site_of, turbine_count, turbine_of
from leeward.campaign.site_spec import SiteSpec
from leeward.campaign.spec import (
    TURBINE_FORMS,
    BuiltIn,
    CampaignSpec,
    FarmsFile,
    FarmSpec,
    GenericTurbine,
    NeighboursSpec,
    TurbineFile,
    TurbineSpec,
    turbine_form,
)
from leeward.campaign.validation import suggestion, validated
from leeward.errors import InputError
from leeward.readers.document import Document
from leeward.readers.tables import numbers_in
from leeward.readers.turbine_file import read_turbine
from leeward.wording import listed, printable

BUILT_IN = ("danish-energy-island",)


def data_folder(name: str) -> Path:
    """Return the folder of a built-in campaign."""
    if name not in BUILT_IN:
        raise InputError(f"is {name!r}, which is not a built-in campaign; {suggestion(name, BUILT_IN)}")
    return Path(str(files("leeward.campaign") / name.replace("-", "_")))


def resolved(spec: CampaignSpec, document: Document) -> CampaignSpec:
    """Return the campaign with all files, names and defaults replaced by their values."""
    if spec.crs is not None:
        with document.at("crs"):
            check_crs(spec.crs)
    types = _types(spec, document)
    farms, crs = _farms(spec, document)
    forms = ("file", "weibull", "table", "time_series")
    with document.at("site", *(form for form in forms if getattr(spec.site, form) is not None)):
        site = complete_site(spec.site, document.folder, document.remarks)
        check_grid_crs(site, crs, document.remarks)
    changed = {
        "frozen": True,
        "name": spec.name or printable(Path(document.where).stem),
        "crs": crs,
        "site": site,
        "farms": farms,
        "turbines": types,
        "neighbours": [_neighbours(entry, number, types, document) for number, entry in enumerate(spec.neighbours)],
        "wake_model": complete_wake_model(spec.wake_model, document),
    }
    complete = spec.model_copy(update=changed)
    _check_counts(complete, document)
    return complete


def check_crs(name: str) -> None:
    """Raise InputError unless this is a projected coordinate system in metres."""
    import pyproj

    try:
        crs = pyproj.CRS.from_user_input(name)
    except pyproj.exceptions.CRSError as error:
        raise InputError(
            f"is {name!r:.60}, which is not known; expected a coordinate system such as EPSG:25831"
        ) from error
    if not crs.is_projected or any(axis.unit_conversion_factor != 1.0 for axis in crs.axis_info[:2]):
        raise InputError(
            f"is {name!r:.60}, which has no coordinates in metres; expected a projected system such as EPSG:25831"
        )


def check_grid_crs(site: SiteSpec, crs: str | None, remarks: list[str]) -> None:
    """Raise InputError if the grid of the wind is in another coordinate system than the areas or layouts.

    remarks: gets a sentence if one of the two is not known.
    """
    from leeward.wind.field_data import check_same_crs

    if site.field is None or len(site.field.x_m) * len(site.field.y_m) == 1:
        return
    if site.field.crs is None or crs is None:
        name = site.field.source
        what = f"{name} names no coordinate system" if site.field.crs is None else "the areas have no coordinate system"
        remarks.append(f"wind: {what}; the grid of {name} and the areas are taken to have the same coordinates")
        return
    check_same_crs(site.field.crs, crs)


def complete_site(spec: SiteSpec, folder: Path | None, remarks: list[str] | None = None) -> SiteSpec:
    """Return the site with its values, read from its file if it has one. remarks: gets notes on how it was read."""
    if spec.built_in is not None:
        wind = Document.from_file(data_folder(spec.built_in) / "site.yaml", "a site").data
        names = ("sector_frequency", "weibull_a_m_s", "weibull_k", "turbulence_intensity")
        weibull = {name: wind[name] for name in names} | {"wind_speeds_m_s": wind["wind_speed_bins_m_s"]}
        spec = SiteSpec.model_validate({"weibull": weibull, "shear": spec.shear})
    if spec.crs is not None:
        check_crs(spec.crs)
    site = site_of(spec, folder)
    if remarks is not None:
        remarks += [f"wind: {note}" for note in site.notes]
    settings = site.settings()
    if "field" in settings:
        return SiteSpec.model_validate(settings)
    return SiteSpec.model_validate({"weibull" if "weibull_k" in settings else "table": settings})


def _types(spec: CampaignSpec, document: Document) -> list[Any]:
    if isinstance(spec.turbines, BuiltIn):
        with document.at("turbines"):
            path = data_folder(spec.turbines.built_in) / "turbines.yaml"
        keys = ("type_idx", "rated_power_mw", "rotor_diameter_m", "hub_height_m")
        entries = [{key: entry[key] for key in keys} for entry in Document.from_file(path, "turbines").data["turbines"]]
        given = TypeAdapter(list[TurbineSpec]).validate_python(entries)
    else:
        given = spec.turbines
    found: list[Any] = []
    taken: set[int] = set()
    for position, entry in enumerate(given):
        with document.at("turbines", position):
            turbine = _turbine(entry, document.folder)
            number = position if turbine.type_idx is None else turbine.type_idx
            if number in taken:
                raise InputError(
                    f"has type_idx {number}, which another turbine also has; give each turbine its own number"
                )
            taken.add(number)
            turbine_of(turbine)  # raises InputError for invalid values
            name = turbine.name or _label(turbine)
            found.append(turbine.model_copy(update={"type_idx": number, "name": name}))
    return found


def _label(turbine: Any) -> str:
    """Return a name for a turbine type without one."""
    if isinstance(turbine, GenericTurbine):
        return f"generic {turbine.rated_power_mw:g} MW"
    return f"{turbine.rated_power_mw:g} MW, rotor {turbine.rotor_diameter_m:g} m"


def _turbine(entry: Any, folder: Path | None) -> Any:
    """Return a turbine with its values, read from its file if it has one."""
    if not isinstance(entry, TurbineFile):
        return entry
    path = shapes.path_in(folder, entry.file)
    given = entry.model_dump(exclude={"file", "power_unit", "mode"}, exclude_none=True)
    has_height = entry.hub_height_m is not None
    document = read_turbine(path, power_unit=entry.power_unit, mode=entry.mode, has_height=has_height)
    document.data |= given
    missing = [name for name in ("rotor_diameter_m", "hub_height_m") if name not in document.data]
    if missing and "power_mw" in document.data:
        raise InputError(f"{' and '.join(missing)} missing in {entry.file}; add what is missing beside `file`")
    return validated(TURBINE_FORMS[turbine_form(document.data)], document)


def _farms(spec: CampaignSpec, document: Document) -> tuple[list[FarmSpec], str | None]:
    """Return the farms with their areas as coordinates, and their coordinate system."""
    farms: dict[int, FarmSpec] = {}
    system = spec.crs
    for position, entry in enumerate(_farm_entries(spec, document)):
        with document.at(*farm_place(document, position)):
            number = position if entry.farm_idx is None else entry.farm_idx
            if number in farms:
                raise InputError(f"has the farm_idx {number} of another farm; expected each number once")
            area, crs = _area(entry, document.folder, spec.crs)
            name = entry.name or _name_in(entry, number, document)
            system = system or crs
            if crs not in (None, system):
                raise InputError(
                    f"is in {crs}, others are in {system}; expected one coordinate system for all: "
                    "set it with `crs`, for example crs: EPSG:25831"
                )
        counts = {"n_turbines": entry.n_turbines, "capacity_mw": entry.capacity_mw}
        farms[number] = FarmSpec.model_validate({"farm_idx": number, "name": name, "area": area, **counts})
    return list(farms.values()), system


def _name_in(entry: FarmSpec, number: int, document: Document) -> str:
    """Return the name of a farm in its GeoJSON file, else its number. Add a remark if there are several polygons."""
    names = shapes.names_of(entry, document.folder)
    if len(names) > 1:
        known = listed([name or "without a name" for name in names], 4)
        document.remarks.append(
            f"farm {number}: the {len(names)} polygons of {entry.file} ({known}) are one area. To use only one of "
            f"them, set `feature: NAME`. To make each of them a farm, set `farms: {{file: {entry.file}}}`"
        )
    return names[0] if len(names) == 1 and names[0] else f"farm {number}"


def _area(entry: FarmSpec, folder: Path | None, crs: str | None) -> tuple[shapes.Pieces, str | None]:
    from leeward.layout import Area

    if entry.area is not None:
        area = shapes.area_from(entry.area, crs)
    elif entry.regions is not None:
        area = Area.union([shapes.area_of(region, folder, crs) for region in entry.regions])
    else:
        area = shapes.area_of(entry, folder, crs)
    if entry.exclude:
        area = shapes.without(area, entry.exclude, folder, crs)
    return shapes.pieces_of(area), area.crs if crs is None else crs


def _farm_entries(spec: CampaignSpec, document: Document) -> list[FarmSpec]:
    """Return the farms, given as a list, as a file, or as the name of a built-in set."""
    if isinstance(spec.farms, list):
        return spec.farms
    with document.at(*farm_place(document, 0)):
        if isinstance(spec.farms, BuiltIn):
            given = FarmsFile(file="farms.geojson")
            features = shapes.features_of(data_folder(spec.farms.built_in) / given.file)
        elif shapes.is_windio(spec.farms.file):
            if spec.farms.only is not None:
                raise InputError(f"{spec.farms.file} is a windIO site, which is one area; remove `only`")
            return [FarmSpec(file=spec.farms.file, exclude=spec.farms.exclude)]
        else:
            given = spec.farms
            features = shapes.features_of(shapes.path_in(document.folder, given.file))
    known = [number for number, _, _ in features]
    for position, number in enumerate(given.only or []):
        if number not in known:
            found = f"is {number}, which is not a farm of {given.file}; expected one of {', '.join(map(str, known))}"
            raise document.error(("farms", "only", position), found)
    return [
        FarmSpec(farm_idx=number, name=name or f"farm {number}", geojson=feature, exclude=given.exclude)
        for number, name, feature in features
        if given.only is None or number in given.only
    ]


def _neighbours(entry: NeighboursSpec, number: int, types: Sequence[Any], document: Document) -> NeighboursSpec:
    with document.at("neighbours", number):
        x, y = entry.x_m, entry.y_m
        if entry.file is not None:
            table = numbers_in(shapes.path_in(document.folder, entry.file), "turbines", ("x_m", "y_m"))
            x, y = table["x_m"], table["y_m"]
        if x is None or y is None or len(x) != len(y):
            raise InputError(f"x_m has {len(x or [])} coordinates and y_m has {len(y or [])}; expected the same number")
        if isinstance(entry.turbine, int):
            known = {turbine.type_idx: turbine for turbine in types}
            if entry.turbine not in known:
                raise InputError(f"turbine is {entry.turbine}; expected one of the types {', '.join(map(str, known))}")
            turbine = known[entry.turbine]
        else:
            turbine = _turbine(entry.turbine, document.folder)
            turbine_of(turbine)
        turbine = turbine.model_copy(update={"type_idx": None})
        return entry.model_copy(update={"file": None, "x_m": x, "y_m": y, "turbine": turbine})


def complete_wake_model(given: dict[str, Any], document: Document) -> dict[str, Any]:
    """Return the name of a wake model and all of its options."""
    from leeward.wind.wake_models import known_wake_models, suggested_name, wake_model

    if ":" in given["name"]:
        return given  # reading a campaign does not import custom code, so its other options are unknown
    options = {key: value for key, value in given.items() if key != "name"}
    known = known_wake_models()
    if given["name"] not in known:
        meant = suggested_name(given["name"])
        hint = f"did you mean {meant}? Allowed: " if meant else "allowed: "
        raise document.error(("wake_model",), f"is {given['name']!r}; {hint}{', '.join(known)}")
    default = wake_model(given["name"])
    names = [option.name for option in fields(default)]  # type: ignore[arg-type]
    for option in options:
        if option not in names:
            hint = suggestion(option, names) if names else f"{given['name']} has no options"
            raise document.error(("wake_model", option), f"is not a known option of {given['name']}; {hint}")
    with document.at("wake_model"):
        for name in options:
            if isinstance(getattr(default, name), float):
                if isinstance(options[name], str):
                    raise InputError(f"has {name} = {options[name]!r}; expected a number")
                options[name] = float(options[name])
        model = type(default)(**options)
    return {"name": given["name"], **{name: getattr(model, name) for name in names}}


def _check_counts(spec: CampaignSpec, document: Document) -> None:
    """Raise InputError if the number of turbines of a farm is not given or is invalid."""
    for position, farm in enumerate(spec.farm_list):
        has_count = farm.n_turbines is not None or farm.capacity_mw is not None
        key = "capacity_mw" if spec.capacity_mw is not None else "turbines_per_farm"
        with document.at(*(farm_place(document, position) if has_count else (key,))):
            for turbine in spec.type_list:
                turbine_count(spec, farm, turbine)
