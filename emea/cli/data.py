"""``emea data NAME [key=value ...]`` prints the statistics of a data set."""

from collections.abc import Sequence

from emea.config.command_line import check_overrides
from emea.config.composition import CONF, option_names
from emea.config.usual_settings import LITERALS
from emea.data.statistics import statistics_table
from emea.record.pair_file import load_pair
from emea.runtime.console import say

VECTORS = ("data.source_vectors", "data.target_vectors")

USAGE = "usage: emea data NAME [key=value ...]\n\nPrint the statistics of a data set.\n\ndata sets:"

LITERALS_GROUP = "literals="
"""The group that decides whether literals are read, which other messages advise to set."""


def main(arguments: Sequence[str]) -> int:
    """Print the statistics of a data set and return the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        names = option_names("data")
        width = max(map(len, names))
        say(USAGE, "", *(f"  {one:<{width}}  {_description(one)}" for one in names))
        return 0 if arguments else 2
    name, *settings = arguments
    chosen = [f"data={name}", *map(_full_setting, settings)]
    if any(one.partition("=")[0] in VECTORS for one in chosen):
        chosen.append(LITERALS)  # only then they are read
    say(statistics_table(load_pair(check_overrides(chosen))))
    return 0


def _full_setting(setting: str) -> str:
    """Return a setting as ``emea run`` has it. ``data.`` may be left out, but not ``literals=``."""
    if setting.startswith(LITERALS_GROUP):
        return setting
    return f"data.{setting.removeprefix('data.')}"


def _description(name: str) -> str:
    text = (CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    return text.splitlines()[0].removeprefix("# ")
