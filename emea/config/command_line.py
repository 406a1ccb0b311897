"""Checks of a command line, with suggestions for mistyped names."""

import copy
import difflib
import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import accumulate, product
from pathlib import Path
from typing import Any, cast

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.checks import check_config
from emea.config.composition import (
    PRESETS,
    compose_config,
    composed,
    error_text,
    first_line,
    group_names,
    option_names,
    search_also,
)
from emea.config.earlier import current_overrides
from emea.config.idle import DECIDING, idle_settings
from emea.config.paths import check_paths
from emea.config.settings.execution import RunSettings
from emea.config.settings.groups import GROUPS
from emea.errors import ConfigError

MOST_VALUES = 1000
"""Values of a range at most: each is checked before the sweep starts."""

MOST_JOBS = 100
"""Jobs of a sweep at most that are searched for one in which a setting has an effect."""

CONFIG_DIR_FLAGS = ("--config-dir", "-cd")
SWEEP_MODE = "hydra.mode=MULTIRUN"
"""Has the same effect as ``-m``."""

NO_EFFECT = "{key} has no effect here: {reason}. Leave {key} out."

PLUGIN_GROUPS = ("hydra/launcher", "hydra/sweeper")
PLUGIN_EXTRAS = {
    "joblib": "joblib",
    "submitit_local": "slurm",
    "submitit_slurm": "slurm",
    "ray": "ray",
    "ray_aws": "ray",
    "optuna": "optuna",
}
"""Launchers and sweepers of Hydra's plugins, with the extra of this package that installs each."""


def sweep_flag_first(arguments: Sequence[str]) -> list[str]:
    """Move ``-m`` in front of the overrides, where Hydra expects it."""
    flags = [argument for argument in arguments if argument in SWEEP_FLAGS]
    return [*flags, *(argument for argument in arguments if argument not in flags)]


def check_overrides(arguments: Sequence[str], defaults: Sequence[str] = ()) -> None:
    """Raise an error for unknown options, keys and values, and suggest the nearest names.

    In a sweep, every option and value is checked, but not every combination.

    Args:
        arguments: The command line.
        defaults: Arguments that the user did not type. They may be without effect.
    """
    check_settings(check_command(arguments), defaults)


def check_command(arguments: Sequence[str]) -> list[str]:
    """Check everything on a command line that needs no composed config.

    Args:
        arguments: The command line; its ``--config-dir`` folders are searched from now on.

    Returns:
        The settings, with the sweep of an experiment.

    Raises:
        ConfigError: If an argument cannot be read, or names an option, plugin or key that does not
            exist.
    """
    without_folders, folders = without_config_dirs(arguments)
    search_also(folders)
    typed = [one for one in with_sweep(without_folders) if not one.startswith("-")]
    parsed = _parsed(typed)
    _check_plugins(parsed)
    for override in _parsed(current_overrides(typed)):
        if _is_group(override):
            _check_options(override)
        else:
            _check_added(override)
            _assignments(override)  # raises an error for ranges without values or without end
    _check_sweep_flag(arguments, parsed)
    return typed


def check_composed(config: DictConfig, typed: Sequence[str]) -> None:
    """Raise an error if a single run's config cannot run or a setting has no effect.

    Args:
        config: The config that was composed with these settings.
        typed: The settings that the user typed, without Hydra's own.

    Raises:
        ConfigError: If the config cannot run. The message names the key and the reason.
    """
    check_config(config)
    check_paths(config)
    values = {one.key_or_group for one in _parsed(list(typed)) if not _is_group(one)}
    for key, reason in idle_settings(config, typed).items():
        if key in values:
            raise ConfigError(NO_EFFECT.format(key=key, reason=reason))


def check_settings(typed: list[str], defaults: Sequence[str] = ()) -> None:
    """Check settings like `check_overrides`, without flags such as ``-m``."""
    parsed = _parsed(current_overrides(typed))
    overrides = [one for one in parsed if not one.key_or_group.startswith("hydra")]
    groups = {override.key_or_group: override for override in overrides if _is_group(override)}
    for override in overrides:
        (_check_options if _is_group(override) else _check_added)(override)
    values = [override for override in overrides if not _is_group(override)]
    choices = _aligned(groups.values())
    configs = [composed(choice) for choice in choices]
    for override, config in product(values, configs):
        if not _has_key(config, override):
            raise ConfigError(_no_key(override.key_or_group, _all_keys(config)))
    rounds = _aligned(values)
    tried = [(configs[0], choices[0], assigned) for assigned in rounds]
    tried += [
        (usual, choice, rounds[0]) for usual, choice in zip(configs[1:], choices[1:], strict=True)
    ]
    for usual, choice, assigned in tried:
        config = _with_values(usual, assigned)
        check_config(config)
        check_paths(config)
        idle = idle_settings(config, [*choice, *assigned])
    asked = {one.key_or_group for one in values if one.input_line not in defaults}
    _refuse_idle({key: idle[key] for key in asked & idle.keys()}, overrides)


def _with_values(config: DictConfig, assignments: Sequence[str]) -> DictConfig:
    """Return a copy of a composed config with values set as Hydra sets them."""
    changed = copy.deepcopy(config)
    try:
        ConfigLoaderImpl._apply_overrides_to_config(_parsed(list(assignments)), changed)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(error_text(error)) from error
    return changed


def _refuse_idle(idle: dict[str, str], overrides: Sequence[Override]) -> None:
    """Raise an error if a setting has no effect; in a sweep, if it has none in any job.

    Args:
        idle: Settings without effect in one job, with the reasons.
        overrides: The whole command line.
    """
    if not idle:
        return
    lists = [_assignments(override) for override in overrides]
    varied = [
        choices if one.key_or_group.split(".")[0] in DECIDING else choices[:1]
        for one, choices in zip(overrides, lists, strict=True)
    ]
    if math.prod(map(len, varied)) > MOST_JOBS:
        return  # each job warns
    for job in product(*varied):
        still = idle_settings(composed(job), job)
        idle = {key: reason for key, reason in idle.items() if key in still}
        if not idle:
            return
    key, reason = next(iter(idle.items()))
    raise ConfigError(NO_EFFECT.format(key=key, reason=reason))


def _parsed(arguments: list[str]) -> list[Override]:
    for argument in arguments:
        key, equals, _ = argument.lstrip("+").partition("=")
        if not key or not (equals or argument.startswith("~")):
            raise ConfigError(f"{argument!r} is not a setting: {_as_setting(argument)}")
        check_sizes(argument)
    try:
        return OverridesParser.create().parse_overrides(arguments)
    # also numbers with too many digits and too deeply nested brackets
    except (HydraException, ValueError, RecursionError) as error:
        raise ConfigError(f"The command line cannot be read: {first_line(error)}") from error


def _check_plugins(overrides: Sequence[Override]) -> None:
    """Raise an error for a launcher or sweeper whose Hydra plugin is not installed."""
    for override in overrides:
        group, name = override.key_or_group, str(override.value())
        if group not in PLUGIN_GROUPS or override.is_delete() or override.is_sweep_override():
            continue
        Plugins.instance()  # adds the options of all installed plugins to the ConfigStore
        stored: dict[str, Any] = ConfigStore.instance().repo["hydra"][group.removeprefix("hydra/")]
        options = {file.removesuffix(".yaml") for file in stored} | set(option_names(group))
        if name in options:
            continue
        if name in PLUGIN_EXTRAS:
            raise ConfigError(
                f"{group}={name} needs a Hydra plugin that is not installed. In a clone of emea, "
                f"run pip install '.[{PLUGIN_EXTRAS[name]}]'."
            )
        raise ConfigError(
            f"{group} has no option {name}{_nearest(name, [*options, *PLUGIN_EXTRAS])}; "
            f"it has {', '.join(sorted(options))}"
        )


def _check_sweep_flag(arguments: Sequence[str], overrides: Sequence[Override]) -> None:
    """Raise an error for several values of one key in a command that is not a sweep."""
    if any(argument in SWEEP_FLAGS or argument == SWEEP_MODE for argument in arguments):
        return
    several = next((one for one in overrides if one.is_sweep_override()), None)
    if several is not None:
        # without the quotes that quote_numeric_choices added
        typed = [text.replace("'", "") if text.startswith("ratio=") else text for text in arguments]
        named = typed[list(arguments).index(str(several.input_line))]
        raise ConfigError(
            f"{named} has several values, which need the flag -m. "
            f"Run python run.py -m {shlex.join(typed)}"
        )


def _as_setting(word: str) -> str:
    """Suggest a setting for an argument without ``=``."""
    groups = [group for group in group_names() if word in option_names(group)]
    if groups:
        return f"did you mean {' or '.join(f'{group}={word}' for group in groups)}?"
    return "settings have the form key=value, and --help lists all options"


def _is_group(override: Override) -> bool:
    return override.key_or_group in group_names()


def _assignments(override: Override) -> list[str]:
    if override.is_interval_sweep():  # for sweepers that search, both ends must be allowed
        interval = cast(IntervalSweep, override.value())
        key = override.get_key_element()
        return [f"{key}={interval.start}", f"{key}={interval.end}"]
    _check_range(override)
    try:
        found = assignments(override)
    except HydraException as error:
        raise ConfigError(
            f"{override.input_line} cannot be read. List the options, separated by commas."
        ) from error
    if not found:
        raise ConfigError(f"{override.input_line} has no values. Give at least one.")
    return found


def _check_range(override: Override) -> None:
    """Raise an error for a range without end or with too many values to check."""
    value = override.value()
    if not isinstance(value, RangeSweep):
        return
    start, stop, step = cast(tuple[float, ...], (value.start, value.stop, value.step))
    try:
        num_values = (stop - start) / step
    except (ZeroDivisionError, OverflowError):
        num_values = math.inf
    if not num_values <= MOST_VALUES:  # also true for NaN
        raise ConfigError(
            f"{override.input_line} has no end or more than {MOST_VALUES:,} values. Shorten it."
        )


def check_option(group: str, name: str) -> None:
    """Raise an error for a name that is not an option of the group, and suggest the nearest."""
    options = option_names(group)
    if name in options:
        return
    hint = "; any other share between 0 and 1: ratio.value=0.07" if group == "ratio" else ""
    raise ConfigError(
        f"{group} has no option {name}{_nearest(name, options)}; it has {', '.join(options)}{hint}"
    )


def _check_options(override: Override) -> None:
    group = override.key_or_group
    for assignment in _assignments(override):
        name = assignment.partition("=")[2].strip("'\"")
        if name == "null" and group in PRESETS:
            raise ConfigError(f"{group} is null unless you choose an option. Remove {group}=null.")
        if name == "null" or override.is_delete():
            options = ", ".join(option_names(group))
            raise ConfigError(f"{group} cannot be removed or null. Choose one of {options}.")
        check_option(group, name)


def _aligned(groups: Iterable[Override]) -> list[list[str]]:
    """Return lists of choices that together contain every value of a sweep at least once."""
    lists = [_assignments(override) for override in groups]
    longest = max(map(len, lists), default=1)
    return [[choices[index % len(choices)] for choices in lists] for index in range(longest)]


def _check_added(override: Override) -> None:
    """Raise an error for a new key outside of the groups."""
    key = override.key_or_group
    if not (override.is_add() or override.is_force_add()) or key.startswith("hydra"):
        return
    known = [*GROUPS, *(one.name for one in fields(RunSettings))]
    if key.split(".")[0] not in known or ("." not in key and override.is_add()):
        raise ConfigError(_no_key(key, known))


def _has_key(config: DictConfig, override: Override) -> bool:
    if override.is_add() or override.is_force_add():
        return True  # _check_added has checked it
    missing = object()
    found = OmegaConf.select(config, override.key_or_group, default=missing)
    return found is not missing or override.key_or_group in _all_keys(config)


def _no_key(key: str, known: Sequence[str]) -> str:
    return f"There is no key {key}{_nearest(key, known)}."


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f" (nearest: {', '.join(near)})" if near else ""


def _all_keys(config: DictConfig, prefix: str = "") -> list[str]:
    keys = []
    for key in map(str, config):
        full = f"{prefix}{key}"
        keys.append(full)
        node = config._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none() and not node._is_missing():
            keys += _all_keys(node, f"{full}.")
    return keys


MOST_CHARACTERS = 10_000
"""Maximum length of an argument."""

MOST_KEY_CHARACTERS = 200
"""Maximum length of the key of a setting; file names have similar limits."""

MOST_LEVELS = 50
"""Maximum nesting of lists and groups in a value; OmegaConf recurses into each level."""


def without_config_dirs(arguments: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Split a command line into other arguments and the folders of ``--config-dir``.

    Raises:
        ConfigError: If the flag has no value.
    """
    rest, folders = [], []
    waiting = iter(arguments)
    for argument in waiting:
        flag, equals, value = argument.partition("=")
        if flag in CONFIG_DIR_FLAGS:
            name = value if equals else next(waiting, "")
            if not name:
                raise ConfigError(f"{flag} needs the name of a folder.")
            folders.append(Path(name))
        else:
            rest.append(argument)
    return rest, folders


def check_sizes(argument: str) -> None:
    """Raise an error if a setting is too long or nested too deeply.

    Raises:
        ConfigError: If it exceeds a limit. The message names the limit.
    """
    key, _, value = argument.lstrip("+~").partition("=")
    if len(key) > MOST_KEY_CHARACTERS or len(argument) > MOST_CHARACTERS:
        raise ConfigError(
            f"{argument[:40]}... is too long: a key has at most {MOST_KEY_CHARACTERS} characters, "
            f"and a setting at most {MOST_CHARACTERS:,}."
        )
    levels = accumulate((char in "[{(") - (char in ")}]") for char in value)
    if max(levels, default=0) > MOST_LEVELS:
        raise ConfigError(f"The value of {key} is nested more than {MOST_LEVELS} levels deep.")


def check_flags(arguments: Sequence[str]) -> None:
    """Raise an error for a flag that Hydra does not have.

    Raises:
        ConfigError: If a flag is unknown. The message suggests the nearest one.
    """
    known = [*get_args_parser()._option_string_actions]
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag.startswith("--") and flag not in known:
            near = difflib.get_close_matches(flag, known, n=1)
            guess = f" Did you mean {near[0]}?" if near else " emea run --help lists all settings."
            raise ConfigError(f"Unknown flag {flag}.{guess}")


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
