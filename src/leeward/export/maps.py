"""Export all layouts as one GeoJSON file, written as the results are read."""

from typing import TYPE_CHECKING, BinaryIO

from leeward.errors import InputError
from leeward.formats.geojson import collection

if TYPE_CHECKING:
    from leeward.export.write import Request


def write_geojson(file: BinaryIO, request: "Request") -> None:
    """Write the area of every farm that has a layout, then the neighbours, then the turbines of all layouts."""
    layouts, campaign = request.layouts, request.campaign
    farms = sorted({key.farm_idx for key in layouts})
    for farm in farms:
        if farm not in campaign.farms:
            raise InputError(
                f"{layouts.path}: has layouts of farm {farm}, which is not in the campaign {campaign.name}; "
                "select other farms with --farm, or another campaign with --campaign"
            )
    for piece in collection(farms, layouts.results(), campaign):
        file.write(piece.encode())
