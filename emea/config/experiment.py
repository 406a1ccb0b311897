"""The sweeps of tables and figures, such as ``experiment=table1``."""

from collections.abc import Iterable, Sequence
from itertools import product

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

from emea.config.files import compose_config, option_names
from emea.errors import ConfigError

SWEEP_FLAGS = ("-m", "--multirun")


def with_sweep(arguments: Sequence[str]) -> list[str]:
    """Add the sweep of the chosen experiment to a command line; typed values take precedence.

    Raises:
        ConfigError: If the command is not a sweep, or names several experiments.
    """
    name = chosen_experiment(arguments)
    if name is None:
        return list(arguments)
    if not any(argument in SWEEP_FLAGS for argument in arguments):
        raise ConfigError(f"experiment={name} is a sweep. Add the flag -m.")
    typed = {_key(argument) for argument in arguments}
    params = sweep_params(name)
    return [*arguments, *(f"{key}={params[key]}" for key in params if key not in typed)]


def chosen_experiment(arguments: Iterable[str]) -> str | None:
    """Return the experiment that a command line names."""
    chosen = [
        argument.partition("=")[2] for argument in arguments if _key(argument) == "experiment"
    ]
    if not chosen or chosen[-1] in ("", "null"):
        return None
    if "," in chosen[-1]:
        raise ConfigError(f"experiment={chosen[-1]} is a list. Run one command per experiment.")
    return chosen[-1] if chosen[-1] in option_names("experiment") else None


def sweep_params(experiment: str) -> dict[str, str]:
    """Return the values that an experiment sweeps over, as on the command line, by key."""
    config = compose_config([f"experiment={experiment}"], with_hydra=True)
    return {str(key): str(value) for key, value in config.hydra.sweeper.params.items()}


def jobs(experiment: str, overrides: Sequence[str] = ()) -> list[list[str]]:
    """Return the overrides of each job of an experiment, in the order of the sweep.

    Args:
        experiment: An option of the group ``experiment``.
        overrides: Overrides as on the command line; they replace values of the sweep.
    """
    arguments = with_sweep(["-m", f"experiment={experiment}", *overrides])[1:]
    parsed = OverridesParser.create().parse_overrides(arguments)
    return [list(job) for job in product(*map(assignments, parsed))]


def assignments(override: Override) -> list[str]:
    """Return all single overrides of an override that can be a sweep."""
    if not override.is_sweep_override():
        return [str(override.input_line)]
    key = override.get_key_element()
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def _key(argument: str) -> str:
    return argument.partition("=")[0].lstrip("+~")
