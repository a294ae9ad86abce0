"""`leeward aep`: what a layout yields."""

from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.options import HubHeight, RatedPower, RotorDiameter, SiteFile, WakeModelName
from leeward.cli.tables import read_layout


def aep(
    layout: Annotated[
        Path | None, typer.Argument(help="CSV file with the columns x_m and y_m. Without it: a built-in example.")
    ] = None,
    site: SiteFile = None,
    rated_power_mw: RatedPower = 15.0,
    rotor_diameter_m: RotorDiameter = 240.0,
    hub_height_m: HubHeight = 150.0,
    wake_model: WakeModelName = "nygaard_2022",
) -> None:
    """Print the annual energy production and the wake loss of a layout.

    Exit codes: 0 printed; 1 errors; 2 wrong use.
    """
    from leeward.campaign import builtin
    from leeward.wind import Site, Turbine, WindFarm

    turbine = Turbine.generic(rated_power_mw, rotor_diameter_m, hub_height_m)
    if layout is None:
        name, _, x, y = builtin.example_layout()
        title = f"{name} (built-in example layout)"
    else:
        x, y = read_layout(layout)
        title = str(layout)
    wind = builtin.site() if site is None else Site.from_netcdf(site)
    simulation = WindFarm(wind, turbine, wake_model).simulate(x, y)

    loss = simulation.wake_loss
    worst, best = int(loss.argmax()), int(loss.argmin())
    print(title)
    print(f"  turbines        {len(loss):10d}  x {turbine.rated_power_mw:g} MW, rotor {turbine.rotor_diameter_m:g} m")
    print(f"  wake model      {wake_model:>10}")
    print(f"  AEP             {simulation.total_aep_gwh:10.2f}  GWh")
    print(f"  without wakes   {simulation.free_aep_gwh.sum():10.2f}  GWh")
    print(f"  wake loss       {simulation.total_wake_loss:z10.2%}")
    print(f"  per turbine     {loss[best]:z10.2%}  (turbine {best}) to {loss[worst]:z.2%} (turbine {worst})")
