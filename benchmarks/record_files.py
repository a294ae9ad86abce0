"""The stored records: the best layout of each case (HDF5), table.json, and docs/records.md with its pictures."""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from record_cases import FOLDER, Case, all_cases, demand_feasible

ROOT = Path(__file__).resolve().parent.parent
TABLE = FOLDER / "table.json"
PAGE = ROOT / "docs" / "records.md"
PICTURES = ROOT / "docs" / "pictures"
BEGIN, END = "<!-- made by `make bench-records` -->", "<!-- end of what `make bench-records` makes -->"
BETTER = 1e-9  # relative gain in AEP from which a layout replaces the record
NOTHING = "–"
PICTURE_WIDTH = 640  # pixels

RECORD_HEADER = ["case", "turbines", "best published, MWh", "source", "record, MWh", "difference", "made by"]
EFFORT_HEADER = ["case", "turbines", "best published, MWh", "source", "effort", "seeds"]
EFFORT_HEADER += ["median, MWh", "best, MWh", "CPU s", "spread"]


@dataclass(frozen=True)
class Record:
    """A layout. x, y: m. made_by: program, effort and seed, or a person. seed: part of its key in the HDF5 file."""

    x: np.ndarray
    y: np.ndarray
    aep_mwh: float
    made_by: str
    seed: int = 0


# records in HDF5 files


def stored_records(cases: dict[str, Case]) -> dict[str, Record]:
    """Return the stored records of some cases, by name."""
    from leeward import open_layouts

    found = {}
    for path in sorted({case.record_file for case in cases.values() if case.record_file.exists()}):
        with open_layouts(path) as layouts:
            results = {(key.farm_idx, key.type_idx): layouts[key] for key in layouts}
        for name, case in cases.items():
            result = results.get((case.farm_idx, case.type_idx)) if case.record_file == path else None
            if result is not None:
                made_by = str(result.details["made_by"])
                found[name] = Record(result.x, result.y, 1e3 * result.aep_gwh, made_by, result.key.seed)
    return found


def write_records(path: Path, records: dict[str, Record]) -> None:
    """Write one HDF5 file: `leeward check --deep` checks it against its campaign, which it contains.

    Results are stored as adopted ones: each belongs to the campaign by its area and turbines, whatever made it.
    """
    from leeward.campaign import load
    from leeward.campaign.work import LayoutWork
    from leeward.store import FOREIGN, Key, Result, RunPaths, merge_run, store_result

    cases = {name: all_cases()[name] for name in records}
    (campaign_file,) = {case.campaign_file for case in cases.values()}
    campaign = load(campaign_file)
    with tempfile.TemporaryDirectory() as folder:
        paths = RunPaths(Path(folder) / "layouts.h5")
        for name, record in records.items():
            key = Key(cases[name].farm_idx, cases[name].type_idx, record.seed)
            aep, wake_loss, spacing = campaign.recompute(key, record.x, record.y)
            result = Result(
                key=key,
                layout=np.array([record.x, record.y]),
                aep_gwh=aep,
                rotor_diameter_m=campaign.physics.rotor_diameter_m(key.type_idx),
                fingerprint="",
                stop_reason="",
                steps=0,
                origin=FOREIGN,
                details={"wake_loss": wake_loss, "min_spacing_m": spacing, "made_by": record.made_by},
            )
            store_result(paths, result)
        merge_run(paths, LayoutWork(campaign).attributes())
        shutil.copyfile(paths.output, path)


def update_records(candidates: dict[str, Record]) -> list[str]:
    """Store each candidate that is better than the record of its case. Return the names of these cases."""
    before = stored_records(all_cases())
    better = {
        name: new
        for name, new in candidates.items()
        if name not in before or new.aep_mwh > before[name].aep_mwh * (1.0 + BETTER)
    }
    for name, record in better.items():
        demand_feasible(all_cases()[name], record.x, record.y)
    after = before | better
    for path in sorted({all_cases()[name].record_file for name in better}):
        write_records(path, {name: after[name] for name in all_cases() if name in after and in_file(name, path)})
    return [name for name in all_cases() if name in better]


def in_file(name: str, path: Path) -> bool:
    return all_cases()[name].record_file == path


# table.json


def read_table() -> dict:
    return json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}


def new_table(measured: dict, maker: str, machine: str) -> dict:
    """Return the table with new figures and the stored records. Figures of another version or machine are dropped.

    measured: figures by case and effort; if there are none, the old ones are kept.
    """
    old, records = read_table(), stored_records(all_cases())
    if old and not measured:
        maker, machine = old["leeward"], old["machine"]
    kept = old.get("cases", {}) if (old.get("leeward"), old.get("machine")) == (maker, machine) else {}
    cases = {}
    for name, case in all_cases().items():
        efforts = kept.get(name, {}).get("efforts", {}) | measured.get(name, {})
        entry = {"turbines": case.turbines, "published_mwh": case.published_mwh, "source": case.source}
        if name in records:
            entry["record"] = {"aep_mwh": records[name].aep_mwh, "made_by": records[name].made_by}
        if efforts or "record" in entry:
            cases[name] = {**entry, "efforts": efforts}
    return {"leeward": maker, "machine": machine, "cases": cases}


def record_rows(table: dict) -> list[list[str]]:
    """Return a row for each case that has a record."""
    return [
        [
            *_case_cells(name, entry),
            megawatt_hours(entry["record"]["aep_mwh"]),
            _gain(entry),
            entry["record"]["made_by"],
        ]
        for name, entry in table["cases"].items()
        if "record" in entry
    ]


def effort_rows(table: dict) -> list[list[str]]:
    """Return a row for each case and effort that was measured."""
    return [
        [
            *_case_cells(name, entry),
            effort,
            str(figures["seeds"]),
            megawatt_hours(figures["median_mwh"]),
            megawatt_hours(figures["best_mwh"]),
            f"{figures['cpu_s']:.1f}",
            f"{100.0 * figures['spread']:.2f} %",
        ]
        for name, entry in table["cases"].items()
        for effort, figures in entry["efforts"].items()
    ]


def _case_cells(name: str, entry: dict) -> list[str]:
    published = entry["published_mwh"]
    return [
        name,
        str(entry["turbines"]),
        NOTHING if published is None else megawatt_hours(published),
        entry["source"],
    ]


def _gain(entry: dict) -> str:
    published = entry["published_mwh"]
    return NOTHING if published is None else f"{100.0 * (entry['record']['aep_mwh'] / published - 1.0):+.3f} %"


def megawatt_hours(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")


# the page


def made_part(table: dict) -> str:
    """Return the part of docs/records.md that is made from table.json, with its markers."""
    lines = [BEGIN, "", *_markdown(RECORD_HEADER, record_rows(table)), ""]
    lines += [f"By effort, with {table['leeward']} on {table['machine']}, one core for each layout:", ""]
    brief = [[cells[0], *cells[EFFORT_HEADER.index("effort") :]] for cells in (EFFORT_HEADER, *effort_rows(table))]
    lines += [*_markdown(brief[0], brief[1:]), "", END]
    return "\n".join(lines)


def _markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    cells = [[cell.replace("|", "/") for cell in row] for row in (header, ["---"] * len(header), *rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def write_page(table: dict) -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + made_part(table) + after, encoding="utf-8")


def pictures() -> dict[str, list[str]]:
    """Return the arguments of `leeward plot` for each picture of the page, by file name."""
    records, found = stored_records(all_cases()), {}
    for name, record in records.items():
        case = all_cases()[name]
        if case.campaign == "danish-energy-island":
            found["record-danish-energy-island.png"] = ["map", str(case.record_file)]
        else:
            key = f"{case.farm_idx} {case.type_idx} {record.seed}"
            found[f"record-{name}.png"] = ["layout", str(case.record_file), "--key", key]
    return found


def draw_pictures(changed: list[str]) -> None:
    """Draw the pictures of the changed cases, and those that do not exist."""
    files = {str(all_cases()[name].record_file) for name in changed}
    for picture, arguments in pictures().items():
        if arguments[1] in files or not (PICTURES / picture).exists():
            program = [sys.executable, "-c", "from leeward.cli import main; main()", "plot", *arguments]
            subprocess.run([*program, "-o", str(PICTURES / picture)], check=True, stdout=subprocess.DEVNULL)
            shrink(PICTURES / picture)


def shrink(path: Path) -> None:
    """Make a picture light: narrower, and with 256 colours."""
    from PIL import Image

    with Image.open(path) as image:
        height = round(image.height * PICTURE_WIDTH / image.width)
        small = image.convert("RGB").resize((PICTURE_WIDTH, height), Image.Resampling.LANCZOS)
    small.quantize(256).save(path, optimize=True)


def write_all(measured: dict, candidates: dict[str, Record], maker: str, machine: str) -> list[str]:
    """Update records, table.json, the page and its pictures. Return the names of the cases with a new record."""
    better = update_records(candidates)
    table = new_table(measured, maker, machine)
    TABLE.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_page(table)
    draw_pictures(better)
    return better
