"""The ``emea`` command. It imports only the subcommand that runs."""

import difflib
import faulthandler
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from emea import __version__
from emea.errors import UserError, paths_checked
from emea.runtime.console import PlainFormatter

COMMANDS = {
    "align": "align two graph files: emea align SOURCE TARGET --links FILE",
    "dedupe": "find entities of one graph or table that are the same",
    "run": "run an experiment, or a sweep with -m: emea run data=zh ratio=0.05",
    "predict": "write the alignment of a finished run, without training",
    "show": "write the alignment of a finished run as one page and open it",
    "explain": "show why a finished run matches two entities",
    "suggest": "rank the entities whose label would help most",
    "update": "align new versions of the graphs of a finished run",
    "serve": "serve a finished run: reconciliation, matches and decisions",
    "divide": "cut a large pair into parts that run as separate jobs",
    "join": "join the runs of all parts of a divided pair into one run",
    "merge": "write both graphs of a finished run as one",
    "report": "write tables of finished runs",
    "compare": "compare finished runs: emea compare RUN RUN",
    "data": "print the statistics of a data set",
    "verify": "recompute a row of the leaderboard: emea verify ROW --alignment FILE",
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
    open_streams()
    try:
        try:
            status = _called(arguments)
        finally:
            # the interpreter would report a failure at its end with a traceback
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:  # the reader of standard output, such as `head`, has ended
        _drop_output()
        return 141
    except OSError as error:
        if not _drop_output():
            raise
        return _cannot_write(error)
    return status


def _cannot_write(error: OSError) -> int:
    reason = error.strerror or error
    print(f"error: Standard output cannot be written: {reason}.", file=sys.stderr)
    return 1


def open_streams() -> None:
    """Open standard streams that the caller has closed.

    Otherwise the next file that is opened would take their place, and messages would be written
    into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


def _drop_output() -> bool:
    """Send what is left of standard output to nowhere if it cannot be written.

    An error does not say which file it is about, so one more line is tried.

    Returns:
        Whether that was so.
    """
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):  # it is not a file
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)
        return True
    return False


def _called(arguments: Sequence[str] | None) -> int:
    """Run the subcommand that the arguments name, and report its errors."""
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
        print(
            f"error: unknown command {name!r}.{guess} Commands: {names}.",
            file=sys.stderr,
        )
        return 2
    if not faulthandler.is_enabled():
        with suppress(
            AttributeError, OSError, RuntimeError, ValueError
        ):  # stderr is not a file
            faulthandler.enable()  # a crash of native code then prints where it happened
    with suppress(AttributeError):  # stdout is not a text file
        # names that the terminal's encoding does not have are escaped
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    module, function = TARGETS.get(name, (name, "main"))
    with suppress(AttributeError):  # what commands without own settings of the log use
        logging.lastResort.setFormatter(PlainFormatter())  # type: ignore[union-attr]
    try:
        with paths_checked():
            _check_current_folder()
            status: int = getattr(import_module(f"emea.cli.{module}"), function)(rest)
    except UserError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.filename is None and _drop_output():
            return _cannot_write(cause)
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        from emea.runtime.signals import exit_status

        return exit_status()
    return status


def _check_current_folder() -> None:
    """Raise an error if the current folder was deleted."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError(
            "The current folder does not exist any more. Change to another folder."
        ) from error


def overview() -> str:
    """List the commands, one line each."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return OVERVIEW.format(commands="\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
