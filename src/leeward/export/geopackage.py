"""Export layouts as a GeoPackage for GIS programs: areas, turbines and neighbours, in the campaign's coordinates."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from leeward.errors import InputError
from leeward.formats.geojson import demanded_crs
from leeward.formats.rows import TURBINE_COLUMNS, rows_of, values_of

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.export.write import Request

TYPES: dict[str, Any] = {"text": object, "whole": np.int64, "number": np.float64}


def geopackage_pieces(request: "Request") -> Iterator[bytes]:
    """Yield the whole file. GDAL writes it to a temporary folder first."""
    try:
        import pyogrio
    except ImportError as error:
        raise InputError("a GeoPackage needs pyogrio, which is not installed: pip install 'leeward[gis]'") from error
    campaign = request.campaign
    crs = demanded_crs(campaign)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layouts.gpkg"
        for layer, geometry, kind, columns in _layers(request, campaign):
            pyogrio.raw.write(
                path,
                shapely.to_wkb(geometry),
                list(columns.values()),
                list(columns),
                layer=layer,
                driver="GPKG",
                geometry_type=kind,
                crs=crs,
                append=path.exists(),
            )
        yield path.read_bytes()


def _layers(request: "Request", campaign: "Campaign") -> Iterator[tuple[str, Any, str, dict[str, Any]]]:
    """Yield name, geometries, type and columns of each layer."""
    farms = sorted({key.farm_idx for key in request.layouts} & set(campaign.farms))
    areas = [campaign.physics.area(farm) for farm in farms]
    yield (
        "areas",
        np.array([shapely.MultiPolygon(list(shapely.get_parts(area.to_shapely()))) for area in areas], dtype=object),
        "MultiPolygon",
        {
            "farm_idx": np.array(farms, dtype=np.int64),
            "name": np.array([campaign.farms[farm] for farm in farms], dtype=object),
            "area_km2": np.array([area.area_m2 / 1e6 for area in areas]),
        },
    )
    results = request.layouts.results()
    rows = [row for result in results for row in rows_of(result, values_of(result, campaign), "turbine")]
    columns = {
        column.name: np.array([row[place] for row in rows], dtype=TYPES[column.kind])
        for place, column in enumerate(TURBINE_COLUMNS)
        if column.name != "crs"
    }
    yield "turbines", shapely.points(columns["x_m"], columns["y_m"]), "Point", columns
    groups = [group for group in campaign.neighbours if group.x_m]
    if groups:
        yield "neighbours", *_neighbours(groups)


def _neighbours(groups: Sequence[Any]) -> tuple[Any, str, dict[str, Any]]:
    counts = [len(group.x_m) for group in groups]
    x, y = (np.concatenate([getattr(group, axis) for group in groups]) for axis in ("x_m", "y_m"))
    names = ("rotor_diameter_m", "hub_height_m", "rated_power_mw")
    figures = {name: [float(getattr(group.turbine, name)) for group in groups] for name in names}
    types = np.array([group.turbine.name or "" for group in groups], dtype=object)
    return (
        shapely.points(x, y),
        "Point",
        {
            "turbine_type": np.repeat(types, counts),
            "x_m": x,
            "y_m": y,
            **{name: np.repeat(values, counts) for name, values in figures.items()},
        },
    )
