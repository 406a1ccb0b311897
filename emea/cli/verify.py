"""``emea verify``: makes a row of the leaderboard, and recomputes the numbers of one."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from emea.cli.arguments import add_force_argument, command_parser
from emea.errors import UserError, writing
from emea.record.outputs import locked_file
from emea.runtime.console import say

if TYPE_CHECKING:
    from emea.results.leaderboard import Gold

DESCRIPTION = """Recomputes the numbers of a row of the leaderboard from its alignment and the gold,
and says in which numbers they differ.

The gold is the test links of the data set that the row names. With --gold, it is a file of links.
With --run, the command writes the row of a finished run instead."""

EXAMPLES = """examples:
  emea verify ROW.json --alignment alignment.tsv
  emea verify ROW.json --alignment alignment.tsv --gold test.tsv
  emea verify ROW.json --run RUN --method "em=dual" --by "Ada L."
"""


def main(arguments: Sequence[str]) -> int:
    """Verify or write a row; the status is 1 if a number differs."""
    parser = command_parser("verify", DESCRIPTION, EXAMPLES)
    parser.add_argument("row", type=Path, metavar="ROW", help="JSON file with the row")
    parser.add_argument(
        "--alignment", type=Path, metavar="FILE", help="alignment.tsv of the row"
    )
    parser.add_argument(
        "--gold", type=Path, metavar="FILE", help="test links, in any format of links"
    )
    parser.add_argument(
        "--unmatched",
        type=Path,
        metavar="FILE",
        help="with --gold: source entities without a counterpart in the first column",
    )
    parser.add_argument(
        "--run", type=Path, metavar="RUN", help="write the row of this finished run"
    )
    parser.add_argument("--method", help="with --run: name of the method")
    parser.add_argument("--by", help="with --run: who made the run")
    add_force_argument(parser)
    options = parser.parse_args(arguments)
    if options.run is not None:
        return _write(options)
    if options.alignment is None:
        raise UserError("--alignment is missing: name the alignment.tsv of the row.")
    return _verify(options)


def _write(options: argparse.Namespace) -> int:
    from emea.record.checked_files import write_atomic
    from emea.results.leaderboard import row_of_run

    missing = [name for name in ("method", "by") if not getattr(options, name)]
    if missing:
        raise UserError(f"--{missing[0]} is missing: the row of a run names it.")
    row = row_of_run(options.run, options.method, options.by)
    with locked_file(options.row, options.force), writing(options.row):
        write_atomic(options.row, json.dumps(row, indent=1, ensure_ascii=False) + "\n")
    say(f"Wrote {options.row}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from emea.results.leaderboard import differences, gold_of_row, read_row

    row = read_row(options.row)
    gold = _gold_of_files(options) if options.gold is not None else gold_of_row(row)
    found = differences(row, options.alignment, gold)
    for line in found:
        say(line)
    numbers = len(row["gold"]) + len(row["numbers"])
    say(f"{options.row}: " + ("DIFFERS" if found else f"{numbers} numbers verified"))
    return 1 if found else 0


def _gold_of_files(options: argparse.Namespace) -> "Gold":
    """Return the gold that files of the user give."""
    from emea.data.formats.link_file import read_link_file
    from emea.results.leaderboard import Gold

    links = frozenset(read_link_file(options.gold).links)
    without: frozenset[str] = frozenset()
    if options.unmatched is not None:
        text = options.unmatched.read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line]
        without = frozenset(line.split("\t")[0] for line in lines)
    return Gold(links, without)
