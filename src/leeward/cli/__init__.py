"""The command line. A command parses its options, calls the library and prints. No other module imports this one.

Commands import heavy packages only when they need them, so that `leeward --help` starts fast.
"""

import errno
import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from leeward import __version__
from leeward.cli.options import expanded
from leeward.cli.output import EXIT_ERROR, discard_output, exit_code, printable_streams
from leeward.cli.progress import compiling_shown
from leeward.errors import LeewardError

# In the order of `leeward --help`. Each command is a function in the module of the same name.
COMMANDS = [
    "run",
    "evaluate",
    "new",
    "doctor",
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
    "compare",
    "slurm_script",
]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Command(TyperCommand):
    """A command whose error for an unknown option lists the known ones."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":  # the class is click's, or that of typer's copy of click
                known = [name for parameter in self.params for name in parameter.opts if name.startswith("--")]
                vars(error)["possibilities"] = known
            raise


def main() -> None:
    """Run the command line. An expected error is one line on stderr."""
    with printable_streams(), compiling_shown():
        try:
            _main()
        finally:  # flush here: a failed flush at exit would lose the exit code
            try:
                _flush()
            except OSError:  # the error is already reported
                discard_output()


def _main() -> None:
    try:
        try:
            app()
        except SystemExit:
            _flush()  # raises OSError if the disk is full
            raise
    except BrokenPipeError:  # the reader of the output is gone; all files are written
        sys.exit(EXIT_ERROR)
    except OSError as error:  # for example a name that is too long, no permission, or a full disk
        is_full = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT)
        print(f"leeward: {'the output cannot be written: ' if is_full else ''}{error}", file=sys.stderr)
        sys.exit(exit_code(error))
    except LeewardError as error:
        print(f"leeward: {error}", file=sys.stderr)
        sys.exit(exit_code(error))


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _print_version(is_given: bool) -> None:
    if is_given:
        print(f"leeward {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compute thousands of optimised wind-farm layouts and never lose one."""


for name in COMMANDS:
    module = importlib.import_module(f"leeward.cli.{name}")
    app.command(name.replace("_", "-"), cls=Command)(expanded(getattr(module, name)))
