"""Checks of a command line as text, before anything parses it."""

import difflib
from collections.abc import Sequence
from itertools import accumulate

from hydra._internal.utils import get_args_parser

from emea.errors import ConfigError

MOST_CHARACTERS = 10_000
"""Maximum length of an argument."""

MOST_KEY_CHARACTERS = 200
"""Maximum length of the key of a setting; file names have similar limits."""

MOST_LEVELS = 50
"""Maximum nesting of lists and groups in a value; OmegaConf recurses into each level."""


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
