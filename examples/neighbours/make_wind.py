"""Write wind-daily.csv: three years of daily wind, drawn from the Weibull sectors of the built-in site.

The series is synthetic. Two hidden values follow a first-order autoregressive process, so that a windy day is often
followed by another. Each is turned into a probability, and the probability into a direction and a wind speed. The
series as a whole therefore keeps the distribution of the site. Run it as `python make_wind.py`.
"""

from datetime import date, timedelta
from pathlib import Path
from statistics import NormalDist

import numpy as np

from leeward.campaign.builtin import site

SEED = 19
FIRST_DAY = date(2022, 1, 1)
DAYS = 1096  # 2022 to 2024; 2024 is a leap year
PERSISTENCE = {"direction": 0.6, "speed": 0.5}  # correlation between one day and the next


def persistent(rng: np.random.Generator, correlation: float) -> np.ndarray:
    """Return a probability between 0 and 1 for each day, correlated from day to day."""
    value = rng.standard_normal()
    values = []
    for noise in rng.standard_normal(DAYS):
        value = correlation * value + (1 - correlation**2) ** 0.5 * noise
        values.append(NormalDist().cdf(value))
    return np.array(values)


def main() -> None:
    settings = site().settings()
    frequency, scale, shape = (np.array(settings[name]) for name in ("sector_frequency", "weibull_a_m_s", "weibull_k"))
    rng = np.random.default_rng(SEED)
    direction_share, speed_share = (persistent(rng, correlation) for correlation in PERSISTENCE.values())
    width = 360 / len(frequency)
    edges = np.r_[0, np.cumsum(frequency / frequency.sum())]
    direction = np.round(np.interp(direction_share, edges, width * np.arange(len(edges)) - width / 2), 1) % 360
    sector = np.round(direction / width).astype(int) % len(frequency)
    speed = scale[sector] * (-np.log1p(-speed_share)) ** (1 / shape[sector])
    lines = ["date,wind_speed_m_s,wind_direction_deg"]
    for day in range(DAYS):
        lines.append(f"{FIRST_DAY + timedelta(day)},{speed[day]:.2f},{direction[day]:.1f}")
    Path(__file__).with_name("wind-daily.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
