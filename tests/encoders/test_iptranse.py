"""Shared rows and what IPTransE reads of the graphs."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from emea.encoders.iptranse import IPTransE, composed_relations
from emea.encoders.joint_graph import join_graphs

LINKS = torch.tensor([[3, 12], [1, 11], [0, 9], [5, 12]])


def make_encoder(make_pair: Any, dim: int = 4) -> IPTransE:
    torch.manual_seed(0)
    return IPTransE(join_graphs(make_pair()), dim)


def test_linked_entities_share_a_row(make_pair: Any) -> None:
    encoder = make_encoder(make_pair)
    encoder.share(LINKS)
    rows = encoder()
    own = normalize(encoder.entities)
    shared = {9: 0, 11: 1, 12: 3}
    for entity in range(19):
        assert torch.equal(rows[entity], own[shared.get(entity, entity)]), entity


def test_both_ends_train_the_shared_row(make_pair: Any) -> None:
    encoder = make_encoder(make_pair).double()
    encoder.share(LINKS)
    weights = torch.randn(19, 4, dtype=torch.float64)
    (encoder() * weights).sum().backward()
    twin = encoder.entities.detach().clone().requires_grad_()
    (normalize(twin[3:4]) * (weights[3] + weights[12])).sum().backward()
    grads = encoder.entities.grad
    assert grads is not None
    assert twin.grad is not None
    torch.testing.assert_close(grads[3], twin.grad[3])
    assert not grads[[9, 11, 12]].any()


def test_new_links_replace_the_old_ones(make_pair: Any) -> None:
    encoder = make_encoder(make_pair)
    alone = encoder()
    encoder.share(LINKS)
    buffer = encoder.row_of
    encoder.share(LINKS[1:2])
    assert encoder.row_of is buffer
    assert encoder.row_of.tolist() == [*range(11), 1, *range(12, 19)]
    encoder.share(LINKS[:0])
    assert torch.equal(encoder(), alone)


def test_saved_weights_say_whose_rows_they_are(make_pair: Any) -> None:
    encoder, other = make_encoder(make_pair), make_encoder(make_pair)
    encoder.share(LINKS)
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder(), other())
    assert set(encoder.state_dict()) == {"entities", "relations", "row_of"}


def test_triples_and_paths_are_those_of_the_graphs(make_pair: Any) -> None:
    graph = join_graphs(make_pair())
    encoder = IPTransE(graph, max_ends=3)
    paths, num_ends = composed_relations(graph.triples(), 3)
    assert len(paths)
    assert np.array_equal(encoder.triples, graph.triples())
    assert np.array_equal(encoder.paths, paths)
    assert np.array_equal(encoder.path_ends, num_ends)


@pytest.mark.parametrize("dim", [25, 100])
def test_initial_parameters(make_pair: Any, dim: int) -> None:
    encoder = make_encoder(make_pair, dim)
    assert encoder.entities.shape == (19, dim)
    assert encoder.relations.shape == (6, dim)
    for table in (encoder.entities, encoder.relations):
        assert 1.5 * dim**-0.5 < table.abs().max() <= 2 * dim**-0.5
    torch.testing.assert_close(encoder().norm(dim=1), torch.ones(19))
    torch.testing.assert_close(encoder.relation_rows().norm(dim=1), torch.ones(6))
