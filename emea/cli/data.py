"""``emea data NAME [key=value ...]`` prints the statistics of a data set."""

from collections.abc import Sequence

from emea.config.command_line import check_overrides
from emea.config.composition import CONF, composed, option_names
from emea.data.graph_pair import GraphPair
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
    print(statistics_table(load_named_pair(arguments[0], arguments[1:])))
    return 0


def load_named_pair(name: str, overrides: Sequence[str] = ()) -> GraphPair:
    """Load a data set of ``conf/data``.

    Args:
        name: Name of the option.
        overrides: Settings of the data set, as ``key=value``.

    Raises:
        ConfigError: If the name or a setting is unknown.
    """
    # as in emea run, settings may also begin with "data."
    settings = [f"data.{override.removeprefix('data.')}" for override in overrides]
    chosen = [f"data={name}", *settings]
    check_overrides(chosen, defaults=settings)
    return load_pair(composed(chosen))


def _description(name: str) -> str:
    text = (CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    return text.splitlines()[0].removeprefix("# ")
