"""Small studies for tests: a target of four turbines, three neighbour farms of two types, and a short series."""

import csv
from pathlib import Path

import numpy as np
import yaml

STEPS = 40
FARMS = (0, 1, 2, 3)
SIDE_M = 3000.0
TYPES = (8.0, 10.0)  # MW


def positions(farm, kind, seed):
    """Four turbines in a square; farm 0 is the target, the others stand around it."""
    rng = np.random.default_rng([farm, kind, seed])
    centre = np.array([[0.0, 0.0], [9e3, 1e3], [-8e3, 4e3], [1e3, -9e3]])[farm] + [500_000.0, 6_100_000.0]
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * SIDE_M + rng.uniform(-600, 600, (4, 2))
    return (centre + corners).T


def write_campaign(folder: Path) -> Path:
    """A campaign whose turbine types the layouts have."""
    farms = [
        {"name": f"farm {farm}", "circle_m": {"x": float(x.mean()), "y": float(y.mean()), "radius": 3500.0}}
        for farm in FARMS
        for x, y in [positions(farm, 0, 0)]
    ]
    turbines = [{"rated_power_mw": power, "rotor_diameter_m": 15 * power + 40, "hub_height_m": 110} for power in TYPES]
    site = {"sector_frequency": [0.2, 0.3, 0.4, 0.1], "weibull_a_m_s": [9.0, 10.0, 11.0, 8.0]}
    site |= {"weibull_k": [2.0, 2.1, 2.2, 1.9], "turbulence_intensity": 0.08}
    site |= {"wind_directions_deg": list(range(0, 360, 10)), "wind_speeds_m_s": [6.0, 9.0, 12.0]}
    campaign = {"site": {"weibull": site}, "farms": farms, "turbines": turbines, "turbines_per_farm": 4}
    campaign |= {"crs": "EPSG:25832", "spacing_diameters": 3, "seeds": 3}
    path = folder / "campaign.yaml"
    path.write_text(yaml.safe_dump(campaign))
    return path


def write_layouts(folder: Path) -> Path:
    path = folder / "layouts.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["key", "turbine", "x_m", "y_m"])
        for farm in FARMS:
            for kind in range(len(TYPES)):
                for seed in range(3):
                    for turbine, (x, y) in enumerate(positions(farm, kind, seed).T.tolist()):
                        rows.writerow([f"farm{farm}_t{kind}_s{seed}", turbine, x, y])
    return path


def series(steps=STEPS, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 360, steps), rng.uniform(4, 16, steps)


def write_wind(folder: Path, steps=STEPS, name="wind.csv") -> Path:
    path = folder / name
    direction, speed = series(steps)
    days = np.arange(np.datetime64("2020-02-20"), np.datetime64("2020-02-20") + steps)
    lines = [
        f"{day};{one!r};{other!r}" for day, one, other in zip(days, speed.tolist(), direction.tolist(), strict=True)
    ]
    path.write_text("day;WS;WD\n" + "\n".join(lines) + "\n")
    return path


def scenario_rows(count=3):
    """Type, seed and first step of each neighbour farm of each scenario."""
    rng = np.random.default_rng(7)
    return [
        {"scenario": number, "farm": farm, "type": int(kind), "seed": int(seed), "from_step": int(step)}
        for number in range(count)
        for farm, kind, seed, step in zip(
            FARMS[1:], rng.integers(0, 2, 3), rng.integers(0, 3, 3), rng.integers(0, STEPS, 3), strict=True
        )
    ]


def write_scenarios(folder: Path, rows, name="scenarios.csv") -> Path:
    path = folder / name
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def study_data(folder: Path, count=3, **changes) -> dict:
    """Write the files of a study into a folder, and return the study as a dict; paths are absolute."""
    write_campaign(folder)
    study = {
        "name": "small",
        "layouts": {"alone": {"file": str(write_layouts(folder)), "campaign": str(folder / "campaign.yaml")}},
        "targets": ["alone:farm0_t1_s0"],
        "wind": {
            "file": str(write_wind(folder)),
            "columns": {"time": "day", "wind_speed_m_s": "WS", "wind_direction_deg": "WD"},
            "hours_per_step": 24,
            "turbulence_intensity": 0.07,
        },
        "scenarios": {"file": str(write_scenarios(folder, scenario_rows(count)))},
        "cases": ["all", "external", "internal"],
        "keep": ["aep", "windows", "farm_power"],
        "windows": {"first": "0:10", "all": "all"},
        "execution": {"engine": "inline"},
    }
    return study | changes


def write_study(folder: Path, count=3, **changes) -> Path:
    """Write a study file with all its files into a folder, which can then be moved."""
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study_data(folder, count, **changes)).replace(f"{folder}/", ""))
    return path
