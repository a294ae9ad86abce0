"""Draw docs/pictures/architecture.svg: the layers of the import contract, with what each package is for."""

import ast
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
# where the steps of docs/architecture.md, "The path of a task", take place
STEPS = {"campaign": "1", "runs": "2 3 7", "engines": "4", "layout": "5", "wind": "5", "store": "6 7", "watch": "8"}
WIDTH, ROW, PAD, GAP = 960, 26, 10, 8


def layers() -> list[list[str]]:
    """Return the packages and modules of each layer, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = project["tool"]["importlinter"]["contracts"][0]
    return [[name.strip(" ()") for name in layer.split("|")] for layer in contract["layers"]]


def summary(name: str) -> str:
    """Return the first sentence of the docstring of a package or module, without the full stop."""
    package = ROOT / "src" / "leeward" / name
    source = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
    text = (ast.get_docstring(ast.parse(source.read_text())) or "").split("\n\n")[0]
    return " ".join(text.split()).split(". ")[0].rstrip(".")


def svg() -> str:
    """Return the picture."""
    parts, top = [], PAD
    for layer in layers():
        height = ROW * len(layer) + PAD
        parts.append(f'<rect x="{PAD}" y="{top}" width="{WIDTH - 2 * PAD}" height="{height}" rx="6" class="layer"/>')
        for number, name in enumerate(layer):
            line = top + PAD / 2 + ROW * number + 18
            parts.append(f'<text x="{2 * PAD}" y="{line}" class="name">{escape(name)}</text>')
            parts.append(f'<text x="140" y="{line}">{escape(summary(name))}</text>')
            for place, step in enumerate(reversed(STEPS.get(name, "").split())):
                x = WIDTH - 3 * PAD - 24 * place
                parts.append(
                    f'<circle cx="{x}" cy="{line - 5}" r="10"/><text x="{x}" y="{line}" class="step">{step}</text>'
                )
        top += height + GAP
    style = (
        "text{font:14px sans-serif;fill:#263238}.name{font:bold 14px monospace}.layer{fill:#eceff1;stroke:#90a4ae}"
        "circle{fill:#00796b}.step{fill:#fff;font-weight:bold;text-anchor:middle}"
    )
    size = f'width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}"'
    background = f'<rect width="{WIDTH}" height="{top}" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>{background}{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    PICTURE.write_text(svg())
