"""The ``emea`` command. It imports only the subcommand that runs."""

import difflib
import faulthandler
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from emea import __version__
from emea.errors import UserError, paths_checked


class Command(NamedTuple):
    """A subcommand.

    Args:
        target: Module of ``emea.cli`` and function that run it.
        summary: One line for the overview.
    """

    target: str
    summary: str


COMMANDS = {
    "align": Command("align:main", "align two graph files: emea align SOURCE TARGET --links FILE"),
    "run": Command(
        "run:main", "run an experiment, or a sweep with -m: emea run data=zh ratio=0.05"
    ),
    "predict": Command("predict:main", "write the alignment of a finished run, without training"),
    "explain": Command("explain:main", "show why a finished run matches two entities"),
    "suggest": Command("suggest:main", "rank the entities whose label would help most"),
    "update": Command("update:main", "align new versions of the graphs of a finished run"),
    "report": Command("report:main", "write tables of finished runs"),
    "compare": Command("compare:main", "compare finished runs: emea compare RUN RUN"),
    "data": Command("data:main", "print the statistics of a data set"),
    "ui": Command("tracking:ui", "open the MLflow UI on this machine"),
    "sync": Command("tracking:sync", "import run folders into an MLflow store"),
}

OVERVIEW = """usage: emea COMMAND [arguments]

Entity alignment guided by compatibility (Liu et al., EMNLP 2022).

commands:
{commands}

`emea COMMAND --help` describes a command, `emea --version` prints the version."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand that the arguments name.

    Args:
        arguments: Arguments after ``emea``; ``None`` means those of this process.

    Returns:
        The exit status: 0 for success, 1 for an error, 2 for a wrong command line.
    """
    name, *rest = [*(sys.argv[1:] if arguments is None else arguments)] or [""]
    if name in ("", "-h", "--help", "help"):
        print(overview())
        return 0 if name else 2
    if name == "--version":
        print(f"emea {__version__}")
        return 0
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        guess = f" Did you mean emea {near[0]}?" if near else ""
        names = ", ".join(COMMANDS)
        print(f"error: unknown command {name!r}.{guess} Commands: {names}.", file=sys.stderr)
        return 2
    if not faulthandler.is_enabled():
        with suppress(AttributeError, OSError, RuntimeError, ValueError):  # stderr is not a file
            faulthandler.enable()  # a crash of native code then prints where it happened
    with suppress(AttributeError):  # stdout is not a text file
        # names that the terminal's encoding does not have are escaped
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    module, _, function = COMMANDS[name].target.partition(":")
    try:
        with paths_checked():
            status: int = getattr(import_module(f"emea.cli.{module}"), function)(rest)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        from emea.runtime.signals import exit_status

        return exit_status()
    except BrokenPipeError:  # the reader of standard output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


def overview() -> str:
    """List the commands, one line each."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return OVERVIEW.format(commands="\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
