"""Fallback fonts for characters that matplotlib's default font lacks, such as Chinese ones."""

import functools
import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

from leeward.charts import shortened

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


class MissingLettersWarning(UserWarning):
    """A warning that no installed font has some characters of a figure."""

    def __init__(self, letters: str) -> None:
        some = shortened(letters, 21)
        super().__init__(
            f"no installed font has the characters {some}, so they are drawn as boxes; install a font that has "
            "them, for Chinese, Japanese and Korean for example Noto Sans CJK (package fonts-noto-cjk)"
        )


def complete_fonts(figure: Figure) -> str:
    """Add fallback fonts to texts whose font lacks characters; return the characters that no font has."""
    known = {font.name for font in font_manager.fontManager.ttflist}
    missing: dict[str, None] = {}
    for text in (found for found in figure.findobj(Text) if isinstance(found, Text)):
        if lacking := _lacking(text.get_text(), text.get_fontfamily()):
            families = dict.fromkeys([*text.get_fontfamily(), *(name for name in FALLBACKS if name in known)])
            text.set_fontfamily(list(families))
            missing |= dict.fromkeys(_lacking(lacking, families))
    return "".join(missing)


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Silence matplotlib's warnings on each missing glyph, and on fonts without a bold weight."""

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


def _lacking(words: str, families: Iterable[str]) -> str:
    """Return the characters that none of these fonts has."""
    if words.isascii():
        return ""
    paths = (font_manager.findfont(font_manager.FontProperties(family=[family])) for family in families)
    known = [_letters(path) for path in paths]
    return "".join(c for c in words if c.isprintable() and not any(ord(c) in k for k in known))


@functools.lru_cache(maxsize=64)
def _letters(path: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(path).get_charmap())
