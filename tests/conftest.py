"""Shared by all tests: the reference site, turbines, random layouts, and the list of skipped tests at the end."""

import collections
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import yaml

import layout_cases
import references
from leeward.campaign import builtin
from leeward.layout import LayoutProblem
from leeward.wind import Site, Turbine, WindFarm

DATA = Path(__file__).parent / "data"
BUILTIN = Path(builtin.__file__).parent / "danish_energy_island"


def pytest_configure():
    """Restore SIGINT, which shells ignore in background jobs: tests interrupt the commands that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter):
    """List what was skipped and why; LEEWARD_SKIPPED names a file for it, which make prints after its last target."""
    reasons = collections.Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", [])
    )
    lines = [f"{count:5d}  {reason}" for reason, count in reasons.most_common()]
    if lines:
        terminalreporter.section("skipped")
        terminalreporter.write_line("\n".join(lines))
    listed = os.environ.get("LEEWARD_SKIPPED")
    if lines and listed and "PYTEST_XDIST_WORKER" not in os.environ:  # xdist's workers summarise their share as well
        with open(listed, "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


@pytest.fixture(scope="session", autouse=True)
def _no_user_defaults(tmp_path_factory):
    """Hide the defaults file of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.delenv("LEEWARD_DEFAULTS", raising=False)
        yield


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    from matplotlib.figure import Figure

    figures = []
    save = Figure.savefig

    def note(figure, *arguments, **options):
        figures.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", note)
    return figures


@pytest.fixture(scope="session")
def site_figures():
    return yaml.safe_load((BUILTIN / "site.yaml").read_text())


@pytest.fixture(scope="session")
def site_file(site_figures, tmp_path_factory):
    """The reference site file, as PyWake's XRSite.save writes one."""
    import xarray

    def closed(values):
        return ("wd", [*values, values[0]])

    dataset = xarray.Dataset(
        {
            "Weibull_A": closed(site_figures["weibull_a_m_s"]),
            "Weibull_k": closed(site_figures["weibull_k"]),
            "Sector_frequency": closed(site_figures["sector_frequency"]),
            "TI": site_figures["turbulence_intensity"],
        },
        coords={
            "wd": [*site_figures["sector_centre_deg"], 360.0],
            "ws": site_figures["wind_speed_bins_m_s"],
            "height": site_figures["reference_height_m"],
        },
        attrs={"sector_width": 30.0},
    )
    path = tmp_path_factory.mktemp("site") / "ref_site.nc"
    dataset.to_netcdf(path, engine="h5netcdf")
    return path


@pytest.fixture(scope="session")
def site(site_file):
    return Site.from_netcdf(site_file)


@pytest.fixture(scope="session")
def tiny_site():
    """Four directions, three speeds: cheap enough for loops that run as plain Python."""
    return Site.from_weibull(
        [0.2, 0.3, 0.4, 0.1],
        [9.0, 10.0, 11.0, 8.0],
        [2.0, 2.1, 2.2, 1.9],
        0.08,
        directions=[0.0, 80.0, 200.0, 270.0],
        speeds=[7.0, 10.0, 13.0],
    )


@pytest.fixture(scope="session")
def turbine():
    return Turbine.generic(rated_power_mw=15, rotor_diameter_m=240, hub_height_m=150)


@pytest.fixture(scope="session")
def turbines():
    """Three types that differ in everything."""
    return [
        Turbine.generic(rated_power_mw=15, rotor_diameter_m=240, hub_height_m=150),
        Turbine.generic(rated_power_mw=10, rotor_diameter_m=195, hub_height_m=121),
        Turbine.generic(rated_power_mw=3, rotor_diameter_m=110, hub_height_m=90, constant_thrust=0.75),
    ]


@pytest.fixture(scope="session")
def small_site():
    """Twelve directions, two speeds."""
    return Site.from_weibull(
        [0.2, 0.3, 0.4, 0.1],
        [9.0, 10.0, 11.0, 8.0],
        [2.0, 2.1, 2.2, 1.9],
        0.08,
        directions=np.arange(0, 360, 30),
        speeds=[8.0, 11.0],
    )


@pytest.fixture(scope="session")
def problem(small_site, turbine):
    """Twelve turbines in an area like an L."""
    return LayoutProblem(WindFarm(small_site, turbine), layout_cases.SHAPES["concave"], 12, spacing_m=720)


@pytest.fixture(scope="session")
def _references():
    stored = references.References()
    yield stored
    if references.MODE == "write":
        stored.write()


@pytest.fixture
def pywake(request, _references):
    """PyWake's numbers for this test: `pywake.numbers(lambda: {"aep": ...}).assert_close("aep", ours, rtol=1e-9)`."""
    return references.PyWake(_references, f"{request.node.path.stem}::{request.node.name}")


def default_first(models, name=lambda model: getattr(model, "name", model)):
    """Return wake models as parameters. `make test` runs the default one: each of the others compiles its own kernels.

    For tests of kernels other than those of AEP and gradient. With compilation off all of them run.
    """
    return [pytest.param(model, marks=() if name(model) == "nygaard_2022" else pytest.mark.slow) for model in models]


def random_layout(count, seed, density_m=1500.0, origin=(700_000.0, 6_240_000.0), apart_m=500.0):
    """Positions of `count` turbines, at least `apart_m` from each other."""
    rng = np.random.default_rng(seed)
    side = density_m * np.sqrt(count)
    places = []
    while len(places) < count:
        place = rng.uniform(0, side, 2)
        if all(np.hypot(*(place - other)) > apart_m for other in places):
            places.append(place)
    x, y = np.array(places).T
    return x + origin[0], y + origin[1]
