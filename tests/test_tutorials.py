"""The commands of the tutorials run in order, and print the lines that the pages show, but for the numbers."""

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from run_cases import leeward_here

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.M | re.S)


def shape(line):
    """A line without its figures, dates, digests and spaces: these are of the machine and the day."""
    line = re.sub(r"\d{4}-\d\d-\d\d[ T][\d:]+Z?", "DATE", line)
    line = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", line)
    line = re.sub(r"results/[0-9a-f]{2}/", "results/XX/", line)
    line = re.sub(r"^( *host +).*|^( *versions +).*", r"\1\2", line)
    line = re.sub(r"\d[\d.:]*", "#", line)
    return " ".join(re.sub(r"# (B|kB|MB|s|min)\b", "# UNIT", line).split())


def type_in(block, folder):
    """Run the commands of a console block; every line that it shows must be printed, in that order."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        line, _, shown = part.partition("\n")
        name, *words = shlex.split(line)
        assert name == "leeward", line
        done = leeward_here(*words, cwd=folder)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        printed = {shape(line) for line in (done.stdout + done.stderr).splitlines()}
        for expected in filter(None, map(shape, shown.splitlines())):
            assert expected in printed, f"{line}: {expected!r} is not printed any more, but {sorted(printed)}"


@pytest.mark.parametrize("page", ["first-campaign", "own-farm", "complex-terrain"])
@pytest.mark.slow
def test_tutorial(page, tmp_path):
    """The folder is empty, or has the example's files."""
    if page == "complex-terrain":
        pytest.importorskip("py_wake", reason="the wind of complex-terrain is an example of PyWake")
    if (EXAMPLES / page).is_dir():
        shutil.copytree(EXAMPLES / page, tmp_path, dirs_exist_ok=True)
    ran = {"console": 0, "python": 0}
    for language, title, text in BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text()):
        if title:
            assert text == (tmp_path / title).read_text(), f"{title} is not what the page shows"
        elif language == "console":
            type_in(text, tmp_path)
        elif language == "python":
            with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, f"{page}.md", "exec"), {})
        ran[language] = ran.get(language, 0) + 1
    assert min(ran["console"], ran["python"]) > 0, ran


def test_what_is_not_printed_is_noticed(tmp_path):
    with pytest.raises(AssertionError, match="is not printed any more"):
        type_in("$ leeward new\nwritten: nothing\n", tmp_path)
    with pytest.raises(AssertionError, match="no such file"):
        type_in("$ leeward run nowhere.yaml\n", tmp_path)
