"""Export one layout for FLORIS 4: an input file for `FlorisModel`, and a CSV file of its wind rose beside it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leeward import __version__
from leeward.export.plant import Plant, yaml_bytes
from leeward.formats.tabular import csv_text
from leeward.peers.floris import floris_input, wind_rows

if TYPE_CHECKING:
    from leeward.export.write import Request


def floris_pieces(request: "Request") -> Iterator[bytes]:
    """Yield the whole input file."""
    plant = request.plant
    name = f"{plant.campaign}, {plant.key}"
    yield yaml_bytes(
        _comments(plant), floris_input(plant, name, f"{plant.farm_name}, written by leeward {__version__}")
    )


def wind_pieces(request: "Request") -> Iterator[bytes]:
    """Yield the whole wind rose, a row for each condition of the input file, in the same order."""
    rows = wind_rows(request.plant)
    yield csv_text(list(rows), zip(*rows.values(), strict=True)).encode()


def _comments(plant: Plant) -> list[str]:
    known = [
        f"{plant.key} of the campaign {plant.campaign}, as a FLORIS 4 input; written by leeward {__version__}",
        f"annual energy production: {plant.energy_words}; with leeward's wake model {plant.wake_model.name}; "
        "FLORIS has its own wake models, which give a different AEP",
        "the file beside this one, ..._wind_rose.csv, has the probability of each condition, in the same order: "
        "model.get_farm_AEP(freq=pandas.read_csv(FILE)['freq'].to_numpy())",
    ]
    if len(plant.neighbour_x):
        known.append(f"the last {len(plant.neighbour_x)} turbines are neighbours: give them weight 0")
    return known
