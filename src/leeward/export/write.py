"""Write results to a file of another format, atomically."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.errors import InputError, StorageError
from leeward.export.registry import Format, format_of
from leeward.files import sync, sync_folder
from leeward.formats.rows import Per
from leeward.store import Temporary, demand_outside_runs, remove_left_overs_of

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.export.plant import Plant
    from leeward.store import Layouts


@dataclass(frozen=True)
class Request:
    """The input of a writer. ending: file extension in lower case. per, by_seed: see `export_layouts`."""

    form: Format
    ending: str
    layouts: "Layouts"
    known_campaign: "Campaign | None" = None
    per: Per = "turbine"
    by_seed: bool = True

    @property
    def campaign(self) -> "Campaign":
        """Return the campaign, or raise InputError if there is none."""
        if self.known_campaign is None:
            where = self.layouts.path
            raise InputError(f"{where}: has no campaign, but {self.form.name} needs one; name it with --campaign")
        return self.known_campaign

    @cached_property
    def plant(self) -> "Plant":
        """Return the only layout, or raise InputError if there are several."""
        from leeward.export.plant import plant_of

        keys = list(self.layouts)
        if len(keys) > 1:
            raise InputError(
                f"{len(keys)} layouts selected ({', '.join(map(str, keys[:3]))}{', ...' if len(keys) > 3 else ''}); "
                f"expected one for {self.form.what}: name it with --key, or select the best layout of one farm and "
                "turbine type with --farm, --type and --best"
            )
        return plant_of(self.layouts[keys[0]], self.campaign)

    @property
    def crs(self) -> str:
        """Return the name of the coordinate system, from the campaign or the file; "" if unknown."""
        if self.known_campaign is not None:
            return self.known_campaign.crs or ""
        return str(self.layouts.attributes.get("crs", ""))


def export_layouts(
    layouts: "Layouts",
    output: Path,
    campaign: "Campaign | None" = None,
    *,
    format_name: str | None = None,
    per: Per = "turbine",
    by_seed: bool = True,
) -> int:
    """Write results to a file atomically, and return the number of layouts written.

    The extension of `output` selects the format; format_name: one of `FORMATS`, if an extension has several.
    campaign: source of names and coordinate system. per: what a row of a table stands for. by_seed: in NetCDF, make
    seeds a dimension; False for one layout of each farm and type, with its seed as a variable.
    """
    form = format_of(output, format_name)
    check_output(output, [layouts.path])
    if not len(layouts):
        raise InputError(f"{layouts.path}: no results to export")
    _write_whole(output, Request(form, output.suffix.lower(), layouts, campaign, per, by_seed))
    return len(layouts)


def check_output(output: Path, sources: Sequence[Path]) -> None:
    """Raise InputError if the output is one of the sources or lies in a run directory."""
    place = Path(os.path.realpath(output))
    for source in sources:
        if place == Path(os.path.realpath(source)):
            raise InputError(f"{output}: is also the input; write to another file")
    demand_outside_runs(output)


def _write_whole(output: Path, request: Request) -> None:
    """Write a temporary file and rename it when all of it is on the disk."""
    target = Path(os.path.realpath(output))
    try:
        remove_left_overs_of(target)  # from a killed export
        with Temporary(target) as temporary:
            with os.fdopen(os.dup(temporary.handle), "wb") as file:
                request.form.write(file, request)
            sync(temporary.handle)
            temporary.put_in_place()
        sync_folder(target.parent)
    except OSError as error:
        raise StorageError(f"{output}: cannot be written ({error}); nothing half-written is left") from error
