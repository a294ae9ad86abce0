"""Select tasks of a study: by key, or by the numbers of targets and scenarios."""

from collections.abc import Collection, Iterator

from leeward.campaign.seeds import parse_range
from leeward.errors import InputError
from leeward.store import EvaluationKey
from leeward.study.study import Study

EXAMPLE = '"target=0,2 scenario=0:100"'


def chosen_evaluations(study: Study, only: str | Collection[EvaluationKey | str]) -> list[EvaluationKey]:
    """Return the tasks that a text or a list of keys selects, in the order of the study."""
    if not isinstance(only, str):
        keys = {EvaluationKey.parse(key) if isinstance(key, str) else EvaluationKey(*key) for key in only}
        unknown = sorted(key for key in keys if key not in study)
        if unknown:
            raise InputError(f"{unknown[0]} is not a task of {study!r}")
        return [key for key in study.tasks() if key in keys]
    chosen = dict(_parsed(only, study))
    targets, scenarios = chosen.get("target", set(study.targets)), chosen.get("scenario", set(study.scenarios))
    return [key for key in study.tasks() if key.target_idx in targets and key.scenario_idx in scenarios]


def _parsed(text: str, study: Study) -> Iterator[tuple[str, set[int]]]:
    """Yield each field of a selection, and the numbers that it selects."""
    known = {"target": study.targets, "scenario": study.scenarios}
    for part in text.split():
        name, equals, values = part.partition("=")
        if not equals or name not in known or not values:
            raise InputError(f"--only: {part!r:.60} is not understood; expected target= or scenario=, as in {EXAMPLE}")
        numbers: set[int] = set()
        for value in values.split(","):
            by_name = [number for number, label in known[name].items() if label == value]
            if value.isascii() and value.isdigit():
                numbers.add(int(value))
            elif by_name:
                numbers.update(by_name)
            elif (span := parse_range(value)) is not None:
                numbers.update(number for number in known[name] if number in span)
            else:
                raise InputError(f"--only: {value!r:.60} is not a {name}; expected numbers, a range or a name")
        yield name, numbers
