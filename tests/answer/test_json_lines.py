import json
from dataclasses import replace

import numpy as np
from hypothesis import given

from emea.answer.alignment import Alignment
from emea.answer.exporting import json_lines

from .odd_alignments import alignment_of, alignments, answer


def test_what_is_written() -> None:
    given_one, unmatched, _ = map(
        json.loads, json_lines(alignment_of(["a", "b", "c"], ["x", "y"], [1, -1, 0]))
    )
    assert given_one == {
        "source": "a",
        "target": "y",
        "probability": 1.0,
        "given": True,
        "candidates": [{"target": "y", "probability": 0.25}, {"target": "x", "probability": 0.125}],
    }
    assert unmatched["target"] is unmatched["probability"] is None
    assert unmatched["candidates"][0] == {"target": "x", "probability": 0.25}


def test_candidates_whose_probability_rounds_to_zero_are_left_out() -> None:
    alignment = alignment_of(["a", "b"], ["x", "y"], [1, 1])
    probs = np.array([[0.25, 4e-7], [1e-6, 0.0]])
    first, second = map(json.loads, json_lines(replace(alignment, candidate_probs=probs)))
    assert first["candidates"] == [{"target": "y", "probability": 0.25}]
    assert second["candidates"] == [{"target": "y", "probability": 1e-6}]


@given(alignments())
def test_every_name_comes_back(alignment: Alignment) -> None:
    lines = list(json_lines(alignment))
    assert not any("\n" in line for line in lines)
    assert {(row := json.loads(line))["source"]: row["target"] for line in lines} == answer(
        alignment
    )
