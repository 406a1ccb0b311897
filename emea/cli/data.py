"""``emea data NAME [key=value ...]`` prints the statistics of a data set."""

from collections.abc import Sequence

from emea.config.command_line import check_overrides
from emea.config.composition import CONF, composed, option_names
from emea.data.statistics import statistics_table
from emea.record.pair_file import load_pair

USAGE = "usage: emea data NAME [key=value ...]\n\nPrint the statistics of a data set.\n\ndata sets:"


def main(arguments: Sequence[str]) -> int:
    """Print the statistics of a data set and return the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        names = option_names("data")
        width = max(map(len, names))
        print(USAGE, "", *(f"  {one:<{width}}  {_description(one)}" for one in names), sep="\n")
        return 0 if arguments else 2
    name, *settings = arguments
    # as in emea run, settings may also begin with "data."
    chosen = [f"data={name}", *(f"data.{one.removeprefix('data.')}" for one in settings)]
    check_overrides(chosen)
    print(statistics_table(load_pair(composed(chosen))))
    return 0


def _description(name: str) -> str:
    text = (CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    return text.splitlines()[0].removeprefix("# ")
