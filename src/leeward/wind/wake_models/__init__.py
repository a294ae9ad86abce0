"""Wake models. Each model has a file of its name in this folder and an entry in `CLASSES`."""

import difflib
import importlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leeward.errors import InputError
from leeward.lazy import import_named
from leeward.wind.wake_models.base import Formulas, WakeModel, result_type

__all__ = ["Formulas", "WakeModel", "custom_model", "known_wake_models", "suggested_name", "wake_model"]

if TYPE_CHECKING:
    from leeward.wind.wake_models.bastankhah_gaussian import BastankhahGaussian as BastankhahGaussian
    from leeward.wind.wake_models.iea37_gaussian import Iea37Gaussian as Iea37Gaussian
    from leeward.wind.wake_models.jensen import Jensen as Jensen
    from leeward.wind.wake_models.no_wake import NoWake as NoWake
    from leeward.wind.wake_models.nygaard_2022 import Nygaard2022 as Nygaard2022

# a model is imported when it is used: its file imports the compiler
CLASSES = {
    "bastankhah_gaussian": "BastankhahGaussian",
    "iea37_gaussian": "Iea37Gaussian",
    "jensen": "Jensen",
    "no_wake": "NoWake",
    "nygaard_2022": "Nygaard2022",
}


# names in other programs and in papers, in lower case and without separators
OTHER_NAMES = {
    "bastankhah_gaussian": ("bastankhah", "bastankhah2014", "bastankhahgaussiandeficit", "gauss", "gaussian", "bpa"),
    "iea37_gaussian": ("iea37", "iea37simplebastankhahgaussian", "simplegaussian"),
    "jensen": ("noj", "jensen1983", "nojdeficit", "park", "park1", "tophat"),
    "no_wake": ("none", "nowakes"),
    "nygaard_2022": ("turbopark", "turboparkgauss", "turbogaussian", "turbogaussiandeficit", "nygaard"),
}


def suggested_name(name: object) -> str | None:
    """Return the built-in model that a name probably means: of another program, or misspelt."""
    plain = re.sub(r"[^a-z0-9]", "", str(name).lower())
    for ours, others in OTHER_NAMES.items():
        if plain in (ours.replace("_", ""), *others):
            return ours
    return next(iter(difflib.get_close_matches(str(name), CLASSES, n=1, cutoff=0.6)), None)


def known_wake_models() -> tuple[str, ...]:
    """Return the names of the built-in models. `WindFarm` also accepts `module:Name` for a custom model."""
    return tuple(CLASSES)


def wake_model(name_or_model: object) -> WakeModel:
    """Return the model of this name with its default options; a model object is returned as it is.

    A name with a colon, `module:Name`, is that of a custom model: a class in a module that Python can import.
    """
    if isinstance(name_or_model, WakeModel):
        return name_or_model
    if isinstance(name_or_model, str) and name_or_model in CLASSES:
        return _built_in(name_or_model)()
    if isinstance(name_or_model, str) and ":" in name_or_model:
        return custom_model(import_named(name_or_model, "wake model"))
    known = known_wake_models()
    close = suggested_name(name_or_model)
    hint = f" Did you mean {close!r}?" if close else ""
    if isinstance(name_or_model, type):
        hint = f" Write {name_or_model.__name__}() for an object with the default options."
    raise InputError(f"unknown wake model {name_or_model!r}.{hint} Known: {', '.join(known)}")


def custom_model(cls: object, options: Mapping[str, Any] | None = None) -> WakeModel:
    """Return a custom wake model with these options, or raise InputError if the class is not one.

    The class is a frozen dataclass derived from `WakeModel`; see `leeward.wind.wake_models.base`. It may leave out the
    derivatives of its formulas; the `remarks` of the model then mention it.
    """
    label = f"{cls.__module__}:{cls.__qualname__}" if isinstance(cls, type) else repr(cls)
    if not (isinstance(cls, type) and issubclass(cls, WakeModel)):
        raise InputError(f"wake model {label}: expected a class derived from leeward.wind.WakeModel")
    if not isinstance(getattr(cls, "formulas", None), Formulas):
        raise InputError(f"wake model {label} has no `formulas`; expected Formulas(source, wake_at, ...)")
    formulas = cls.formulas
    if (formulas.wake_slopes is None) != (formulas.contribution_slopes is None):
        raise InputError(f"wake model {label}: define both wake_slopes and contribution_slopes, or neither")
    try:
        for formula in (formulas.source, formulas.wake_at, formulas.wake_slopes):
            if formula is not None:
                result_type(formula)
        return cls(**(options or {}))
    except (TypeError, NameError) as error:
        raise InputError(f"wake model {label}: {error}") from error


def _built_in(name: str) -> type[WakeModel]:
    model: type[WakeModel] = getattr(importlib.import_module(f"{__name__}.{name}"), CLASSES[name])
    return model


def __getattr__(name: str) -> type[WakeModel]:
    """Import only the file that defines the model, as in `from leeward.wind.wake_models import Jensen`."""
    for model_name, class_name in CLASSES.items():
        if class_name == name:
            return _built_in(model_name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
