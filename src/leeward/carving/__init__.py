"""Recover groups and arrays from the raw bytes of damaged HDF5 files, without libhdf5.

The parser trusts no pointer to an object: it searches the whole file for headers, names and links. It raises
Unfamiliar for bytes that do not follow the HDF5 file format specification or lie beyond the end of the file. It
verifies stored checksums. Without checksums a carved group is probably, but not provably, intact. The file is never
changed. An example:

    >>> with open("truncated.h5", "rb") as file:
    ...     for group in carve(Pages(file.fileno())):
    ...         if "trace" in group.arrays:
    ...             print(group.attributes["voltage"], group.arrays["trace"].numbers.sum())
    0.5 4950.0

`Wanted` selects the groups to search for, and names those whose links are lost.

The parser bounds every address that it follows, but a hostile file can make it slow: run it in a separate process if
that matters.
"""

from leeward.carving.checksums import (
    fletcher32 as fletcher32,
    is_fletcher32 as is_fletcher32,
    is_whole as is_whole,
    lookup3 as lookup3,
)
from leeward.carving.datasets import (
    MOST_NUMBERS_A_CHUNK as MOST_NUMBERS_A_CHUNK,
    Stored as Stored,
    read_dataset as read_dataset,
)
from leeward.carving.messages import Raw as Raw
from leeward.carving.objects import (
    ATTRIBUTE as ATTRIBUTE,
    ATTRIBUTE_INFO as ATTRIBUTE_INFO,
    LINK_INFO as LINK_INFO,
    Header as Header,
    attributes_of as attributes_of,
    members as members,
    read_header as read_header,
)
from leeward.carving.pages import (
    SIGNATURE as SIGNATURE,
    Doubtful as Doubtful,
    MemoryPages as MemoryPages,
    Pages as Pages,
    Unfamiliar as Unfamiliar,
    data_pieces as data_pieces,
    next_data as next_data,
    signature_place as signature_place,
    stated_end as stated_end,
)
from leeward.carving.search import (
    DOUBTS as DOUBTS,
    CarvedGroup as CarvedGroup,
    Place as Place,
    Wanted as Wanted,
    carve as carve,
    find as find,
)
