"""Wake models. A model is one file in this folder, named after it; it is found by its name and imported when used."""

import difflib
import importlib
import pkgutil
from typing import TYPE_CHECKING

from leeward.errors import InputError
from leeward.wind.wake_models.base import Formulas, WakeModel

__all__ = ["Formulas", "WakeModel", "known_wake_models", "wake_model"]

if TYPE_CHECKING:
    from leeward.wind.wake_models.bastankhah_gaussian import BastankhahGaussian as BastankhahGaussian
    from leeward.wind.wake_models.iea37_gaussian import Iea37Gaussian as Iea37Gaussian
    from leeward.wind.wake_models.jensen import Jensen as Jensen
    from leeward.wind.wake_models.no_wake import NoWake as NoWake
    from leeward.wind.wake_models.nygaard_2022 import Nygaard2022 as Nygaard2022


def known_wake_models() -> tuple[str, ...]:
    """The names that `WindFarm(..., wake_model=name)` knows: the files of this folder, but for `base` and `_...`."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in names if name != "base" and not name.startswith("_")))


def wake_model(name_or_model: object) -> WakeModel:
    """The model of this name with its default options; a model object is returned as it is."""
    if isinstance(name_or_model, WakeModel):
        return name_or_model
    known = known_wake_models()
    if not isinstance(name_or_model, str) or name_or_model not in known:
        close = difflib.get_close_matches(str(name_or_model), known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        if isinstance(name_or_model, type):
            hint = f" Write {name_or_model.__name__}() for an object with the default options."
        raise InputError(f"unknown wake model {name_or_model!r}.{hint} Known: {', '.join(known)}")
    module = importlib.import_module(f"{__name__}.{name_or_model}")
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, WakeModel) and getattr(thing, "name", None) == name_or_model:
            return thing()
    raise TypeError(f"{module.__file__} defines no WakeModel named {name_or_model!r}")


def __getattr__(name: str) -> type[WakeModel]:
    """`from leeward.wind.wake_models import Jensen` imports the file that defines it, and only that."""
    for module_name in known_wake_models():
        if module_name.replace("_", "") == name.lower():
            model: type[WakeModel] = getattr(importlib.import_module(f"{__name__}.{module_name}"), name)
            return model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
