"""What the tests of export share: a small real run, with two farms, two turbine types and two seeds."""

import yaml

from run_cases import leeward_here

LEFT, LOW = 700_000.0, 6_230_000.0  # in the North Sea, in EPSG:25831
SITE = {
    "weibull": {
        "sector_frequency": [0.2, 0.3, 0.4, 0.1],
        "weibull_a_m_s": [9.0, 10.0, 11.0, 8.0],
        "weibull_k": [2.0, 2.1, 2.2, 1.9],
        "turbulence_intensity": [0.07, 0.08, 0.09, 0.1],
        "wind_directions_deg": [0.0, 45.0, 90.0, 135.0, 180.0, 225.0, 270.0, 315.0],
        "wind_speeds_m_s": [5.0, 7.0, 9.0, 11.0, 13.0],
    }
}


def square(left, side=4000.0):
    """Corners of a farm."""
    right, high = left + side, LOW + side
    return [[left, LOW], [right, LOW], [right, high], [left, high]]


def campaign_data(**changes):
    """Names that a spreadsheet would compute."""
    data = {
        "name": "sample",
        "crs": "EPSG:25831",
        "site": SITE,
        "farms": [
            {"name": "=cmd|' /C calc'!A0", "polygon_m": square(LEFT), "n_turbines": 4},
            {"name": "Østervig", "polygon_m": square(LEFT + 9000.0), "n_turbines": 5},
        ],
        "turbines": [
            {"rated_power_mw": 10, "rotor_diameter_m": 195, "hub_height_m": 121},
            {"rated_power_mw": 15, "rotor_diameter_m": 240, "hub_height_m": 150},
        ],
        "spacing_diameters": 2,
        "seeds": 2,
        "optimiser": {"recipe": "smart_start"},
        "execution": {"engine": "inline"},
    }
    return {**data, **changes}


def make_run(folder, **changes):
    """All eight layouts, in a run directory and merged."""
    (folder / "campaign.yaml").write_text(yaml.safe_dump(campaign_data(**changes)))
    done = leeward_here("run", "campaign.yaml", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder
