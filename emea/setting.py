"""How a setting is declared, and how its values are checked.

Settings are in the file ``settings.py`` of the package whose classes use them: type, default,
allowed values, source and help text. These files are the only home of a default. Everything else is
derived from them: the options in ``conf/`` inherit from them, ``emea.config`` checks values against
them, ``emea run --help`` and ``docs/configuration.md`` print them, and reports read the usual
values from them.

To add a setting to an option:

1. Add a field to the dataclass of that option, with ``setting(default, help, ...)``. The annotation
   is the type, and ``| None`` allows null. Numbers need a ``Range``, words a tuple of choices.
2. Read it where it is used. The default of a constructor's argument is the field itself, as in
   ``dim: int = RREASettings.dim``.
3. Run ``python docs/configuration_page.py > docs/configuration.md``.

To add an option, write ``conf/<group>/<option>.yaml``. It inherits a dataclass with
``defaults: [schema_<name>]`` and then sets ``name``, ``_target_`` and what differs. A new dataclass
is listed in ``emea/config/groups.py``.
"""

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from math import inf, isfinite
from typing import Any

MISSING = "???"
"""A value that each option must set; OmegaConf uses the same text."""


@dataclass(frozen=True)
class Range:
    """A range of numbers.

    Args:
        least: The lower limit.
        most: The upper limit.
        above: Excludes the lower limit.
        below: Excludes the upper limit.
    """

    least: float
    most: float = inf
    above: bool = False
    below: bool = False

    def holds(self, value: float) -> bool:
        """Return whether the number is finite and in the range."""
        enough = value > self.least if self.above else value >= self.least
        not_too_much = value < self.most if self.below else value <= self.most
        return enough and not_too_much and (isinstance(value, int) or isfinite(value))

    def __str__(self) -> str:
        """Return the range in words, to follow "a number"."""
        low = (
            f"above {self.least:,.15g}"
            if self.above
            else f"of at least {self.least:,.15g}"
        )
        if self.most == inf:
            return low
        if not (self.above or self.below):
            return f"from {self.least:,.15g} to {self.most:,.15g}"
        return f"{low} and {'below' if self.below else 'at most'} {self.most:,.15g}"


def up_to(most: int, least: int = 1) -> Range:
    """Return a count with an upper limit, beyond which a value can only be a mistake."""
    return Range(least, most)


LARGE = 1e6
"""Upper limit of weights, rates and durations; a larger value can only be a mistake."""

POSITIVE = Range(0, LARGE, above=True)
NOT_NEGATIVE = Range(0, LARGE)
SHARE = Range(0, 1)
SHARE_BELOW_ONE = Range(0, 1, below=True)
SHARE_ABOVE_ZERO = Range(0, 1, above=True)
SEED = Range(0, 2**32 - 1)
"""Seeds that both numpy and torch accept."""

EPOCHS = up_to(1_000_000)
WIDTH = up_to(16_384)
DEPTH = up_to(100)

Allowed = Range | tuple[str, ...] | None


KINDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    list: "a list",
    dict: "a group of settings",
}


def setting(
    default: Any,
    help: str,
    allowed: Allowed = None,
    source: str = "",
    example: str = "",
) -> Any:
    """Declare a field of a schema.

    Args:
        default: The value if none is given; a tuple means a list.
        help: What it does, for ``--help`` and the documentation.
        allowed: A range of numbers or the possible words; for a list, those of its items.
        source: Where the default comes from.
        example: A value to show if the default is null or empty.
    """
    about = {"help": help, "allowed": allowed, "source": source, "example": example}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Setting:
    """One setting of an option; the other arguments are those of `setting`.

    Args:
        key: Its full key, such as ``em.iterations``.
        kind: ``int``, ``float``, ``bool``, ``str``, ``list``, ``dict`` or ``object`` (anything).
        item: The kind of a list's items, or of a group's values.
        nullable: Null is allowed.
        default: The usual value, as a plain container.
    """

    key: str
    kind: type
    item: type
    nullable: bool
    default: Any
    allowed: Allowed = None
    help: str = ""
    source: str = ""
    example: str = ""

    def problem(self, value: Any) -> str | None:
        """Return a sentence if the value is not allowed.

        Args:
            value: a plain value: numbers, text, lists and dicts.
        """
        if value is None and self.nullable:
            return None
        items = value if isinstance(value, list) else [value]
        values = value.values() if isinstance(value, dict) else items
        is_scalar = self.kind not in (list, dict)
        if not _is_kind(value, self.kind) or not all(
            is_scalar or _is_kind(item, self.item) for item in values
        ):
            shown = self.example or typed(self.default)
            is_shown = self.kind is not bool and shown not in ("null", "[]", MISSING)
            such_as = f" (such as {shown})" if is_shown and "${" not in shown else ""
            # text that looks like a number is marked as text
            digits = (
                value.replace(".", "", 1).lstrip("+-") if isinstance(value, str) else ""
            )
            given = f"the text {value!r}" if digits.isdecimal() else typed(value)
            return f"{self.key} must be {self.described()}{such_as}, got {given}"
        is_word = isinstance(self.allowed, tuple) and all(
            one in self.allowed for one in items
        )
        is_inside = isinstance(self.allowed, Range) and all(
            map(self.allowed.holds, items)
        )
        if self.allowed is None or is_word or is_inside:
            return None
        return f"{self.key} must be {self.described()}, got {typed(value)}"

    def described(self) -> str:
        """Return the allowed values in words."""
        null = "null or " if self.nullable and self.kind is dict else ""
        if self.kind is list:
            return f"a list of {self._described_items()}"
        if isinstance(self.allowed, tuple):
            return f"one of {', '.join(self.allowed)}"
        if isinstance(self.allowed, Range):
            return f"{KINDS[self.kind]} {self.allowed}"
        values = (
            " whose values are text" if (self.kind, self.item) == (dict, str) else ""
        )
        return f"{null}{KINDS.get(self.kind, 'a value')}{values}"

    def _described_items(self) -> str:
        if isinstance(self.allowed, tuple):
            return f"some of {', '.join(self.allowed)}"
        plural = {int: "whole numbers", float: "numbers", str: "names"}.get(
            self.item, "classes"
        )
        return f"{plural} {self.allowed}" if isinstance(self.allowed, Range) else plural


def _is_kind(value: Any, kind: type) -> bool:
    if kind is object:
        return True
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def typed(value: Any) -> str:
    """Return a plain value as one types it on the command line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(map(typed, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {typed(one)}' for key, one in value.items())}}}"
    return str(value)


@cache
def settings_of(schema: type, prefix: str = "") -> tuple[Setting, ...]:
    """Return all settings of a schema, those of its groups after the group itself.

    Args:
        schema: a dataclass.
        prefix: The key of the group, with a dot at its end.
    """
    hints = typing.get_type_hints(schema)
    found: list[Setting] = []
    for one in fields(schema):
        kind, nullable = _without_null(hints[one.name])
        key = f"{prefix}{one.name}"
        if isinstance(kind, type) and is_dataclass(kind):
            found.append(
                Setting(key, dict, object, nullable, plain(one.default), **one.metadata)
            )
            if not isinstance(one.default, str):  # it does not refer to another group
                found += settings_of(kind, f"{key}.")
            continue
        origin = typing.get_origin(kind) or kind
        item = (
            typing.get_args(kind)[origin is dict] if origin in (tuple, dict) else object
        )
        item = object if item is Any else item
        origin = list if origin is tuple else origin
        item = typing.get_origin(item) or item
        found.append(
            Setting(key, origin, item, nullable, plain(one.default), **one.metadata)
        )
    return tuple(found)


def _without_null(hint: Any) -> tuple[Any, bool]:
    """Return an annotation without ``| None``, and whether it had it."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    (kind,) = [one for one in typing.get_args(hint) if one is not type(None)]
    return kind, True


def plain(value: Any) -> Any:
    """Return a default as plain containers: tuples become lists, dataclasses dicts."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value
