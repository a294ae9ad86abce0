"""Colours, sizes, fonts and file output of all figures. Settings of matplotlib are restored after each use."""

import functools
import io
import logging
import math
import os
import textwrap
import threading
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter

from leeward.charts import decimals, shortened
from leeward.errors import InputError
from leeward.files import replace_file

Look = dict[str, Any]  # style keywords of matplotlib

ENDINGS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 200
LABEL, SMALL, TINY = 9, 8, 7  # points, for figures between one and two columns wide
SEA, SHORE, INK, FAINT, PLAIN = "#eef3f7", "#51626f", "#1c2a33", "#9aa7b0", "#1f6f9f"
TEXT: Look = {"color": INK, "fontsize": LABEL}
LEGEND: Look = {"fontsize": SMALL, "labelcolor": INK, "frameon": False}
TITLE_LINE = 0.16  # height of a line of a title, inches
LETTERS_PER_INCH = 13.0  # a first guess, which `wrap_text` corrects
EVEN = "viridis"  # even steps of lightness, safe for colour-blind readers
# fonts of common distributions, in order of preference
FALLBACKS = (
    *(f"Noto Sans CJK {where}" for where in ("JP", "SC", "TC", "HK", "KR")),
    *(f"Noto Sans {where}" for where in ("JP", "SC", "TC", "HK", "KR")),
    *("Source Han Sans", "Source Han Sans SC", "Source Han Sans CN", "Source Han Sans JP", "Source Han Sans KR"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "AR PL UMing CN", "AR PL UKai CN"),
    *("IPAexGothic", "IPAGothic", "IPAPGothic", "TakaoGothic", "TakaoPGothic", "VL Gothic", "VL PGothic"),
    *("NanumGothic", "NanumBarunGothic", "UnDotum", "Baekmuk Gulim"),
    *("Hiragino Sans", "PingFang SC", "Heiti TC", "Apple SD Gothic Neo", "Arial Unicode MS"),
    *("Microsoft YaHei", "SimHei", "Microsoft JhengHei", "Yu Gothic", "MS Gothic", "Malgun Gothic"),
    *("Noto Sans", "FreeSans", "Unifont"),
)
NO_GLYPH = "Glyph .* missing from font"  # matplotlib's warning

_NO_DATE = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_settings_lock = threading.Lock()  # matplotlib's settings are global


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """Return the path, or raise InputError if figures cannot have its file extension."""
    file = Path(path)
    if file.suffix.lower() not in ENDINGS:
        raise InputError(
            f"{file}: {file.suffix!r} is not a file extension of figures; expected one of {', '.join(ENDINGS)}, for "
            f"example {file.stem or 'layout'}.png"
        )
    return file


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size (inches), without a window. Drawing it arranges its parts."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def arrange(figure: Figure) -> None:
    """Arrange the parts of a figure now, to find out their sizes."""
    add_fallback_fonts(figure)
    engine = figure.get_layout_engine()
    if engine is not None:
        with without_glyph_warnings():  # `save_figure` warns
            engine.execute(figure)


def save_figure(path: str | os.PathLike[str], figure: Figure) -> None:
    """Write a figure atomically; the file extension selects the format: .png, .svg or .pdf.

    Text in .svg and .pdf files stays text. Other installed fonts supply the characters that the figure's fonts lack. A
    warning names the characters that no font has.
    """
    file = check_picture_path(path)
    kind = file.suffix.lower()
    content = io.BytesIO()
    missing = add_fallback_fonts(figure)
    # fonts keep text searchable; a fixed salt makes files reproducible
    settings = matplotlib.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "leeward"})
    with _settings_lock, settings, without_glyph_warnings():
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
) -> None:
    """Add a colour bar. is_open: mark that some values are below the colour scale."""
    is_below = location == "bottom"
    look: Look = {"shrink": 0.5 if is_below else 0.8, "anchor": (0.0, 1.0) if is_below else (0.0, 0.5), "pad": 0.02}
    look |= {"aspect": 30, "extend": "min" if is_open else "neither", "format": PlainNumbers()}
    bar = figure.colorbar(drawn, ax=axes, location=location, **look)
    bar.set_label(label, **TEXT)
    bar.ax.tick_params(colors=INK, labelsize=SMALL)
    bar.outline.set_linewidth(0.4)


def literal(words: str) -> str:
    """Return a text with escaped dollar signs, because matplotlib reads text between two of them as a formula."""
    return words.replace("$", r"\$")


def wrapped(words: str, inches: float, letters_per_inch: float = 12.0) -> str:
    """Return a text wrapped to about this width."""
    # Chinese, Japanese and Korean characters are twice as wide
    wide = sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in words) / max(len(words), 1)
    letters = max(int(letters_per_inch * inches / max(wide, 1.0)), 10)
    return "\n".join(textwrap.wrap(words, letters)) or words


def wrap_text(text: Text, words: str, inches: float) -> None:
    """Set the text of a drawn element, wrapped so that it is at most this wide."""
    per_inch = LETTERS_PER_INCH
    for _ in range(4):
        text.set_text("\n".join(wrapped(line, inches, per_inch) for line in words.split("\n")))
        with without_glyph_warnings():
            width = text.get_window_extent().width / text.figure.dpi
        if width <= inches:
            return
        per_inch *= 0.98 * inches / width


class PlainNumbers(Formatter):
    """A formatter of tick labels without exponents, offsets and rounding errors."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return self.format_ticks([value])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of all ticks, with the same number of decimals."""
        low, high = (0.0, 0.0) if self.axis is None else self.axis.get_view_interval()
        span = abs(high - low) or max(map(abs, values), default=0.0) or 1.0
        digits = decimals(values, min(max(5 - math.floor(math.log10(span)), 1), 12))
        return [f"{value:z.{digits}f}" for value in values]


def show_values(ax: Axes, least: float) -> None:
    """Show plain numbers on the vertical axis. least: its smallest span, so that it does not show rounding errors."""
    low, high = ax.get_ylim()
    if high - low < least:
        ax.set_ylim(0.5 * (low + high - least), 0.5 * (low + high + least))
    ax.yaxis.set_major_formatter(PlainNumbers())


def set_style(ax: Axes, title: str | None) -> None:
    """Set small tick labels, remove the top and right spines, and set the title."""
    ax.tick_params(colors=INK, labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(literal(title), **TEXT)


# --- fallback fonts for characters that matplotlib's default font lacks, such as Chinese ones ------------------------


class MissingLettersWarning(UserWarning):
    """Some characters of a figure are in no installed font."""

    def __init__(self, letters: str) -> None:
        some = shortened(letters, 21)
        super().__init__(
            f"no installed font has the characters {some}, so they are drawn as boxes; install a font that has "
            "them, for example Noto Sans CJK (package fonts-noto-cjk) for Chinese, Japanese and Korean"
        )


def add_fallback_fonts(figure: Figure) -> str:
    """Add fallback fonts to texts whose font lacks characters; return the characters that no font has."""
    known = {font.name for font in font_manager.fontManager.ttflist}
    missing: dict[str, None] = {}
    for text in (found for found in figure.findobj(Text) if isinstance(found, Text)):
        if lacking := _missing_characters(text.get_text(), text.get_fontfamily()):
            families = dict.fromkeys([*text.get_fontfamily(), *(name for name in FALLBACKS if name in known)])
            text.set_fontfamily(list(families))
            missing |= dict.fromkeys(_missing_characters(lacking, families))
    return "".join(missing)


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Suppress matplotlib's warnings about missing glyphs and about fonts without a bold weight."""

    def is_not_of_weight(record: logging.LogRecord) -> bool:
        return "find font weight" not in str(record.msg)

    log = logging.getLogger(font_manager.__name__)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NO_GLYPH)
        log.addFilter(is_not_of_weight)
        try:
            yield
        finally:
            log.removeFilter(is_not_of_weight)


def _missing_characters(words: str, families: Iterable[str]) -> str:
    """Return the characters that none of these fonts has."""
    if words.isascii():
        return ""
    paths = (font_manager.findfont(font_manager.FontProperties(family=[family])) for family in families)
    known = [_characters(path) for path in paths]
    return "".join(c for c in words if c.isprintable() and not any(ord(c) in k for k in known))


@functools.lru_cache(maxsize=64)
def _characters(path: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(path).get_charmap())
