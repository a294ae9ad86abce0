"""Find, hash and import custom recipes, objectives and wake models, given as `module:Name`.

Only `run` and its workers import them; all other commands use their names and digests.
"""

import hashlib
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from leeward.campaign.spec import CampaignSpec
from leeward.errors import InputError
from leeward.lazy import import_named
from leeward.readers.document import Document, Place


class CustomCode(NamedTuple):
    """A `module:Name` of a campaign. what: its role. sha256: digest of its file when the campaign was read."""

    what: str
    place: Place
    path: str
    sha256: str | None


def custom_code(spec: CampaignSpec) -> list[CustomCode]:
    """Return the custom code that a campaign names."""
    optimiser, model = spec.optimiser, spec.wake_model
    named = [
        CustomCode("recipe", ("optimiser", "recipe"), optimiser.recipe, optimiser.recipe_sha256),
        CustomCode("objective", ("optimiser", "objective"), optimiser.objective, optimiser.objective_sha256),
        CustomCode("wake model", ("wake_model",), model["name"], model.get("sha256")),
    ]
    return [code for code in named if ":" in code.path]


def with_digests(spec: CampaignSpec, document: Document, folders: Sequence[str]) -> CampaignSpec:
    """Return the campaign with the digests of its custom code; known digests are kept."""
    optimiser: dict[str, str] = {}
    model = dict(spec.wake_model)
    for code in custom_code(spec):
        if code.sha256 is None:
            with document.at(*code.place):
                digest = _digest(code.path, folders)
            if code.place == ("wake_model",):
                model["sha256"] = digest
            else:
                optimiser[f"{code.place[-1]}_sha256"] = digest
    return spec.model_copy(update={"optimiser": spec.optimiser.model_copy(update=optimiser), "wake_model": model})


def check_file(code: CustomCode, folders: Sequence[str]) -> None:
    """Raise InputError if the file is not the one that the fingerprint was made with."""
    now = _digest(code.path, folders)
    if now != code.sha256:
        raise InputError(
            f"the file of the {code.what} {code.path}, {module_file(code.path, folders)}, has changed since "
            f"the campaign was read: its SHA-256 is {now[:12]}..., expected {str(code.sha256)[:12]}"
            "...; to use the changed file, run the original campaign file again"
        )


def import_custom(code: CustomCode, folders: Sequence[str]) -> Any:
    """Return the function or class. Raise InputError if its file is not the one whose digest the campaign holds.

    The folders come first on Python's path only during the import, because their files must not shadow other modules.
    """
    check_file(code, folders)
    module = code.path.partition(":")[0]
    if module not in sys.modules:
        path_before, bytecode_before = list(sys.path), sys.dont_write_bytecode
        sys.path[:0] = folders
        sys.dont_write_bytecode = True  # bytecode is not synced: a file torn by a power cut would fail every task
        try:
            importlib.import_module(module)
        finally:
            sys.dont_write_bytecode = bytecode_before
            sys.path[:] = [*path_before, *(folder for folder in folders if folder not in path_before)]
    expected = module_file(code.path, folders)
    found = getattr(sys.modules[module], "__file__", None)
    if found is None or Path(found).resolve() != expected.resolve():
        raise InputError(
            f"the {code.what} {code.path} is in {expected}, but the name {module} is already "
            f"taken by {found or 'a built-in module'}; rename the file"
        )
    return import_named(code.path, code.what)


def _digest(path: str, folders: Sequence[str]) -> str:
    """Return the SHA-256 of the current file of a module."""
    return hashlib.sha256(module_file(path, folders).read_bytes()).hexdigest()


def module_file(path: str, folders: Sequence[str]) -> Path:
    """Return the file of a module without importing it. Search the folders first, then Python's path."""
    module = path.partition(":")[0]
    importlib.invalidate_caches()  # the file may be newer than the cached listing of its folder
    found: ModuleSpec | None = None
    within: Sequence[str] | None = None
    for name in accumulate(module.split("."), "{}.{}".format):  # package, package.module
        found = _find(name, within, folders)
        if found is None:
            break
        within = list(found.submodule_search_locations or [])
    if found is None or found.origin is None or not Path(found.origin).is_file():
        looked = ", ".join(dict.fromkeys(folders)) or "Python's path"
        raise InputError(
            f"no module {module} was found in {looked} or on Python's path; put the file of {path} beside the "
            "campaign file, or add its folder to PYTHONPATH"
        )
    return Path(found.origin)


def _find(name: str, path: Sequence[str] | None, folders: Sequence[str]) -> ModuleSpec | None:
    if path is not None:
        return PathFinder.find_spec(name, path)
    found = PathFinder.find_spec(name, list(folders)) if folders else None
    if found is not None and found.origin is not None:
        return found
    for finder in sys.meta_path:
        found = finder.find_spec(name, None)
        if found is not None:
            return found
    return None
