"""The command line: parses, calls the library, prints. Nothing imports this module.

Heavy imports are made by the commands that need them, so that `leeward --help` answers at once.
"""

import errno
import importlib
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from leeward import __version__
from leeward.cli.options import expanded
from leeward.cli.output import EXIT_ERROR, exit_code, printable_streams
from leeward.cli.progress import compiling_shown
from leeward.errors import LeewardError

# In the order of `leeward --help`. Each is a function in a module of its name, which takes a class of options.
COMMANDS = [
    "run",
    "new",
    "status",
    "missing",
    "check",
    "merge",
    "salvage",
    "clean",
    "show",
    "serve",
    "plot",
    "report",
    "export",
    "optimise",
    "aep",
    "slurm_script",
]

app = typer.Typer(
    help="Thousands of optimised wind-farm layouts, and never one lost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Listing(TyperCommand):
    """A command that answers an option it does not know with those that it knows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":  # of click, or of typer's own copy of it
                known = [name for parameter in self.params for name in parameter.opts if name.startswith("--")]
                vars(error)["possibilities"] = known
            raise


def main() -> None:
    """Run the command line; an expected error is one line on stderr."""
    with printable_streams(), compiling_shown():
        try:
            _main()
        finally:  # leave nothing for Python to flush at exit: where that fails, the exit code would be lost
            try:
                _flush()
            except OSError:  # it is told already
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _main() -> None:
    try:
        try:
            app()
        except SystemExit:
            _flush()  # an OSError if that cannot be written, on a full disk
            raise
    except BrokenPipeError:  # whoever read the output is gone; what was to be written is written
        sys.exit(EXIT_ERROR)
    except OSError as error:  # a name that is too long, a folder that may not be listed, an output that is full
        is_full = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT)
        print(f"leeward: {'the output cannot be written: ' if is_full else ''}{error}", file=sys.stderr)
        sys.exit(exit_code(error))
    except LeewardError as error:
        print(f"leeward: {error}", file=sys.stderr)
        sys.exit(exit_code(error))


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"leeward {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Thousands of optimised wind-farm layouts, and never one lost."""


for name in COMMANDS:
    module = importlib.import_module(f"leeward.cli.{name}")
    app.command(name.replace("_", "-"), cls=Listing)(expanded(getattr(module, name)))
