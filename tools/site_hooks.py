"""What the documentation site does beyond MkDocs: equations become MathML when it is built.

The pages have them as `$...$` and `$$...$$`, which GitHub shows too; pymdownx.arithmatex finds them. Browsers show
MathML by themselves, with no script; roots and brackets that grow need a font with a table for mathematics, and not
every machine has one, so that docs/theme/mathematics.woff2 comes along.
"""

import html
import re
from typing import Any

from latex2mathml import exceptions
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

WRONG = tuple(thing for thing in vars(exceptions).values() if isinstance(thing, type) and issubclass(thing, Exception))
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Called by MkDocs with each page as HTML."""
    made = EQUATION.sub(lambda found: _mathml(found, page.file.src_uri), content)
    if "arithmatex" in made:
        raise PluginError(f"{page.file.src_uri}: an equation was not made into MathML")
    return made


def _mathml(found: "re.Match[str]", where: str) -> str:
    source = html.unescape(found[3]).strip()
    is_block = found[2] == "["
    try:
        math = convert(source, display="block" if is_block else "inline")
    except WRONG as error:
        raise PluginError(
            f"{where}: {source!r} is no LaTeX that can be shown ({type(error).__name__}: {error})"
        ) from error
    if unknown := re.search(r"<m[a-z]+>(\\[a-zA-Z]+)</m", math):
        raise PluginError(f"{where}: {unknown[1]} in {source!r} is not known; expected LaTeX that latex2mathml knows")
    return f'<div class="equation">{math}</div>' if is_block else math
