"""`leeward show`: show one layout or one evaluation."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument

from leeward import watch
from leeward.capacity import capacity_factor, comparison_remark
from leeward.cli.options import CAMPAIGN_FILE, CSV, PLACE_OR_FOLDER, Options
from leeward.cli.output import csv_table, csv_target, table, write_file
from leeward.cli.sources import Names, given_place, known_campaigns
from leeward.wording import duration, work_done

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.store import Result

COLUMNS = ["turbine", "x_m", "y_m"]


class ShowOptions(Options):
    """Show one layout or one evaluation of a study: its yield and its origin.

    For a layout, prints the coordinates, AEP, installed power, capacity factor, wake loss, smallest distance between
    turbines and the phases of the optimisation. `leeward plot layout` draws the layout.

    For an evaluation, prints AEP, loss and the mean power of each window for each case, and the neighbours with the
    step from which each stands.

    Exit codes: 0 shown; 1 the result is missing or damaged; 2 usage error; 4 the storage is unavailable, or FILE cannot
    be written.
    """

    key: str = Argument(
        ...,
        help='Layout to show: farm0_t5_s3, "0 5 3" or 0,5,3 (farm, type, seed), or "farm name/type name/3". Or an '
        "evaluation of a study: target0_scenario3.",
    )
    path: Path | None = PLACE_OR_FOLDER
    csv_file: str | None = CSV(help="Write the coordinates (m), or the cases, to this CSV file; - prints them.")
    campaign: str | None = CAMPAIGN_FILE


def show(options: ShowOptions) -> None:
    """Print one layout or one evaluation."""
    target = csv_target(options.csv_file)
    kind = "evaluations" if options.key.startswith("target") else None
    place = given_place(options.path, kind)
    watch.demand_place(place)
    if watch.kind_of(place) == "evaluations":
        from leeward.cli.show_evaluation import show_evaluation

        show_evaluation(place, options.key, options.campaign, target, as_csv=options.csv_file == "-")
    else:
        _show_layout(options, place, target)


def _show_layout(options: ShowOptions, place: Path, target: Path | None) -> None:
    from leeward.campaign.remarks import is_by_capacity_factor

    seen = watch.find_result(place, Names(options.campaign, place).keys([options.key])[0])
    rows = [[turbine, x, y] for turbine, (x, y) in enumerate(seen.result.layout.T.tolist())]
    if options.csv_file == "-":
        print(csv_table(COLUMNS, rows), end="")
        return
    if target is not None:
        write_file(target, csv_table(COLUMNS, rows))
    else:
        shown = ([turbine, f"{x:.2f}", f"{y:.2f}"] for turbine, x, y in rows)
        print(table(shown, header=COLUMNS, right=(0, 1, 2)))
        print()
    print(f"{seen.result.key}  in {seen.file}")
    campaigns, _ = known_campaigns(options.campaign, [place])
    made_for = campaigns[0] if len(campaigns) == 1 else None
    print(table(_facts(seen.result, made_for)))
    farm = seen.result.key.farm_idx
    if made_for is not None and farm in made_for.farms and is_by_capacity_factor(made_for, farm):
        print(comparison_remark([f"{farm} {made_for.farms[farm]}"], len(made_for.farms)))
    if target is not None:
        print(f"written: {target}")


def _facts(result: "Result", campaign: "Campaign | None") -> Iterator[tuple[str, str]]:
    """Yield names and values: the yield, the origin if the campaign is known, and all other details of the result."""
    from leeward.campaign.remarks import installed_of, optimiser_words

    details, key = dict(result.details), result.key
    yield "AEP", "not known" if math.isnan(result.aep_gwh) else f"{result.aep_gwh:.4f} GWh"
    installed = installed_of(campaign, result)
    factor = capacity_factor(result.aep_gwh, installed)
    yield "installed", "not known" if math.isnan(installed) else f"{installed:.6g} MW"
    yield "capacity factor", "not known" if math.isnan(factor) else f"{factor:.2%}"
    details.pop("installed_mw", None)
    for name, text in (("wake_loss", "{:z.2%}"), ("min_spacing_m", "{:.1f} m"), ("violation_m", "{:.3g} m")):
        value = details.pop(name, None)
        if isinstance(value, float) and math.isfinite(value):
            yield name.removesuffix("_m").replace("_", " ").replace("min ", "closest "), text.format(value)
    yield "turbines", f"{result.n_turbines}, rotor {result.rotor_diameter_m:g} m"
    if campaign is not None and key.farm_idx in campaign.farms:
        yield "farm", f"{key.farm_idx} {campaign.farms[key.farm_idx]}"
    if campaign is not None and key.type_idx in campaign.types:
        yield "turbine type", f"t{key.type_idx} {campaign.types[key.type_idx]}"
    if campaign is not None and result.origin == "leeward":
        yield "optimiser", optimiser_words(campaign)
    yield from ((f"after {phase}", f"{aep:.4f} GWh") for phase, aep in watch.phases_of(result).items())
    for name in ("phases", "aep_by_phase"):
        details.pop(name, None)
    yield "stopped", f"{result.stop_reason or 'not known'}, after {result.steps} steps"
    seconds = details.pop("seconds", None)
    if isinstance(seconds, float) and math.isfinite(seconds):
        yield "took", duration(seconds) if seconds >= 10 else f"{seconds:.2f} s"
    work = details.pop("work", None)
    if isinstance(work, int) and work:  # not known for a custom recipe
        yield "work", work_done(work)
    yield "status", result.status
    yield "origin", result.origin
    yield "fingerprint", result.fingerprint or "none"
    yield "digest", result.digest
    for name, value in sorted(details.items()):
        yield name.replace("_", " "), f"{value:.6g}" if isinstance(value, float) else str(value)
