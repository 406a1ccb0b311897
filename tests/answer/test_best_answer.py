"""The best candidate of each row against a loop."""

import pytest

from emea.answer.decoding import BestAnswer

from ..matching.random_beliefs import answered, certain, random_beliefs


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_each_row_takes_its_best(seed: int, tied: bool) -> None:
    beliefs, labels = random_beliefs(seed, tied)
    expected = {}
    for source in range(beliefs.num_source):
        slots = range(beliefs.num_candidates)
        best = max(slots, key=lambda slot: float(beliefs.probs[source, slot]))
        if beliefs.probs[source, best]:
            target, prob = beliefs.targets[source, best], beliefs.probs[source, best]
            expected[source] = (int(target), float(prob))
    assert answered(BestAnswer()(beliefs, labels)) == expected | certain(labels)
