"""Whether the built site loads anything from another host: `python tools/check_site.py site`.

Links to click on are fine.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

ELSEWHERE = re.compile(r"\s*(?:[a-z]+:)?//", re.I)
LOADS = {
    ("script", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("source", "src"),
    ("source", "srcset"),
    ("iframe", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("embed", "src"),
    ("object", "data"),
    ("use", "href"),
    ("image", "href"),
    ("link", "href"),
}
HARMLESS_LINKS = {"canonical", "prev", "next", "license", "author"}
OF_STYLES = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", re.I)


class Loads(HTMLParser):
    """Collects what a page would fetch by itself from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        if tag == "link" and given.get("rel") in HARMLESS_LINKS:
            return
        for name, value in given.items():
            if (tag, name) in LOADS and ELSEWHERE.match(value):
                self.found.append(f"<{tag} {name}={value}>")
        self.found += styles(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += styles(data)


def styles(text: str) -> list[str]:
    """What a style sheet would fetch from elsewhere."""
    return [first or second for first, second in OF_STYLES.findall(text) if ELSEWHERE.match(first or second)]


def loads(path: Path) -> list[str]:
    """What a file of the site would fetch from elsewhere."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return styles(text)
    page = Loads()
    page.feed(text)
    return page.found


def main(folder: Path) -> int:
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".css", ".svg"))
    if not files:
        print(f"{folder}: no pages in it; expected a built site", file=sys.stderr)
        return 1
    found = [f"{path}: loads {what}" for path in files for what in loads(path)]
    print("\n".join(found) or f"{folder}: {len(files)} files, none loads anything from elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
