"""The dashboard and the report of a study."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from leeward.pages.study_charts import build_out_map, loss_bars, loss_histogram, power_chart
from leeward.report import report_html
from leeward.store import EvaluationKey
from leeward.watch import evaluation_view, losses_of
from leeward.web.model import Model
from leeward.web.routes import respond
from watched_study import ABSENT, evaluated, run_of_study, small_study
from web_cases import fail


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    paths = run_of_study(tmp_path_factory.mktemp("study"), ABSENT, merged=True)
    fail(paths, EvaluationKey(1, 5))
    return paths


@pytest.fixture(scope="module")
def model(paths):
    return Model(paths.root)


def page(model, path, **query):
    response = respond(model, path, query)
    assert response.status == 200, response.body
    return response.body.decode()


def test_overview(model):
    text = page(model, "/")
    assert "10 of 12 evaluations" in text
    assert "alone:farm0_t0_s1" in text
    assert "4/6" in text
    assert "scenarios 5: 0 of 1 done, 1 failed" in text
    assert "distribution of the losses of 10 evaluations, from 10.00% to 15.00%" in text
    assert "leeward evaluate" in text
    assert "leeward run" not in text
    assert 'href="/map"' not in text


def test_one_evaluation(model):
    text = page(model, "/task/target0_scenario3")
    assert "map of the target and 2 neighbours" in text
    assert "from step 17 (2030-01-18)" in text
    assert "losses: internal 8.00%, external 5.00%, total 13.00%" in text
    assert "power, MW, over 40 steps: all, external, internal, none" in text
    assert "sample &lt;3&gt;" in text
    assert "<3>" not in text


def test_a_task_without_a_result(model):
    assert "To retry: " in page(model, "/task/target1_scenario5")
    assert "target=1 scenario=5" in page(model, "/task/target1_scenario5")
    assert "not started" in page(model, "/task/target1_scenario4")


def test_tasks(model):
    assert "12 tasks" in page(model, "/tasks")
    assert "2 tasks" in page(model, "/tasks", **{"target": "1", "from": "4", "to": "5"})
    assert "1 task" in page(model, "/tasks", state="failed")
    lines = page(model, "/tasks.csv", state="done").splitlines()
    assert len(lines) == 11
    assert lines[0] == "key,target_idx,scenario_idx,target,scenario,state,aep_gwh,gross_aep_gwh,wake_loss"


@pytest.mark.parametrize("path", ["/settings", "/workers", "/failures", "/audit"])
def test_other_pages(model, path):
    assert "small" in page(model, path)


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/map", {}, 404),
        ("/task/farm0_t0_s0", {}, 404),
        ("/task/target7_scenario0", {}, 404),
        ("/tasks", {"state": "odd"}, 400),
        ("/tasks", {"target": "x"}, 400),
    ],
)
def test_errors(model, path, query, status):
    assert respond(model, path, query).status == status


def test_a_file_of_an_unknown_study(paths, tmp_path):
    """Shards alone, without the study: what is known is shown."""
    copy = run_of_study(tmp_path, ABSENT)
    copy.campaign.unlink()
    model = Model(copy.root)
    assert "10 evaluations" in page(model, "/")
    assert "the study is not known" in page(model, "/task/target0_scenario3")


def test_report(paths):
    for place in (paths.root, paths.output):
        text = report_html(place)
        for words in (
            "Least loss: target0_scenario0",
            "Largest loss: target0_scenario5",
            "2 of 12 evaluations are missing",
        ):
            assert words in text
        ids = [part.partition('"')[0] for part in text.split(' id="')[1:]]
        assert len(ids) == len(set(ids))


def parsed(markup):
    """Well-formed, and no number is not finite."""
    assert "nan" not in markup
    return ET.fromstring(markup.replace("&nbsp;", " "))


def test_drawings():
    result = evaluated(EvaluationKey(0, 3))
    view = evaluation_view(small_study(), result)
    circles = parsed(build_out_map(view)).findall(".//circle")
    assert len(circles) == 12
    assert len({circle.get("fill") for circle in circles}) == 3
    lines = [line for line in parsed(power_chart(view)).iter("path") if line.get("class") == "series"]
    assert len(lines) == 6  # four cases, lost to neighbours, lost to the farm's own wakes
    assert losses_of(result) == pytest.approx({"internal": 0.08, "external": 0.05, "total": 0.13})
    assert len(parsed(loss_bars(losses_of(result))).findall("rect")) == 3
    assert loss_bars({}) is None
    assert loss_histogram({"a": []}) is None
    parsed(loss_histogram({"a": [0.1, 0.1], "b": [0.1]}))


def test_long_series_are_thinned():
    view = evaluation_view(small_study(), evaluated(EvaluationKey(0, 0)))
    power = np.ones((4, 3653))
    power[0, -1] = 500.0
    view = replace(view, result=replace(view.result, farm_power_mw=power), times=(), n_steps=3653)
    drawn = power_chart(view)
    assert "means of 31 steps" in drawn
    assert len(drawn) < 60_000
    assert power_chart(replace(view, result=replace(view.result, farm_power_mw=None))) is None
