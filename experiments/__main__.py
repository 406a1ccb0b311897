"""``python -m experiments``: the paper's report, the archive of runs, and batches of runs."""

import sys
from collections.abc import Sequence
from importlib import import_module

from emea.errors import UserError

COMMANDS = {
    "report": (
        "experiments.report.report_command",
        "write the reports of all recorded runs",
    ),
    "record": ("experiments.archive.record_command", "keep finished runs in a study"),
    "leaderboard": (
        "experiments.leaderboard_command",
        "write the page of the leaderboard",
    ),
    "batch": ("experiments.batch", "run the cells of an experiment in one process"),
}


def main(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, and return the exit status."""
    name, *rest = arguments or [""]
    if name not in COMMANDS:
        lines = [
            f"  {command:<11}  {summary}" for command, (_, summary) in COMMANDS.items()
        ]
        print(
            "usage: python -m experiments COMMAND [arguments]\n\ncommands:",
            *lines,
            sep="\n",
        )
        return 0 if name in ("-h", "--help") else 2
    try:
        status: int = import_module(COMMANDS[name][0]).main(rest)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
