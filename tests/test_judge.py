"""The physical judge: each reason, and none for a sound result."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from campaign_cases import STUDY
from leeward.campaign import load
from leeward.store.format.keys import Key


@dataclass(frozen=True)
class Stored:
    key: Key
    layout: np.ndarray
    aep_gwh: float
    fingerprint: str
    origin: str = "leeward"
    rotor_diameter_m: float = 240.0
    status: str = "success"
    details: dict = field(default_factory=dict)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    path = tmp_path_factory.mktemp("judge") / "study.yaml"
    path.write_text(STUDY + "optimiser: {recipe: smart_start}\n")
    return load(path)


@pytest.fixture(scope="module")
def result(campaign):
    solution = campaign.optimise(Key(0, 0, 0))
    return Stored(Key(0, 0, 0), np.array([solution.x, solution.y]), solution.aep_gwh, campaign.fingerprint(0, 0))


def moved(result, turbine, x, y):
    layout = result.layout.copy()
    layout[:, turbine] = x, y
    return replace(result, layout=layout)


def test_a_sound_result(campaign, result):
    assert campaign.judge(result) is None
    assert campaign.judge(replace(result, aep_gwh=result.aep_gwh * (1 + 1e-10))) is None


def test_other_tasks(campaign, result):
    assert campaign.judge(replace(result, key=Key(0, 0, 2))) == "farm0_t0_s2 is not a task of the campaign study"
    assert campaign.judge(replace(result, key=Key(1, 0, 0))) == "farm1_t0_s0 is not a task of the campaign study"


def test_other_settings(campaign, result):
    assert "made with other settings" in campaign.judge(replace(result, fingerprint="0" * 64))
    assert campaign.judge(replace(result, fingerprint="", origin="foreign")) is None


def test_other_turbines(campaign, result):
    wrong = replace(result, layout=result.layout[:, :-1])
    assert campaign.judge(wrong) == "its layout has the shape (2, 11); expected (2, 12), for 12 turbines"
    assert "its rotor diameter is 195 m; that of type 0 is 240 m" in campaign.judge(
        replace(result, rotor_diameter_m=195.0)
    )


def test_not_finite(campaign, result):
    assert "turbine 3 is at (nan, 0.0); expected finite" in campaign.judge(moved(result, 3, np.nan, 0.0))


def test_outside(campaign, result):
    assert "outside the area: turbine 0 (by 12 m)" in campaign.judge(moved(result, 0, -12.0, 6000.0))


def test_too_close(campaign, result):
    x, y = result.layout[:, 1]
    assert "too close to another: turbine 0" in campaign.judge(moved(result, 0, x, y + 1))


@pytest.mark.parametrize("aep", [0.0, -5.0, float("nan"), float("inf")])
def test_impossible_aep(campaign, result, aep):
    assert "expected a number above 0" in campaign.judge(replace(result, aep_gwh=aep))
    assert campaign.judge(replace(result, aep_gwh=aep, status="no-aep")) is None


def test_aep_of_another_layout(campaign, result):
    assert "the wake engine computes" in campaign.judge(replace(result, aep_gwh=result.aep_gwh * (1 + 1e-8)))


def test_results_of_another_method_version(campaign, result):
    """They are compared under that version; the wake engine of today says nothing of their AEP."""
    newer = replace(result, fingerprint=campaign.fingerprint(0, 0, 7), details={"method_version": 7}, aep_gwh=1.0)
    assert campaign.judge(newer) is None
    assert campaign.judge.aep(newer) is None
    assert "made with other settings" in campaign.judge(replace(newer, details={}))  # nobody knows that version
    assert "method version 7" in campaign.judge(replace(newer, fingerprint=result.fingerprint))
    assert "outside the area" in campaign.judge(moved(newer, 0, -12.0, 6000.0))
    assert "(2, 11)" in campaign.judge.misfit(replace(newer, layout=result.layout[:, :-1]))
    adopted = replace(newer, fingerprint="", origin="foreign")
    assert campaign.judge(adopted) is None
    assert "the wake engine computes" in campaign.judge(replace(adopted, details={"method_version": 1}))


def test_a_version_that_is_not_stated_is_found(campaign, result, monkeypatch):
    monkeypatch.setattr("leeward.campaign.fingerprint.METHOD_VERSION", 3)
    assert campaign.fingerprints.version_of(result.key, result.fingerprint, None) == 1
    assert campaign.fingerprints.version_of(result.key, campaign.fingerprint(0, 0), None) == 3
    assert campaign.fingerprints.version_of(result.key, "0" * 64, None) is None
    assert campaign.judge(replace(result, aep_gwh=1.0)) is None
