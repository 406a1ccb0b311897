"""Checks of a command line before anything runs, with suggestions for mistyped names."""

import copy
import difflib
import math
import shlex
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
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

from emea.config.checks import check_config, unused_settings
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
from emea.config.paths import check_paths
from emea.config.settings.execution import RunSettings
from emea.config.settings.groups import GROUPS
from emea.errors import ConfigError

MOST_CHARACTERS, MOST_KEY_CHARACTERS, MOST_LEVELS = 10_000, 200, 50
"""Maximum length of a setting and of its key, and nesting of its value: OmegaConf recurses."""

MOST_VALUES = 1000
"""Values of a range at most: each is checked before the sweep starts."""

MOST_JOBS = 100
"""Jobs of a sweep at most that are searched for one in which a setting has an effect."""

DECIDING = (
    *("data", "em", "initial_from", "method", "model"),
    *("protocol", "rule", "split", "training", "variant"),
)
"""First parts of the keys that decide which other settings have an effect."""

CONFIG_DIR_FLAGS = ("--config-dir", "-cd")
SWEEP_FLAGS = ("-m", "--multirun")
SWEEP_MODE = "hydra.mode=MULTIRUN"
"""Has the same effect as ``-m``."""

PLUGIN_GROUPS = ("hydra/launcher", "hydra/sweeper")
PLUGIN_EXTRAS = {
    **{name: name for name in ("joblib", "ray", "optuna")},
    **{"submitit_local": "slurm", "submitit_slurm": "slurm", "ray_aws": "ray"},
}
"""Launchers and sweepers of Hydra's plugins, with the extra of this package that installs each."""


def check_overrides(arguments: Sequence[str], defaults: Sequence[str] = ()) -> None:
    """Check a command line: its text, options, keys, values, files and settings without effect.

    In a sweep, every option and value is checked, but not every combination.

    Args:
        arguments: The command line; its ``--config-dir`` folders are searched from now on.
        defaults: Arguments that the user did not type. They may be without effect.

    Raises:
        ConfigError: If the command cannot run. The message suggests the nearest names.
    """
    without_folders, folders = without_config_dirs(arguments)
    search_also(folders)
    typed = [one for one in with_sweep(without_folders) if not one.startswith("-")]
    parsed = _parsed(typed)
    _check_plugins(parsed)
    overrides = [one for one in _parsed(typed) if not _is_hydra(one)]
    for override in overrides:
        (_check_options if _is_group(override) else _check_added)(override)
    jobs = [_assignments(override) for override in overrides]  # refuses ranges without end
    _check_sweep_flag(arguments, parsed)
    compose = cache(lambda choices: composed(choices))
    for assigned in _aligned(jobs):
        usual = compose(tuple(_of_groups(overrides, assigned, True)))
        for override in overrides:
            if not _has_key(usual, override):
                raise ConfigError(_no_key(override.key_or_group, _all_keys(usual)))
        config = _with_values(usual, _of_groups(overrides, assigned, False))
        check_config(config)
        check_paths(config)
        unused = unused_settings(config, assigned)
    values = {one.key_or_group for one in overrides if not _is_group(one)}
    asked = values - {one.key_or_group for one in overrides if one.input_line in defaults}
    _refuse_unused({key: unused[key] for key in asked & unused.keys()}, overrides, jobs)


def _of_groups(
    overrides: Sequence[Override], assigned: Sequence[str], are_groups: bool
) -> list[str]:
    """Return the assignments that choose options of groups, or those that set values."""
    both = zip(overrides, assigned, strict=True)
    return [text for override, text in both if _is_group(override) == are_groups]


def _aligned(jobs: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return jobs that together contain every value of a sweep at least once."""
    longest = max(map(len, jobs), default=1)
    return [[values[index % len(values)] for values in jobs] for index in range(longest)]


def _with_values(config: DictConfig, assigned: list[str]) -> DictConfig:
    """Return a copy of a composed config with values set as Hydra sets them."""
    changed = copy.deepcopy(config)
    try:
        ConfigLoaderImpl._apply_overrides_to_config(_parsed(assigned), changed)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(error_text(error)) from error
    return changed


def _refuse_unused(
    unused: dict[str, str], overrides: Sequence[Override], jobs: Sequence[list[str]]
) -> None:
    """Raise an error if a setting has no effect; in a sweep, if it has none in any job.

    Args:
        unused: Settings without effect in one job, with the reasons.
        overrides: The whole command line.
        jobs: The values of each override.
    """
    varied = [
        values if one.key_or_group.split(".")[0] in DECIDING else values[:1]
        for one, values in zip(overrides, jobs, strict=True)
    ]
    if not unused or math.prod(map(len, varied)) > MOST_JOBS:
        return  # each job warns
    for job in product(*varied):
        still = unused_settings(composed(job), job)
        unused = {key: reason for key, reason in unused.items() if key in still}
    for key, reason in unused.items():
        raise ConfigError(f"{key} has no effect here: {reason}. Leave {key} out.")


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


def sweep_flag_first(arguments: Sequence[str]) -> list[str]:
    """Move ``-m`` in front of the overrides, where Hydra expects it."""
    flags = [argument for argument in arguments if argument in SWEEP_FLAGS]
    return [*flags, *(argument for argument in arguments if argument not in flags)]


def without_config_dirs(arguments: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Split a command line into other arguments and the folders of ``--config-dir``.

    Raises:
        ConfigError: If the flag has no value.
    """
    rest, folders = [], []
    waiting = iter(arguments)
    for argument in waiting:
        flag, equals, value = argument.partition("=")
        if flag not in CONFIG_DIR_FLAGS:
            rest.append(argument)
            continue
        name = value if equals else next(waiting, "")
        if not name:
            raise ConfigError(f"{flag} needs the name of a folder.")
        folders.append(Path(name))
    return rest, folders


def with_sweep(arguments: Sequence[str]) -> list[str]:
    """Add the sweep of the chosen experiment to a command line; typed values take precedence.

    Raises:
        ConfigError: If the command is not a sweep, or names several experiments.
    """
    typed = dict(argument.lstrip("+~").partition("=")[::2] for argument in arguments)
    name = typed.get("experiment", "")
    if "," in name:
        raise ConfigError(f"experiment={name} is a list. Run one command per experiment.")
    if name not in option_names("experiment"):
        return list(arguments)
    if not any(argument in SWEEP_FLAGS for argument in arguments):
        raise ConfigError(f"experiment={name} is a sweep. Add the flag -m.")
    params = sweep_params(name)
    return [*arguments, *(f"{key}={params[key]}" for key in params if key not in typed)]


def sweep_params(experiment: str) -> dict[str, str]:
    """Return the values that an experiment sweeps over, as on the command line, by key."""
    config = compose_config([f"experiment={experiment}"], with_hydra=True)
    return {str(key): str(value) for key, value in config.hydra.sweeper.params.items()}


def assignments(override: Override) -> list[str]:
    """Return all single overrides of an override that can be a sweep."""
    if not override.is_sweep_override():
        return [str(override.input_line)]
    key = override.get_key_element()
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def _assignments(override: Override) -> list[str]:
    """Return the single overrides of an override.

    Raises:
        ConfigError: If it has no values, no end or too many values.
    """
    value = override.value()
    if isinstance(value, IntervalSweep):  # for sweepers that search, both ends must be allowed
        return [f"{override.get_key_element()}={end}" for end in (value.start, value.end)]
    if isinstance(value, RangeSweep) and not _num_values(value) <= MOST_VALUES:  # also for NaN
        raise ConfigError(
            f"{override.input_line} has no end or more than {MOST_VALUES:,} values. Shorten it."
        )
    try:
        found = assignments(override)
    except HydraException as error:
        raise ConfigError(
            f"{override.input_line} cannot be read. List the options, separated by commas."
        ) from error
    if not found:
        raise ConfigError(f"{override.input_line} has no values. Give at least one.")
    return found


def _num_values(value: RangeSweep) -> float:
    start, stop, step = cast(tuple[float, ...], (value.start, value.stop, value.step))
    try:
        return (stop - start) / step
    except (ZeroDivisionError, OverflowError):
        return math.inf


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


def _as_setting(word: str) -> str:
    """Suggest a setting for an argument without ``=``."""
    groups = [group for group in group_names() if word in option_names(group)]
    if groups:
        return f"did you mean {' or '.join(f'{group}={word}' for group in groups)}?"
    return "settings have the form key=value, and --help lists all options"


def _check_plugins(overrides: Sequence[Override]) -> None:
    """Raise an error for a launcher or sweeper whose Hydra plugin is not installed."""
    for override in overrides:
        group, name = override.key_or_group, str(override.value())
        if group not in PLUGIN_GROUPS or override.is_delete() or override.is_sweep_override():
            continue
        Plugins.instance()  # adds the options of all installed plugins to the ConfigStore
        stored: dict[str, Any] = ConfigStore.instance().repo["hydra"][group.removeprefix("hydra/")]
        options = {file.removesuffix(".yaml") for file in stored} | set(option_names(group))
        if name not in options and name in PLUGIN_EXTRAS:
            raise ConfigError(
                f"{group}={name} needs a Hydra plugin that is not installed. In a clone of emea, "
                f"run pip install '.[{PLUGIN_EXTRAS[name]}]'."
            )
        _check_known(group, name, sorted(options), [*options, *PLUGIN_EXTRAS])


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


def check_option(group: str, name: str) -> None:
    """Raise an error for a name that is not an option of the group, and suggest the nearest."""
    options = option_names(group)
    hint = "; any other share between 0 and 1: ratio.value=0.07" if group == "ratio" else ""
    _check_known(group, name, options, options, hint)


def _check_known(
    group: str, name: str, options: Sequence[str], near: Sequence[str], hint: str = ""
) -> None:
    if name not in options:
        raise ConfigError(
            f"{group} has no option {name}{_nearest(name, near)}; it has {', '.join(options)}{hint}"
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


def _check_added(override: Override) -> None:
    """Raise an error for a new key outside of the groups."""
    key = override.key_or_group
    if not (override.is_add() or override.is_force_add()):
        return
    known = [*GROUPS, *(one.name for one in fields(RunSettings))]
    if key.split(".")[0] not in known or ("." not in key and override.is_add()):
        raise ConfigError(_no_key(key, known))


def _is_group(override: Override) -> bool:
    return override.key_or_group in group_names()


def _is_hydra(override: Override) -> bool:
    return override.key_or_group.startswith("hydra")


def _has_key(config: DictConfig, override: Override) -> bool:
    key = override.key_or_group
    if _is_group(override) or override.is_add() or override.is_force_add():
        return True  # checked before
    return OmegaConf.select(config, key, default=...) is not ... or key in _all_keys(config)


def _all_keys(config: DictConfig, prefix: str = "") -> list[str]:
    keys = []
    for key in map(str, config):
        keys.append(f"{prefix}{key}")
        node = config._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none() and not node._is_missing():
            keys += _all_keys(node, f"{prefix}{key}.")
    return keys


def _no_key(key: str, known: Sequence[str]) -> str:
    return f"There is no key {key}{_nearest(key, known)}."


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f" (nearest: {', '.join(near)})" if near else ""
