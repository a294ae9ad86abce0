"""Layouts as rows of a table: the columns, their meanings, and the values of a result."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leeward.campaign.remarks import installed_of
from leeward.capacity import capacity_factor
from leeward.formats.tabular import csv_text

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.store import Result

Kind = Literal["text", "whole", "number"]
Per = Literal["turbine", "layout"]
Cell = str | int | float | None
NOT_KNOWN = math.nan


@dataclass(frozen=True)
class Column:
    """A column of a table. unit: "" for none, "1" for a fraction."""

    name: str
    kind: Kind
    unit: str
    meaning: str


_NAMES = (
    Column("key", "text", "", "name of the layout"),
    Column("farm_idx", "whole", "", "number of the farm"),
    Column("type_idx", "whole", "", "number of the turbine type"),
    Column("seed", "whole", "", "random seed"),
    Column("farm", "text", "", "name of the farm"),
    Column("turbine_type", "text", "", "name of the turbine type"),
)
_MACHINE = (
    Column("rotor_diameter_m", "number", "m", "rotor diameter"),
    Column("hub_height_m", "number", "m", "hub height"),
    Column("rated_power_mw", "number", "MW", "rated power of one turbine"),
)
_CAPACITY = (
    Column("installed_mw", "number", "MW", "installed power of the whole layout"),
    Column("capacity_factor", "number", "1", "AEP as a fraction of rated output all year (8760 h)"),
)
_CRS = Column("crs", "text", "", "coordinate system of x and y")
TURBINE_COLUMNS = (
    *_NAMES,
    Column("turbine", "whole", "", "number of the turbine in the layout, from 0"),
    Column("x_m", "number", "m", "easting"),
    Column("y_m", "number", "m", "northing"),
    _CRS,
    *_MACHINE,
    Column("layout_aep_gwh", "number", "GWh", "annual energy production of the whole layout"),
    *_CAPACITY,
)
LAYOUT_COLUMNS = (
    *_NAMES,
    Column("aep_gwh", "number", "GWh", "annual energy production of the layout"),
    *_CAPACITY,
    Column("wake_loss", "number", "1", "fraction of the gross yield lost to wakes"),
    Column("min_spacing_m", "number", "m", "distance between the closest two turbines; empty for one turbine"),
    Column("n_turbines", "whole", "", "number of turbines"),
    *_MACHINE,
    Column("steps", "whole", "", "steps of the optimiser"),
    Column("seconds", "number", "s", "computing time"),
    Column("status", "text", "", "success, or no-aep if the AEP is unknown"),
    Column("origin", "text", "", "leeward, or foreign for a layout of another program"),
    Column("stop_reason", "text", "", "why the optimiser stopped"),
    Column("fingerprint", "text", "", "SHA-256 of all settings that the numbers depend on"),
    _CRS,
)


@dataclass(frozen=True)
class Description:
    """The farm and turbine type of a layout according to its campaign; unknown values are empty or NaN."""

    farm: str = ""
    turbine_type: str = ""
    crs: str = ""
    hub_height_m: float = NOT_KNOWN
    rated_power_mw: float = NOT_KNOWN
    installed_mw: float = NOT_KNOWN


def description(result: "Result", campaign: "Campaign | None") -> Description:
    """Return the description of a result, whose farm or type the campaign may not have (any more)."""
    installed = installed_of(campaign, result)
    if campaign is None:
        return Description(installed_mw=installed)
    key = result.key
    farm, kind = campaign.farms.get(key.farm_idx), campaign.types.get(key.type_idx)
    crs = campaign.crs or ""
    if kind is None:
        return Description(farm or "", "", crs, installed_mw=installed)
    hub_height = campaign.physics.hub_height_m(key.type_idx)
    return Description(farm or "", kind, crs, hub_height, campaign.physics.rated_power_mw(key.type_idx), installed)


def columns_of(per: Per) -> tuple[Column, ...]:
    """Return the columns of a table with one row per turbine or per layout."""
    return TURBINE_COLUMNS if per == "turbine" else LAYOUT_COLUMNS


def rows_of(result: "Result", about: Description, per: Per) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of one layout, in the order of the columns: one per turbine, or a single one."""
    names = (str(result.key), *result.key, about.farm, about.turbine_type)
    machine = (float(result.diameter), about.hub_height_m, about.rated_power_mw)
    energy = (float(result.aep), about.installed_mw, capacity_factor(result.aep, about.installed_mw))
    if per == "turbine":
        for turbine, (x, y) in enumerate(result.layout.T.tolist()):
            yield (*names, turbine, x, y, about.crs, *machine, *energy)
        return
    yield (
        *names,
        *energy,
        *(_detail(result, name) for name in ("wake_loss", "min_spacing_m")),
        result.n_turbines,
        *machine,
        int(result.steps),
        _detail(result, "seconds"),
        *(result.status, result.origin, result.stop_reason, result.fingerprint),
        about.crs,
    )


def layout_csv(result: "Result", campaign: "Campaign | None" = None) -> str:
    """Return one layout as CSV, a row per turbine. campaign: source of the names of farm and turbine type."""
    header = [column.name for column in TURBINE_COLUMNS]
    return csv_text(header, rows_of(result, description(result, campaign), "turbine"))


def _detail(result: "Result", name: str) -> float:
    value = result.details.get(name)
    # the minimum spacing of a single turbine is infinite
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else NOT_KNOWN
