"""Damaged files of every kind: whether each gets an answer in time, and whether what is called valid is what it was.

`python tests/faults/damage.py --variants 20000` tries so many and prints tables; `--seed S --only N` tries one of them
again, as the number in a problem says, and `--keep FILE` leaves the damaged file there. With `--few` fewer sound files
are made, of which the variants are others.

What must be valid is known from what libhdf5 reads of a sound file (`damage_originals`): a result no byte of which was
touched, in a file whose shared bytes were not. Of sealed results it is known exactly, unless what all of a file hangs
on was hit: then only that nothing false is called valid. Of foreign ones, which have no digests, nothing can be said
once a byte of theirs was hit: those that are passed on wrong are counted.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # when started plainly: the tests' own modules

from damage_commands import NO_PERMISSION, by_command, without_permission
from damage_kinds import Damaged, drawn
from damage_originals import FEW, MANY, Hits, Original, is_same, make_originals
from damage_table import Errors, counts_of, judged_aside, tables
from parts import PART, PARTS, share
from steps import quick_folder

from leeward.store.format.found import FoundFile, FoundResult
from leeward.store.format.keys import Key
from leeward.store.format.layout_result import Result
from leeward.store.format.verdicts import Verdict
from leeward.store.isolated.reader import Found, Limits, read_files
from leeward.store.isolated.reader_process import Child
from leeward.store.merging.check import check
from leeward.store.merging.merge import merge
from leeward.store.merging.merge_report import MergeRefusedError
from leeward.store.paths import RunPaths
from merge_cases import found_in

# As patient as leeward itself, so that no sound file is blamed for a machine that stands still for a moment.
LIMITS = Limits(memory_mb=1000)
MOST_LIVES = 11  # of the reading process, for one file
START_S = 60.0  # for each of them, on a busy machine
PARENT_GROWTH_MB = 200
HOPELESS = ("truncated", "not HDF5", "empty", "no file")  # kinds of which nothing may come

COMMANDS, EVERY = 40, 10  # so many variants, in each so many-th round, are tried by the command line as well


@dataclass(frozen=True)
class Variant:
    """A damaged file. number: with the seed it says all."""

    number: int
    kind: str
    original: Original
    damaged: Damaged

    def place(self, folder: Path) -> Path:
        """A shard stands in a run directory, all else among other files."""
        if self.original.group == "shard":
            return RunPaths(folder / "layouts.h5").shard(Key.parse(next(iter(self.original.results))))
        return folder / self.original.named(self.number)

    def __str__(self) -> str:
        original = self.original
        return f"variant {self.number}, {original.group} ({original.form}), {self.kind}: {self.damaged.what}"


def variant_of(originals: Sequence[Original], seed: int, number: int) -> Variant:
    """The first ones are of each kind in turn, so that a short trial has enough of the rare ones."""
    original = originals[number % len(originals)]
    kind, damaged = drawn(original, random.Random(f"{seed} {number}"), number)
    return Variant(number, kind, original, damaged)


@dataclass
class Answer:
    """What `check` said of one file. seconds: since it had said all of the one before."""

    file: FoundFile | None = None
    results: list[FoundResult] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def valid(self) -> dict[str, Result]:
        return {found.name.rpartition("/")[2]: found.result for found in self.results if found.is_valid}


class Outcome:
    """Of all variants that were tried."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.variants: Counter[tuple[str, str]] = Counter()  # by kind and group
        self.files: defaultdict[str, Counter[str]] = defaultdict(Counter)  # verdicts on files, by kind
        self.results: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by group and kind
        self.errors: defaultdict[str, Errors] = defaultdict(Errors)  # of foreign results that passed, by kind
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.slowest = (0.0, "")
        self.merges = 0
        self.parent_mb = self.growth_mb = self.child_mb = 0.0
        self.seconds = 0.0

    def blame(self, variant: Variant, problem: str) -> None:
        self.problems.append(f"{variant}: {problem}")
        print(self.problems[-1], file=sys.stderr, flush=True)


class Trial:
    """Tries variants a round at a time: one damaged copy of each original, all in one folder."""

    def __init__(self, folder: Path, seed: int, counts: tuple[int, int, int]) -> None:
        self.outcome = Outcome(seed)
        self._folder = folder
        self._seed = seed
        (folder / "originals").mkdir()
        self.originals, self.campaign = make_originals(folder / "originals", counts)
        read_files.__kwdefaults__["limits"] = LIMITS  # merging takes none: those of this process are changed
        _measure_children(self.outcome)

    @property
    def campaign_file(self) -> Path:
        return self._folder / "originals" / "campaign.yaml"

    def variants(self, numbers: Sequence[int]) -> list[Variant]:
        return [variant_of(self.originals, self._seed, number) for number in numbers]

    def sound(self) -> list[Variant]:
        """Without any damage."""
        return [
            Variant(number, "none", original, Damaged("nothing was done", original.content))
            for number, original in enumerate(self.originals)
        ]

    def go(self, variants: Sequence[Variant], *, by_command_too: bool = False) -> dict[Path, Answer]:
        """One round: no original may come twice."""
        folder = self._folder / "round"
        output = self._folder / "output" / "all.h5"
        output.parent.mkdir()
        places = {variant.place(folder): variant for variant in variants}
        folder.mkdir()
        for place, variant in places.items():
            variant.damaged.put(place)
        answers = self._check(folder, places)
        merged = self._merge(folder, output, f"merge of {_span(variants)}")
        ends = Counter(map(os.path.realpath, places))
        for place, variant in places.items():
            # a folder among files has files; of several links to one device one is looked at
            is_silent = (place.is_dir() and place.parent == folder) or ends[os.path.realpath(place)] > 1
            self._judge(variant, answers[place], is_silent)
        if merged is not None:
            self._compare(places, answers, merged)
        if by_command_too:
            for place, answer in answers.items():
                if _is_slow(answer):
                    place.unlink()
            self._command(folder, output.parent, {place: one for place, one in answers.items() if not _is_slow(one)})
        shutil.rmtree(folder)
        shutil.rmtree(output.parent)
        return answers

    def _command(self, folder: Path, scratch: Path, answers: dict[Path, Answer]) -> None:
        """The command line has to say the same; what has no digest also stands before the campaign there."""
        campaign = self.campaign
        sound, keys = set(), set()
        for place, answer in answers.items():
            for found in answer.results:
                if not found.is_valid:
                    continue
                name = str(found.key)
                if found.key not in campaign or campaign.judge(found.result) is None:
                    sound.add((place, name, "verified" if found.is_verified else "plausible"))
                if found.sealed or self._is_merged(found.result):
                    keys.add(name)
        self.outcome.problems += by_command(folder, scratch, sound, keys, self.campaign_file)

    def _is_merged(self, result: Result) -> bool:
        """Whether a result without a digest is taken where the campaign is known."""
        return not judged_aside(result, self.campaign)[0]

    def _check(self, folder: Path, places: dict[Path, Variant]) -> dict[Path, Answer]:
        answers = {place: Answer() for place in places}
        latest = time.monotonic()

        def hear(found: Found) -> None:
            nonlocal latest
            answer = answers[found.path]
            if isinstance(found, FoundResult):
                answer.results.append(found)
                return
            if answer.file is not None:
                self.outcome.blame(places[found.path], "two answers for one file")
            now = time.monotonic()
            answer.file, answer.seconds, latest = found, now - latest, now

        with self._within(900 + 2 * len(places), f"check of {_span(places.values())}"):
            report = check([folder], judge=lambda result: None, limits=LIMITS, on_found=hear)
            plausible = sum(
                found.is_valid and not found.is_verified for one in answers.values() for found in one.results
            )
            if report.plausible != plausible:
                self.outcome.problems.append(f"{report.plausible} results called plausible; there are {plausible}")
        return answers

    def _merge(self, folder: Path, output: Path, what: str) -> dict[str, Result] | None:
        """What is in the merged file; None after a problem that is told."""
        self.outcome.merges += 1
        with self._within(900 + 4 * len(self.originals), what):
            try:
                merge([folder], output, on_bad="skip", prefer="best")
                return found_in(output)
            except MergeRefusedError as error:
                if error.report.problem.startswith("no valid result was found"):
                    return {}
                self.outcome.problems.append(f"{what}: refused, {error}")
        return None

    @contextlib.contextmanager
    def _within(self, seconds: float, what: str) -> Iterator[None]:
        """Whatever is raised is a problem, and so is what takes longer."""

        def ring(number: int, frame: object) -> None:
            raise TimeoutError(f"it takes more than {seconds:g} s")

        former = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        except Exception:  # the library promises that nothing comes of what is in files
            self.outcome.problems.append(f"{what}: {traceback.format_exc()}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)

    # --- what is promised ---

    def _judge(self, variant: Variant, answer: Answer, is_silent: bool) -> None:
        outcome, original = self.outcome, variant.original
        outcome.variants[variant.kind, original.group] += 1
        outcome.slowest = max(outcome.slowest, (answer.seconds, str(variant)))
        if answer.file is None:
            if not is_silent:
                outcome.blame(variant, "no answer")
            return
        outcome.files[variant.kind][answer.file.verdict] += 1
        outcome.results[original.group, variant.kind].update(found.verdict for found in answer.results)
        allowed_s = MOST_LIVES * (LIMITS.seconds + START_S)
        if answer.seconds > allowed_s:
            outcome.blame(variant, f"answered after {answer.seconds:.1f} s; {allowed_s:g} s are allowed")
        hits = Hits(original, variant.damaged.content)
        for problem in self._broken(variant, answer, hits):
            outcome.blame(variant, problem)
        if not original.is_sealed:
            self._count_errors(variant, answer, hits)

    def _broken(self, variant: Variant, answer: Answer, hits: Hits) -> Iterator[str]:
        original = variant.original
        valid = answer.valid
        if valid and variant.kind in HOPELESS:
            yield f"{', '.join(valid)} called valid"
        for key, expected in original.results.items() if variant.kind not in HOPELESS else ():
            if hits.leaves(key) and not (key in valid and is_same(expected, valid[key], original.is_sealed)):
                yield f"{key} was not touched, and is {_said(answer, key)}"
        for found in answer.results:
            if not found.is_valid:
                continue
            if found.sealed != original.is_sealed:
                yield f"{found.name} is {'sealed' if found.sealed else 'not sealed'}"
            if original.is_sealed:
                expected = original.results.get(found.name)
                if expected is None or not is_same(expected, found.result, exactly=True):
                    yield f"{found.name} is called valid, and is not what was stored"
                elif hits.touches(found.name) and not variant.damaged.is_coherent:
                    yield f"{found.name} is called valid, and bytes of it were touched"
            elif found.details.get("evidence") != "plausible":
                yield f"{found.name} is not called plausible, and no digest proves it"

    def _compare(self, places: dict[Path, Variant], answers: dict[Path, Answer], merged: dict[str, Result]) -> None:
        """What is merged is what was called valid, in all that it says."""
        keys = set()
        for place, variant in places.items():
            for key, result in answers[place].valid.items():
                keys.add(key)
                if key not in merged:
                    self.outcome.blame(variant, f"{key} was called valid, and is not in the merged file")
                elif not is_same(result, merged[key], exactly=True):
                    self.outcome.blame(variant, f"{key} is another in the merged file")
        for key in merged.keys() - keys:
            owner = next((one for one in places.values() if key in one.original.results), None)
            self.outcome.problems.append(f"{owner}: {key} is in the merged file, and was not called valid")

    def _count_errors(self, variant: Variant, answer: Answer, hits: Hits) -> None:
        errors = self.outcome.errors[variant.kind]
        errors.files += 1
        errors.stored += len(variant.original.results)
        errors.hit += sum(not hits.leaves(key) for key in variant.original.results)
        for key, result in answer.valid.items():
            problem = errors.add(variant.original.results.get(key), result, self.campaign)
            if problem:
                self.outcome.blame(variant, f"{key}: {problem}")


def _said(answer: Answer, key: str) -> str:
    for found in answer.results:
        if found.name.rpartition("/")[2] == key:
            return f"{found.verdict} ({found.reason})" if not found.is_valid else "changed"
    return f"not there; the file is {answer.file.verdict} ({answer.file.reason})"


def _is_slow(answer: Answer) -> bool:
    """Whether the command line, which waits longer, would be held up."""
    files = [answer.file] if answer.file is not None else []
    return any(found.verdict is Verdict.TIMED_OUT_READER for found in (*files, *answer.results))


def _span(variants: Iterable[Variant]) -> str:
    numbers = [variant.number for variant in variants]
    return f"the variants {min(numbers)} to {max(numbers)}"


# --- all -------------------------------------------------------------------------------------------------------------


def try_all(
    folder: Path, seed: int, counts: tuple[int, int, int], count: int, part: int = 1, parts: int = 1
) -> Outcome:
    """So many variants, after the sound files themselves; of several parts one."""
    began = time.monotonic()
    trial = Trial(folder, seed, counts)
    outcome = trial.outcome
    _demand_sound(trial)
    base_mb = _peak_mb(resource.RUSAGE_SELF)
    first = min(NO_PERMISSION, count // 10)
    if part == 1:
        outcome.problems += without_permission(folder, trial.originals[:first], outcome.notes)
        outcome.variants.update(("no permission", original.group) for original in trial.originals[:first])
    for numbers, is_small in share(list(_rounds(count - first, len(trial.originals))), part, parts):
        trial.go(trial.variants(numbers), by_command_too=is_small)
        passed = time.monotonic() - began
        print(f"{numbers.stop} in {passed:.0f} s, {len(outcome.problems)} problems", file=sys.stderr, flush=True)
    outcome.parent_mb = _peak_mb(resource.RUSAGE_SELF)
    outcome.growth_mb = outcome.parent_mb - base_mb
    if outcome.growth_mb > PARENT_GROWTH_MB or outcome.child_mb > LIMITS.memory_mb:
        outcome.problems.append(f"memory: {outcome.growth_mb:.0f} MB more here, {outcome.child_mb:.0f} MB in a child")
    outcome.seconds = time.monotonic() - began
    return outcome


def _rounds(count: int, size: int) -> Iterator[tuple[range, bool]]:
    """Consecutive numbers, never more than there are originals, and whether it is one of the small rounds."""
    start = number = 0
    while start < count:
        is_small = number % EVERY == 0
        stop = min(start + (COMMANDS if is_small else size), count)
        yield range(start, stop), is_small
        start, number = stop, number + 1


def _demand_sound(trial: Trial) -> None:
    """Without damage everything is valid, also for the campaign, and nothing of it is counted."""
    answers = trial.go(trial.sound())
    valid = [result for answer in answers.values() for result in answer.valid.values()]
    stored = sum(len(original.results) for original in trial.originals)
    wrong = [reason for result in valid if result.key in trial.campaign and (reason := trial.campaign.judge(result))]
    if trial.outcome.problems or wrong or len(valid) != stored:
        raise RuntimeError(f"the sound files are not: {len(valid)} of {stored}, {trial.outcome.problems}, {wrong}")
    trial.outcome.variants.clear()
    trial.outcome.files.clear()
    trial.outcome.results.clear()
    trial.outcome.errors.clear()


def try_one(folder: Path, seed: int, counts: tuple[int, int, int], number: int, keep: Path | None) -> Outcome:
    trial = Trial(folder, seed, counts)
    (variant,) = trial.variants([number])
    print(variant)
    if keep is not None:
        variant.damaged.put(keep)
    for answer in trial.go([variant]).values():
        for found in (*answer.results, *([answer.file] if answer.file is not None else ())):
            name = found.name if isinstance(found, FoundResult) else "the file"
            print(f"  {name}: {found.verdict} {found.reason}")
    return trial.outcome


def _measure_children(outcome: Outcome) -> None:
    """Note how large each reading process was, right before it is ended."""
    end = Child.close

    def close(child: Child) -> int | None:
        with contextlib.suppress(OSError):  # it may be gone
            for line in Path(f"/proc/{child.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM"):
                    outcome.child_mb = max(outcome.child_mb, int(line.split()[1]) / 1024)
        return end(child)

    Child.close = close


def _peak_mb(whose: int) -> float:
    return resource.getrusage(whose).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("LEEWARD_FAULTS_SEED") or 1))
    parser.add_argument("--variants", type=int, default=500)
    parser.add_argument("--counts", type=Path, metavar="FILE", help="write the figures there, as JSON")
    parser.add_argument("--few", action="store_true", help="sound files")
    parser.add_argument("--only", type=int, help="the number of one variant")
    parser.add_argument("--keep", type=Path, help="where to leave that one")
    options = parser.parse_args()
    counts = FEW if options.few else MANY
    with quick_folder() as folder:
        if options.only is not None:
            outcome = try_one(folder, options.seed, counts, options.only, options.keep)
        else:
            outcome = try_all(folder, options.seed, counts, options.variants, PART, PARTS)
            print(tables(outcome))
            if options.counts is not None:
                options.counts.write_text(json.dumps(counts_of(outcome)))
    for problem in outcome.problems:
        print(f"PROBLEM, seed {outcome.seed}{', --few' if options.few else ''}: {problem}")
    sys.exit(1 if outcome.problems else 0)


if __name__ == "__main__":
    main()
