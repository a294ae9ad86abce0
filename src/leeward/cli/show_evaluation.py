"""Show one evaluation of a study, for `leeward show`."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from leeward import watch
from leeward.cli.output import csv_table, table, write_file
from leeward.cli.sources import evaluation_key, known_works
from leeward.errors import BadSourceError
from leeward.store import Evaluation, EvaluationKey
from leeward.wording import count, duration

if TYPE_CHECKING:
    from leeward.study import Study

FACTS = {
    "weight": ("weight", "{:.6g}"),
    "n_turbines": ("turbines", "{}"),
    "installed_mw": ("installed", "{:.6g} MW"),
    "n_neighbours": ("turbines of neighbours", "{}"),
}
SHOWN = ("target", "scenario", "windows", "seconds", *FACTS)


def show_evaluation(place: Path, text: str, campaign: str | None, target: Path | None, *, as_csv: bool) -> None:
    """Print one evaluation. target: a CSV file for its cases. as_csv: print them as CSV."""
    key = evaluation_key(text)
    seen = watch.find_result(place, key)
    result = seen.result
    if not isinstance(result, Evaluation):
        raise BadSourceError(f"{seen.file}: {key} is not an evaluation")
    powers = [f"{name}_power_mw" for name in _windows(result)]
    header, rows = ["case", "aep_gwh", "wake_loss", *powers], _cases(result)
    if as_csv:
        print(csv_table(header, rows), end="")
        return
    if target is not None:
        write_file(target, csv_table(header, rows))
    study = _study(campaign, place, result)
    texts = [[case, f"{aep:.4f}", f"{loss:z.2%}"] for case, aep, loss, *_ in rows]
    print(f"{key}  in {seen.file}")
    print(table(texts, header=["case", "AEP, GWh", "loss"], right=(1, 2)))
    if result.window_power_mw is not None:
        print()
        means = zip(_windows(result), result.window_power_mw.T.tolist(), strict=True)
        lines = ([name, *map("{:.3f}".format, values)] for name, values in means)
        header = ["mean power, MW", *result.cases]
        print(table(lines, header=header, right=range(1, len(header))))
    print()
    print(table(_facts(result)))
    if study is not None:
        print("\n".join(_neighbours(study, key)))
    if target is not None:
        print(f"written: {target}")


def _study(campaign: str | None, place: Path, result: Evaluation) -> "Study | None":
    """Return the study of an evaluation; None if it is not known."""
    from leeward.study import Study

    found, _ = known_works(campaign, [place])
    studies = (work for work in found if isinstance(work, Study) and result.key in work)
    return next((study for study in studies if study.judge.version_of(result) is not None), None)


def _windows(result: Evaluation) -> list[str]:
    """Return the names of the windows whose power the result has."""
    if result.window_power_mw is None:
        return []
    names = str(result.details.get("windows", "")).split(",")
    number = result.window_power_mw.shape[1]
    return names if len(names) == number else [f"window {place}" for place in range(number)]


def _cases(result: Evaluation) -> list[tuple[str, float, float, *tuple[float, ...]]]:
    """Return a row for each case: AEP (GWh), wake loss (fraction) and the mean power of each window (MW)."""
    power = result.window_power_mw
    means = [[] for _ in result.cases] if power is None else power.tolist()
    return [(case, result.case_aep_gwh(case), result.wake_loss(case), *means[i]) for i, case in enumerate(result.cases)]


def _facts(result: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield names and values: losses, target, scenario, and the origin of the result."""
    details, key = result.details, result.key
    yield "gross yield", f"{result.gross_aep_gwh:.4f} GWh"
    yield from ((f"{name} loss", f"{loss:z.2%}") for name, loss in watch.losses_of(result).items())
    yield "target", f"{key.target_idx} {details.get('target', '')}".strip()
    name = str(details.get("scenario", ""))
    yield "scenario", name if name == str(key.scenario_idx) else f"{key.scenario_idx} {name}".strip()
    yield from ((title, words.format(details[name])) for name, (title, words) in FACTS.items() if name in details)
    seconds = details.get("seconds")
    if isinstance(seconds, float) and math.isfinite(seconds):
        yield "took", duration(seconds) if seconds >= 10 else f"{seconds:.2f} s"
    yield "status", result.status
    yield "origin", result.origin
    yield "fingerprint", result.fingerprint or "none"
    yield "digest", result.digest
    for name, value in sorted(details.items()):
        if name not in SHOWN:
            yield name.replace("_", " "), f"{value:.6g}" if isinstance(value, float) else str(value)


def _neighbours(study: "Study", key: EvaluationKey) -> Iterator[str]:
    """Yield a table of the neighbours, and what the scenario overrides."""
    neighbours = study.neighbours(key.scenario_idx)
    yield ""
    if not neighbours:
        yield "no neighbours"
    else:
        yield f"{count(len(neighbours), 'neighbour')}:"
        header = ["layout", "turbines", "from step", "date", "until step"]
        times = study.times
        rows = (
            [
                *(one.name, len(one.x), one.first, times[one.first] if one.first < len(times) else "-"),
                "-" if one.end is None else one.end,
            ]
            for one in neighbours
        )
        yield table(rows, header=header, right=(1, 2, 4))
    yield from (f"{name} is {value} in this scenario" for name, value in study.overrides(key.scenario_idx).items())
