"""Beliefs over all targets, in blocks, against one softmax of the whole table."""

import pytest
import torch

from emea.em.normaliser import MinMaxNormaliser, SoftmaxNormaliser
from emea.matching import similarity as similarity_module
from emea.matching.csls import CSLS
from emea.matching.dense_beliefs import DenseBeliefs


@pytest.mark.parametrize("block_bytes", [1, 200, 2**20])
def test_equals_the_softmax_of_the_whole_table(
    monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(similarity_module, "BLOCK_BYTES", {"cpu": block_bytes})
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(size, 4, generator=generator) for size in (13, 17))
    similarity = CSLS(k=3)(source, target)
    certain = torch.tensor([[2, 5], [12, 0]])
    whole = torch.softmax(7.0 * similarity.scores(torch.arange(13)).double(), dim=1)
    whole[certain[:, 0]] = torch.nn.functional.one_hot(certain[:, 1], 17).double()
    blocks = list(DenseBeliefs(similarity, 7.0, certain).blocks())
    assert [block.start for block, _ in blocks[1:]] == [block.stop for block, _ in blocks[:-1]]
    torch.testing.assert_close(torch.cat([probs for _, probs in blocks]).double(), whole)
    assert len(blocks) == {1: 13, 200: 7, 2**20: 1}[block_bytes]


def test_extends_the_candidates_of_the_softmax() -> None:
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(2, 9, 4, generator=generator)
    similarity, certain = CSLS(k=2)(rows[0], rows[1]), torch.tensor([[0, 3]])
    softmax = SoftmaxNormaliser()
    softmax.fit(similarity, torch.tensor([[1, 1], [4, 4]]))
    beliefs = softmax.beliefs(similarity, 4).clamped(certain)
    ((_, probs),) = softmax.dense(similarity, certain).blocks()
    torch.testing.assert_close(probs.gather(1, beliefs.targets), beliefs.probs)
    assert MinMaxNormaliser().dense(similarity, certain) is None
