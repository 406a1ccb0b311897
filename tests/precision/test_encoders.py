"""Label propagation in single against double precision."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.light_ea import LabelPropagation, LightEA, Projection, whitened

from ..baselines.random_pairs import overlapping_pair
from .both_precisions import ROUNDOFF, assert_near, both, in_precision
from .stars import twin_stars

DIM = 8


def propagated(
    pair: GraphPair, links: Tensor, **settings: Any
) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    released = {"depth": 2, "self_weight": 2.0, "whitening": 0.0}
    encoder = LightEA(
        join_graphs(pair), dim=DIM, output_dim=DIM, **(released | settings)
    )
    for one in (encoder, exact := in_precision(encoder, torch.float64)):
        LabelPropagation()(one, links)
    return encoder(), exact()


def joint_links(pair: GraphPair, pairs: np.ndarray) -> Tensor:
    return torch.tensor(pairs) + torch.tensor([0, pair.source.num_entities])


@pytest.mark.parametrize("whitening", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("depth", [1, 3])
def test_few_neighbours(depth: int, whitening: float) -> None:
    pair = overlapping_pair(0, 60)
    links = joint_links(pair, pair.links[::4])
    single, double = propagated(pair, links, depth=depth, whitening=whitening)
    # sums over some ten neighbours and ten relations, and of 8 squares, at each depth and behind
    # it; whitening scales weak directions up, by sqrt(1000) at most
    off = 100 * (depth + 2) * ROUNDOFF * 1000 ** (whitening / 2)
    assert_near(single, double, absolute=off)


def test_hubs() -> None:
    num_leaves = 100_000
    pair = twin_stars(num_leaves)
    leaves = np.arange(1, num_leaves + 1, 10)
    links = joint_links(pair, np.stack([leaves, leaves], axis=1))
    single, double = propagated(pair, links, depth=1)
    # a sum of n vectors that point anywhere is as long as sqrt(n) of them, its error as n
    assert_near(single, double, absolute=num_leaves**0.5 * 10 * ROUNDOFF)


def test_many_claims_on_one_target() -> None:
    pair = overlapping_pair(1, 500)
    sources = np.arange(400)
    links = joint_links(
        pair, np.stack([sources, np.where(sources < 350, 7, sources)], axis=1)
    )
    assert_near(*propagated(pair, links, depth=2), absolute=500 * ROUNDOFF)


def test_no_labels_leave_zeros() -> None:
    pair = overlapping_pair(0, 60)
    for one in propagated(pair, torch.zeros(0, 2, dtype=torch.int64), whitening=1.0):
        assert not one.any()


@pytest.mark.parametrize("size", [1e-10, 1.0, 1e10])
def test_projection(size: float) -> None:
    generator = torch.Generator().manual_seed(0)
    layers = tuple(size * torch.randn(50, DIM, generator=generator) for _ in range(3))
    layers[1][::2] = 0
    matrices = torch.randn(3, DIM, DIM, generator=generator)

    def projected(
        layers: tuple[torch.Tensor, ...], matrices: torch.Tensor
    ) -> torch.Tensor:
        projection = Projection(layers[0], matrices)
        for layer in layers:
            projection.add(layer)
        return projection.rows()

    single, double = both(projected, layers, matrices)
    # a sum of 24 products, each of at most the length of the row times the largest number
    largest = float(matrices.abs().max()) * (3 * DIM) ** 0.5
    assert_near(single, double, absolute=(2 * 3 * DIM + 8) * ROUNDOFF * largest)


@pytest.mark.parametrize("strength", [0.5, 1.0])
@pytest.mark.parametrize("rank", [0, 1, DIM])
def test_whitening(strength: float, rank: int) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(300, rank, generator=generator) @ torch.randn(
        rank, DIM, generator=generator
    )
    rows = torch.nn.functional.normalize(rows * torch.logspace(0, -6, DIM))
    single, double = both(lambda given: whitened(given, strength), rows)
    # eigenvalues are off by roundings of the largest; the least that counts is a thousandth
    assert_near(single, double, absolute=1000 ** (strength / 2) * 8 * DIM * ROUNDOFF)
