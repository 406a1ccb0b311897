"""Prints a pair's statistics: ``python -m emea.data NAME [key=value ...]``."""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from hydra.utils import instantiate

from emea.data.graph_pair import GraphPair
from emea.data.statistics import statistics_table
from emea.errors import ConfigError, UserError
from emea.pipeline.schema import register_schema

CONF = Path(__file__).resolve().parents[2] / "conf"
USAGE = "usage: python -m emea.data NAME [key=value ...]"


def main(arguments: Sequence[str]) -> int:
    """Print the statistics of the pair that the arguments name; the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, "", *_described_options(), sep="\n")
        return 0 if arguments else 2
    try:
        print(statistics_table(load_pair(arguments[0], arguments[1:])))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def load_pair(name: str, overrides: Sequence[str] = ()) -> GraphPair:
    """The pair of an option in ``conf/data``.

    Args:
        name: the option.
        overrides: its arguments to change, as ``key=value``.
    """
    overrides = [override.removeprefix("data.") for override in overrides]  # as run.py has them
    names = option_names()
    if name not in names:
        raise ConfigError(f"there is no data set {name!r}{_choices(name, names)}")
    _check_keys(name, overrides, list(map(str, _compose(name, []))))
    config = _compose(name, [f"data.{override}" for override in overrides])
    # As a partial: Hydra would wrap what the reader raises into an exception of its own.
    pair = instantiate(config, _partial_=True)()
    assert isinstance(pair, GraphPair)
    return pair


def option_names() -> list[str]:
    """The options in ``conf/data``."""
    return sorted(file.stem for file in (CONF / "data").glob("*.yaml"))


def _compose(name: str, overrides: list[str]) -> Any:
    try:
        # the whole config: a data set may choose options of other groups
        register_schema()
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return compose("config", [f"data={name}", *overrides]).data
    except HydraException as error:
        # The first line says it, the others advise on syntax that is not ours.
        raise ConfigError(str(error).splitlines()[0]) from error


def _check_keys(name: str, overrides: Sequence[str], keys: Sequence[str]) -> None:
    for override in overrides:
        key, equals, _ = override.partition("=")
        if not equals:
            raise ConfigError(f"{override!r} is not of the form key=value")
        if key not in keys:
            raise ConfigError(f"{name} has no argument {key!r}{_choices(key, keys)}")


def _choices(word: str, choices: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, choices)
    guess = f" (did you mean {' or '.join(near)}?)" if near else ""
    return f"{guess}: choose from {', '.join(choices)}"


def _described_options() -> list[str]:
    names = option_names()
    width = max(map(len, names))
    return [f"  {name:<{width}}  {_description(name)}" for name in names]


def _description(name: str) -> str:
    text = (CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    return text.splitlines()[0].removeprefix("# ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
