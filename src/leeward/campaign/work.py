"""The kind of work `layouts`: one task for every farm, turbine type and seed of a campaign."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from pkgutil import resolve_name

from leeward.campaign.adopt import Adopter, Adoption
from leeward.campaign.batch import TaskFailure
from leeward.campaign.campaign import Campaign
from leeward.campaign.compute import ShowProgress, compute, warm_up
from leeward.campaign.execution import Execution, with_user_defaults
from leeward.campaign.selection import chosen_tasks
from leeward.errors import LeewardError
from leeward.store import FoundResult, Key, Result, Value
from leeward.wording import listed

MOST_LISTED = 12

ComputeMany = Callable[[Campaign, Sequence[Key], ShowProgress], Iterator[Result | TaskFailure]]


class LayoutWork:
    """A campaign as work for runs, engines and workers. See `leeward.engines.work.Work`."""

    kind = "layouts"
    can_adopt = True

    def __init__(self, campaign: Campaign) -> None:
        self.source = campaign
        self.name = campaign.name
        self.n_tasks = campaign.n_tasks
        self.method_version = campaign.fingerprints.method_version
        self.version_of = campaign.fingerprints.version_of
        self.frozen_text, self.study_text = campaign.frozen_text, campaign.study_text

    @classmethod
    def from_text(cls, text: str, where: str) -> "LayoutWork":
        return cls(Campaign.from_text(text, where))

    @functools.cached_property
    def execution(self) -> Execution:
        return with_user_defaults(self.source.execution)

    def __contains__(self, key: object) -> bool:
        return key in self.source

    def __repr__(self) -> str:
        return repr(self.source)

    def check(self) -> Iterable[str]:
        self.source.check()
        return self.source.physics.wake_model.remarks

    def select(self, only: str | Collection[Key] | None) -> Iterable[Key]:
        return self.source.tasks() if only is None else chosen_tasks(self.source, only)

    def group(self, key: Key) -> tuple[int, int]:
        return key.farm_idx, key.type_idx

    def fingerprint(self, key: Key) -> str:
        return self.source.fingerprint(key.farm_idx, key.type_idx)

    def compute(self, key: Key, show_progress: ShowProgress) -> Result:
        if self.source.device is not None:  # the result would have the fingerprint of a GPU
            raise LeewardError(f"{self.name} is computed on a GPU (optimiser.device); use --engine gpu")
        return compute(self.source, key, show_progress)

    def compute_many(self, keys: Sequence[Key], show_progress: ShowProgress) -> Iterator[Result | TaskFailure]:
        compute_many: ComputeMany = resolve_name("leeward.campaign.gpu:compute_many")  # imports numba-cuda
        return compute_many(self.source, keys, show_progress)

    def warm_up(self) -> None:
        if self.source.device is None:  # for a GPU, `compute_many` compiles the kernels
            warm_up(self.source)

    def attributes(self) -> dict[str, Value]:
        campaign = self.source
        return {
            "campaign": campaign.study_text(),
            "campaign_name": campaign.name,
            "grid_size": campaign.spec.optimiser.grid_size,
            "random_pct": float(campaign.spec.optimiser.random_pct),
            "crs": campaign.crs or "",
        }

    def differences(self, before: "LayoutWork", keys: Iterable[Key]) -> list[str]:
        former = before.source
        pairs = sorted({self.group(key) for key in keys})
        found: dict[str, list[str]] = {}
        for farm, type_idx in pairs:
            if farm in former.farms and type_idx in former.types:
                for difference in self.source.differences(former, farm, type_idx):
                    found.setdefault(difference, []).append(f"farm {farm} type {type_idx}")
        lines = [
            difference if len(where) == len(pairs) else f"{difference} ({listed(where, 3)})"
            for difference, where in found.items()
        ]
        return lines[:MOST_LISTED] + (["..."] if len(lines) > MOST_LISTED else [])

    def adopt(
        self,
        sources: Iterable[Path],
        done: Collection[Key],
        keep_infeasible: bool,
        store: Callable[[Result], None],
        notice: Callable[[], None],
    ) -> Adoption:
        return Adopter(self.source, keep_infeasible).adopt(sources, done, store, notice)

    def refusal(self, found: FoundResult) -> str | None:
        return Adopter(self.source, keep_infeasible=True).refusal(found)

    def result_bytes(self, keys: Iterable[Key] | None) -> int:
        campaign = self.source
        everything = ((farm, type_idx) for farm in campaign.farms for type_idx in campaign.types)
        pairs = everything if keys is None else {self.group(key) for key in keys}
        return 16 * max((campaign.physics.n_turbines(*pair) for pair in pairs), default=0)
