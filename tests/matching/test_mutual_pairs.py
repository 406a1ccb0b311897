"""Mutual pairs against a loop."""

import pytest
import torch

from emea.matching.candidates import mutual_pairs
from emea.matching.csls import CSLS
from emea.matching.similarity import Cosine, Similarity


def looped(similarity: Similarity) -> list[list[int]]:
    scores = similarity.scores(torch.arange(similarity.num_source))
    pairs = []
    for source in range(similarity.num_source):
        target = max(range(similarity.num_target), key=lambda t: float(scores[source, t]))
        back = max(range(similarity.num_source), key=lambda s: float(scores[s, target]))
        if back == source:
            pairs.append([source, target])
    return pairs


@pytest.mark.parametrize("decoder", [Cosine(), CSLS(k=3)])
@pytest.mark.parametrize(("num_source", "num_target"), [(12, 9), (7, 15), (1, 5), (5, 1)])
@pytest.mark.usefixtures("block_bytes")
def test_pairs_are_those_of_a_loop(
    decoder: Cosine | CSLS, num_source: int, num_target: int
) -> None:
    torch.manual_seed(num_source)
    similarity = decoder(torch.randn(num_source, 4), torch.randn(num_target, 4))
    assert mutual_pairs(similarity).tolist() == looped(similarity)
