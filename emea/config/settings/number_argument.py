"""The type of command-line arguments that are numbers in a range."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from emea.config.settings.setting import KINDS, Range

Number = TypeVar("Number", int, float)

AT_LEAST_ONE = Range(1)


def number_in(allowed: Range, kind: type[Number]) -> Callable[[str], Number]:
    """Return a ``type`` for argparse that accepts the numbers of a range.

    Args:
        allowed: The range.
        kind: ``int`` for whole numbers only, or ``float``.
    """

    def number(text: str) -> Number:
        with suppress(ValueError):
            value = kind(text)
            if allowed.holds(value):
                return value
        raise ArgumentTypeError(f"must be {KINDS[kind]} {allowed}, got {text}")

    return number
