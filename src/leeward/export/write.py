"""From results to a file of another format, which appears whole or not at all."""

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
    """What is written. ending: of the file, in small letters. per, by_seed: as of `export_layouts`."""

    form: Format
    ending: str
    layouts: "Layouts"
    known_campaign: "Campaign | None" = None
    per: Per = "turbine"
    by_seed: bool = True

    @property
    def campaign(self) -> "Campaign":
        """The campaign, of a format that cannot do without one."""
        if self.known_campaign is None:
            where = self.layouts.path
            raise InputError(f"{where}: no campaign in it, and {self.form.name} needs one; name it with --campaign")
        return self.known_campaign

    @cached_property
    def plant(self) -> "Plant":
        """The only layout, of a format for one."""
        from leeward.export.plant import plant_of

        keys = list(self.layouts)
        if len(keys) > 1:
            raise InputError(
                f"{len(keys)} layouts were chosen ({', '.join(map(str, keys[:3]))}{', ...' if len(keys) > 3 else ''}); "
                f"expected one for {self.form.what}: name it with --key, or the farm and turbine type of which it is "
                "the best with --farm, --type and --best"
            )
        return plant_of(self.layouts[keys[0]], self.campaign)

    @property
    def crs(self) -> str:
        """The name of the coordinate system, from the campaign or the file; "" if nobody knows it."""
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
    """Write results to a file, which appears whole or not at all; how many layouts are in it.

    The ending of `output` says what it becomes; format_name: one of `FORMATS`, where an ending leaves that open.
    campaign: names, coordinate system, and what else the results do not know. per: of a table, what a row stands for.
    by_seed: of NetCDF, whether seeds are a dimension; False for one layout of each farm and type, with its seed beside.
    """
    form = format_of(output, format_name)
    check_output(output, [layouts.path])
    if not len(layouts):
        raise InputError(f"{layouts.path}: no results to export")
    _write_whole(output, Request(form, output.suffix.lower(), layouts, campaign, per, by_seed))
    return len(layouts)


def check_output(output: Path, sources: Sequence[Path]) -> None:
    """Refuse what must not be overwritten, and a run directory, in which only `leeward run` writes."""
    place = Path(os.path.realpath(output))
    for source in sources:
        if place == Path(os.path.realpath(source)):
            raise InputError(f"{output}: is what is read; expected another file to write to")
    demand_outside_runs(output)


def _write_whole(output: Path, request: Request) -> None:
    """Fill a file that gets its name when all of it is on the disk."""
    target = Path(os.path.realpath(output))
    try:
        remove_left_overs_of(target)  # of an export that was killed
        with Temporary(target) as temporary:
            with os.fdopen(os.dup(temporary.handle), "wb") as file:
                request.form.write(file, request)
            sync(temporary.handle)
            temporary.put_in_place()
        sync_folder(target.parent)
    except OSError as error:
        raise StorageError(f"{output}: cannot be written ({error}); nothing half-written is left") from error
