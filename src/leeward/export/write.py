"""From results to a file of another format."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from leeward.errors import InputError
from leeward.export.target import Format, check_output, format_of, write_whole
from leeward.formats.rows import Per

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.store import Layouts

Write = Callable[[BinaryIO], None]


def export_layouts(
    layouts: "Layouts",
    output: Path,
    campaign: "Campaign | None" = None,
    *,
    format_name: str | None = None,
    per: Per = "turbine",
    by_seed: bool = True,
) -> int:
    """Write results to a file, which appears whole or not at all; how many layouts are in it.

    The ending of `output` says what it becomes; format_name: one of `FORMATS`, where an ending leaves that open.
    campaign: names, coordinate system, and what else the results do not know. per: of a table, what a row stands for.
    by_seed: of NetCDF, whether seeds are a dimension; False for one layout of each farm and type, with its seed beside.
    """
    form = format_of(output, format_name)
    check_output(output, [layouts.path])
    if not len(layouts):
        raise InputError(f"{layouts.path}: no results to export")
    write_whole(output, _writer(form, output, layouts, campaign, per, by_seed))
    return len(layouts)


def _writer(
    form: Format, output: Path, layouts: "Layouts", campaign: "Campaign | None", per: Per, by_seed: bool
) -> Write:
    """What fills the file. All that can be refused is refused here, before there is one."""
    if form.name in ("csv", "parquet"):
        from leeward.export import tables

        if form.name == "csv":
            return partial(tables.write_csv, layouts=layouts, campaign=campaign, per=per)
        tables.demand_pyarrow()
        return partial(tables.write_parquet, layouts=layouts, campaign=campaign, per=per)
    if form.name == "netcdf":
        from leeward.export.netcdf import write_netcdf

        return partial(write_netcdf, layouts=layouts, campaign=campaign, by_seed=by_seed)
    if campaign is None:
        raise InputError(f"{layouts.path}: no campaign in it, and {form.name} needs one; name it with --campaign")
    if form.name == "geojson":
        from leeward.export.maps import write_geojson

        return partial(write_geojson, layouts=layouts, campaign=campaign)
    return _plant_writer(form, output, layouts, campaign)


def _plant_writer(form: Format, output: Path, layouts: "Layouts", campaign: "Campaign") -> Write:
    from leeward.export import arrays, floris, windio
    from leeward.export.plant import only_plant

    plant = only_plant(layouts, campaign, form.what)
    if form.name == "arrays":
        return partial(arrays.write_npz if output.suffix.lower() == ".npz" else arrays.write_json, plant=plant)
    return partial({"windio": windio.write_windio, "floris": floris.write_floris}[form.name], plant=plant)
