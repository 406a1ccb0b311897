"""``emea data NAME [key=value ...]`` prints the statistics of a data set."""

import difflib
from collections.abc import Sequence

from omegaconf import DictConfig

from emea.config.checks import check_config
from emea.config.composition import CONF, composed, option_names
from emea.data.graph_pair import GraphPair
from emea.data.statistics import statistics_table
from emea.errors import ConfigError
from emea.record.pair_file import load_pair

USAGE = "usage: emea data NAME [key=value ...]\n\nPrint the statistics of a data set.\n\ndata sets:"


def main(arguments: Sequence[str]) -> int:
    """Print the statistics of a data set and return the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, "", *_described_options(), sep="\n")
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
    overrides = [override.removeprefix("data.") for override in overrides]  # as in emea run
    names = option_names("data")
    if name not in names:
        raise ConfigError(f"Unknown data set {name!r}{_choices(name, names)}")
    _check_keys(name, overrides, list(map(str, _composed(name, []).data)))
    config = _composed(name, [f"data.{override}" for override in overrides])
    check_config(config)
    return load_pair(config)


def _composed(name: str, overrides: list[str]) -> DictConfig:
    """Compose the whole config, because a data set can choose options of other groups."""
    return composed([f"data={name}", *overrides])


def _check_keys(name: str, overrides: Sequence[str], keys: Sequence[str]) -> None:
    for override in overrides:
        key, equals, _ = override.partition("=")
        if not equals:
            raise ConfigError(f"Expected key=value, got {override!r}.")
        if key not in keys:
            raise ConfigError(f"{name} has no setting {key!r}{_choices(key, keys)}")


def _choices(word: str, choices: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, choices)
    guess = f" (did you mean {' or '.join(near)}?)" if near else ""
    return f"{guess}. Choose from {', '.join(choices)}."


def _described_options() -> list[str]:
    names = option_names("data")
    width = max(map(len, names))
    return [f"  {name:<{width}}  {_description(name)}" for name in names]


def _description(name: str) -> str:
    text = (CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    return text.splitlines()[0].removeprefix("# ")
