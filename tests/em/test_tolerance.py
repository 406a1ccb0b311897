"""EM ends when an iteration changes few pseudo-labels."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.em.em_callback import share_changed
from emea.em.settings import DualSettings, OneToOneSettings

RECORDS = Path(__file__).resolve().parents[2] / "experiments/speed/em_tolerance.jsonl"
HIT = "hit@1 among all targets by iteration"
CHANGED = "changed pseudo-labels by iteration"

LABELS = st.dictionaries(st.integers(0, 6), st.integers(0, 6))


def links(labels: dict[int, int]) -> np.ndarray:
    return np.array(sorted(labels.items()), dtype=np.int64).reshape(-1, 2)


@given(LABELS, LABELS)
def test_the_share_equals_a_loop(before: dict[int, int], after: dict[int, int]) -> None:
    labelled = before.keys() | after.keys()
    num_changed = sum(before.get(one) != after.get(one) for one in labelled)
    expected = num_changed / len(labelled) if labelled else 1.0
    assert share_changed(links(before), links(after)) == pytest.approx(expected)


@pytest.mark.parametrize("settings", [DualSettings, OneToOneSettings])
def test_the_tolerance_hardly_changes_recorded_runs(
    settings: type[DualSettings],
) -> None:
    """Replays the runs that had no tolerance: six pairs, four ratios, RREA and LightEA."""
    option = {DualSettings: "em=dual", OneToOneSettings: "em=one_to_one"}[settings]
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    whole = [
        one
        for one in records
        if option in one["settings"]
        and len(one[HIT]) == settings.iterations + 1
        and "change of hit@1" in one
    ]
    assert len(whole) == 48
    num_early = 0
    for one in whole:
        ends = (
            place
            for place, changed in enumerate(one[CHANGED])
            if changed <= settings.tolerance
        )
        last = next(ends, settings.iterations)
        num_early += last < settings.iterations
        assert abs(one[HIT][last] - one[HIT][-1]) <= 0.002
    assert num_early >= 10
