"""The weight of shared relations from a kernel on a GPU; tests/rules compares it with sets."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from emea.data.graph import KnowledgeGraph
from emea.kernels import shared_weights
from emea.rules.directed_triples import DirectedTriples
from emea.rules.relation_overlap import RelationOverlap
from emea.rules.subsumption import Subsumption

INTERPRETED = """
from unittest.mock import patch
import torch
from emea.kernels import choice
from tests.kernels.test_shared_weights import many_relations
overlap, pairs, included = many_relations()
with patch.object(choice._Switch, "allows_compiled", False):
    expected = overlap.of_pairs(*pairs, included)
    with patch.object(choice, "uses_triton", lambda values: True):
        found = overlap.of_pairs(*pairs, included)
torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
"""


def many_relations() -> tuple[
    RelationOverlap, tuple[torch.Tensor, torch.Tensor], Subsumption
]:
    """Entities with up to some thirty relations, which a kernel reads in several steps."""
    rng = np.random.default_rng(0)
    graphs = []
    for size, num_relations, num_triples in ((30, 25, 500), (40, 30, 700)):
        ends = rng.integers(0, size - 1, (2, num_triples))
        relations = rng.integers(0, num_relations, num_triples)
        triples = np.stack([ends[0], relations, ends[1]], axis=1)
        graphs.append(KnowledgeGraph(triples, size, num_relations))
    keys = torch.from_numpy(np.sort(rng.choice(50 * 60, 900, replace=False)))
    probs = torch.from_numpy(rng.random((2, 900)).astype(np.float32) ** 2)
    included = Subsumption(keys, probs[0], probs[1], 60)
    overlap = RelationOverlap(*map(DirectedTriples, graphs))
    pairs = [torch.from_numpy(rng.integers(0, size, 200)) for size in (30, 40)]
    return overlap, (pairs[0], pairs[1]), included


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) >= "2.4.0",
    reason="the interpreter of Triton 3.6 cannot loop over loaded bounds",
)
def test_the_kernel_in_an_interpreter(interpreted: Callable[..., None]) -> None:
    interpreted(INTERPRETED)


@pytest.mark.gpu
@pytest.mark.parametrize("most_cells", [shared_weights.MOST_CELLS, 10])
def test_on_a_gpu(
    cuda: torch.device, most_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlap, pairs, included = many_relations()
    expected = overlap.of_pairs(*pairs, included)
    monkeypatch.setattr(shared_weights, "MOST_CELLS", most_cells)
    for name in ("source", "target"):
        relations = getattr(overlap, name)
        on_gpu = type(relations)(*(part.to(cuda) for part in relations))
        setattr(overlap, name, on_gpu)
    moved = Subsumption(
        included.keys.to(cuda),
        included.source_in_target.to(cuda),
        included.target_in_source.to(cuda),
        included.num_target_relations,
    )
    ends = pairs[0].to(cuda), pairs[1].to(cuda)
    found = overlap.of_pairs(*ends, moved)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-6)
    assert not len(overlap.of_pairs(ends[0][:0], ends[1][:0], moved))
