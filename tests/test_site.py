"""What the documentation site is made with. `make docs` builds it, and any warning is an error there."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from test_commands_page import tool

ROOT = Path(__file__).parent.parent
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))


def test_every_page_is_in_the_navigation():
    def pages(entry):
        if isinstance(entry, str):
            yield entry
        for part in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
            yield from pages(part)

    listed = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="http://example/a.png">',
        '<p style="background: url(https://example/a.png)">',
        '<style>@import "https://example/a.css";</style>',
    ],
)
def test_loads_from_elsewhere_are_found(text, tmp_path):
    check = tool("check_site")
    (tmp_path / "index.html").write_text(f"<html>{text}</html>")
    assert len(check.loads(tmp_path / "index.html")) == 1
    assert check.main(tmp_path) == 1


def test_links_to_click_on_are_no_loads(tmp_path):
    check = tool("check_site")
    assert check.main(tmp_path) == 1, "no pages at all"
    (tmp_path / "index.html").write_text(
        '<a href="https://example">there</a><img src="a.png"><link rel="canonical" href="https://example">'
        "<script>const where = 'https://example'</script>"
    )
    (tmp_path / "a.css").write_text("a { background: url(a.svg) }")
    assert check.main(tmp_path) == 0
    (tmp_path / "a.css").write_text('@font-face { src: url("https://example/a.woff2") }')
    assert check.main(tmp_path) == 1


def test_equations_become_mathml():
    pytest.importorskip("mkdocs", reason="needs MkDocs, of the extra `docs`")
    hooks = tool("site_hooks")
    made = hooks.on_page_content(
        r'<p>With <span class="arithmatex">\(a &lt; b\)</span>:</p><div class="arithmatex">\[\frac{a}{b}\]</div>',
        page=PAGE,
    )
    assert made.count("<math") == 2
    assert "<mfrac>" in made.split('<div class="equation">')[1]
    assert "arithmatex" not in made


@pytest.mark.parametrize("latex", [r"\farc{a}{b}", r"\left( a", r"a_1_2"])
def test_an_equation_that_cannot_be_shown_stops_the_build(latex):
    exceptions = pytest.importorskip("mkdocs.exceptions", reason="needs MkDocs, of the extra `docs`")
    with pytest.raises(exceptions.PluginError, match=r"page\.md"):
        tool("site_hooks").on_page_content(rf'<span class="arithmatex">\({latex}\)</span>', page=PAGE)


def test_names_in_docstrings_become_a_list():
    pytest.importorskip("griffe", reason="needs mkdocstrings, of the extra `docs`")
    with_list = tool("docstring_names").with_list
    text = "Where it is.\n\nIn metres. x, y: east and\nnorth; name: what it is called. Not this: or that."
    assert with_list(text, ["x", "y", "name"]) == (
        "Where it is.\n\nIn metres.\n\n- `x`, `y`: east and north.\n- `name`: what it is called. Not this: or that."
    )
    assert with_list("Nothing, name: by name.", ["name"]) == "Nothing, name: by name."
