"""docs/commands.md is what the commands say of themselves, and every page names commands and options that exist."""

import importlib.util
import re
from pathlib import Path
from typing import Annotated

import pytest
import typer

from leeward.cli import app
from leeward.cli.options import Options, expanded

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tools" / "commands.md", *(ROOT / "docs").glob("*.md")]
)


def tool(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMANDS = typer.main.get_command(app).commands
OPTIONS = {
    name: {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    for name, command in COMMANDS.items()
}


def test_the_page_is_what_the_commands_say():
    made = tool("commands").page(app, (ROOT / "tools" / "commands.md").read_text())
    assert made == (ROOT / "docs" / "commands.md").read_text(), "docs/commands.md is old: make commands"


def test_nothing_can_be_left_out():
    """A new command, argument or option is on the page, with its help and default."""
    small = typer.Typer()

    @small.command()
    def sail(
        where: Annotated[str, typer.Argument(help="Which way.")],
        speed_kn: Annotated[float, typer.Option(help="How fast; not with --reef.")] = 4.5,
        reef: Annotated[bool, typer.Option("--reef", "-r", help="Take a reef.")] = False,
    ) -> None:
        """Go somewhere.

        Over the
        sea.

        Exit codes: 0 there.
        """

    @small.command()
    def moor() -> None:
        """Stay."""

    page = tool("commands").page(small, "# Title\n\n## leeward sail\n\nAn example.\n")
    assert page == (
        "# Title\n\n## leeward sail\n\n```\nleeward sail WHERE [OPTIONS]\n```\n\nGo somewhere.\n\nOver the sea.\n\n"
        "| argument | | default |\n|---|---|---|\n| `WHERE` | Which way. | required |\n\n"
        "| option | | default |\n|---|---|---|\n| `--speed-kn NUMBER` | How fast; not with `--reef`. | `4.5` |\n"
        "| `--reef`, `-r` | Take a reef. |  |\n\nExit codes: 0 there.\n\nAn example.\n\n"
        "## leeward moor\n\n```\nleeward moor\n```\n\nStay.\n"
    )
    with pytest.raises(ValueError, match="leeward swim: no such command"):
        tool("commands").page(small, "# Title\n\n## leeward swim\n\nAn example.\n")


def test_a_class_of_options_becomes_a_command(capsys):
    """A group of options stands where the class has it, and arrives as a group."""

    class Rig(Options):
        sails: int = typer.Option(1, help="How many.")

    class SailOptions(Options):
        """Go
        somewhere."""

        where: str = typer.Argument(..., help="Which way.")
        rig: Rig
        reef: bool = typer.Option(False, "--reef", help="Take a reef.")

    def sail(options: SailOptions) -> None:
        print(options.where, options.rig.sails, options.reef)

    small = typer.Typer()
    small.command()(expanded(sail))
    command = typer.main.get_command(small)
    assert ([parameter.name for parameter in command.params[:3]], command.help) == (
        ["where", "sails", "reef"],
        "Go somewhere.",
    )
    small(["north", "--sails", "3"], standalone_mode=False)
    assert capsys.readouterr().out == "north 3 False\n"


def test_every_command_says_its_exit_codes():
    for name, command in COMMANDS.items():
        assert "\n\nExit codes: 0 " in command.help, name
        assert "\n" not in command.help.replace("\n\n", ""), f"{name}: lines end where the terminal says"


def unknown_words(text):
    """Commands and options of leeward in a page that do not exist."""
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```", text, re.S | re.M)
    code = [block for language, block in blocks if language in ("", "console", "sh", "bash")]
    code += re.findall(r"`(leeward [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    for line in (line for block in code for line in block.splitlines()):
        for said in re.findall(r"(?:^|[$;&|(] *)leeward (.*)", line.strip()):
            command, *words = said.split(" # ")[0].split()
            if command.startswith("-"):
                continue
            if command not in OPTIONS:
                if command.isupper():
                    continue  # COMMAND
                yield f"leeward {command}"
                continue
            for word in words:
                option = word.strip("[],.;)").partition("=")[0]
                if word in ("|", "&&", ">", ";"):
                    break
                if re.fullmatch(r"--?[a-z][a-z-]*", option) and option not in OPTIONS[command]:
                    yield f"leeward {command} {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages_name_what_exists(page):
    assert list(unknown_words(page.read_text())) == []


def test_what_does_not_exist_is_found():
    text = "`leeward run --sedes 3`\n```console\n$ leeward plto layouts.h5\n$ leeward check a.h5 --deep -x\n```\n"
    assert list(unknown_words(text)) == ["leeward plto", "leeward check -x", "leeward run --sedes"]
