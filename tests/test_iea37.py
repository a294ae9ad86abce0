"""IEA Wind Task 37, case study 1: the energy that its participants reported for their layouts."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import yaml

from conftest import DATA
from leeward.wind import Site, Turbine, WindFarm

PROBLEM = yaml.safe_load((DATA / "iea37-cs1.yaml").read_text())


def farm():
    wind = PROBLEM["wind"]
    site = Site.from_table(wind["direction_deg"], wind["speed_m_s"], wind["probability"], wind["turbulence_intensity"])
    return WindFarm(site, Turbine.iea37_3_35mw(), "iea37_gaussian")


def layouts():
    folder = os.environ.get("LEEWARD_SHARED_DATA")
    if not folder:
        pytest.skip("the participants' layouts are read from the folder named by LEEWARD_SHARED_DATA")
    return json.loads((Path(folder) / "iea37-cs1" / "layouts.json").read_text())


def test_every_layout():
    entries = layouts()
    assert len(entries) == 39
    far = []
    for entry in entries:
        mwh = farm().aep_gwh(entry["x_m"], entry["y_m"]) * 1e3
        if abs(mwh - entry["aep_mwh_reported"]) > 1e-3:
            far.append((entry["case"], entry["who"], mwh, entry["aep_mwh_reported"]))
    assert not far


def test_without_wakes():
    wind = PROBLEM["wind"]
    site = Site.from_table(wind["direction_deg"], wind["speed_m_s"], wind["probability"], wind["turbulence_intensity"])
    x = np.linspace(-1000, 1000, 16)
    aep = WindFarm(site, Turbine.iea37_3_35mw(), "no_wake").aep_gwh(x, x) * 1e3
    assert aep == pytest.approx(PROBLEM["cases"][0]["no_wake_aep_mwh"], rel=1e-9)
