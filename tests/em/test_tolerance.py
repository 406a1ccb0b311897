"""EM ends when an iteration changes few pseudo-labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.em.em_callback import share_changed

LABELS = st.dictionaries(st.integers(0, 6), st.integers(0, 6))


def links(labels: dict[int, int]) -> np.ndarray:
    return np.array(sorted(labels.items()), dtype=np.int64).reshape(-1, 2)


@given(LABELS, LABELS)
def test_the_share_equals_a_loop(before: dict[int, int], after: dict[int, int]) -> None:
    labelled = before.keys() | after.keys()
    num_changed = sum(before.get(one) != after.get(one) for one in labelled)
    expected = num_changed / len(labelled) if labelled else 1.0
    assert share_changed(links(before), links(after)) == pytest.approx(expected)
