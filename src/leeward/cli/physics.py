"""Wind, turbines and wake model from the options of `leeward aep` and `leeward optimise`."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Option

from leeward.cli.options import Options
from leeward.cli.sources import given_campaign
from leeward.errors import InputError
from leeward.wording import listed

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.formats.layout_table import TableLayout
    from leeward.wind import Turbine, WindFarm

GENERIC = (15.0, 240.0, 150.0)  # rated power, MW; rotor diameter, m; hub height, m
WAKE_MODEL = "nygaard_2022"
BUILT_IN_WIND = "of the built-in campaign, danish-energy-island (choose another with --site or --campaign)"
LENGTH_TOLERANCE = 1e-6  # relative
POWER_TOLERANCE = 0.005  # a turbine's power curve may end a little below its rated power
WAYS_OUT = "--campaign FILE; or --turbine FILE; or --rated-power-mw, --rotor-diameter-m and --hub-height-m"


class PhysicsOptions(Options):
    """Sources of wind, turbines and wake model."""

    campaign: str | None = Option(
        None,
        "--campaign",
        metavar="FILE",
        help="Take turbines, site, wake model and neighbours from a campaign: its file, the name of a built-in "
        "campaign, or a run directory or layouts.h5. Other options override it.",
    )
    turbine_type: str | None = Option(
        None, "--type", help="Turbine type of the campaign, by number or name, if the layout does not state it."
    )
    turbine: Path | None = Option(
        None,
        "--turbine",
        metavar="FILE",
        help="Turbine: a CSV file with the columns wind_speed_m_s, power_mw and thrust_coefficient, together with "
        "--rotor-diameter-m and --hub-height-m; or a YAML file with the keys of a turbine in a campaign.",
    )
    rated_power_mw: float | None = Option(None, help="Rated power of the generic turbine, MW. Default: 15.")
    rotor_diameter_m: float | None = Option(None, help="Rotor diameter of the turbine, m. Default: 240.")
    hub_height_m: float | None = Option(None, help="Hub height of the turbine, m. Default: 150.")
    site: Path | None = Option(
        None, help="Site file in PyWake's format (NetCDF). Default: the campaign's site, or the built-in one."
    )
    wake_model: str | None = Option(None, help="Name of the wake model. Default: the campaign's, or nygaard_2022.")

    @property
    def figures(self) -> tuple[float | None, float | None, float | None]:
        """Return rated power (MW), rotor diameter (m) and hub height (m); None for those not given."""
        return self.rated_power_mw, self.rotor_diameter_m, self.hub_height_m


@dataclass(frozen=True)
class Machine:
    """A wind farm of one turbine type.

    rated_power_mw: as given; the power curve of a generic turbine ends below it. wind: the source of the wind, for the
    user. choice: a note if the turbine is the default one, else "".
    """

    farm: "WindFarm"
    turbine: "Turbine"
    rated_power_mw: float
    type_idx: int | None = None
    wind: str = ""
    choice: str = ""


class Physics:
    """Wind farms from the options of a command, completed from the campaign.

    turbine: that of --turbine or of the generic options; None if each layout uses that of its type.
    """

    def __init__(self, options: PhysicsOptions) -> None:
        from leeward.wind import Site

        campaign, file = options.campaign, options.turbine
        is_generic = any(value is not None for value in options.figures)
        if options.turbine_type is not None and campaign is None:
            raise InputError("--type names a turbine type of a campaign; give --campaign too")
        if campaign is not None and file is None and is_generic:
            raise InputError(
                "--rated-power-mw, --rotor-diameter-m and --hub-height-m define a generic turbine, but --campaign has "
                "turbines; give one or the other, not both"
            )
        self._options = options
        self.campaign: Campaign | None = given_campaign(campaign)
        self.turbine = None if campaign is not None and file is None else _turbine(file, options.figures)
        self._rated = options.rated_power_mw or (GENERIC[0] if file is None else None)
        self._site = None if options.site is None else Site.from_netcdf(options.site)
        self._wind = str(options.site or (BUILT_IN_WIND if campaign is None else f"of {campaign}"))
        is_default = campaign is None and file is None and not is_generic
        self._choice = " (the default turbine; choose another with --turbine or --campaign)" if is_default else ""
        self._made: dict[int | None, Machine] = {}

    def machine_of(self, layout: "TableLayout | None", where: str) -> Machine:
        """Return the wind farm for a layout, or raise InputError if the file contradicts it. where: the file."""
        type_idx = None if self.turbine is not None else self._type_of(layout, where)
        if type_idx not in self._made:
            self._made[type_idx] = self._make(type_idx)
        machine = self._made[type_idx]
        if layout is not None:
            _demand_same(layout, machine, where)
            crs = None if self.campaign is None else self.campaign.crs
            if crs and layout.crs and layout.crs != crs:
                raise InputError(
                    f"{where}: {_named(layout)} is in {layout.crs}, but the campaign in {crs}; use the same coordinate "
                    "system, otherwise neighbours would be in the wrong place"
                )
        return machine

    def demand_one_type(self, layouts: "list[TableLayout]", where: str) -> None:
        """Raise InputError for layouts of several turbine types if there is only one turbine."""
        types = list(dict.fromkeys((layout.type_idx, layout.turbine_type) for layout in layouts))
        if self.turbine is not None and len(types) > 1:
            names = listed([text if number is None else number for number, text in types])
            raise InputError(
                f"{where}: has layouts of the turbine types {names}, but only one turbine is given; use --campaign "
                "FILE, which has the turbine of each type"
            )

    def _make(self, type_idx: int | None) -> Machine:
        from leeward.campaign import builtin
        from leeward.wind import WindFarm

        campaign, turbine = self.campaign, self.turbine
        if campaign is not None and type_idx is not None:
            farm = campaign.physics.wind_farm(type_idx, site=self._site, wake_model=self._options.wake_model)
            return Machine(
                farm,
                campaign.physics.turbine(type_idx),
                campaign.physics.rated_power_mw(type_idx),
                type_idx,
                self._wind,
            )
        if turbine is None:
            raise TypeError("neither a type of a campaign nor a turbine")
        if campaign is not None:
            some = next(iter(campaign.types))
            farm = campaign.physics.wind_farm(
                some, site=self._site, turbine=turbine, wake_model=self._options.wake_model
            )
        else:
            wind = builtin.site() if self._site is None else self._site
            farm = WindFarm(wind, turbine, self._options.wake_model or WAKE_MODEL)
        return Machine(farm, turbine, self._rated or turbine.rated_power_mw, wind=self._wind, choice=self._choice)

    def _type_of(self, layout: "TableLayout | None", where: str) -> int:
        """Return the type_idx of a layout: from its file, else from --type, else the only one of the campaign."""
        from leeward.campaign.selection import Word, type_of, word_of

        campaign = self.campaign
        if campaign is None:
            raise TypeError("no campaign")
        stated = None if layout is None else layout.type_idx
        if stated is None and layout is not None and layout.turbine_type:
            stated = type_of(Word(layout.turbine_type, True), lambda: campaign)
        option = self._options.turbine_type
        chosen = None if option is None else type_of(word_of(option), lambda: campaign)
        if stated is not None and chosen is not None and stated != chosen:
            raise InputError(f"{where}: {_named(layout)} is of type {stated}, but --type is {chosen}; omit --type")
        found = stated if stated is not None else chosen
        if found is None and len(campaign.types) == 1:
            found = next(iter(campaign.types))
        types = listed([f"{number} {name!r:.40}" for number, name in campaign.types.items()], 10)
        if found is None:
            raise InputError(f"{where}: the turbine type is not known; choose one with --type: {types}")
        if found not in campaign.types:
            raise InputError(f"{where}: {_named(layout)} is of type {found}, but {campaign.name} has the types {types}")
        return found


def _turbine(file: Path | None, figures: tuple[float | None, float | None, float | None]) -> "Turbine":
    from leeward.wind import Turbine

    rated, diameter, height = figures
    if file is None:
        pairs = zip(figures, GENERIC, strict=True)
        return Turbine.generic(*(usual if given is None else given for given, usual in pairs))
    from leeward.campaign.resolve import turbine_from_file

    if rated is not None:
        raise InputError(f"--rated-power-mw is given, but {file} has a power curve; give one or the other, not both")
    if file.suffix.lower() == ".csv" and (diameter is None or height is None):
        raise InputError(f"{file}: has only the curves; give --rotor-diameter-m and --hub-height-m too")
    return turbine_from_file(file, diameter, height)


def _named(layout: "TableLayout | None") -> str:
    return (layout.name if layout is not None else "") or "the layout"


def _demand_same(layout: "TableLayout", machine: Machine, where: str) -> None:
    """Raise InputError if the file states other turbines for the layout."""
    turbine = machine.turbine
    for column, stated, used, tolerance in (
        ("rotor_diameter_m", layout.rotor_diameter_m, turbine.rotor_diameter_m, LENGTH_TOLERANCE),
        ("hub_height_m", layout.hub_height_m, turbine.hub_height_m, LENGTH_TOLERANCE),
        ("rated_power_mw", layout.rated_power_mw, machine.rated_power_mw, POWER_TOLERANCE),
    ):
        if stated is not None and not math.isclose(stated, used, rel_tol=tolerance):
            raise InputError(
                f"{where}: {column} of {_named(layout)} is {stated:g}, but that of the turbine {turbine.name!r:.40} is "
                f"{used:g}; give the right turbine: {WAYS_OUT}"
            )
