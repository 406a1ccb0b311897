"""The relation loss triple by triple."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.data.arrays import IntArray
from emea.encoders.alinet import RelationConsistency
from emea.encoders.joint_graph import join_graphs


def looped(rows: Tensor, triples: IntArray) -> Tensor:
    total = rows.new_zeros(())
    for relation in sorted(set(triples[:, 1].tolist())):
        mine = [(h, t) for h, r, t in triples.tolist() if r == relation]
        differences = [rows[h] - rows[t] for h, t in mine]
        direction = normalize(torch.stack(differences).mean(0), dim=0)
        for difference in differences:
            total = total + (difference - direction).square().sum() / len(mine)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient(make_pair: Any, seed: int) -> None:
    graph = join_graphs(make_pair(seed))
    triples = graph.triples()
    # a relation of loops alone has no direction
    triples = np.concatenate([triples, [[4, graph.num_relations, 4]]])
    torch.manual_seed(seed)
    rows = torch.randn(graph.num_entities, 5, dtype=torch.float64, requires_grad=True)
    twin = rows.detach().clone().requires_grad_()
    loss = RelationConsistency(triples, graph.num_entities, graph.num_relations + 2)(rows)
    expected = looped(twin, triples)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(rows.grad, twin.grad, rtol=0, atol=1e-10)


def test_without_triples() -> None:
    rows = torch.randn(3, 2, requires_grad=True)
    loss = RelationConsistency(np.zeros((0, 3), dtype=np.int64), 3, 2)(rows)
    loss.backward()
    assert float(loss.detach()) == 0
    assert not rows.grad.any()  # type: ignore[union-attr]
