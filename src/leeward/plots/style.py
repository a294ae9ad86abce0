"""Colours, sizes and file output of all figures. Settings of matplotlib are restored after each use."""

import io
import math
import os
import textwrap
import threading
import unicodedata
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter

from leeward.charts import decimals
from leeward.errors import InputError
from leeward.files import replace_file
from leeward.plots.fonts import MissingLettersWarning, complete_fonts, without_glyph_warnings

Look = dict[str, Any]  # style keywords of matplotlib

ENDINGS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 200
LABEL, SMALL, TINY = 9, 8, 7  # points, for figures between one and two columns wide
SEA, SHORE, INK, FAINT, PLAIN = "#eef3f7", "#51626f", "#1c2a33", "#9aa7b0", "#1f6f9f"
LEGEND: Look = {"fontsize": SMALL, "labelcolor": INK, "frameon": False}
TITLE_LINE = 0.16  # inches
LETTERS_PER_INCH = 13.0  # a first guess; wider text takes more lines
EVEN = "viridis"  # even steps of lightness, safe for colour-blind readers

_NO_DATE = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_settings = threading.Lock()  # matplotlib's settings are global


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """Return the path, or raise InputError if its extension is not one of a figure."""
    file = Path(path)
    if file.suffix.lower() not in ENDINGS:
        raise InputError(
            f"{file}: the extension {file.suffix!r} is not one of a figure; expected one of {', '.join(ENDINGS)}, for "
            f"example {file.stem or 'layout'}.png"
        )
    return file


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size (inches), without a window, arranged when it is drawn."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def arrange(figure: Figure) -> None:
    """Arrange a figure now, so that the sizes of its parts are known."""
    complete_fonts(figure)
    engine = figure.get_layout_engine()
    if engine is not None:
        with without_glyph_warnings():  # `save_figure` warns
            engine.execute(figure)


def save_figure(path: str | os.PathLike[str], figure: Figure) -> None:
    """Write a figure atomically; the file extension selects the format: .png, .svg or .pdf.

    Text in .svg and .pdf files is text. Characters that the figure's fonts lack are taken from other installed fonts;
    if there are none, a warning names them.
    """
    file = check_picture_path(path)
    kind = file.suffix.lower()
    content = io.BytesIO()
    missing = complete_fonts(figure)
    # searchable text, and the same bytes for the same figure
    own = matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "leeward"})
    with _settings, own, without_glyph_warnings():
        figure.savefig(content, format=kind[1:], dpi=DOTS_PER_INCH, metadata=_NO_DATE[kind])
    replace_file(file, content.getvalue())
    if missing and kind != ".svg":  # the viewer supplies the fonts
        warnings.warn(MissingLettersWarning(missing), stacklevel=2)


def colour_bar(
    figure: Figure,
    drawn: ScalarMappable,
    axes: Axes | list[Axes],
    label: str,
    *,
    location: Literal["right", "bottom"] = "right",
    is_open: bool = False,
) -> "Colorbar":
    """Add a colour bar. is_open: there are values below the colour scale."""
    is_below = location == "bottom"
    look: Look = {"shrink": 0.5 if is_below else 0.8, "anchor": (0.0, 1.0) if is_below else (0.0, 0.5), "pad": 0.02}
    look |= {"aspect": 30, "extend": "min" if is_open else "neither", "format": PlainNumbers()}
    bar = figure.colorbar(drawn, ax=axes, location=location, **look)
    bar.set_label(label, color=INK, fontsize=LABEL)
    bar.ax.tick_params(colors=INK, labelsize=SMALL)
    bar.outline.set_linewidth(0.4)
    return bar


def literal(words: str) -> str:
    """Return a text with dollar signs escaped: matplotlib would set text between two of them as a formula."""
    return words.replace("$", r"\$")


def wrapped(words: str, inches: float, letters_per_inch: float = 12.0) -> str:
    """Return a text wrapped to this width."""
    # Chinese, Japanese and Korean characters are twice as wide
    wide = sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in words) / max(len(words), 1)
    letters = max(int(letters_per_inch * inches / max(wide, 1.0)), 10)
    return "\n".join(textwrap.wrap(words, letters)) or words


def fold(text: Text, words: str, inches: float) -> None:
    """Set a text, wrapped to this width as drawn."""
    per_inch = LETTERS_PER_INCH
    for _ in range(4):
        text.set_text("\n".join(wrapped(line, inches, per_inch) for line in words.split("\n")))
        with without_glyph_warnings():
            width = text.get_window_extent().width / text.figure.dpi
        if width <= inches:
            return
        per_inch *= 0.98 * inches / width


def headline(figure: Figure, words: str) -> None:
    """Set a headline above the figure, wrapped to its width."""
    text = figure.suptitle(" ", color=INK, fontsize=LABEL + 1, fontweight="bold")
    fold(text, literal(words), figure.get_figwidth() - 0.1)


class PlainNumbers(Formatter):
    """A formatter of numbers without exponent, offset or rounding errors of the ticks."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return self.format_ticks([value])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of all ticks, with the same number of decimals."""
        low, high = (0.0, 0.0) if self.axis is None else self.axis.get_view_interval()
        span = abs(high - low) or max(map(abs, values), default=0.0) or 1.0
        digits = decimals(values, min(max(5 - math.floor(math.log10(span)), 1), 12))
        return [f"{value:z.{digits}f}" for value in values]


def show_values(ax: Axes, least: float) -> None:
    """Use plain numbers on the vertical axis and make its span at least `least`: less is rounding error."""
    low, high = ax.get_ylim()
    if high - low < least:
        ax.set_ylim(0.5 * (low + high - least), 0.5 * (low + high + least))
    ax.yaxis.set_major_formatter(PlainNumbers())


def dress(ax: Axes, title: str | None) -> None:
    """Style axes: small ticks, no top or right spine, a title."""
    ax.tick_params(colors=INK, labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(literal(title), color=INK, fontsize=LABEL)
