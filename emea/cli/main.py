"""The ``emea`` command. It imports only the subcommand that runs."""

import difflib
import faulthandler
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from emea import __version__
from emea.errors import UserError, paths_checked

COMMANDS = {
    "align": "align two graph files: emea align SOURCE TARGET --links FILE",
    "run": "run an experiment, or a sweep with -m: emea run data=zh ratio=0.05",
    "predict": "write the alignment of a finished run, without training",
    "show": "write the alignment of a finished run as one page and open it",
    "explain": "show why a finished run matches two entities",
    "suggest": "rank the entities whose label would help most",
    "update": "align new versions of the graphs of a finished run",
    "divide": "cut a large pair into parts that run as separate jobs",
    "join": "join the runs of all parts of a divided pair into one run",
    "merge": "write both graphs of a finished run as one",
    "report": "write tables of finished runs",
    "compare": "compare finished runs: emea compare RUN RUN",
    "data": "print the statistics of a data set",
    "ui": "open the MLflow UI on this machine",
    "sync": "import run folders into an MLflow store",
}
"""Summaries of the subcommands."""

TARGETS = {
    "join": ("divide", "join"),
    "ui": ("tracking", "ui"),
    "sync": ("tracking", "sync"),
}
"""Module and function of a subcommand; others are ``main`` of the module of their name."""

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
    module, function = TARGETS.get(name, (name, "main"))
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
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return OVERVIEW.format(commands="\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
