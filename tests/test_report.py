"""The report: one file that needs nothing else, and shows what is there and what is missing."""

import html.parser
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import yaml

from leeward.report import document, report_html
from leeward.watch import snapshot
from resource_cases import make_field_campaign
from run_cases import leeward_here, make_campaign, results

FARMS = [
    {"name": "first <script>alert(1)</script>", "polygon_m": [[0, 0], [5000, 0], [5000, 5000], [0, 5000]]},
    {"name": 'second "&" more', "polygon_m": [[9000, 0], [14000, 0], [14000, 5000], [9000, 5000]]},
]


class Page(html.parser.HTMLParser):
    """What elements there are, and where they lead to."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.ids, self.addresses, self.texts = [], [], [], []
        self.feed(text)

    def handle_starttag(self, name, attributes):
        self.elements.append(name)
        values = dict(attributes)
        self.ids += [values["id"]] if "id" in values else []
        self.addresses += [values[a] for a in ("href", "src", "action", "data") if a in values]
        assert not [a for a in values if a.startswith("on") or a == "style"]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Two farms, four seeds, one of which fails."""
    folder = tmp_path_factory.mktemp("report")
    path = make_campaign(folder, orders={3: "fail=<b>bold</b>"})
    beside = [{"x_m": [-2000.0], "y_m": [2500.0], "turbine": 0}]
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "farms": FARMS, "neighbours": beside}))
    assert leeward_here("run", "campaign.yaml", "--engine", "inline", "-q", cwd=folder).returncode == 3
    return folder


@pytest.fixture(scope="module")
def report(ran):
    result = leeward_here("report", "layouts.run", cwd=ran)
    assert result.returncode == 0, result.stderr
    assert "written: report.html" in result.stdout
    return (ran / "report.html").read_text()


def test_it_needs_nothing_else(report):
    page = Page(report)
    assert page.addresses
    assert all(address.startswith("#") for address in page.addresses)
    assert not {"script", "link", "img", "iframe", "object", "form", "b"} & set(page.elements)
    assert not re.findall(r"url\(|@import", report)
    assert "default-src &#x27;none&#x27;" in report


def test_links_lead_to_places_within(report):
    page = Page(report)
    assert {address[1:] for address in page.addresses} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_what_it_shows(report):
    words = " ".join(Page(report).texts)
    for farm in FARMS:
        assert farm["name"] in words  # as it was written, harmless
    assert "to scale. Rings: existing turbines." in words
    assert "6 of 8 layouts" in words
    assert "farm0_t0_s3, farm1_t0_s3" in words  # what is missing
    assert "ValueError: no layout today: <b>bold</b>" in words
    assert "leeward run layouts.run/campaign.yaml" in words
    assert "nygaard_2022" in words
    assert "600 m" in words
    assert "own_recipe_of_tests:place" in words


def test_its_figures_are_those_of_the_results(ran, report):
    every = list(results(ran / "layouts.h5").values())
    best = max(every, key=lambda result: result.aep_gwh)
    words = " ".join(Page(report).texts)
    assert f"{best.aep_gwh:.2f}" in words
    assert best.fingerprint in words
    drawn = re.findall(r'<article id="(farm\d+_t\d+_s\d+)">(.*?)</article>', report, re.S)
    assert len(drawn) == 2
    for key, article in drawn:
        result = next(result for result in every if str(result.key) == key)
        assert result.aep_gwh == max(other.aep_gwh for other in every if other.key[:2] == result.key[:2])
        assert article.count('class="turbine"') == result.n_turbines
        assert f"{result.aep_gwh:.2f} GWh" in article


def test_the_example_loads_the_data(ran, report):
    program = next(text for text in Page(report).texts if text.startswith("import leeward"))
    assert len(program.strip().splitlines()) == 5
    done = subprocess.run([sys.executable, "-c", program], cwd=ran, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "aep" in done.stdout


def test_the_example_takes_the_best_of_all(ran):
    seen = snapshot(ran / "layouts.run")
    first, second = seen.cells
    for cell in seen.cells:
        cells = [replace(one, best_aep_gwh=2.0 if one is cell else 1.0) for one in (first, second)]
        assert f"best = layouts[&quot;{cell.best_key}&quot;]" in str(document._loading(replace(seen, cells=cells)))


def test_of_a_lone_file(ran, tmp_path):
    shutil.copy(ran / "layouts.h5", tmp_path / "mine.h5")
    result = leeward_here("report", "mine.h5", "-o", "mine.html", "-q", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "")
    words = " ".join(Page((tmp_path / "mine.html").read_text()).texts)
    assert "6 of 8 layouts" in words
    assert "There is no audit trail." in words  # an audit trail


def test_nothing_is_written_to_the_run(ran):
    before = {path: path.stat().st_mtime_ns for path in (ran / "layouts.run").rglob("*")}
    report_html(ran / "layouts.run")
    assert {path: path.stat().st_mtime_ns for path in (ran / "layouts.run").rglob("*")} == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["layouts.run", "-o", "report.pdf"], "expected .html"),
        (["layouts.run", "-o", "layouts.run/report.html"], "is in the run directory"),
        (["layouts.run", "-o", "nowhere/report.html"], "cannot be written"),
        (["nowhere.run"], "no such file or folder"),
        (["."], "not a run directory"),
    ],
)
def test_wrong_use(ran, arguments, says):
    result = leeward_here("report", *arguments, cwd=ran)
    assert result.returncode == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_damaged_result_is_left_out_and_told(ran, tmp_path):
    shutil.copytree(ran, tmp_path / "copy")
    folder = tmp_path / "copy"
    (folder / "layouts.h5").unlink()
    for shard in (folder / "layouts.run" / "results").rglob("farm0_*.h5"):
        shard.write_bytes(shard.read_bytes()[:500])
    text = report_html(folder / "layouts.run")
    assert "Left out: " in text
    assert "is damaged" in text
    assert re.findall(r'<article id="(farm\d+)', text) == ["farm1"]


def test_more_than_can_be_drawn(ran, monkeypatch):
    """What is left out is told."""
    monkeypatch.setattr(document, "MOST_DRAWN", 1)
    text = report_html(ran / "layouts.run")
    assert re.findall(r'<article id="(farm\d+)', text) == ["farm0"]
    assert "The best layout of each farm, the first 1 of 2. Turbines are coloured" in text
    assert "The best layout of each farm, the first 1 of 2, to scale." in text
    assert "Shown: the first 1 of 2 farms." in text
    monkeypatch.setattr(document, "MOST_DRAWN", 2)
    text = report_html(ran / "layouts.run")
    assert "The best layout of each farm and turbine type. Turbines are coloured" in text


def test_more_tasks_than_a_table_holds(ran, monkeypatch):
    monkeypatch.setattr(document, "MOST_TASKS", 1)
    words = " ".join(Page(report_html(ran / "layouts.run")).texts)
    assert "1 more farms and types are not shown." in words
    assert "leeward export layouts.run -o layouts.csv --per layout" in words


def test_when_nothing_can_be_read(ran, tmp_path):
    shutil.copytree(ran, tmp_path / "copy")
    folder = tmp_path / "copy"
    (folder / "layouts.h5").unlink()
    for shard in (folder / "layouts.run" / "results").rglob("*.h5"):
        shard.write_bytes(b"")
    text = report_html(folder / "layouts.run")
    assert text.count("Left out: ") == 2
    assert '<article id="farm' not in text


@pytest.mark.slow
def test_what_is_said_of_a_second_chart_is_true(tmp_path):
    """Where there is one seed, nothing differs from its median."""
    turbines = [{"rated_power_mw": power, "rotor_diameter_m": 195, "hub_height_m": 121} for power in (10, 12)]
    for seeds in (1, 2):
        make_campaign(tmp_path, seeds=seeds, turbines=turbines)
        assert leeward_here("run", "campaign.yaml", "--engine", "inline", "-q", cwd=tmp_path).returncode == 0
        text = report_html(tmp_path / "layouts.run")
        assert text.count("above the median of each type") == text.count("% above median") == seeds - 1


def test_stages_are_events(ran):
    events, texts = [], []
    report_html(ran / "layouts.run", on_event=events.append)
    assert [event["event"] for event in events] == ["reading", "simulating"]
    with pytest.warns(DeprecationWarning, match="on_event="):
        report_html(ran / "layouts.run", tell=texts.append)
    assert texts == [event["text"] for event in events]


def test_the_map_of_wind_that_varies(ran, report, tmp_path):
    """Beside the wind rose, with the best layouts on top. Wind that is the same everywhere has none."""
    make_field_campaign(tmp_path)
    assert leeward_here("run", "campaign.yaml", "--engine", "inline", "-q", cwd=tmp_path).returncode == 0
    text = report_html(tmp_path / "layouts.run")
    test_it_needs_nothing_else(text)
    section = text.partition('<section id="wind"')[2].partition("</section>")[0]
    assert section.count('<g class="resource">') == 1
    assert section.count('class="outline"') == 2
    assert section.partition('<g class="placed">')[2].partition("</g>")[0].count("<circle") == 6
    words = (
        "Mean free wind speed at 100 m above ground, over wind speeds of 5 to 14 m/s, with the best layout of each farm"
    )
    assert words in section
    assert "Weibull distributions on a grid of 5 × 4 points × 2 heights: 8 sectors" in text
    assert '<section id="wind"' in report
    assert "Mean free wind speed" not in report
