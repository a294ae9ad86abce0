"""Makes docs/theme/mathematics.woff2 from TeX Gyre Pagella Math: `python tools/math_font.py texgyrepagella-math.otf`.

Only the characters of ordinary equations are kept, and it gets another name, as its licence asks of changed fonts. It
needs fonttools and brotli; the original is in Debian's fonts-texgyre-math, and at CTAN.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

TARGET = Path(__file__).parent.parent / "docs" / "theme" / "mathematics.woff2"
NAME = "Mathematics"
KEPT = [
    *range(0x20, 0x7F),
    *range(0xA0, 0x100),
    *range(0x300, 0x370),  # accents
    *range(0x391, 0x3F6),  # Greek
    *range(0x2010, 0x2040),
    0x210E,  # the slanted h, which stands apart from the others
    0x2113,
    *range(0x2190, 0x2200),  # arrows
    *range(0x2200, 0x2300),  # operators
    *range(0x2308, 0x230C),
    0x27E8,
    0x27E9,
    *range(0x1D434, 0x1D468),  # slanted letters
    *range(0x1D6A4, 0x1D6A6),
    *range(0x1D6E2, 0x1D71C),  # slanted Greek
]


def main(source: Path) -> None:
    font = TTFont(source)
    options = subset.Options()
    options.layout_features = ["ssty", "dtls"]  # smaller forms for indices, and letters without dots under accents
    options.flavor = "woff2"
    options.name_IDs = [0, 1, 2, 4, 6]
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=KEPT)
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 4, 6):
            record.string = NAME
    subset.save_font(font, str(TARGET), options)
    print(f"written: {TARGET}, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
