"""Wind farms of windIO plants, which may mix turbine types, unlike the layouts of a campaign."""

from typing import TYPE_CHECKING, Any

from leeward.campaign.resolve import check_crs
from leeward.errors import InputError
from leeward.wind import Neighbours, Site, Turbine, WindFarm
from leeward.wind.field_dataset import FieldOptions
from leeward.wind.site import DEFAULT_TURBULENCE, NO_TURBULENCE, site_of_data
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
        return WindFarm(plant_site(plant), turbine, model, neighbours=near)
    except InputError as error:
        raise InputError(f"{plant.path}: {error}") from error


def plant_site(plant: "WindioPlant") -> Site:
    """Return the wind of a plant."""
    return site_of_data(plant.wind._replace(notes=[]), plant.path.name, FieldOptions(crs=plant.crs))


def plant_remarks(plant: "WindioPlant") -> list[str]:
    """Return how a plant is read as a campaign."""
    return plant.campaign_remarks + ([] if plant.wind.has_turbulence else [f"wind: {NO_TURBULENCE}"])


def plant_campaign(plant: "WindioPlant") -> dict[str, Any]:
    """Return a plant as the data of a campaign file."""
    wind = plant.wind
    if wind.grid is not None:
        return plant.campaign(plant_site(plant).settings())
    form = "weibull" if "weibull_k" in wind.settings else "table" if "probability" in wind.settings else "time_series"
    shear = {"shear": dict(wind.shear)} if wind.shear else {}
    return plant.campaign({form: {"turbulence_intensity": DEFAULT_TURBULENCE, **wind.settings}, **shear})
