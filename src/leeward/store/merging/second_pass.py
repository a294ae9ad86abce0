"""The second pass of a merge: the chosen results themselves, on their way from their files to the output."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from leeward.errors import BadSourceError, LeewardError
from leeward.events import OnProgress
from leeward.store.format.found import FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.kind import Array
from leeward.store.format.layout_result import NO_AEP, SUCCESS, Result
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import read_files
from leeward.store.merging.merge_report import BadResult, MergeReport
from leeward.store.merging.survey import Survey

Recompute = Callable[[Key, Array, Array], tuple[float, float, float]]  # key, x, y -> AEP (GWh), wake loss, spacing (m)


class SecondPass:
    """The chosen results themselves, file by file, as they go to the output."""

    def __init__(
        self, survey: Survey, report: MergeReport, recompute: Recompute | None, on_progress: OnProgress, processes: int
    ) -> None:
        self._survey = survey
        self._report = report
        self._recompute = recompute
        self._on_progress = on_progress
        self._processes = processes
        self._kinds: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}

    def results(self) -> Iterator[Result]:
        files = self._report.files
        wanted = self._wanted()
        names = {files[number].read_from: groups for number, groups in wanted.items() if groups is not None}
        numbers = iter(sorted(wanted))
        number = next(numbers)
        done = 0
        ordered = (files[number].read_from for number in sorted(wanted))
        for found in read_files(ordered, contents=True, keys=names, processes=self._processes):
            if not isinstance(found, FoundResult):
                number = next(numbers, -1)
            elif found.key is not None and self._is_chosen(found, number):
                if found.result is None:
                    raise BadSourceError(f"{found.path}: {found.name} changed while it was merged ({found.reason})")
                result = self._with_aep(found.result)
                self._note(number, result)
                done += 1
                self._on_progress("writing", done, len(self._survey.chosen))
                yield result
        if done != len(self._survey.chosen):
            raise BadSourceError(
                f"{len(self._survey.chosen) - done} results are gone from their files since they were checked"
            )

    def _wanted(self) -> dict[int, list[str] | None]:
        """Which groups of which file; None: it is read whole, as all or nearly all of it is taken."""
        groups: dict[int, list[str]] = defaultdict(list)
        for candidate in self._survey.chosen.values():
            groups[candidate.source].append(candidate.group)
        files = self._report.files
        return {number: None if len(taken) == files[number].valid else taken for number, taken in groups.items()}

    def _is_chosen(self, found: FoundResult, number: int) -> bool:
        candidate = self._survey.chosen.get(found.key) if found.key is not None else None
        if candidate is None or candidate.source != number or candidate.group != found.name:
            return False
        if found.is_valid and bytes.fromhex(found.digest) != candidate.digest:
            if found.sealed or self._report.on_bad == "abort":
                raise BadSourceError(f"{found.path}: {found.name} changed while it was merged; start again")
            self._give_up(number, candidate.key, found.name)
            return False
        return True

    def _give_up(self, number: int, key: Key, name: str) -> None:
        """A result without a digest that is another one each time it is read, as damage can make libhdf5 do."""
        file = self._report.files[number]
        file.bad = (*file.bad, BadResult(name, Verdict.UNREADABLE, "it is another one each time it is read"))
        file.valid -= 1
        del self._survey.chosen[key]
        if self._report.missing is not None:
            self._report.missing = sorted([*self._report.missing, key])

    def _with_aep(self, result: Result) -> Result:
        if self._recompute is None or result.status != NO_AEP:
            return result
        try:
            aep, wake_loss, spacing = self._recompute(result.key, result.layout[0], result.layout[1])
        except LeewardError as error:  # the layout is kept, and counted apart
            self._report.not_recomputed[result.key] = str(error)
            return result
        self._report.recomputed.append(result.key)
        details = {**result.details, "aep_source": "recomputed", "wake_loss": wake_loss, "min_spacing_m": spacing}
        return replace(result, aep=aep, status=SUCCESS, details=details)

    def _note(self, number: int, result: Result) -> None:
        file = self._report.files[number]
        names = tuple(result.datasets), tuple(result.attributes)
        kind = self._kinds.setdefault(names, len(self._kinds))
        if kind == len(self._report.kinds):
            self._report.kinds.append(names)
        file.taken += 1
        if kind not in file.kinds:
            file.kinds = (*file.kinds, kind)
