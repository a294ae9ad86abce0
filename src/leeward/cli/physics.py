"""Wind, turbines and wake model from the options of `leeward aep` and `leeward optimise`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leeward.campaign import Campaign, builtin
from leeward.campaign.selection import Word, type_of, word_of
from leeward.cli.options import PhysicsOptions
from leeward.cli.sources import given_campaign
from leeward.errors import InputError
from leeward.formats.layout_table import TableLayout
from leeward.wind import Site, Turbine, WindFarm
from leeward.wind.field_data import check_same_crs
from leeward.wording import listed

GENERIC = {"rated_power_mw": 15.0, "rotor_diameter_m": 240.0, "hub_height_m": 150.0}
WAKE_MODEL = "nygaard_2022"
BUILT_IN_WIND = "of the built-in campaign, danish-energy-island (choose another with --site or --campaign)"
LENGTH_TOLERANCE = 1e-6  # largest relative difference between stated and actual lengths
POWER_TOLERANCE = 0.005  # relative; a power curve may end a little below the rated power
TURBINE_OPTIONS = "--campaign FILE; or --turbine FILE; or --rated-power-mw, --rotor-diameter-m and --hub-height-m"


@dataclass(frozen=True)
class Machine:
    """A wind farm of one turbine type.

    rated_power_mw: as given; the power curve of a generic turbine ends below it. type_idx: None for a turbine that is
    not in the campaign.
    """

    farm: WindFarm
    turbine: Turbine
    rated_power_mw: float
    type_idx: int | None


class Physics:
    """Make wind farms from the options of a command and from its campaign.

    wind: a description of the source of the wind. choice: a note if the turbine is the default one, else "". notes: how
    campaign and wind were read.
    """

    def __init__(self, options: PhysicsOptions) -> None:
        campaign, file = options.campaign, options.turbine
        is_generic = any(getattr(options, name) is not None for name in GENERIC)
        if options.turbine_type is not None and campaign is None:
            raise InputError("--type is given without --campaign; give both")
        if campaign is not None and file is None and is_generic:
            raise InputError(
                "--rated-power-mw, --rotor-diameter-m and --hub-height-m define a generic turbine, but --campaign has "
                "turbines; give one or the other, not both"
            )
        self._options = options
        self.campaign = given_campaign(campaign)
        self._site = None if options.site is None else Site.from_file(options.site)
        remarks = () if self.campaign is None else self.campaign.remarks
        self.notes = [*remarks, *(() if self._site is None else self._site.notes)]
        self._machines: dict[int, Machine] = {}  # by type_idx
        self._source = self._turbine_source()
        self.wind = str(options.site or (BUILT_IN_WIND if campaign is None else f"of {campaign}"))
        is_default = campaign is None and file is None and not is_generic
        self.choice = " (the default turbine; choose another with --turbine or --campaign)" if is_default else ""

    def machine_of(self, layout: TableLayout | None, where: str) -> Machine:
        """Return the wind farm of a layout, or raise InputError if the file contradicts it. where: the file."""
        source, campaign = self._source, self.campaign
        machine = source if isinstance(source, Machine) else self._machine(source, self._type_of(source, layout, where))
        if layout is not None:
            _demand_same(layout, machine, where)
            try:
                check_same_crs(machine.farm.site.crs, layout.crs or (None if campaign is None else campaign.crs))
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
            if campaign is not None and campaign.crs and layout.crs and layout.crs != campaign.crs:
                raise InputError(
                    f"{where}: {_named(layout)} is in {layout.crs}, but the campaign is in {campaign.crs}; convert "
                    "the layout, because neighbours would be in the wrong place otherwise"
                )
        return machine

    def demand_one_type(self, layouts: Sequence[TableLayout], where: str) -> None:
        """Raise InputError for layouts of several turbine types if there is only one turbine."""
        types = list(dict.fromkeys((layout.type_idx, layout.turbine_type) for layout in layouts))
        if isinstance(self._source, Machine) and len(types) > 1:
            names = listed([text if number is None else number for number, text in types])
            raise InputError(
                f"{where}: has layouts of the turbine types {names}, but only one turbine is given; use --campaign "
                "FILE, which has the turbine of each type"
            )

    def _turbine_source(self) -> Machine | Campaign:
        """Return the campaign if it has the turbines; else the wind farm of --turbine or of the generic turbine."""
        options, campaign = self._options, self.campaign
        if campaign is not None and options.turbine is None:
            return campaign
        turbine = _turbine(options)
        if campaign is None:
            farm = WindFarm(self._site or builtin.site(), turbine, options.wake_model or WAKE_MODEL)
        else:
            some = next(iter(campaign.types))
            farm = campaign.physics.wind_farm(some, site=self._site, turbine=turbine, wake_model=options.wake_model)
        generic_mw = options.rated_power_mw or GENERIC["rated_power_mw"]
        return Machine(farm, turbine, generic_mw if options.turbine is None else turbine.rated_power_mw, None)

    def _machine(self, campaign: Campaign, type_idx: int) -> Machine:
        """Return the wind farm of a turbine type of the campaign."""
        if type_idx not in self._machines:
            physics = campaign.physics
            farm = physics.wind_farm(type_idx, site=self._site, wake_model=self._options.wake_model)
            machine = Machine(farm, physics.turbine(type_idx), physics.rated_power_mw(type_idx), type_idx)
            self._machines[type_idx] = machine
        return self._machines[type_idx]

    def _type_of(self, campaign: Campaign, layout: TableLayout | None, where: str) -> int:
        """Return the type_idx of a layout: from its file, else from --type, else the only one of the campaign."""
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
            raise InputError(
                f"{where}: {_named(layout)} is of type {found}, but {campaign.name} has the types {types}; give the "
                "campaign of the layout with --campaign"
            )
        return found


def _turbine(options: PhysicsOptions) -> Turbine:
    """Return the turbine of --turbine, or the generic one."""
    file, diameter, height = options.turbine, options.rotor_diameter_m, options.hub_height_m
    if file is None:
        given = {name: getattr(options, name) for name in GENERIC}
        return Turbine.generic(*(GENERIC[name] if value is None else value for name, value in given.items()))
    if options.rated_power_mw is not None:
        raise InputError(f"--rated-power-mw is given, but {file} has a power curve; give one or the other, not both")
    if file.suffix.lower() == ".csv" and (diameter is None or height is None):
        raise InputError(f"{file}: has only the curves; give --rotor-diameter-m and --hub-height-m too")
    return Turbine.from_file(
        file,
        rotor_diameter_m=diameter,
        hub_height_m=height,
        power_unit=options.power_unit,
        mode=options.turbine_mode,
    )


def _named(layout: TableLayout | None) -> str:
    return (layout.name if layout is not None else "") or "the layout"


def _demand_same(layout: TableLayout, machine: Machine, where: str) -> None:
    """Raise InputError if the file states different turbine data for the layout."""
    turbine = machine.turbine
    for column, stated, used, tolerance in (
        ("rotor_diameter_m", layout.rotor_diameter_m, turbine.rotor_diameter_m, LENGTH_TOLERANCE),
        ("hub_height_m", layout.hub_height_m, turbine.hub_height_m, LENGTH_TOLERANCE),
        ("rated_power_mw", layout.rated_power_mw, machine.rated_power_mw, POWER_TOLERANCE),
    ):
        if stated is not None and not math.isclose(stated, used, rel_tol=tolerance):
            raise InputError(
                f"{where}: {column} of {_named(layout)} is {stated:g}, but that of the turbine {turbine.name!r:.40} is "
                f"{used:g}; give the right turbine: {TURBINE_OPTIONS}"
            )
