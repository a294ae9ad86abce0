"""Wind farms of windIO plants, which may mix turbine types, unlike the layouts of a campaign."""

from typing import TYPE_CHECKING

from leeward.campaign.resolve import check_crs
from leeward.errors import InputError
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from leeward.wind.wake_models import wake_model

if TYPE_CHECKING:
    from leeward.readers.windio_plant import WindioPlant


def plant_farm(plant: "WindioPlant") -> WindFarm:
    """Return the wind farm of a plant: its first layout with its turbine types, and the others as neighbours."""
    if plant.crs is not None:
        try:
            check_crs(plant.crs)
        except InputError as error:
            raise InputError(f"{plant.path}: the crs {error}") from error
    turbines = [Turbine.from_settings(values) for values in plant.turbines]
    own, *others = plant.layouts
    machines = [turbines[kind] for kind in own.types]
    near = None
    if others:
        near = Neighbours(
            [x for layout in others for x in layout.x],
            [y for layout in others for y in layout.y],
            [turbines[kind] for layout in others for kind in layout.types],
        )
    options = {name: value for name, value in plant.wake_model.items() if name != "name"}
    try:
        model = type(wake_model(plant.wake_model["name"]))(**options)
        turbine = machines[0] if len(set(machines)) == 1 else machines
        return WindFarm(Site.from_settings(plant.wind), turbine, model, neighbours=near)
    except InputError as error:
        raise InputError(f"{plant.path}: {error}") from error
