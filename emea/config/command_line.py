"""Checks of a command line before anything runs, with suggestions for mistyped names."""

import copy
import difflib
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice, product
from math import prod
from pathlib import Path

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.checks import check_config, unused_group
from emea.config.composition import (
    composed,
    composed_choices,
    error_text,
    first_line,
    group_names,
    option_names,
    search_also,
)
from emea.config.groups import GROUPS
from emea.config.paths import check_paths
from emea.config.unknown_settings import nearest
from emea.errors import ConfigError

MOST_CHARACTERS = 10_000
"""Maximum length of a setting."""

MOST_VALUES = 1000
"""Values of a range at most: each is checked before the sweep starts."""

MOST_COMBINATIONS = 64
"""Combinations of the values of a sweep at most that are all checked: each takes up to .2 s."""

SEEDS = ("seed=", "split_seed=")
"""Settings whose values can be combined with any other."""

CONFIG_DIR_FLAGS = ("--config-dir", "-cd")
REPLACING_FLAGS = (
    "--config-path",
    "-cp",
    "--config-name",
    "-cn",
    "--experimental-rerun",
)
"""Flags of Hydra that replace the configuration of emea, by files that are not checked."""

TWO_SIDED = ("data.label_column", "data.base_iri")
"""Settings whose text may have a part for each graph, with a comma between them."""

SWEEP_FLAGS = ("-m", "--multirun")
SWEEP_MODE = "hydra.mode=MULTIRUN"
"""Has the same effect as ``-m``."""


def check_overrides(
    arguments: Sequence[str], defaults: Sequence[str] = ()
) -> DictConfig:
    """Check a command line, and return its configuration, that of the last job in a sweep.

    The arguments and errors are those of :func:`checked_jobs`.
    """
    return checked_jobs(arguments, defaults)[-1]


def unchecked(arguments: Sequence[str]) -> DictConfig:
    """Return the configuration of a command line that `check_overrides` accepted in another form.

    It is quick, because the options of the package are composed once.
    """
    parsed = _parsed(list(arguments))
    groups = tuple(str(one.input_line) for one in parsed if _is_group(one))
    values = [one for one in parsed if not _is_group(one)]
    return _with_values(composed_choices(groups), values)


def checked_jobs(
    arguments: Sequence[str], defaults: Sequence[str] = ()
) -> list[DictConfig]:
    """Check a command line: its text, options, keys, values, files and unused groups.

    In a sweep, every option and value is checked, and every combination of them (seeds excepted)
    unless there are very many.

    Args:
        arguments: The command line; its ``--config-dir`` folders are searched from now on.
        defaults: Arguments that the user did not type. They may be without effect.

    Returns:
        The configurations that were checked, as `composed` returns them: those of some or all
        jobs.

    Raises:
        ConfigError: If the command cannot run. The message suggests the nearest names.
    """
    without_folders, folders = without_config_dirs(arguments)
    search_also(folders, typed_trust(without_folders))
    parsed = _parsed(
        [one for one in with_sweep(without_folders) if not one.startswith("-")]
    )
    overrides = [one for one in parsed if not one.key_or_group.startswith("hydra")]
    for override in filter(_is_group, overrides):
        for option in [] if override.is_delete() else assignments(override):
            check_option(override.key_or_group, option.partition("=")[2].strip("'\""))
    # this refuses ranges without end
    jobs = [assignments(override) for override in overrides]
    is_sweep = any(one.is_sweep_override() for one in overrides)
    _check_sweep_flag(arguments, parsed)
    # options in folders of the user are composed once in this check
    usual = cache(composed_choices)
    checked = []
    for job in _jobs_to_check(jobs):
        single = _parsed(job)
        groups = tuple(str(one.input_line) for one in single if _is_group(one))
        values = [one for one in single if not _is_group(one)]
        for one in values:
            _check_key(one, usual(groups))
        config = _with_values(usual(groups), values)
        swept = [
            one for one, all_of_it in zip(job, jobs, strict=True) if len(all_of_it) > 1
        ]
        _check_job(config, swept if is_sweep else None)
        checked.append(config)
        for one in overrides:
            key = one.key_or_group
            is_kept = one.input_line in defaults or one.is_delete()
            # another job of a sweep may use the group
            reason = None if is_kept or is_sweep else unused_group(config, key)
            if reason is not None:
                raise ConfigError(
                    f"{key} has no effect here: {reason}. Leave {key} out."
                )
    return checked


def _check_job(config: DictConfig, swept: Sequence[str] | None) -> None:
    """Check the configuration of a job.

    Args:
        config: The configuration.
        swept: Its values of the swept settings; ``None`` if it is not a job of a sweep.
    """
    try:
        check_config(config)
    except ConfigError as error:
        if swept is None:
            raise
        raise ConfigError(
            f"{str(error).removesuffix('.')}. This concerns the jobs with {' '.join(swept)}."
        ) from error
    check_paths(config)


def _jobs_to_check(jobs: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the jobs of a sweep that are checked before it starts.

    Args:
        jobs: The single overrides of each setting.

    Returns:
        All combinations if there are few. Otherwise jobs that together contain every value at
        least once. Seeds are allowed or not by themselves, so one of them is combined.
    """
    combined = [
        values[:1] if values[0].startswith(SEEDS) else values for values in jobs
    ]
    number = prod(map(len, combined))
    at_least_once = [
        [values[index % len(values)] for values in jobs]
        for index in range(max(map(len, jobs), default=1))
    ]
    if number > MOST_COMBINATIONS:
        return at_least_once
    found = {tuple(one): None for one in (*at_least_once, *product(*combined))}
    return [list(one) for one in found]


def typed_trust(arguments: Sequence[str]) -> list[str]:
    """Return the modules that a command line trusts."""
    named = [one for one in arguments if one.lstrip("+").startswith("trust=")]
    values = [one.value() for one in _parsed(named)]
    return [
        str(module) for value in values if isinstance(value, list) for module in value
    ]


def _with_values(usual: DictConfig, overrides: Sequence[Override]) -> DictConfig:
    """Return a copy of a composed config with values set as Hydra sets them.

    A composition for each value of a sweep would take seconds.
    """
    changed = copy.deepcopy(usual)
    try:
        ConfigLoaderImpl._apply_overrides_to_config(list(overrides), changed)
    except (
        HydraException,
        OmegaConfBaseException,
        ValueError,
        RecursionError,
    ) as error:
        raise ConfigError(error_text(error)) from error
    return changed


def check_flags(arguments: Sequence[str]) -> None:
    """Raise an error for a flag that Hydra does not have.

    Raises:
        ConfigError: If a flag is unknown. The message suggests the nearest one.
    """
    known = [*get_args_parser()._option_string_actions]
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in REPLACING_FLAGS:
            raise ConfigError(
                f"{flag} is not supported. Use --config-dir for your own options."
            )
        if flag.startswith("--") and flag not in known:
            near = difflib.get_close_matches(flag, known, n=1)
            guess = (
                f" Did you mean {near[0]}?"
                if near
                else " emea run --help lists all settings."
            )
            raise ConfigError(f"Unknown flag {flag}.{guess}")


def sweep_flag_first(arguments: Sequence[str]) -> list[str]:
    """Move ``-m`` in front of the overrides, where Hydra expects it."""
    flags = [argument for argument in arguments if argument in SWEEP_FLAGS]
    return [*flags, *(argument for argument in arguments if argument not in flags)]


def settings_last(arguments: Sequence[str], further: Sequence[str] = ()) -> list[str]:
    """Put flags in front of settings: Hydra does not accept settings on both sides of a flag.

    Args:
        arguments: Flags, with their values, and settings.
        further: More settings, which follow.
    """
    parsed, _ = get_args_parser().parse_known_intermixed_args(arguments)
    settings = list(parsed.overrides)
    left = Counter(settings)
    flags = []
    for argument in arguments:
        if left[argument]:
            left[argument] -= 1
        else:
            flags.append(argument)
    return [*flags, *settings, *further]


def without_config_dirs(arguments: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Split a command line into other arguments and the folders of ``--config-dir``.

    Raises:
        ConfigError: If the flag has no value.
    """
    rest = []
    folders = []
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
        raise ConfigError(
            f"experiment={name} is a list. Run one command per experiment."
        )
    if name not in option_names("experiment"):
        return list(arguments)
    params = sweep_params(name)
    if params and not any(argument in SWEEP_FLAGS for argument in arguments):
        raise ConfigError(f"experiment={name} is a sweep. Add the flag -m.")
    return [*arguments, *(f"{key}={params[key]}" for key in params if key not in typed)]


def swept_values(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Return all values of each setting of a sweep, with those of its experiment.

    Args:
        arguments: The settings of the command line, without flags.
    """
    overrides = _parsed(
        [one for one in with_sweep(["-m", *arguments]) if not one.startswith("-")]
    )
    found = {}
    for override in overrides:
        values = [one.partition("=")[2].strip("'\"") for one in assignments(override)]
        found[override.key_or_group] = values
    return found


def sweep_params(experiment: str) -> dict[str, str]:
    """Return the values that an experiment sweeps over, as on the command line, by key."""
    params = composed(
        [f"experiment={experiment}"], with_hydra=True
    ).hydra.sweeper.params
    return {str(key): str(value) for key, value in (params or {}).items()}


def assignments(override: Override) -> list[str]:
    """Return all single overrides of an override that can be a sweep.

    Raises:
        ConfigError: If it has no values, no end or too many values.
    """
    key = override.get_key_element()
    value = override.value()
    if not override.is_sweep_override():
        return [str(override.input_line)]
    if isinstance(
        value, IntervalSweep
    ):  # for sweepers that search, both ends must be allowed
        return [f"{key}={end}" for end in (value.start, value.end)]
    try:
        is_long = (
            isinstance(value, RangeSweep)
            and next(islice(value.range(), MOST_VALUES, None), None) is not None
        )
        found = (
            []
            if is_long
            else [f"{key}={one}" for one in override.sweep_string_iterator()]
        )
    except (HydraException, ValueError, ArithmeticError) as error:
        raise ConfigError(
            f"{override.input_line} cannot be read. List the values, separated by commas."
        ) from error
    if not found:
        raise ConfigError(
            f"{override.input_line} must have 1 to {MOST_VALUES:,} values."
        )
    return found


def _if_file(argument: str) -> str:
    """Say that a file does not exist, if the argument looks like one."""
    from emea.data.formats.input_file import format_suffixes

    is_file = Path(argument).suffix.lower() in format_suffixes()
    return ". There is no file of this name" if is_file else ""


def _parsed(arguments: list[str]) -> list[Override]:
    for argument in arguments:
        key, equals, _ = argument.lstrip("+").partition("=")
        if not key or not (equals or argument.startswith("~")):
            raise ConfigError(
                f"{argument!r} is not a setting: settings have the form key=value, and --help "
                f"lists all options{_if_file(argument)}"
            )
        if len(argument) > MOST_CHARACTERS:
            raise ConfigError(
                f"{argument[:40]}... is too long: a setting has at most {MOST_CHARACTERS:,} "
                "characters."
            )
    try:
        return OverridesParser.create().parse_overrides(arguments)
    # also numbers with too many digits and too deeply nested brackets
    except (HydraException, ValueError, RecursionError) as error:
        raise ConfigError(
            f"The command line cannot be read: {first_line(error)}"
        ) from error


def _check_sweep_flag(arguments: Sequence[str], overrides: Sequence[Override]) -> None:
    """Raise an error for several values of one key in a command that is not a sweep."""
    if any(argument in SWEEP_FLAGS or argument == SWEEP_MODE for argument in arguments):
        return
    for override in overrides:
        if override.is_sweep_override():
            typed = str(override.input_line).replace(
                "'", ""
            )  # quote_numeric_choices adds quotes
            key = override.key_or_group
            if key in TWO_SIDED:
                both = str(typed).partition("=")[2]
                raise ConfigError(
                    f"{typed} has several values. Write '{key}=\"{both}\"' to give one for each "
                    "graph."
                )
            raise ConfigError(
                f"{typed} has several values. Add the flag -m for a sweep."
            )


def check_option(group: str, name: str) -> None:
    """Raise an error for a name that is not an option of the group, and suggest the nearest."""
    options = option_names(group)
    if name not in options:
        hint = (
            "; any other share between 0 and 1: ratio.value=0.07"
            if group == "ratio"
            else ""
        )
        raise ConfigError(
            f"{group} has no option {name}{nearest(name, options)}; it has "
            f"{', '.join(options)}{hint}"
        )


def _check_key(override: Override, config: DictConfig) -> None:
    """Raise an error for a key that a config lacks. Classes of the user may have any new key."""
    key = override.key_or_group
    known = _all_keys(config)
    group, _, name = key.partition(".")
    if key in known or OmegaConf.select(config, key, default=...) is not ...:
        return
    if name and group in GROUPS:
        is_ours = (
            str(OmegaConf.select(config, f"{group}.name")) in GROUPS[group].schemas
        )
        if override.is_force_add() or (
            override.is_add() and ("." in name or not is_ours)
        ):
            return
    raise ConfigError(f"There is no key {key}{nearest(key, known)}.")


def _is_group(override: Override) -> bool:
    return override.key_or_group in group_names()


def _all_keys(config: DictConfig, prefix: str = "") -> list[str]:
    keys = []
    for key in map(str, config):
        keys.append(f"{prefix}{key}")
        node = config._get_node(key)
        if (
            isinstance(node, DictConfig)
            and not node._is_none()
            and not node._is_missing()
        ):
            keys += _all_keys(node, f"{prefix}{key}.")
    return keys
