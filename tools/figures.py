"""Draws the pictures of docs/method.md, from leeward and PyWake computed side by side, and prints what they show.

`make figures`; takes a minute, and needs what the tests need.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from leeward.campaign import builtin
from leeward.wind import Site, Turbine, WindFarm
from leeward.wind.wake_models import wake_model

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT / "tests"))

from pywake_peer import peer_farm, peer_site, peer_table  # noqa: E402 (the peers that the tests compare with)

MODELS = ("nygaard_2022", "bastankhah_gaussian", "iea37_gaussian", "jensen", "no_wake")
COLOURS = ("#1f6f9f", "#c2571a", "#3b8f4f", "#7a4fa3", "#6b7780")
WIND_SPEED = 9.0  # m/s
DISTANCES = (4, 8)  # in diameters
TURBULENCE = 0.06
FARM_SIZES = (4, 9, 16, 25, 36, 49, 66)
PROMISED = 1e-9


def profiles() -> float:
    """Draw the wake of one turbine as another one sees it; the largest difference from PyWake in m/s."""
    turbine = Turbine.generic(15, 240, 150)
    site = Site.from_table([270.0], [WIND_SPEED], [[1.0]], turbulence_intensity=TURBULENCE)
    peer = peer_table([270.0], [WIND_SPEED], [[1.0]], TURBULENCE)
    fine, coarse = np.linspace(-2.5, 2.5, 201), np.linspace(-2.5, 2.5, 21)
    figure = Figure(figsize=(8.6, 3.6), layout="constrained", facecolor="white")
    worst = 0.0
    for axes, distance in zip(figure.subplots(1, len(DISTANCES), sharey=True), DISTANCES, strict=True):
        for name, colour in zip(MODELS, COLOURS, strict=True):
            farm, other = WindFarm(site, turbine, name), peer_farm(wake_model(name), peer, [turbine])

            def speeds(across: float, farm: WindFarm = farm, distance: int = distance) -> float:
                layout = [0.0, distance * 240.0], [0.0, across * 240.0]
                return float(farm.simulate(*layout, per_condition=True).condition_speed_m_s[1, 0, 0])

            ours = np.array([speeds(across) for across in fine])
            dots = np.array(
                [
                    float(
                        other([0.0, distance * 240.0], [0.0, c * 240.0], wd=[270.0], ws=[WIND_SPEED])
                        .WS_eff.ilk()[1]
                        .ravel()[0]
                    )
                    for c in coarse
                ]
            )
            worst = max(worst, float(np.abs(dots - [speeds(across) for across in coarse]).max()))
            axes.plot(fine, 100 * (1 - ours / WIND_SPEED), color=colour, label=name, linewidth=1.6)
            axes.plot(coarse, 100 * (1 - dots / WIND_SPEED), "o", color=colour, markersize=3.6)
        axes.set(title=f"{distance} diameters downwind", xlabel="crosswind distance, diameters")
        axes.grid(alpha=0.25)
    figure.axes[0].set_ylabel("deficit at the second turbine, %")
    figure.axes[0].plot([], [], "o", color="#333333", markersize=3.6, label="PyWake")
    figure.axes[0].legend(fontsize=8, frameon=False)
    _save(figure, "wake-profiles.png")
    return worst


def energies() -> dict[str, list[float]]:
    """Draw relative differences of AEPs from PyWake's, of random layouts; these differences, by model."""
    turbine, rng = builtin.turbines()[-1], np.random.default_rng(7)
    site = builtin.site()
    layouts = [rng.uniform(0.0, 1500.0 * count**0.5, (2, count)) for count in FARM_SIZES]
    figure = Figure(figsize=(8.6, 3.4), layout="constrained", facecolor="white")
    axes = figure.subplots()
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        peer = peer_site(_site_file(Path(folder)))
        for name, colour in zip(MODELS, COLOURS, strict=True):
            farm, other = WindFarm(site, turbine, name), peer_farm(wake_model(name), peer, [turbine])
            pairs = [(farm.aep_gwh(x, y), float(other(x, y).aep().sum())) for x, y in layouts]
            found[name] = [abs(ours / theirs - 1.0) for ours, theirs in pairs]
            axes.plot(FARM_SIZES, np.maximum(found[name], 1e-17), "o", color=colour, label=name, alpha=0.85)
    axes.axhline(PROMISED, color="#b3261e", linewidth=1, linestyle="--")
    axes.text(FARM_SIZES[0], PROMISED * 1.6, "what is promised, and tested", color="#b3261e", fontsize=8)
    axes.set(yscale="log", ylim=(5e-18, 1e-7), xlabel="turbines", ylabel="relative difference of the AEP")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, frameon=False, ncols=5, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    _save(figure, "aep-differences.png")
    return found


def _site_file(folder: Path) -> Path:
    """The built-in site as PyWake reads it."""
    import xarray

    figures = builtin.site().figures()
    sectors = np.arange(len(figures["sector_frequency"])) * (360.0 / len(figures["sector_frequency"]))
    names = {"Sector_frequency": "sector_frequency", "Weibull_A": "weibull_a_m_s", "Weibull_k": "weibull_k"}
    data = {peer: ("wd", figures[ours]) for peer, ours in names.items()}
    path = folder / "site.nc"
    dataset = xarray.Dataset({**data, "TI": ("wd", figures["turbulence_intensity"])}, {"wd": sectors})
    dataset.to_netcdf(path, engine="h5netcdf")
    return path


def _save(figure: Figure, name: str) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(PICTURES / name, dpi=150)
    print(f"written: docs/pictures/{name}")


if __name__ == "__main__":
    print(f"largest difference of wind speeds behind one turbine: {profiles():.1e} m/s")
    for name, differences in energies().items():
        print(f"{name:20} largest relative difference of the AEP {max(differences):.1e}")
