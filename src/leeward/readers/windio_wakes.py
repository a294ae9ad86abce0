"""Wake models of windIO plants: the options that leeward has. Others are an error that names them."""

from collections.abc import Mapping
from typing import Any

from leeward.readers.document import Document, Place

PLACE = ("attributes", "analysis")
# sections that concern only flow solvers of other kinds, or change nothing here
IGNORED = ("HPC_config", "mesh", "run_type", "layers_description")
REJECTED = ("APM_additional_terms", "apm_grid", "wm_coupling")
INDUCTIONS = {"1D": "momentum", "Madsen": "madsen"}
SUPERPOSITIONS = {"Linear": "linear", "Squared": "squared"}
NONE: tuple[Any, ...] = ("None", "none", None, {})
# leeward's model, and for those with fixed physics the only values that fit
MODELS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "Jensen": ("jensen", {"axial_induction_model": ("Madsen",), "ws_superposition": ("Squared",), "averaging": ()}),
    "TurbOPark": (
        "nygaard_2022",
        {"axial_induction_model": ("1D",), "ws_superposition": ("Squared",), "averaging": ()},
    ),
    "Bastankhah2014": (
        "bastankhah_gaussian",
        {
            "axial_induction_model": tuple(INDUCTIONS),
            "ws_superposition": tuple(SUPERPOSITIONS),
            "averaging": ("center",),
        },
    ),
}


def wake_model_of(document: Document, remarks: list[str]) -> dict[str, Any]:
    """Return the wake model as in a campaign file. remarks: gets a note on every value that the plant leaves open."""
    analysis = document.value(PLACE)
    name = document.value((*PLACE, "wind_deficit_model", "name")) if analysis else {}
    if not name:
        remarks.append("the plant names no wind_deficit_model: leeward's default, nygaard_2022, is used")
        return {"name": "nygaard_2022"}
    if name not in MODELS:
        raise document.error(
            (*PLACE, "wind_deficit_model", "name"),
            f"is {name}, which leeward does not have; expected {_listed(MODELS)}",
        )
    model, fits = MODELS[name]
    _reject_others(document, name)
    options: dict[str, Any] = {}
    expansion = _expansion(document)
    if expansion is not None:
        options["expansion"] = expansion
    induction = _choice(document, ("axial_induction_model",), fits["axial_induction_model"], name)
    superposition = _choice(document, ("superposition_model", "ws_superposition"), fits["ws_superposition"], name)
    _choice(document, ("rotor_averaging", "wake_averaging"), fits["averaging"], name)
    deficit = analysis["wind_deficit_model"]
    if "ceps" in deficit:
        if model == "jensen":
            raise document.error((*PLACE, "wind_deficit_model", "ceps"), "does not apply to Jensen; remove it")
        options["initial_width"] = document.number((*PLACE, "wind_deficit_model", "ceps"))
    if model == "bastankhah_gaussian":
        if "use_effective_ws" in deficit:
            options["reference_speed"] = "effective" if deficit["use_effective_ws"] else "ambient"
        options |= {"induction": INDUCTIONS[induction]} if induction else {}
        options |= {"superposition": SUPERPOSITIONS[superposition]} if superposition else {}
    elif deficit.get("use_effective_ws"):
        found = f"is true; {name} of leeward refers to the ambient wind speed: expected false"
        raise document.error((*PLACE, "wind_deficit_model", "use_effective_ws"), found)
    open_options = [option for option in OPTIONS[model] if option not in options]
    if open_options:
        remarks.append(f"the plant leaves open {', '.join(open_options)} of {model}: leeward's defaults are used")
    return {"name": model, **options}


OPTIONS = {
    "jensen": ("expansion",),
    "nygaard_2022": ("expansion", "initial_width"),
    "bastankhah_gaussian": ("expansion", "initial_width", "reference_speed", "induction", "superposition"),
}


def _expansion(document: Document) -> float | None:
    """Return the growth of the wake per metre. In windIO it is k_a + k_b × turbulence intensity."""
    place: Place = (*PLACE, "wind_deficit_model", "wake_expansion_coefficient")
    given = document.value(place)
    if not given:
        return None
    factor = document.number((*place, "k_b")) if "k_b" in given else 0.0
    if factor != 0.0:
        found = f"is {factor:g}, a factor of the turbulence intensity; leeward has constant expansion: give it as k_a"
        raise document.error((*place, "k_b"), f"{found} (some tools read k_a and k_b the other way round)")
    return document.number((*place, "k_a")) if "k_a" in given else None


def _reject_others(document: Document, model: str) -> None:
    """Raise InputError for models of the plant that leeward lacks and that would change its numbers."""
    for section in REJECTED:
        if document.value((*PLACE, section)) not in NONE:
            raise document.error((*PLACE, section), "is not supported; remove it")
    blockage = document.value((*PLACE, "blockage_model", "name"))
    if blockage not in NONE:
        raise document.error((*PLACE, "blockage_model", "name"), f"is {blockage}; leeward has no blockage: remove it")
    turbulence = document.value((*PLACE, "turbulence_model", "name"))
    if turbulence not in NONE and model == "TurbOPark":
        found = f"is {turbulence}; leeward's wakes see the turbulence of the site alone: expected None"
        raise document.error((*PLACE, "turbulence_model", "name"), found)


def _choice(document: Document, keys: tuple[str, ...], allowed: tuple[str, ...], model: str) -> str:
    """Return the value of an option, "" if it is not given. allowed: the values that leeward has."""
    value = document.value((*PLACE, *keys))
    if isinstance(value, Mapping) and not value:
        return ""
    if value not in allowed:
        expected = f"expected {_listed(allowed)}" if allowed else f"leeward averages {model} in its own way: remove it"
        raise document.error((*PLACE, *keys), f"is {value}, which leeward does not have for {model}; {expected}")
    return str(value)


def _listed(names: Any) -> str:
    return " or ".join(names)
