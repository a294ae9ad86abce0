"""The command line: parses, calls the library, prints. Nothing imports this module.

Heavy imports are made by the commands that need them, so that `leeward --help` answers at once.
"""

import errno
import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from leeward import __version__
from leeward.cli.aep import aep
from leeward.cli.check import check
from leeward.cli.clean import clean
from leeward.cli.compiling import compiling_shown
from leeward.cli.exits import EXIT_ERROR, exit_code
from leeward.cli.export import export
from leeward.cli.merge import merge
from leeward.cli.missing import missing
from leeward.cli.new import new
from leeward.cli.optimise import optimise
from leeward.cli.plot import plot
from leeward.cli.report import report
from leeward.cli.run import run
from leeward.cli.salvage import salvage
from leeward.cli.serve import serve
from leeward.cli.show import show
from leeward.cli.slurm_script import slurm_script
from leeward.cli.status import status
from leeward.cli.wording import printable_streams
from leeward.errors import LeewardError

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
        finally:
            _settle_output()


def _main() -> None:
    try:
        _run_command()
    except BrokenPipeError:  # whoever read the output is gone; what was to be written is written
        sys.exit(EXIT_ERROR)
    except OSError as error:  # a name that is too long, a folder that may not be listed, an output that is full
        is_full = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT)
        print(f"leeward: {'the output cannot be written: ' if is_full else ''}{error}", file=sys.stderr)
        sys.exit(exit_code(error))
    except LeewardError as error:
        print(f"leeward: {error}", file=sys.stderr)
        sys.exit(exit_code(error))


def _run_command() -> None:
    """Run the command, and write what it has printed: an OSError if that cannot be written, on a full disk."""
    try:
        app()
    except SystemExit:
        if sys.stdout is not None:
            sys.stdout.flush()
        raise


def _settle_output() -> None:
    """Leave nothing for Python to flush at exit: where that fails, the exit code would be lost."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # it is told already
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


def _help(command: Callable[..., None]) -> str:
    """Its docstring, a line for each paragraph: the terminal, not the source, says where lines end."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(command.__doc__ or "").split("\n\n"))


for command in (
    run,
    new,
    status,
    missing,
    check,
    merge,
    salvage,
    clean,
    show,
    serve,
    plot,
    report,
    export,
    optimise,
    aep,
    slurm_script,
):
    app.command(cls=Listing, help=_help(command))(command)
