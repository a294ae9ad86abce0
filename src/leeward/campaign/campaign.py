"""A campaign: its tasks, the settings that each depends on, and the computation of one."""

import functools
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from leeward.campaign.custom import check_file, custom_code, import_custom, with_digests
from leeward.campaign.execution import Execution
from leeward.campaign.fingerprint import Fingerprints, differences, optimiser_settings
from leeward.campaign.physics import Physics
from leeward.campaign.resolve import BUILT_IN, data_folder, resolved
from leeward.campaign.seeds import seeds_as_text
from leeward.campaign.spec import DEFAULT_OBJECTIVE, CampaignSpec, NeighboursSpec
from leeward.campaign.validation import suggestion, validated
from leeward.deprecation import renamed_argument, warn_renamed
from leeward.errors import InputError
from leeward.readers.document import Document, dump, plain
from leeward.store import Key

if TYPE_CHECKING:
    import numpy.typing as npt

    from leeward.campaign.judge import Judge
    from leeward.layout import LayoutProblem, Progress, SmartStart, Solution
    from leeward.peers.floris import FlorisCase
    from leeward.peers.pywake import PyWakeCase
    from leeward.peers.setup import Setup

MOST_TASKS = 10_000_000  # the most results that a file can hold
HEADER = (
    "# A campaign with the contents of all files that it referred to, as leeward writes it; `leeward run` takes it.\n"
)
MOVED = {  # old names of attributes
    "area": "physics.area",
    "capacity_wanted_mw": "physics.capacity_wanted_mw",
    "diameter": "physics.rotor_diameter_m",
    "hub_height_m": "physics.hub_height_m",
    "installed_mw": "physics.installed_mw",
    "n_turbines": "physics.n_turbines",
    "rated_power_mw": "physics.rated_power_mw",
    "site": "physics.site",
    "spacing": "physics.spacing",
    "turbine": "physics.turbine",
    "wind_farm": "physics.wind_farm",
    "grid_size": "spec.optimiser.grid_size",
    "random_pct": "spec.optimiser.random_pct",
    "reproducible": "spec.optimiser.reproducible",
    "method_version": "fingerprints.method_version",
    "version_of": "fingerprints.version_of",
    "misfit": "judge.misfit",
    "judge_aep": "judge.aep",
}


class Campaign:
    """Farms x turbine types x seeds, with all settings of their layouts. Make one with `leeward.campaign.load`.

    It never changes: `with_overrides` returns a new one. physics: its wind, turbines and areas as objects.
    fingerprints: the fingerprints of its tasks. spec: the content of its file. remarks: notes on how it was read.
    """

    name: str
    """The name given in the file, or the name of the file itself."""
    crs: str | None
    """The coordinate system of all farms, if it has a name."""
    farms: Mapping[int, str]
    """Names of farms by farm_idx."""
    types: Mapping[int, str]
    """Names of turbine types by type_idx."""
    seeds: Sequence[int]
    """The random seeds: a range or a tuple."""
    n_tasks: int
    """The number of tasks: farms x turbine types x seeds."""

    def __init__(self, spec: CampaignSpec, document: Document, folders: Sequence[str]) -> None:
        self.spec = spec
        self._document = document
        self.import_folders = list(dict.fromkeys([*folders, *spec.execution.import_folders]))
        self.physics = Physics(spec, document, self.import_folders)
        self.fingerprints = Fingerprints(spec, self.physics)
        self.name = spec.name or "campaign"
        self.crs = spec.crs
        self.farms = MappingProxyType({number: str(farm.name) for number, farm in self.physics.farms.items()})
        self.types = MappingProxyType({number: str(turbine.name) for number, turbine in self.physics.types.items()})
        self.seeds = spec.seeds
        self._seed_set = self.seeds if isinstance(self.seeds, range) else frozenset(self.seeds)
        self.n_tasks = len(self.seeds) * len(self.farms) * len(self.types)
        self.remarks: Sequence[str] = tuple(document.remarks)
        self.neighbours: Sequence[NeighboursSpec] = tuple(spec.neighbours)
        self.execution: Execution = spec.execution
        self.recipe: str = spec.optimiser.recipe
        self.device = spec.optimiser.device  # "cuda", or None for CPUs
        self.optimiser: Mapping[str, Any] = optimiser_settings(spec.optimiser)  # only settings that the recipe uses

    if not TYPE_CHECKING:  # hidden from mypy, which would otherwise accept misspelt names

        def __getattr__(self, name: str) -> Any:
            """Return an attribute by its old name; see `MOVED`."""
            if name not in MOVED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warn_renamed(f"Campaign.{name}", f"Campaign.{MOVED[name]}")
            return operator.attrgetter(MOVED[name])(self)

    @classmethod
    def from_text(cls, text: str, where: str) -> "Campaign":
        """Return the campaign that `frozen_text` wrote. where: its name in errors."""
        return campaign_from(Document.from_text(text, where), [])

    def tasks(self) -> Iterator[Key]:
        """Return all keys, seed by seed, so that every farm and type gets its first layout early.

        Raise InputError if there are more than MOST_TASKS.
        """
        if self.n_tasks > MOST_TASKS:
            raise InputError(
                f"the campaign {self.name} has {self.n_tasks} tasks; expected at most {MOST_TASKS}; give it fewer "
                "seeds, or select some tasks with --only"
            )
        return (Key(farm, type_idx, seed) for seed in self.seeds for farm in self.farms for type_idx in self.types)

    def __contains__(self, key: object) -> bool:
        if not (isinstance(key, tuple) and len(key) == 3):
            return False
        return key[0] in self.farms and key[1] in self.types and key[2] in self._seed_set

    def __repr__(self) -> str:
        return (
            f"<Campaign {self.name}: {len(self.farms)} farm(s) x {len(self.types)} turbine type(s) x "
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
        """Return the campaign with some settings replaced; None keeps a setting.

        dask, slurm: keys of these sections to replace.
        """
        data = self._data()
        if seeds is not None:
            data["seeds"] = plain(seeds)
        sections: dict[str, dict[str, Any]] = {
            "optimiser": {"recipe": recipe, "effort": effort},
            "execution": {"workers": workers, "engine": engine, "timeout_s": timeout_s, "retries": retries},
        }
        for section, values in sections.items():
            data[section] |= {name: plain(value) for name, value in values.items() if value is not None}
        for section, keys in (("dask", dask), ("slurm", slurm)):
            if keys:
                data["execution"][section] = {**data["execution"].get(section, {}), **plain(keys)}
        if recipe is not None:
            data["optimiser"].pop("recipe_sha256", None)
        if engine is not None:
            data["optimiser"].pop("device", None)
        spec = validated(CampaignSpec, Document(f"the overrides of {self._document.where}", data)).with_device()
        return Campaign(with_digests(spec, self._document, self.import_folders), self._document, self.import_folders)

    def settings(self, farm_idx: int, type_idx: int) -> dict[str, Any]:
        """Return all settings, except the seed, that the numbers of a farm and turbine type depend on."""
        return self.fingerprints.settings(farm_idx, type_idx)

    def fingerprint(self, farm_idx: int, type_idx: int, version: int | None = None) -> str:
        """Return the SHA-256 of the settings, in hex digits.

        version: the method version; None for the one of the installed leeward.
        """
        return self.fingerprints.of(farm_idx, type_idx, version)

    def differences(self, other: "Campaign", farm_idx: int, type_idx: int) -> list[str]:
        """Return one sentence for each setting that differs from that of `other`, the older campaign."""
        return differences(self.settings(farm_idx, type_idx), other.settings(farm_idx, type_idx))

    def problem(self, farm_idx: int, type_idx: int) -> "LayoutProblem":
        """Return the layout problem of a farm and turbine type; recent ones are cached."""
        return self.physics.problem(farm_idx, type_idx)

    def check(self) -> None:
        """Build the layout problem of every farm and turbine type; raise one InputError that lists the impossible ones.

        This imports a custom wake model. Other custom code is not imported; only its file is checked.
        """
        if self.device is not None:
            self._check_device()
        self.physics.import_wake_model()
        self.physics.check()
        for code in custom_code(self.spec):
            with self._document.at(*code.place):
                check_file(code, self.import_folders)

    def _check_device(self) -> None:
        """Raise InputError for settings that need a CPU."""
        settings = self.spec.optimiser
        needs_cpu = {
            "recipe": f"is {settings.recipe}, a custom function" if settings.is_custom else None,
            "objective": f"is {settings.objective}, a custom class" if ":" in settings.objective else None,
            "time_budget_s": "is given, but all layouts are computed together" if settings.time_budget_s else None,
        }
        found = [
            (("optimiser", name), f"{what}; the engine gpu cannot use it: change it, or use another engine")
            for name, what in needs_cpu.items()
            if what is not None
        ]
        if found:
            raise self._document.errors(found)

    def import_custom(self) -> None:
        """Import the custom recipe, objective and wake model. Only `optimise`, `run` and its workers do so."""
        self.physics.import_wake_model()
        for code in custom_code(self.spec):
            import_custom(code, self.import_folders)

    @renamed_argument("watch", "callback")
    def optimise(self, key: Key, callback: "Callable[[Progress], bool | None] | None" = None) -> "Solution":
        """Return the layout of one task. This imports custom code; see `import_custom`."""
        from leeward.layout import optimise

        if key not in self:
            raise InputError(f"{key} is not a task of {self!r}")
        self.import_custom()
        settings = self.spec.optimiser
        return optimise(
            self.problem(key.farm_idx, key.type_idx),
            key.seed,
            recipe=settings.recipe,
            objective=settings.objective,
            effort=settings.effort,
            time_budget_s=settings.time_budget_s,
            work=settings.work,
            smart_start=self.smart_start,
            callback=callback,
        )

    @property
    def smart_start(self) -> "SmartStart | None":
        """The settings of SmartStart, or None if the recipe does not use it."""
        from leeward.layout import SmartStart

        settings = self.spec.optimiser
        return SmartStart(settings.grid_size, settings.random_pct) if "grid_size" in self.optimiser else None

    def recompute(self, key: Key, x: Any, y: Any) -> tuple[float, float, float]:
        """Return AEP (GWh), wake loss (a fraction) and smallest spacing (m) of a given layout for a task."""
        self.physics.import_wake_model()
        problem = self.problem(key.farm_idx, key.type_idx)
        east, north = problem.positions(x, y)
        simulation = problem.farm.simulate(east, north)
        return simulation.total_aep_gwh, simulation.total_wake_loss, problem.min_spacing_m(east, north)

    def setup(self, type_idx: int, x: "npt.ArrayLike" = (), y: "npt.ArrayLike" = ()) -> "Setup":
        """Return wind, turbines and wake model of a turbine type and a layout, for models of other programs."""
        from leeward.peers.setup import setup

        self.physics.import_wake_model()
        return setup(self.physics.wind_farm(type_idx), x, y)

    def to_pywake(self, farm_idx: int, type_idx: int, x: "npt.ArrayLike" = (), y: "npt.ArrayLike" = ()) -> "PyWakeCase":
        """Return a PyWake model of a farm, and the arguments of its call: `model, layout = campaign.to_pywake(0, 5)`.

        x, y: positions of the farm's turbines, m. Without them the layout has only the neighbours and the wind.
        """
        from leeward.peers.pywake import pywake_case

        self.physics.area(farm_idx)  # raises InputError for an unknown farm
        return pywake_case(self.setup(type_idx, x, y))

    def to_floris(self, farm_idx: int, type_idx: int, x: "npt.ArrayLike", y: "npt.ArrayLike") -> "FlorisCase":
        """Return a FLORIS model of a layout with the wind of the site, and weights of its turbines.

        x, y: positions of the farm's turbines, m. FLORIS uses its own wake models; docs/export.md says what differs.
        """
        from leeward.peers.floris import floris_case

        self.physics.area(farm_idx)  # raises InputError for an unknown farm
        return floris_case(self.setup(type_idx, x, y), f"{self.name}, {self.farms[farm_idx]}")

    @functools.cached_property
    def judge(self) -> "Judge":
        """Checks a stored result: `judge(result)` returns a sentence that says what is wrong, or None."""
        from leeward.campaign.judge import Judge

        return Judge(self)

    def frozen_text(self) -> str:
        """Return the campaign as YAML that refers to no file; `from_text` reads it back."""
        return HEADER + dump(self._data())

    def study_text(self) -> str:
        """Return `frozen_text` without the section `execution`."""
        return HEADER + dump({name: value for name, value in self._data().items() if name != "execution"})

    def _data(self) -> dict[str, Any]:
        """Return the whole specification as plain data."""
        spec, physics = self.spec, self.physics
        kept = {"farm_idx", "name", "n_turbines", "capacity_mw", "area"}
        is_default = spec.optimiser.objective == DEFAULT_OBJECTIVE
        written = {
            "seeds": seeds_as_text(self.seeds),
            "farms": [farm.model_dump(exclude_none=True, include=kept) for farm in physics.farms.values()],
            "turbines": [turbine.model_dump(exclude_none=True) for turbine in physics.types.values()],
            "optimiser": spec.optimiser.model_dump(exclude_none=True, exclude={"objective"} if is_default else None),
            "execution": self._execution(),
        }
        data = spec.model_dump(exclude_none=True, exclude=set(written))
        return {name: written.get(name, data.get(name)) for name in CampaignSpec.model_fields if name in data | written}

    def _execution(self) -> dict[str, Any]:
        """Return the settings that were given, without defaults."""
        written = self.spec.execution.model_dump(exclude={"import_folders"}, exclude_unset=True)
        return {**written, "import_folders": self.import_folders} if custom_code(self.spec) else written


def load(source: str | os.PathLike[str] | Mapping[str, Any]) -> Campaign:
    """Return a campaign from a YAML file, a dict of the same shape or a windIO plant, or a built-in one by its name."""
    here = os.getcwd()
    if isinstance(source, Mapping):
        return campaign_from(Document("the campaign", plain(source), Path(here)), [here])
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"the campaign is {source!r:.60}; expected the path of a YAML file, a dict, or a name")
    path = Path(source)
    if str(source) in BUILT_IN and not path.exists():
        return builtin_campaign(str(source))
    if not path.is_file():
        raise InputError(
            f"{path}: {'is a folder' if path.is_dir() else 'no such file'}; expected a campaign file (`leeward new` "
            f"writes one), or the name of a built-in campaign; {suggestion(str(source), BUILT_IN)}"
        )
    from leeward.readers.windio_plant import is_plant, read_plant

    if is_plant(path):
        from leeward.campaign.plants import plant_campaign, plant_remarks

        plant = read_plant(path)
        document = Document(str(path), plant_campaign(plant), path.absolute().parent)
        document.remarks += plant_remarks(plant)
        return campaign_from(document, [])
    document = Document.from_file(path, "a campaign file")
    if isinstance(document.data, Mapping) and "targets" in document.data and "farms" not in document.data:
        raise InputError(f"{path}: is a study, not a campaign; evaluate it with `leeward evaluate {path}`")
    return campaign_from(document, list(dict.fromkeys([str(document.folder), here])))


def builtin_campaign(name: str = "danish-energy-island") -> Campaign:
    """Return a built-in campaign, with one seed."""
    return campaign_from(Document.from_file(data_folder(name) / "campaign.yaml", "a campaign"), [os.getcwd()])


def campaign_from(document: Document, folders: Sequence[str]) -> Campaign:
    """Return the campaign of a document. Check it and read all files that it refers to."""
    spec = validated(CampaignSpec, document).with_table_kind().with_device()
    if document.folder is not None or not spec.is_complete:
        spec = resolved(spec, document)
    return Campaign(with_digests(spec, document, folders), document, folders)
