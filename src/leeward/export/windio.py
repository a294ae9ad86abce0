"""Export one layout as a windIO plant: a `wind_energy_system` of the windIO 2 schema."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from leeward import __version__
from leeward.errors import InputError
from leeward.export.plant import Plant, yaml_bytes
from leeward.export.windio_wind import energy_resource, run_configuration
from leeward.peers.setup import curve_points
from leeward.wind.wake_models import WakeModel
from leeward.wind.wake_models.bastankhah_gaussian import BastankhahGaussian
from leeward.wind.wake_models.jensen import Jensen
from leeward.wind.wake_models.nygaard_2022 import Nygaard2022
from leeward.wording import printable

if TYPE_CHECKING:
    from leeward.export.write import Request
    from leeward.layout import LayoutProblem, Solution
    from leeward.readers.windio_plant import WindioPlant
    from leeward.wind import Turbine

DEFICITS = {
    "nygaard_2022": "TurbOPark",
    "jensen": "Jensen",
    "bastankhah_gaussian": "Bastankhah2014",
    "iea37_gaussian": "Bastankhah2014",
}


def windio_pieces(request: "Request") -> Iterator[bytes]:
    """Yield the plant as one self-contained file."""
    yield yaml_bytes(_comments(request.plant), windio_plant(request.plant))


def optimised_plant(plant: "WindioPlant", problem: "LayoutProblem", solution: "Solution") -> bytes:
    """Return the file of a windIO plant whose first layout has the positions of a solution."""
    data = plant.with_layout(solution.x.tolist(), solution.y.tolist())
    comments = [
        f"{printable(plant.path.name)} with the layout that leeward {__version__} found",
        f"annual energy production: {solution.aep_gwh!r} GWh; wake loss {solution.wake_loss:.2%}",
        f"wake model: {_described(problem.farm.wake_model)}",
    ]
    return yaml_bytes(comments, data)


def problem_plant(problem: "LayoutProblem", solution: "Solution", title: str) -> bytes:
    """Return the file of a windIO plant made from a layout problem and its solution."""
    turbine = problem.turbines[0]
    plant = Plant(
        farm=problem.farm,
        x=solution.x,
        y=solution.y,
        key="",
        campaign=title,
        farm_name=title,
        crs=problem.area.crs or "",
        fingerprint="",
        aep_gwh=solution.aep_gwh,
        installed_mw=problem.n_turbines * turbine.rated_power_mw,
        area=problem.area,
        spacing_m=float(problem.min_distances_m[0]),
    )
    comments = [f"{title}: a layout that leeward {__version__} found", *_comments(plant)[1:]]
    return yaml_bytes(comments, windio_plant(plant))


def windio_plant(plant: Plant) -> dict[str, Any]:
    """Return the plant as a dict: name, site, wind farm, and the method of the AEP."""
    name = ", ".join(dict.fromkeys(filter(None, (plant.campaign, plant.farm_name, plant.key))))
    return {
        "name": name,
        "site": {"name": plant.farm_name, **_boundaries(plant), "energy_resource": energy_resource(plant)},
        "wind_farm": {"name": name, **_farm(plant)},
        "attributes": {
            "flow_model": {"name": "leeward"},
            "analysis": _analysis(plant),
            "model_outputs_specification": {"run_configuration": run_configuration(plant)},
        },
        "optimisation": {"constraints": {"minimum_spacing": {"radius": plant.spacing_m}}},
    }


def _comments(plant: Plant) -> list[str]:
    known = [f"{plant.key} of the campaign {plant.campaign}, as a windIO plant; written by leeward {__version__}"]
    known += [f"annual energy production: {plant.energy_words}"]
    known += [f"wake model: {_described(plant.wake_model)}"]
    known += [f"fingerprint: {plant.fingerprint}"] if plant.fingerprint else []
    if len(plant.neighbour_x):
        known.append("the second layout holds the neighbours: their wakes count, their energy does not")
    return known


def _described(model: WakeModel) -> str:
    """Return name and options of a wake model; the schema has words for some of them only."""
    options = ", ".join(f"{name} {value}" for name, value in vars(model).items())
    return f"{model.name} ({options})" if options else model.name


def _coordinates(x: Any, y: Any, crs: str) -> dict[str, Any]:
    named = {"crs": crs} if crs else {}
    return {"x": np.asarray(x).tolist(), "y": np.asarray(y).tolist(), **named}


def _boundaries(plant: Plant) -> dict[str, Any]:
    """Return outlines, with holes as exclusions. Curves become polygons with many corners."""

    def polygon(ring: Any) -> dict[str, Any]:
        x, y = shapely.get_coordinates(ring)[:-1].T
        return _coordinates(x, y, plant.crs)

    pieces = shapely.get_parts(plant.area.to_shapely())
    holes = [polygon(hole) for piece in pieces for hole in piece.interiors]
    filled = [shapely.Polygon(hole) for piece in pieces for hole in piece.interiors]
    if any(hole.contains(piece) for hole in filled for piece in pieces):
        raise InputError(f"{plant.farm_name}: its area has an island in a hole, which windIO cannot express")
    found: dict[str, Any] = {"boundaries": {"polygons": [polygon(piece.exterior) for piece in pieces]}}
    return {**found, "exclusions": {"polygons": holes}} if holes else found


def _farm(plant: Plant) -> dict[str, Any]:
    own = _coordinates(plant.x, plant.y, plant.crs)
    if not len(plant.neighbour_x):
        return {"layouts": {"coordinates": own}, "turbines": _turbine(plant.turbines[0])}
    neighbours = _coordinates(plant.neighbour_x, plant.neighbour_y, plant.crs)
    return {
        "layouts": [
            {"coordinates": own, "turbine_types": [0] * len(plant.x)},
            {"coordinates": neighbours, "turbine_types": list(plant.neighbour_types)},
        ],
        "turbine_types": {number: _turbine(turbine) for number, turbine in enumerate(plant.turbines)},
    }


def _turbine(turbine: "Turbine") -> dict[str, Any]:
    speeds, power, thrust = (values.tolist() for values in curve_points(turbine))
    return {
        "name": turbine.name,
        "performance": {
            "rated_power": turbine.rated_power_mw * 1e6,
            "power_curve": {"power_values": [1e6 * value for value in power], "power_wind_speeds": speeds},
            "Ct_curve": {"Ct_values": thrust, "Ct_wind_speeds": speeds},
        },
        "hub_height": turbine.hub_height_m,
        "rotor_diameter": turbine.rotor_diameter_m,
    }


def _analysis(plant: Plant) -> dict[str, Any]:
    """Return the wake model as far as the schema can express it; the comments at the top are complete."""
    model = plant.wake_model
    if model.name not in DEFICITS:
        return {}
    deficit: dict[str, Any] = {"name": DEFICITS[model.name]}
    if isinstance(model, Jensen | BastankhahGaussian | Nygaard2022):
        deficit["wake_expansion_coefficient"] = {"k_a": model.expansion, "k_b": 0.0}
    found: dict[str, Any] = {"wind_deficit_model": deficit}
    if isinstance(model, BastankhahGaussian | Nygaard2022):
        deficit["ceps"] = model.initial_width
    if isinstance(model, BastankhahGaussian):
        deficit["use_effective_ws"] = model.reference_speed == "effective"
        found["axial_induction_model"] = "Madsen" if model.induction == "madsen" else "1D"
        found["rotor_averaging"] = {"background_averaging": "center", "wake_averaging": "center"}
    else:
        found["axial_induction_model"] = "Madsen" if isinstance(model, Jensen) else "1D"
    linear = isinstance(model, BastankhahGaussian) and model.superposition == "linear"
    for section in ("deflection_model", "turbulence_model", "blockage_model"):
        found[section] = {"name": "None"}
    found["superposition_model"] = {"ws_superposition": "Linear" if linear else "Squared"}
    return found
