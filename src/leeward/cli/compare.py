"""`leeward compare`: the regret of layouts over scenarios, and the layouts that criteria select."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Argument, Exit, Option

from leeward.cli.options import CSV, Options
from leeward.cli.output import EXIT_INCOMPLETE, MOST_LISTED, check_files, csv_table, csv_target, note, table, write_file
from leeward.cli.sources import given_place
from leeward.errors import InputError
from leeward.wording import count, json_text, listed

if TYPE_CHECKING:
    from leeward.study.comparison import Comparison


class CompareOptions(Options):
    """Compare the layouts of a study over its scenarios, and print the layout that each criterion selects.

    The criteria are weighted mean, worst case, CVaR (mean over the worst share of the weight) and maximum regret. The
    regret of a layout in a scenario is the AEP of the best layout there minus its own. Layouts whose installed power
    differs by more than 0.5 % are compared by capacity factor.

    Exit codes: 0 compared; 3 results are missing; 1 PATH cannot be read; 2 usage error; 4 a file cannot be written.
    """

    path: Path | None = Argument(
        None, help="study.h5 or run directory of a study. Default: the only run in the current folder."
    )
    case: str = Option("all", help="Wakes to count: all, external, internal or none.")
    scenarios: tuple[str, str] | None = Option(
        None,
        metavar="A B",
        help="Names or numbers of two scenarios, for the Pareto front. Default: both scenarios of a study of two.",
    )
    alpha: float = Option(0.1, help="Share of the weight that CVaR averages over, above 0 and at most 1.")
    only_complete: bool = Option(
        False, "--only-complete", help="Compare only the scenarios in which all layouts have results."
    )
    csv_file: str | None = CSV(help="Write the regrets to this CSV file, one row per layout; - prints them.")
    as_json: bool = Option(False, "--json", help="Print all numbers as JSON.")
    output: Path | None = Option(
        None, "--output", "-o", help="Picture of regrets and Pareto front to write: .png, .svg or .pdf."
    )


def compare(options: CompareOptions) -> None:
    """Print the comparison of the layouts of a study."""
    target = csv_target(options.csv_file, options.as_json)
    check_files(target, options.output)
    from leeward.cli.study_figures import pair_of
    from leeward.plots import study_data
    from leeward.study.comparison import MissingResultsError

    place = given_place(options.path, "evaluations")
    results, remarks = study_data.opened(place)
    choice: dict[str, Any] = {"alpha": options.alpha, "only_complete": options.only_complete}
    try:
        with results:
            comparison = study_data.comparison_of(results, options.case, **choice)
            name = study_data.name_of(results)
    except MissingResultsError as error:
        print(f"leeward: {place}: {error}", file=sys.stderr)
        raise Exit(EXIT_INCOMPLETE) from error
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    pair = pair_of(comparison, options.scenarios)
    for remark in (*remarks, *comparison.notes):
        note(remark)
    _print(options, place, comparison, pair, target)
    if options.output is not None:
        from leeward.cli.figures import save
        from leeward.plots.regret import comparison_figure

        save(comparison_figure(comparison, pair, f"{name}, case {options.case}"), options.output)
        is_data = options.as_json or options.csv_file == "-"
        print(f"written: {options.output}", file=sys.stderr if is_data else None)


def _print(
    options: CompareOptions, place: Path, found: "Comparison", pair: tuple[int, int] | None, target: Path | None
) -> None:
    text = csv_table(
        ["layout", *_distinct(found.matrix.scenarios, found.matrix.scenario_numbers)],
        [[name, *row] for name, row in zip(found.matrix.layouts, found.regret.tolist(), strict=True)],
    )
    if target is not None:
        write_file(target, text)
    if options.as_json:
        print(json_text(_as_data(found, pair)))
    elif options.csv_file == "-":
        print(text, end="")
    else:
        _print_tables(place, found, pair)
    if target is not None:
        print(f"written: {target}")


def _print_tables(place: Path, found: "Comparison", pair: tuple[int, int] | None) -> None:
    matrix = found.matrix
    scale, unit, digits = (100.0, "%", 3) if found.is_by_factor else (1.0, "GWh", 2)
    sizes = f"{count(len(matrix.layouts), 'layout')}, {count(len(matrix.scenarios), 'scenario')}"
    print(f"{place}: {sizes}, case {matrix.case}")
    headers = [f"{name.replace('_', ' ')} {unit}" for name in found.criteria]
    headers[headers.index(f"cvar {unit}")] = f"CVaR {100 * found.alpha:g} % {unit}"
    order = sorted(range(len(matrix.layouts)), key=lambda row: -found.criteria["weighted_mean"][row])
    cells = [
        [matrix.layouts[row], *(f"{scale * values[row]:.{digits}f}" for values in found.criteria.values())]
        for row in order
    ]
    right = range(1, len(headers) + 1)
    rest = "; --json prints all"
    print(table(cells, header=["layout", *headers], right=right, most=MOST_LISTED, rest=rest))
    print("selected:")
    names = {name: [matrix.layouts[row] for row in rows] for name, rows in found.selected.items()}
    rows = [(SELECTED[name].format(alpha=f"{100 * found.alpha:g} %"), listed(chosen)) for name, chosen in names.items()]
    print(table(rows))
    if pair is not None:
        one, other = (matrix.scenarios[column] for column in pair)
        front = found.front(*pair)
        print(f"Pareto front of {one!r} and {other!r}: {count(len(front), 'layout')}")
        cells = [
            [matrix.layouts[row], *(f"{scale * found.values[row, column]:.{digits}f}" for column in pair)]
            for row in front
        ]
        header = ["layout", f"{one} {unit}", f"{other} {unit}"]
        print(table(cells, header=header, right=(1, 2), most=MOST_LISTED, rest=rest))


SELECTED = {
    "weighted_mean": "highest weighted mean",
    "worst_case": "best worst case",
    "cvar": "best CVaR {alpha}",
    "maximum_regret": "lowest maximum regret",
}


def _distinct(names: Sequence[str], numbers: Sequence[int]) -> list[str]:
    """Return the names, with the number added to those that occur several times."""
    return [
        name if names.count(name) == 1 else f"{name} ({number})" for name, number in zip(names, numbers, strict=True)
    ]


def _as_data(found: "Comparison", pair: tuple[int, int] | None) -> dict[str, Any]:
    matrix = found.matrix
    layouts = [
        {"layout": name, "target_idx": number, "installed_mw": float(installed)}
        | {criterion: float(values[row]) for criterion, values in found.criteria.items()}
        for row, (name, number, installed) in enumerate(
            zip(matrix.layouts, matrix.layout_numbers, matrix.installed_mw, strict=True)
        )
    ]
    scenarios = [
        {"scenario": name, "scenario_idx": number, "weight": float(weight)}
        for name, number, weight in zip(matrix.scenarios, matrix.scenario_numbers, matrix.weights, strict=True)
    ]
    front = None
    if pair is not None:
        rows = found.front(*pair)
        front = {
            "scenarios": [matrix.scenarios[column] for column in pair],
            "layouts": [matrix.layouts[row] for row in rows],
        }
    return {
        "case": matrix.case,
        "alpha": found.alpha,
        "quantity": "capacity_factor" if found.is_by_factor else "aep_gwh",
        "layouts": layouts,
        "scenarios": scenarios,
        "values": found.values.tolist(),
        "regret": found.regret.tolist(),
        "relative_regret": found.relative_regret.tolist(),
        "selected": {name: [matrix.layouts[row] for row in rows] for name, rows in found.selected.items()},
        "pareto_front": front,
        "notes": list(found.notes),
    }
