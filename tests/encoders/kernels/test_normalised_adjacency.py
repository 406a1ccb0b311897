"""The normalised adjacency against a dense matrix filled pair by pair."""

from typing import Any

import numpy as np
import torch

from emea.encoders.joint_graph import join_graphs
from emea.encoders.kernels.sparse_pattern import NormalisedAdjacency


def test_against_a_dense_matrix(make_pair: Any) -> None:
    graph = join_graphs(make_pair(3))
    size = graph.num_entities
    pairs = graph.triples()[:, [0, 2]]
    dense = torch.eye(size, dtype=torch.float64)
    for left, right in pairs.tolist():
        dense[left, right] = dense[right, left] = 1
    degrees = dense.sum(1)
    expected = dense / (degrees[:, None] * degrees[None, :]).sqrt()
    adjacency = NormalisedAdjacency(pairs, size)
    found = adjacency.weighted_sum(adjacency.weights, torch.eye(size, dtype=torch.float64))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert adjacency.num_nonzeros == int((dense > 0).sum())


def test_without_pairs_everyone_is_alone() -> None:
    adjacency = NormalisedAdjacency(np.zeros((0, 2), dtype=np.int64), 3)
    assert adjacency.rows.tolist() == adjacency.cols.tolist() == [0, 1, 2]
    assert adjacency.weights.tolist() == [1, 1, 1]
