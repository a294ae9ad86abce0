"""What all pictures share: colours, sizes, and how a file is written. No setting of matplotlib is changed for long."""

import io
import math
import os
import textwrap
import threading
import unicodedata
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from leeward.charts.scales import decimals
from leeward.errors import InputError
from leeward.files import replace_file
from leeward.plots.fonts import MissingLettersWarning, complete_fonts, without_glyph_warnings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.text import Text

Look = dict[str, Any]  # keywords of matplotlib that say what something looks like

ENDINGS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 200
LABEL, SMALL, TINY = 9, 8, 7  # points, in figures that are printed between one and two columns wide
SEA, SHORE, INK, FAINT, PLAIN = "#eef3f7", "#51626f", "#1c2a33", "#9aa7b0", "#1f6f9f"
LEGEND: Look = {"fontsize": SMALL, "labelcolor": INK, "frameon": False}
TITLE_LINE = 0.16  # inches
LETTERS_PER_INCH = 13.0  # to begin with; wider ones take more lines
EVEN = "viridis"  # even steps of lightness, the same for the colour-blind

_NO_DATE = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_settings = threading.Lock()  # one picture at a time: matplotlib's settings belong to the whole process


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """The path, if its ending is one that pictures can have."""
    file = Path(path)
    if file.suffix.lower() not in ENDINGS:
        raise InputError(
            f"{file}: a picture with the ending {file.suffix!r}; expected one of {', '.join(ENDINGS)}, for example "
            f"{file.stem or 'layout'}.png"
        )
    return file


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, inches, that belongs to no window; its parts are arranged when it is drawn."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def arrange(figure: Figure) -> None:
    """Put the parts of a figure where they will be drawn, for what depends on how large they are."""
    complete_fonts(figure)
    engine = figure.get_layout_engine()
    if engine is not None:
        with without_glyph_warnings():  # of which the file is told
            engine.execute(figure)


def save_figure(path: str | os.PathLike[str], figure: Figure) -> None:
    """Write a figure; the ending of the file says which kind: .png, .svg or .pdf. It appears whole or not at all.

    Text in .svg and .pdf files is text. The settings of matplotlib that this takes are put back afterwards. Letters
    that the figure's fonts do not have are taken from others, where these are installed, else warned of.
    """
    file = check_picture_path(path)
    kind = file.suffix.lower()
    content = io.BytesIO()
    missing = complete_fonts(figure)
    # text that can be searched and edited; and the same picture is the same file
    own = matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "leeward"})
    with _settings, own, without_glyph_warnings():
        figure.savefig(content, format=kind[1:], dpi=DOTS_PER_INCH, metadata=_NO_DATE[kind])
    replace_file(file, content.getvalue())
    if missing and kind != ".svg":  # whoever shows that brings the fonts
        warnings.warn(MissingLettersWarning(missing), stacklevel=2)


def colour_bar(
    figure: Figure,
    drawn: "ScalarMappable",
    axes: "Axes | list[Axes]",
    label: str,
    *,
    location: Literal["right", "bottom"] = "right",
    is_open: bool = False,
) -> "Colorbar":
    """Beside the axes, as small as the rest. is_open: there are values below the lowest colour."""
    is_below = location == "bottom"
    look: Look = {"shrink": 0.5 if is_below else 0.8, "anchor": (0.0, 1.0) if is_below else (0.0, 0.5), "pad": 0.02}
    look |= {"aspect": 30, "extend": "min" if is_open else "neither", "format": PlainNumbers()}
    bar = figure.colorbar(drawn, ax=axes, location=location, **look)
    bar.set_label(label, color=INK, fontsize=LABEL)
    bar.ax.tick_params(colors=INK, labelsize=SMALL)
    bar.outline.set_linewidth(0.4)
    return bar


def literal(words: str) -> str:
    """Words that people chose, such as names: matplotlib would set what is between two dollars as a formula."""
    return words.replace("$", r"\$")


def wrapped(words: str, inches: float, letters_per_inch: float = 12.0) -> str:
    """In as many lines as this width asks for."""
    # letters of Chinese, Japanese and Korean are twice as wide
    wide = sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in words) / max(len(words), 1)
    letters = max(int(letters_per_inch * inches / max(wide, 1.0)), 10)
    return "\n".join(textwrap.wrap(words, letters)) or words


def fold(text: "Text", words: str, inches: float) -> None:
    """Give a text these words, in as many lines as fit into the width as it is drawn."""
    per_inch = LETTERS_PER_INCH
    for _ in range(4):
        text.set_text("\n".join(wrapped(line, inches, per_inch) for line in words.split("\n")))
        with without_glyph_warnings():
            width = text.get_window_extent().width / text.figure.dpi
        if width <= inches:
            return
        per_inch *= 0.98 * inches / width


def headline(figure: Figure, words: str) -> None:
    """Above the figure, in as many lines as its width asks for."""
    text = figure.suptitle(" ", color=INK, fontsize=LABEL + 1, fontweight="bold")
    fold(text, literal(words), figure.get_figwidth() - 0.1)


class PlainNumbers(Formatter):
    """Numbers in full, without an exponent or an offset, and without the rounding errors of the ticks."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return self.format_ticks([value])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of all ticks of an axis, with as many decimals as the longest needs."""
        low, high = (0.0, 0.0) if self.axis is None else self.axis.get_view_interval()
        span = abs(high - low) or max(map(abs, values), default=0.0) or 1.0
        digits = decimals(values, min(max(5 - math.floor(math.log10(span)), 1), 12))
        return [f"{value:z.{digits}f}" for value in values]


def show_values(ax: "Axes", least: float) -> None:
    """Label the vertical axis plainly, and make it at least this long: smaller differences are rounding errors."""
    low, high = ax.get_ylim()
    if high - low < least:
        ax.set_ylim(0.5 * (low + high - least), 0.5 * (low + high + least))
    ax.yaxis.set_major_formatter(PlainNumbers())


def dress(ax: "Axes", title: str | None) -> None:
    """Plain axes: small ticks, no lid, a title."""
    ax.tick_params(colors=INK, labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(literal(title), color=INK, fontsize=LABEL)
