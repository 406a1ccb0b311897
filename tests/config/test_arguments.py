"""Command lines that are too long or nested too deeply are refused before they are parsed."""

import pytest

from emea.config.command_line import MOST_CHARACTERS, MOST_LEVELS, check_flags, check_sizes
from emea.errors import ConfigError


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (f"study={'x' * MOST_CHARACTERS}", r"^study=x+\.\.\. is too long"),
        (f"{'a.' * 200}x=1", r"a key has at most 200 characters"),
        (f"seed={'[' * (MOST_LEVELS + 1)}", "^The value of seed is nested more than 50 levels"),
        (f"+a={'{b:' * 60}1{'}' * 60}", "^The value of a is nested"),
    ],
)
def test_limits(argument: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_sizes(argument)


@pytest.mark.parametrize(
    "argument",
    [
        "seed=1",
        f"a={'[' * MOST_LEVELS}{']' * MOST_LEVELS}",
        f"a={'[],' * 500}",
        f"a={'x' * (MOST_CHARACTERS - 2)}",
    ],
)
def test_usual_settings_pass(argument: str) -> None:
    check_sizes(argument)


def test_flags() -> None:
    check_flags(["-m", "--multirun", "--config-dir=x", "--cfg", "job", "seed=-1", "-cd", "y"])
    with pytest.raises(ConfigError, match=r"^Unknown flag --multrun\. Did you mean --multirun\?$"):
        check_flags(["--multrun"])
    with pytest.raises(ConfigError, match=r"^Unknown flag --zzz\. emea run --help"):
        check_flags(["--zzz=3"])
