"""All layouts as one GeoJSON file, written as the results are read."""

from typing import TYPE_CHECKING, BinaryIO

from leeward.errors import InputError
from leeward.formats import geojson

if TYPE_CHECKING:
    from leeward.campaign import Campaign
    from leeward.store import Layouts


def write_geojson(file: BinaryIO, layouts: "Layouts", campaign: "Campaign") -> None:
    """First the area of every farm that has a layout, then the neighbours, then the turbines of all layouts.

    A feature a line.
    """
    farms = sorted({key.farm_idx for key in layouts})
    for farm in farms:
        if farm not in campaign.farms:
            raise InputError(
                f"{layouts.path}: has layouts of farm {farm}, of which the campaign {campaign.name} knows no area; "
                "leave them out with --farm, or name another campaign with --campaign"
            )
    file.write(geojson.collection_start(campaign).encode())
    first = [*(geojson.area_feature(farm, campaign) for farm in farms), *geojson.neighbour_features(campaign)]
    file.write(",\n".join(map(geojson.dumped, first)).encode())
    for result in layouts.results():
        features = [geojson.dumped(feature) for feature in geojson.turbine_features(result, campaign)]
        file.write(",\n".join(["", *features]).encode())
    file.write(geojson.COLLECTION_END.encode())
