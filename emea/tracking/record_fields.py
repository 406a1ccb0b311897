"""What the fields of a run's records may hold."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

LARGEST = 2**63
"""Whole numbers from here on have no place in a database."""

LAST_TIME = 253_402_300_800_000
"""Milliseconds to the year 10000, which has no place in a date."""


def field_problem(content: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """What is wrong with the first field that is missing or cannot be used."""
    for name in names:
        if name not in content:
            return f"it lacks {name!r}"
        if not CHECKS[name](content[name]):
            return f"its {name!r} cannot be used"
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole_number(value: Any) -> bool:
    # JSON's true is no number, though Python's True is one
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST <= value < LARGEST


def _is_time(value: Any) -> bool:
    return _is_whole_number(value) and 0 <= value < LAST_TIME


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole_number(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _mapping_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


CHECKS: dict[str, Callable[[Any], bool]] = {
    "run_id": _is_text,
    "name": _is_text,
    "experiment": _is_text,
    "params": _mapping_of(_is_plain),
    "tags": _mapping_of(_is_text),
    "start_time": _is_time,
    "status": _is_text,
    "end_time": _is_time,
    "reason": _is_text,
    "step": _is_whole_number,
    "time": _is_time,
    "metrics": _mapping_of(_is_number),
}
