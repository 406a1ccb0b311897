"""The best candidate of each row against a loop."""

import pytest

from emea.answer.decoding import BestAnswer

from ..matching.random_beliefs import answered, certain, random_beliefs


@pytest.mark.parametrize("tied", [False, True])
def test_each_row_takes_its_best(tied: bool) -> None:
    for seed in range(30):
        beliefs, labels = random_beliefs(seed, tied)
        expected = {}
        for source in range(beliefs.num_source):
            probs = beliefs.probs[source].tolist()
            best = probs.index(max(probs))
            if probs[best]:
                expected[source] = (int(beliefs.targets[source, best]), probs[best])
        assert answered(BestAnswer()(beliefs, labels)) == expected | certain(labels), seed
