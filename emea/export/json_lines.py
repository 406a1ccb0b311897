"""One JSON object for each source entity."""

import json
from collections.abc import Iterator
from typing import Any

from emea.export.alignment import Alignment, Row

ENCODER = json.JSONEncoder(ensure_ascii=False)
DIGITS = 6
"""Decimal places of a probability, as in the tab-separated file."""


def json_lines(alignment: Alignment) -> Iterator[str]:
    """Source, target or null, probability, whether it was given, and the candidates.

    Candidates whose probability rounds to 0 are left out.
    """
    for row in alignment.rows():
        yield ENCODER.encode(_object(row))


def _object(row: Row) -> dict[str, Any]:
    candidates = [(target, round(prob, DIGITS)) for target, prob in row.candidates]
    return {
        "source": row.source,
        "target": row.target,
        "probability": None if row.target is None else round(row.prob, DIGITS),
        "given": row.is_given,
        "candidates": [
            {"target": target, "probability": prob} for target, prob in candidates if prob > 0
        ],
    }
