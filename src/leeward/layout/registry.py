"""The built-in recipes and objectives: a new one is a function or class in one file, and an entry here.

Nothing is imported before it is used, so that campaign files are read quickly.
"""

from typing import NamedTuple


class Recipe(NamedTuple):
    """A recipe. placing: the function that places the turbines. refines: the layout is then improved.

    settings: keys of a campaign's optimiser that it uses. takes: the argument of `optimise` that it uses.
    """

    placing: str
    refines: bool
    settings: tuple[str, ...] = ()
    takes: str = ""


_SMART, _RANDOM, _START = (f"leeward.layout.recipes:placed_{how}" for how in ("smartly", "at_random", "as_given"))
_GRID = ("grid_size", "random_pct")

RECIPES = {
    "smart_start+refine": Recipe(_SMART, True, ("effort", *_GRID), "smart_start"),
    "smart_start": Recipe(_SMART, False, _GRID, "smart_start"),
    "random+refine": Recipe(_RANDOM, True, ("effort",)),
    "random": Recipe(_RANDOM, False),
    "start+refine": Recipe(_START, True, ("effort",), "start"),
    "start": Recipe(_START, False, (), "start"),
}
OBJECTIVES = {"aep": "leeward.layout.objective:Aep"}
