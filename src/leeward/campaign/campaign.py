"""A campaign: which tasks there are, what each depends on, and how one is computed."""

import functools
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from leeward.campaign.counts import capacity_wanted, turbine_count
from leeward.campaign.document import Document, Place, dump, plain
from leeward.campaign.execution import Execution
from leeward.campaign.fingerprint import Fingerprints, differences, method_version, optimiser_settings
from leeward.campaign.own_recipe import check_recipe, import_recipe, with_recipe_digest
from leeward.campaign.resolve import BUILT_IN, Source, data_folder, resolved
from leeward.campaign.seeds import seeds_as_text
from leeward.campaign.spec import CampaignSpec, FarmSpec, NeighboursSpec
from leeward.campaign.validation import misspelt, validated
from leeward.errors import InputError
from leeward.store import Key

if TYPE_CHECKING:
    from leeward.campaign.judge import StoredResult
    from leeward.layout import Area, LayoutProblem, Progress, Solution
    from leeward.wind import Neighbours, Site, Turbine, WakeModel, WindFarm

PROBLEMS_KEPT = 64
MOST_TASKS = 10_000_000  # that are listed; a file of results holds as many
HEADER = (
    "# A campaign with the contents of all files that it referred to, as leeward writes it; `leeward run` takes it.\n"
)


class Campaign:
    """Farms x turbine types x seeds, with all that their layouts depend on. Make one with `leeward.campaign.load`.

    It never changes: `with_overrides` makes another one.
    """

    def __init__(self, spec: CampaignSpec, source: Source, places: Mapping[int, Place], folders: Sequence[str]) -> None:
        self._spec = spec
        self._source = source
        self._places = dict(places)
        self.import_folders = list(dict.fromkeys([*folders, *spec.execution.import_folders]))
        self._farms = {farm.farm_idx or 0: farm for farm in spec.farm_list}
        self._types = {turbine.type_idx or 0: turbine for turbine in spec.type_list}
        self._fingerprints = Fingerprints(spec)
        self._turbines: dict[int, Turbine] = {}
        self._problems: OrderedDict[tuple[int, int], LayoutProblem] = OrderedDict()

    @classmethod
    def from_text(cls, text: str, where: str) -> "Campaign":
        """A campaign as `frozen_text` wrote it; where: what to call it in an error."""
        source = Source(Document.from_text(text, where), None)
        return campaign_from(source, [])

    @property
    def name(self) -> str:
        """As the file gives it, or that of the file."""
        return self._spec.name or "campaign"

    @property
    def remarks(self) -> Sequence[str]:
        """Return notes on how the campaign was read, such as polygons that became one area."""
        return tuple(self._source.remarks)

    @property
    def crs(self) -> str | None:
        """The coordinate system of all farms, if it has a name."""
        return self._spec.crs

    @functools.cached_property
    def farms(self) -> Mapping[int, str]:
        """Names by farm_idx."""
        return MappingProxyType({number: str(farm.name) for number, farm in self._farms.items()})

    @functools.cached_property
    def types(self) -> Mapping[int, str]:
        """Names of turbine types by type_idx."""
        return MappingProxyType({number: str(turbine.name) for number, turbine in self._types.items()})

    @property
    def neighbours(self) -> Sequence[NeighboursSpec]:
        """Turbines that stand already, for all farms: groups of one type each."""
        return tuple(self._spec.neighbours)

    @property
    def seeds(self) -> Sequence[int]:
        """The random seeds: a range or a tuple."""
        seeds: Sequence[int] = self._spec.seeds
        return seeds

    @property
    def execution(self) -> Execution:
        return self._spec.execution

    @property
    def recipe(self) -> str:
        return self._spec.optimiser.recipe

    @property
    def optimiser(self) -> Mapping[str, Any]:
        """The settings of the optimiser that the recipe uses, by name."""
        return optimiser_settings(self._spec.optimiser)

    @property
    def grid_size(self) -> int:
        return self._spec.optimiser.grid_size

    @property
    def random_pct(self) -> float:
        return self._spec.optimiser.random_pct

    @property
    def reproducible(self) -> bool:
        """Whether the same task gives the same layout again: not where the clock ends it."""
        return self._spec.optimiser.time_budget_s is None

    @property
    def n_tasks(self) -> int:
        """Farms x turbine types x seeds."""
        return len(self.seeds) * len(self._farms) * len(self._types)

    def tasks(self) -> Iterator[Key]:
        """All keys, seed by seed: every farm and type gets its first layout early.

        Raises InputError where there are more of them than MOST_TASKS.
        """
        if self.n_tasks > MOST_TASKS:
            raise InputError(
                f"the campaign {self.name} has {self.n_tasks} tasks; expected at most {MOST_TASKS}: give it fewer "
                "seeds, or run some of them with --only"
            )
        return (Key(farm, kind, seed) for seed in self.seeds for farm in self._farms for kind in self._types)

    @functools.cached_property
    def _seed_set(self) -> range | frozenset[int]:
        seeds = self.seeds
        return seeds if isinstance(seeds, range) else frozenset(seeds)

    def __contains__(self, key: object) -> bool:
        if not (isinstance(key, tuple) and len(key) == 3):
            return False
        return key[0] in self._farms and key[1] in self._types and key[2] in self._seed_set

    def __repr__(self) -> str:
        return (
            f"<Campaign {self.name}: {len(self._farms)} farm(s) x {len(self._types)} turbine type(s) x "
            f"{len(self.seeds)} seed(s)>"
        )

    def with_overrides(
        self,
        *,
        seeds: int | str | Sequence[int] | None = None,
        recipe: str | None = None,
        effort: str | None = None,
        workers: int | None = None,
        engine: str | None = None,
        timeout_s: float | None = None,
        retries: int | None = None,
        dask: Mapping[str, Any] | None = None,
        slurm: Mapping[str, Any] | None = None,
    ) -> "Campaign":
        """The campaign with some of its settings replaced; None leaves one as it is.

        dask, slurm: keys of these sections; those that are not named stay.
        """
        data = self._data()
        if seeds is not None:
            data["seeds"] = plain(seeds)
        sections: dict[str, dict[str, Any]] = {
            "optimiser": {"recipe": recipe, "effort": effort},
            "execution": {"workers": workers, "engine": engine, "timeout_s": timeout_s, "retries": retries},
        }
        for section, values in sections.items():
            given = {name: plain(value) for name, value in values.items() if value is not None}
            data[section] = {**data[section], **given}
        for section, keys in (("dask", dask), ("slurm", slurm)):
            if keys:
                data["execution"][section] = {**data["execution"].get(section, {}), **plain(dict(keys))}
        if recipe is not None:
            data["optimiser"].pop("recipe_sha256", None)
        return self._with_data(data, f"what overrides {self._source.document.where}")

    def with_defaults(self, execution: Mapping[str, Any], where: str) -> "Campaign":
        """The campaign with settings of its execution that it does not make itself; where: what to call them."""
        data = self._data()
        data["execution"] = _filled_up(data["execution"], execution)
        return self._with_data(data, f"{self._source.document.where} with {where}")

    def _with_data(self, data: dict[str, Any], where: str) -> "Campaign":
        spec = validated(CampaignSpec, Document(where, data))
        spec = with_recipe_digest(spec, self._source, self.import_folders)
        return Campaign(spec, self._source, self._places, self.import_folders)

    def settings(self, farm_idx: int, type_idx: int) -> dict[str, Any]:
        """All that the numbers of a farm and turbine type depend on, the seed aside."""
        return self._fingerprints.settings(self._farm(farm_idx), self._type(type_idx))

    def fingerprint(self, farm_idx: int, type_idx: int, version: int | None = None) -> str:
        """SHA-256, in hex digits, of the settings, of which the long ones count with their own digests.

        version: the method version; that of this leeward if None.
        """
        return self._fingerprints.of(self._farm(farm_idx), self._type(type_idx), version)

    @property
    def method_version(self) -> int:
        """The method version of this leeward: with another one the same settings give other numbers."""
        return method_version()

    def version_of(self, key: Key, fingerprint: str | None, stated: int | None) -> int | None:
        """Return the method version that made a result of this campaign; None if it was made with other settings.

        stated: the version that the result states, if it does; otherwise all versions up to this leeward's are tried.
        fingerprint: None for an adopted result, which is of the version that computed its AEP.
        """
        if fingerprint is None:
            return self.method_version if stated is None else stated
        versions = range(self.method_version, 0, -1) if stated is None else [stated]
        made = (version for version in versions if self.fingerprint(key.farm_idx, key.type_idx, version) == fingerprint)
        return next(made, None)

    def differences(self, other: "Campaign", farm_idx: int, type_idx: int) -> list[str]:
        """Which settings differ from those of another campaign, the older one: one sentence each."""
        return differences(self.settings(farm_idx, type_idx), other.settings(farm_idx, type_idx))

    def n_turbines(self, farm_idx: int, type_idx: int) -> int:
        return turbine_count(self._spec, self._farm(farm_idx), self._type(type_idx))

    def capacity_wanted_mw(self, farm_idx: int) -> float | None:
        """Return the capacity that was asked for (MW); None where the number of turbines was given."""
        return capacity_wanted(self._spec, self._farm(farm_idx))

    def installed_mw(self, farm_idx: int, type_idx: int) -> float:
        """Return the installed power of a farm (MW): number of turbines × rated power."""
        return self.n_turbines(farm_idx, type_idx) * self.rated_power_mw(type_idx)

    def diameter(self, type_idx: int) -> float:
        """Rotor diameter of a turbine type, m."""
        return float(self._type(type_idx).rotor_diameter_m)

    def hub_height_m(self, type_idx: int) -> float:
        """Return the hub height of a turbine type, m."""
        return float(self._type(type_idx).hub_height_m)

    def rated_power_mw(self, type_idx: int) -> float:
        """As it was given; a generic turbine's curve ends a little below."""
        return float(self._type(type_idx).rated_power_mw)

    def turbine(self, type_idx: int) -> "Turbine":
        """A turbine type with its curves."""
        from leeward.campaign import physics

        if type_idx not in self._turbines:
            self._turbines[type_idx] = physics.turbine_of(self._type(type_idx))
        return self._turbines[type_idx]

    def area(self, farm_idx: int) -> "Area":
        """Where the turbines of a farm may stand."""
        from leeward.campaign import shapes

        farm = self._farm(farm_idx)
        if farm.area is None:
            raise TypeError("a farm without its figures")
        return shapes.area_from(farm.area, self.crs)

    @functools.cached_property
    def site(self) -> "Site":
        """The wind of all farms."""
        from leeward.campaign import physics

        with self._source.at("site"):
            return physics.site_of(self._spec.site)

    @property
    def spacing(self) -> dict[str, float]:
        """Return the minimum distance of turbines by its key: `spacing_m` or `spacing_diameters`."""
        return self._spec.spacing

    def wind_farm(
        self,
        type_idx: int,
        *,
        site: "Site | None" = None,
        turbine: "Turbine | None" = None,
        wake_model: "str | WakeModel | None" = None,
    ) -> "WindFarm":
        """Return the wind farm of a turbine type, with neighbours. What is given replaces what the campaign has."""
        from leeward.wind import WindFarm

        own_site, own_model, neighbours = self._wind
        return WindFarm(
            own_site if site is None else site,
            self.turbine(type_idx) if turbine is None else turbine,
            own_model if wake_model is None else wake_model,
            neighbours=neighbours,
            threads=1,
        )

    def problem(self, farm_idx: int, type_idx: int) -> "LayoutProblem":
        """What the optimiser is asked; the latest ones are kept."""
        pair = farm_idx, type_idx
        if pair not in self._problems:
            self._problems[pair] = self._make_problem(farm_idx, type_idx)
            if len(self._problems) > PROBLEMS_KEPT:
                self._problems.popitem(last=False)
        self._problems.move_to_end(pair)
        return self._problems[pair]

    def check(self) -> None:
        """Make the problem of every farm and turbine type, once: an InputError lists those that cannot be."""
        found: list[tuple[Place, str]] = []
        for farm_idx in self._farms:
            for type_idx in self._types:
                try:
                    self._unplaced_problem(farm_idx, type_idx)
                except InputError as error:
                    kind = f"farm {farm_idx}, type {type_idx}"
                    found.append((self._places.get(farm_idx, ("farms",)), f"{kind}: {error}"))
        if found:
            raise self._source.document.errors(found)
        if self._spec.optimiser.is_own:
            with self._source.at("optimiser", "recipe"):
                check_recipe(self._spec.optimiser, self.import_folders)

    def optimise(self, key: Key, watch: "Callable[[Progress], bool | None] | None" = None) -> "Solution":
        """The layout of one task. A recipe of somebody's own is imported here: see `import_folders`."""
        from leeward.layout import SmartStart, optimise

        if key not in self:
            raise InputError(f"{key} is not a task of the campaign {self.name}, which is {self!r}")
        settings = self._spec.optimiser
        if settings.is_own:
            check_recipe(settings, self.import_folders)
            import_recipe(settings.recipe, self.import_folders)
        smart = SmartStart(settings.grid_size, settings.random_pct) if settings.recipe.startswith("smart") else None
        return optimise(
            self.problem(key.farm_idx, key.type_idx),
            key.seed,
            recipe=settings.recipe,
            effort=settings.effort,
            time_budget_s=settings.time_budget_s,
            work=settings.work,
            smart_start=smart,
            callback=watch,
        )

    def recompute(self, key: Key, x: Any, y: Any) -> tuple[float, float, float]:
        """AEP (GWh), wake loss (a share) and closest spacing (m) of somebody's layout for a task."""
        problem = self.problem(key.farm_idx, key.type_idx)
        east, north = problem.positions(x, y)
        simulation = problem.farm.simulate(east, north)
        return simulation.total_aep_gwh, simulation.total_wake_loss, problem.min_spacing_m(east, north)

    def judge(self, result: "StoredResult") -> str | None:
        """What is physically wrong with a stored result, in a sentence; None if nothing is."""
        from leeward.campaign.judge import judge

        return judge(self, result)

    def misfit(self, result: "StoredResult") -> str | None:
        """Say why a stored result is not of this campaign: other settings, turbines or area; None if it may be."""
        from leeward.campaign.judge import misfit

        return misfit(self, result)

    def judge_aep(self, result: "StoredResult") -> str | None:
        """Say why a stored result is not of this campaign, or its AEP not that of its layout; None if all is well."""
        from leeward.campaign.judge import judge_aep

        return judge_aep(self, result)

    def frozen_text(self) -> str:
        """The campaign as YAML that refers to no file; `from_text` makes the same campaign from it."""
        return HEADER + dump(self._data())

    def study_text(self) -> str:
        """The same without how it is run: what was computed, whoever computed it."""
        return HEADER + dump({name: value for name, value in self._data().items() if name != "execution"})

    def _data(self) -> dict[str, Any]:
        """The whole specification as YAML would have it."""
        spec = self._spec
        kept = {"farm_idx", "name", "n_turbines", "capacity_mw", "area"}
        written = {
            "seeds": seeds_as_text(self.seeds),
            "farms": [farm.model_dump(exclude_none=True, include=kept) for farm in self._farms.values()],
            "turbines": [turbine.model_dump(exclude_none=True) for turbine in self._types.values()],
            "execution": self._execution(),
        }
        data = spec.model_dump(exclude_none=True, exclude=set(written))
        return {name: written.get(name, data.get(name)) for name in CampaignSpec.model_fields if name in data | written}

    def _execution(self) -> dict[str, Any]:
        """What was asked for; the rest is for the user's defaults to say, and for ours."""
        written = self._spec.execution.model_dump(exclude={"import_folders"}, exclude_unset=True)
        return {**written, "import_folders": self.import_folders} if self._spec.optimiser.is_own else written

    def _farm(self, farm_idx: int) -> FarmSpec:
        if farm_idx not in self._farms:
            known = ", ".join(map(str, self._farms))
            raise InputError(f"farm_idx is {farm_idx!r}; expected one of those of {self.name}: {known}")
        return self._farms[farm_idx]

    def _type(self, type_idx: int) -> Any:
        if type_idx not in self._types:
            known = ", ".join(map(str, self._types))
            raise InputError(f"type_idx is {type_idx!r}; expected one of those of {self.name}: {known}")
        return self._types[type_idx]

    @functools.cached_property
    def _wind(self) -> "tuple[Site, WakeModel, Neighbours | None]":
        from leeward.campaign import physics

        site = self.site
        with self._source.at("wake_model"):
            model = physics.wake_model_of(self._spec.wake_model)
        with self._source.at("neighbours"):
            return site, model, physics.neighbours_of(self._spec.neighbours)

    def _make_problem(self, farm_idx: int, type_idx: int) -> "LayoutProblem":
        with self._source.at(*self._places.get(farm_idx, ("farms",))):
            return self._unplaced_problem(farm_idx, type_idx)

    def _unplaced_problem(self, farm_idx: int, type_idx: int) -> "LayoutProblem":
        from leeward.layout import LayoutProblem

        return LayoutProblem(
            self.wind_farm(type_idx), self.area(farm_idx), self.n_turbines(farm_idx, type_idx), **self.spacing
        )


def load(source: str | os.PathLike[str] | Mapping[str, Any]) -> Campaign:
    """A campaign from a YAML file, from a dict of the same shape, or built in, by its name."""
    here = os.getcwd()
    if isinstance(source, Mapping):
        return campaign_from(Source(Document("the campaign", plain(source)), Path(here)), [here])
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"the campaign is {source!r:.60}; expected the path of a YAML file, a dict, or a name")
    path = Path(source)
    if str(source) in BUILT_IN and not path.exists():
        return builtin_campaign(str(source))
    if not path.is_file():
        raise InputError(
            f"{path}: {'a folder' if path.is_dir() else 'no such file'}; expected a campaign file (`leeward new` "
            f"writes one), or a built-in campaign: {misspelt(str(source), BUILT_IN)}"
        )
    document = Document.from_file(path, "a campaign file")
    folder = path.absolute().parent
    return campaign_from(Source(document, folder), list(dict.fromkeys([str(folder), here])))


def builtin_campaign(name: str = "danish-energy-island") -> Campaign:
    """A built-in campaign, with one seed."""
    folder = data_folder(name)
    return campaign_from(Source(Document.from_file(folder / "campaign.yaml", "a campaign"), folder), [os.getcwd()])


def campaign_from(source: Source, folders: Sequence[str]) -> Campaign:
    """Check what was read, and make it stand for itself."""
    spec = validated(CampaignSpec, source.document).with_table_kind()
    if source.folder is None and spec.is_complete:
        places: dict[int, Place] = {farm.farm_idx or 0: ("farms", i) for i, farm in enumerate(spec.farm_list)}
    else:
        spec, places = resolved(spec, source)
    return Campaign(with_recipe_digest(spec, source, folders), source, places, folders)


def _filled_up(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults where nothing is given, also within sections."""
    merged = {**defaults, **given}
    for name, value in defaults.items():
        if isinstance(value, Mapping) and isinstance(given.get(name), Mapping):
            merged[name] = _filled_up(given[name], value)
    return merged
