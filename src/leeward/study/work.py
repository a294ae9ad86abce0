"""The kind of work `evaluations`: one task for every target and scenario of a study."""

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from leeward.campaign.batch import TaskFailure
from leeward.campaign.execution import Execution, with_user_defaults
from leeward.campaign.fingerprint import differences
from leeward.errors import InputError, LeewardError
from leeward.store import Evaluation, EvaluationKey, FoundResult, Value
from leeward.study.selection import chosen_evaluations
from leeward.study.study import Study
from leeward.study.wind import wind_differences
from leeward.wording import count

MOST_COMPARED = 1000

ComputeMany = Callable[[Study, Sequence[EvaluationKey], Callable[..., None]], Iterator[Evaluation | TaskFailure]]


class StudyWork:
    """A study as work for runs, engines and workers. See `leeward.engines.work.Work`."""

    kind = "evaluations"
    can_adopt = False

    def __init__(self, study: Study) -> None:
        self.source = study
        self.name = study.name
        self.n_tasks = study.n_tasks
        self.method_version = study.method_version
        self.frozen_text, self.study_text = study.frozen_text, study.study_text
        self.fingerprint = study.fingerprint

    @classmethod
    def from_text(cls, text: str, where: str) -> "StudyWork":
        return cls(Study.from_text(text, where))

    @functools.cached_property
    def execution(self) -> Execution:
        return with_user_defaults(self.source.execution)

    def __contains__(self, key: object) -> bool:
        return key in self.source

    def __repr__(self) -> str:
        return repr(self.source)

    def check(self) -> Iterable[str]:
        if self.source.device is not None:
            self.source.demand_gpu()
        return ()

    def select(self, only: str | Collection[EvaluationKey] | None) -> Iterable[EvaluationKey]:
        return self.source.tasks() if only is None else chosen_evaluations(self.source, only)

    def group(self, key: EvaluationKey) -> int:
        return key.target_idx

    def compute(self, key: EvaluationKey, show_progress: Callable[..., None]) -> Evaluation:
        if self.source.device is not None:  # the result would have the fingerprint of a GPU
            raise LeewardError(f"{self.name} is computed on a GPU (device); use --engine gpu")
        return self.source.evaluate(key)

    def compute_many(
        self, keys: Sequence[EvaluationKey], show_progress: Callable[..., None]
    ) -> Iterator[Evaluation | TaskFailure]:
        compute_many: ComputeMany = resolve_name("leeward.study.gpu:compute_many")  # imports numba-cuda
        return compute_many(self.source, keys, show_progress)

    def warm_up(self) -> None:
        if self.source.device is None:  # for a GPU, `compute_many` compiles the kernels
            self.source.warm_up()

    def version_of(self, key: EvaluationKey, fingerprint: str | None, stated: int | None) -> int | None:
        version = self.method_version if stated is None else stated
        return version if fingerprint == self.fingerprint(key, version) else None

    def attributes(self) -> dict[str, Value]:
        study = self.source
        return {"campaign": study.study_text(), "campaign_name": study.name, "crs": study.crs or ""}

    def differences(self, before: "StudyWork", keys: Iterable[EvaluationKey]) -> list[str]:
        common = sorted(key for key in keys if key in before.source)
        found: Counter[str] = Counter()
        for key in common[:MOST_COMPARED]:
            old, new = before.source.settings(key), self.source.settings(key)
            words = self._in_words(before.source, key)
            found.update(words[name] for name in words if old[name] != new[name])
            plain = [{name: value for name, value in each.items() if name not in words} for each in (new, old)]
            found.update(differences(*plain))
        compared = min(len(common), MOST_COMPARED)
        return [f"{line} ({number} of {count(compared, 'task')} compared)" for line, number in found.items()]

    def _in_words(self, before: Study, key: EvaluationKey) -> dict[str, str]:
        """Return a sentence for each setting whose value is a digest, in case it differs."""
        target = self.source.targets[key.target_idx]
        return {
            "target": f"target: positions or turbine of {target} (was {before.targets[key.target_idx]})",
            "wind": f"wind: {', '.join(wind_differences(self.source.data.winds, before.data.winds)) or 'another wind'}",
            "neighbours": "neighbours: other layouts, turbines or steps",
        }

    def result_bytes(self, keys: Iterable[EvaluationKey] | None) -> int:
        return sum(self.source.result_bytes().values())

    def adopt(
        self, sources: Iterable[Path], done: Collection[EvaluationKey], keep_infeasible: bool, store: Any, notice: Any
    ) -> Any:
        raise InputError("a study cannot adopt results of another origin; merge studies with `leeward merge`")

    def refusal(self, found: FoundResult) -> str | None:
        return "a study cannot adopt results of another origin"
