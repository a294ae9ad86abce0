"""The file of somebody's own recipe, `module:function`: found, digested, and imported from that very file."""

import hashlib
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from leeward.campaign.resolve import Source
from leeward.campaign.spec import CampaignSpec, OptimiserSpec
from leeward.errors import InputError


def recipe_digest(recipe: str, folders: Sequence[str]) -> str:
    """SHA-256 of the file of the recipe's module, as it is now."""
    return hashlib.sha256(module_file(recipe, folders).read_bytes()).hexdigest()


def with_recipe_digest(spec: CampaignSpec, source: Source, folders: Sequence[str]) -> CampaignSpec:
    """With the digest of the file of somebody's own recipe; one that is known already is kept."""
    settings = spec.optimiser
    if not settings.is_own or settings.recipe_sha256 is not None:
        return spec
    with source.at("optimiser", "recipe"):
        digest = recipe_digest(settings.recipe, folders)
    return spec.model_copy(update={"optimiser": settings.model_copy(update={"recipe_sha256": digest})})


def check_recipe(settings: OptimiserSpec, folders: Sequence[str]) -> None:
    """The recipe's file must still be the one that the fingerprint was made with."""
    now = recipe_digest(settings.recipe, folders)
    if now != settings.recipe_sha256:
        raise InputError(
            f"the file of the recipe {settings.recipe}, {module_file(settings.recipe, folders)}, is not the one that "
            f"the campaign was read with: its SHA-256 is {now[:12]}..., expected {str(settings.recipe_sha256)[:12]}"
            "...; run the campaign file itself, which takes it as it is now"
        )


def module_file(recipe: str, folders: Sequence[str]) -> Path:
    """Where Python would import the module from, with these folders before its own; packages are not imported."""
    module = recipe.partition(":")[0]
    importlib.invalidate_caches()  # the file may be a moment old
    found: ModuleSpec | None = None
    path: Sequence[str] | None = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        found = _find(name, path, folders)
        if found is None:
            break
        path = list(found.submodule_search_locations or [])
    if found is None or found.origin is None or not Path(found.origin).is_file():
        looked = ", ".join(dict.fromkeys(folders)) or "Python's path"
        raise InputError(
            f"no module {module} was found in {looked} or on Python's path; expected the file of the function: put it "
            "beside the campaign file, or name its folder in PYTHONPATH"
        )
    return Path(found.origin)


def import_recipe(recipe: str, folders: Sequence[str]) -> None:
    """Import the module of a recipe from the file that was digested, and from no other of the same name.

    The folders come first for the time of the import only: what lies in them must not stand for other modules.
    """
    module = recipe.partition(":")[0]
    if module not in sys.modules:
        before, writes_none = list(sys.path), sys.dont_write_bytecode
        sys.path[:0] = folders
        sys.dont_write_bytecode = True  # Python does not sync it: torn by a power cut, it would fail every task
        try:
            importlib.import_module(module)
        finally:
            sys.dont_write_bytecode = writes_none
            sys.path[:] = [*before, *(folder for folder in folders if folder not in before)]
    expected = module_file(recipe, folders)
    found = getattr(sys.modules[module], "__file__", None)
    if found is None or Path(found).resolve() != expected.resolve():
        raise InputError(
            f"the recipe {recipe} is in {expected}, but the name {module} stands for {found or 'a built-in module'} "
            "already; expected another name for the file"
        )


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
