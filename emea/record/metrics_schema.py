"""Types and ranges of the numbers of a run that commands read again."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from emea.record.checked_files import damaged


@dataclass(frozen=True)
class _Kind:
    """What a value must be.

    Args:
        name: How an error names it.
        holds: Returns whether a value is one.
        inner: The kinds of the entries of an object, by key.
        each: The kind of all other entries of an object, or of the entries of a list.
        is_optional: Whether the value may be null.
        needed: Keys that an object must have.
    """

    name: str
    holds: Callable[[Any], bool]
    inner: Mapping[str, "_Kind"] | None = None
    each: "_Kind | None" = None
    is_optional: bool = False
    needed: tuple[str, ...] = ()


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # a number of 400 digits is larger than every float
    return is_number and -1e300 < value < 1e300 and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _object(
    inner: Mapping[str, _Kind] | None = None,
    each: _Kind | None = None,
    is_optional: bool = False,
    needed: tuple[str, ...] = (),
) -> _Kind:
    return _Kind("an object", _is_object, inner or {}, each, is_optional, needed)


def _list_of(each: _Kind) -> _Kind:
    return _Kind("a list", lambda value: isinstance(value, list), each=each)


def _maybe(kind: _Kind) -> _Kind:
    return replace(kind, name=f"{kind.name} or null", is_optional=True)


ANY = _Kind("a value", lambda value: True)
TEXT = _Kind("text", lambda value: isinstance(value, str))
NUMBER = _Kind("a number", _is_number)
COUNT = _Kind("a number of at least 0", _is_count)
SHARE = _Kind("a number from 0 to 1", _is_share)
TIME = _Kind("a number of at least 0", lambda value: _is_number(value) and value >= 0)
SCORES = _object({"hit@1": _maybe(NUMBER), "mrr": _maybe(NUMBER)}, is_optional=True)
ESTIMATE = _object(
    dict.fromkeys(("value", "low", "high"), SHARE), needed=("value", "low", "high")
)
BOTH_SIDES = _object(
    {"source": ESTIMATE, "target": _maybe(ESTIMATE)},
    is_optional=True,
    needed=("source",),
)
ENTRY = _object(
    {
        "weights": _object(each=_maybe(NUMBER), is_optional=True),
        "validation": SCORES,
        "validation_answer": SCORES,
        "counterparts": BOTH_SIDES,
    }
)
ACCEPTED = _object({"num_links": COUNT, "num_accepted": COUNT}, is_optional=True)
EXPORT = _object(
    {
        **dict.fromkeys(("threshold", "target_precision"), _maybe(SHARE)),
        **dict.fromkeys(("top_k", "num_answered", "num_unmatched"), COUNT),
        **dict.fromkeys(("share_answered", "mean_prob"), _maybe(NUMBER)),
        "num_by_prob": _object(each=COUNT, is_optional=True),
        **dict.fromkeys(("validation", "test"), ACCEPTED),
    }
)
METRICS = _object(
    {
        "history": _list_of(ENTRY),
        **dict.fromkeys(("protocol", "method", "model", "em"), TEXT),
        **dict.fromkeys(("decoding", "data"), TEXT),
        **dict.fromkeys(("rule", "training", "split"), _maybe(TEXT)),
        **dict.fromkeys(("initial", "final", "final_reverse", "one_to_one"), SCORES),
        **dict.fromkeys(("answer", "literals", "decoys"), _object(is_optional=True)),
        "num_links": _object(dict.fromkeys(("train", "validation", "test"), COUNT)),
        "export": EXPORT,
        "counterparts": BOTH_SIDES,
        "kept_iteration": _maybe(COUNT),
        "seconds": _object(each=TIME),
        "peak_memory_mb": _maybe(TIME),
        "warnings": _list_of(TEXT),
    }
)
"""The values that commands read. Others are shown only as they are."""

NEEDED = {
    "": (
        *("history", "protocol", "method", "model", "em", "decoding", "data"),
        *("num_links", "export", "seconds"),
    ),
    "num_links": ("train", "validation", "test"),
    "export": ("threshold", "num_answered", "num_unmatched"),
    "seconds": ("total",),
}
"""Keys that the metrics of each finished run have, by section."""


def check_values(path: Path, metrics: Mapping[str, Any]) -> None:
    """Raise an error if a value of metrics has another type or range than runs write.

    Args:
        path: The file, for messages.
        metrics: Its content.

    Raises:
        DataError: One has.
    """
    problem = _problem(METRICS, metrics, "")
    if problem is not None:
        raise damaged(path, problem)
    history = metrics.get("history")
    kept = metrics.get("kept_iteration")
    if history is not None and kept is not None and kept >= len(history):
        raise damaged(
            path, f"it answers with iteration {kept}, which its history lacks"
        )


def check_complete(path: Path, metrics: Mapping[str, Any]) -> None:
    """Raise an error if metrics lack values that each finished run has.

    Args:
        path: The file, for messages.
        metrics: Its content, whose types are right.

    Raises:
        DataError: They lack one.
    """
    for section, keys in NEEDED.items():
        values = metrics[section] if section else metrics
        for key in keys:
            if key not in values or values[key] == []:
                of_section = f" of {section}" if section else ""
                raise damaged(path, f"it lacks the {key}{of_section}")


def _problem(kind: _Kind, value: Any, place: str) -> str | None:
    """Return what is wrong with a value or one inside of it, or ``None``."""
    if value is None and kind.is_optional:
        return None
    if not kind.holds(value):
        return f"its {place} is not {kind.name}"
    if isinstance(value, list):
        entries = [
            (kind.each or ANY, one, f"{place}[{n}]") for n, one in enumerate(value)
        ]
    elif isinstance(value, dict) and kind.inner is not None:
        for key in kind.needed:
            if key not in value:
                return f"its {place} lacks the {key}"
        # scores have sections of their own, such as those among all targets
        entries = [
            (kind.inner.get(key, kind.each or ANY), one, f"{place}.{key}".strip("."))
            for key, one in value.items()
        ]
    else:
        return None
    found = (_problem(*entry) for entry in entries)
    return next((problem for problem in found if problem is not None), None)
