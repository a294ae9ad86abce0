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


def values_of(result: "Result", campaign: "Campaign | None") -> dict[str, Cell]:
    """Return the values of a layout by column name; unknown ones are empty or NaN.

    campaign: source of names and turbine data; it may lack the farm or the type of the layout.
    """
    key, installed = result.key, installed_of(campaign, result)
    values: dict[str, Cell] = {
        "key": str(key),
        **key._asdict(),
        **dict.fromkeys(("farm", "turbine_type", "crs"), ""),
        **dict.fromkeys(("hub_height_m", "rated_power_mw"), NOT_KNOWN),
        "rotor_diameter_m": float(result.rotor_diameter_m),
        "n_turbines": result.n_turbines,
        "aep_gwh": float(result.aep_gwh),
        "layout_aep_gwh": float(result.aep_gwh),
        "installed_mw": installed,
        "capacity_factor": capacity_factor(result.aep_gwh, installed),
        "steps": int(result.steps),
        **{name: _detail(result, name) for name in ("wake_loss", "min_spacing_m", "seconds")},
        **{name: getattr(result, name) for name in ("status", "origin", "stop_reason", "fingerprint")},
    }
    if campaign is not None:
        values |= {"farm": campaign.farms.get(key.farm_idx, ""), "crs": campaign.crs or ""}
        if key.type_idx in campaign.types:
            values["turbine_type"] = campaign.types[key.type_idx]
            values["hub_height_m"] = campaign.physics.hub_height_m(key.type_idx)
            values["rated_power_mw"] = campaign.physics.rated_power_mw(key.type_idx)
    return values


def columns_of(per: Per) -> tuple[Column, ...]:
    """Return the columns of a table with one row per turbine or per layout."""
    return TURBINE_COLUMNS if per == "turbine" else LAYOUT_COLUMNS


def rows_of(result: "Result", values: dict[str, Cell], per: Per) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of one layout: one per turbine, or a single one. values: from `values_of`."""
    cells = tuple(values.get(column.name) for column in columns_of(per))
    if per == "layout":
        yield cells
        return
    before, after = cells[: len(_NAMES)], cells[len(_NAMES) + 3 :]
    for turbine, (x, y) in enumerate(result.layout.T.tolist()):
        yield (*before, turbine, x, y, *after)


def layout_csv(result: "Result", campaign: "Campaign | None" = None) -> str:
    """Return one layout as CSV, a row per turbine. campaign: source of the names of farm and turbine type."""
    header = [column.name for column in TURBINE_COLUMNS]
    return csv_text(header, rows_of(result, values_of(result, campaign), "turbine"))


def _detail(result: "Result", name: str) -> float:
    value = result.details.get(name)
    # the minimum spacing of a single turbine is infinite
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else NOT_KNOWN
