"""A custom recipe: turbines in a row. Files beside it make seed 1 fail, and seed 2 wait."""

import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def place(problem, seed):
    if seed == 1 and (HERE / "broken").exists():
        raise ValueError("no layout for seed 1")
    while seed == 2 and (HERE / "busy").exists():
        time.sleep(0.05)
    return np.linspace(300.0, 5700.0, problem.n_turbines), np.full(problem.n_turbines, 1000.0 + 100.0 * seed)
