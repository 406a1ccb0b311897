"""LightEA against a transcription with dictionaries of vectors."""

import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders import light_ea
from emea.encoders.joint_graph import join_graphs
from emea.encoders.light_ea import LabelPropagation, LightEA, whitened
from emea.encoders.rrea import RREA
from emea.errors import ConfigError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_trainer import quieten_lightning
from emea.fit.step_block import LabelDataModule

from ..fit.small_fits import fit_members

Vector = np.ndarray
Triples = set[tuple[int, int, int]]

NUM_SOURCE = 9
LINKS = torch.tensor([[0, 9], [2, 11], [3, 12], [8, 18]])
"""The last one joins two entities without a triple."""


def directed_triples(pair: GraphPair) -> Triples:
    """Every triple in both directions, in joint ids."""
    num_relations = pair.source.num_relations + pair.target.num_relations
    shifts = (0, 0), (pair.source.num_entities, pair.source.num_relations)
    found = set()
    for graph, (by, relation_by) in zip(
        (pair.source, pair.target), shifts, strict=True
    ):
        for head, relation, tail in graph.triples.tolist():
            found.add((head + by, relation + relation_by, tail + by))
            found.add((tail + by, relation + relation_by + num_relations, head + by))
    return found


def unit(vector: Vector) -> Vector:
    length = np.linalg.norm(vector)
    return vector / length if length else vector


def labels_of(encoder: LightEA, links: torch.Tensor) -> dict[int, Vector]:
    """Vector of each labelled entity before propagation."""
    vectors = encoder.seed_vectors().numpy()
    pairs = links.tolist()
    labels: dict[int, Vector] = defaultdict(lambda: np.zeros(encoder.dim))
    for source, target in pairs:
        num_claims = sum(other == target for _, other in pairs)
        labels[source] = labels[source] + vectors[target - NUM_SOURCE] / num_claims
        labels[target] = vectors[target - NUM_SOURCE]
    return {e: vector / max(1, np.linalg.norm(vector)) for e, vector in labels.items()}


def transcription(
    encoder: LightEA, triples: Triples, labels: dict[int, Vector]
) -> Vector:
    """Embeddings before whitening."""
    nothing = np.zeros(encoder.dim)

    def total(parts: Iterable[Vector]) -> Vector:
        return sum(parts, nothing)

    entities = range(len(encoder.embedding))
    relations = range(2 * encoder.num_relations)
    layers = [{e: labels.get(e, nothing) for e in entities}]
    relation_layers = [dict.fromkeys(relations, nothing)]
    heads, into = defaultdict(set), defaultdict(set)
    for head, relation, tail in triples:
        heads[relation].add(head)
        into[tail].add(relation)
    for _ in range(encoder.depth):
        now, of_relation = layers[-1], relation_layers[-1]
        sums = {e: total(of_relation[r] for r in into[e]) for e in entities}
        for head, _relation, tail in sorted(triples):
            sums[head] = sums[head] + now[tail] + encoder.self_weight * now[head]
        layers.append({e: unit(value) for e, value in sums.items()})
        relation_layers.append(
            {r: unit(total(now[h] for h in heads[r])) for r in relations}
        )

    by_entity, by_relation = (
        np.concatenate(list(part)) for part in encoder.projections()
    )
    out = {e: np.zeros(encoder.embedding.shape[1]) for e in entities}
    for head, relation, tail in sorted(triples):
        neighbour = unit(np.concatenate([layer[tail] for layer in layers]))
        described = unit(
            np.concatenate([layer[relation] for layer in relation_layers[1:]])
        )
        out[head] += (neighbour @ by_entity) * (described @ by_relation)
    return np.stack([unit(out[e]) for e in entities])


RELEASED = {"depth": 2, "self_weight": 2.0, "whitening": 0.0}


def make_encoder(pair: GraphPair, seed: int = 0, **settings: Any) -> LightEA:
    torch.manual_seed(seed)
    return LightEA(
        join_graphs(pair),
        **{"dim": 6, "output_dim": 8, **RELEASED, **settings},
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_embeddings_are_those_of_the_transcription(
    make_pair: Any, monkeypatch: pytest.MonkeyPatch, seed: int, depth: int
) -> None:
    monkeypatch.setattr(light_ea, "EDGES_PER_BLOCK", 5)
    pair = make_pair(seed)
    encoder = make_encoder(pair, seed, depth=depth, self_weight=0.7).double()
    encoder.propagate(LINKS)
    expected = transcription(encoder, directed_triples(pair), labels_of(encoder, LINKS))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(encoder().numpy(), expected, rtol=0, atol=1e-10)


def test_contradicting_labels(make_pair: Any) -> None:
    """Sources that claim the same target share its vector; one with two targets has both."""
    links = torch.tensor([[0, 9], [1, 9], [2, 9], [3, 12], [3, 13]])
    pair = make_pair(1)
    encoder = make_encoder(pair).double()
    features, vectors = encoder.label_features(links), encoder.seed_vectors()
    torch.testing.assert_close(features[9], vectors[0])
    for entity in (0, 1, 2):
        torch.testing.assert_close(features[entity], vectors[0] / 3)
    both = vectors[3] + vectors[4]
    torch.testing.assert_close(features[3], both / both.norm().clamp(min=1))
    encoder.propagate(links)
    expected = transcription(encoder, directed_triples(pair), labels_of(encoder, links))
    np.testing.assert_allclose(encoder().numpy(), expected, rtol=0, atol=1e-10)


def test_weights_scale_the_vectors_of_labels(make_pair: Any) -> None:
    """An entity with several links has the weight of the strongest one."""
    links = torch.tensor([[0, 9], [1, 10], [2, 10], [3, 12]])
    weights = torch.tensor([1.0, 0.25, 0.5, 0.0])
    pair = make_pair(1)
    encoder = make_encoder(pair).double()
    strongest = {0: 1, 9: 1, 1: 0.25, 2: 0.5, 10: 0.5, 3: 0, 12: 0}
    labels = {
        e: strongest[e] * vector for e, vector in labels_of(encoder, links).items()
    }
    features = encoder.label_features(links, weights).numpy()
    for entity, vector in labels.items():
        np.testing.assert_allclose(features[entity], vector, rtol=0, atol=1e-12)
    encoder.propagate(links, weights)
    expected = transcription(encoder, directed_triples(pair), labels)
    np.testing.assert_allclose(encoder().numpy(), expected, rtol=0, atol=1e-10)
    encoder.propagate(links, torch.ones(len(links)))
    weighted = encoder().clone()
    encoder.propagate(links)
    assert torch.equal(encoder(), weighted)


def test_single_precision_is_near_the_double(make_pair: Any) -> None:
    single, double = (make_encoder(make_pair(2), whitening=0.5) for _ in range(2))
    single.propagate(LINKS)
    double.double().propagate(LINKS)
    torch.testing.assert_close(single().double(), double(), rtol=0, atol=1e-4)


def test_entities_no_label_reaches_stay_zero(make_pair: Any) -> None:
    encoder = make_encoder(make_pair(0), whitening=0.5)
    encoder.propagate(LINKS)
    isolated = [7, 8, 17, 18]
    assert not encoder()[isolated].any()
    assert torch.isfinite(encoder()).all()
    assert encoder().norm(dim=1).max() == pytest.approx(1)


def test_graphs_without_triples_and_no_links() -> None:
    none = np.zeros((0, 3), dtype=np.int64)
    graph = KnowledgeGraph(none, 3, 2)
    pair = GraphPair("bare", graph, graph, links=np.zeros((0, 2), dtype=np.int64))
    encoder = make_encoder(pair, whitening=0.5)
    for links in (torch.tensor([[0, 3]]), torch.zeros(0, 2, dtype=torch.long)):
        encoder.propagate(links)
        assert not encoder().any()


def test_seed_vectors_are_unit_and_nearly_orthogonal() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1]]), 200, 1)
    pair = GraphPair("wide", graph, graph, links=np.zeros((0, 2), dtype=np.int64))
    vectors = make_encoder(pair, dim=512).seed_vectors()
    cosines = vectors @ vectors.T
    torch.testing.assert_close(cosines.diagonal(), torch.ones(200))
    apart = cosines[~torch.eye(200, dtype=torch.bool)]
    assert apart.abs().max() < 0.3
    assert float(apart.std()) == pytest.approx(512**-0.5, rel=0.05)


def test_sketch_keeps_dot_products_of_the_outer_products(make_pair: Any) -> None:
    """A wide sketch's cosines approach those of the whole outer products."""
    torch.manual_seed(0)
    encoder = make_encoder(make_pair(3), dim=4, depth=1, output_dim=200_000)
    entities, relations = torch.randn(19, 4), torch.randn(12, 4)
    matrices = torch.randn(2, 4, 200_000)
    sketch = encoder._joined(entities @ matrices[0], relations @ matrices[1])
    outer = torch.zeros(19, 16)
    for row, col, edge_set in zip(
        encoder.edges.rows.tolist(),
        encoder.edges.cols.tolist(),
        encoder.edge_sets,
        strict=True,
    ):
        inside = encoder.members.cols[encoder.members.rows == edge_set]
        described = relations[inside.long()].sum(0)
        outer[row] += torch.outer(entities[col], described).flatten()
    expected = outer @ outer.T
    found = sketch @ sketch.T / 200_000
    torch.testing.assert_close(
        found, expected, rtol=0, atol=0.03 * float(expected.max())
    )


def test_labels_and_seed_decide_alone(make_pair: Any) -> None:
    pair = make_pair(0)
    first, again, other = (
        make_encoder(pair),
        make_encoder(pair),
        make_encoder(pair, seed=1),
    )
    for encoder in (first, again, other):
        torch.manual_seed(
            int(torch.randint(100, ()))
        )  # the global generator is not asked
        encoder.propagate(LINKS[:2])
    assert torch.equal(first(), again())
    assert not torch.allclose(first(), other())
    again.propagate(LINKS)
    assert not torch.allclose(first(), again())
    again.propagate(LINKS[:2].flip(0))
    torch.testing.assert_close(first(), again())


def test_a_checkpoint_holds_embeddings_and_seeds(make_pair: Any) -> None:
    first, other = make_encoder(make_pair(0)), make_encoder(make_pair(0), seed=1)
    first.propagate(LINKS)
    other.load_state_dict(first.state_dict())
    assert torch.equal(first(), other())
    for encoder in (first, other):
        encoder.propagate(LINKS[1:])
    assert torch.equal(first(), other())
    assert set(first.state_dict()) == {"embedding", "draw_seeds"}


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_whitening_scales_directions_by_their_mass(strength: float) -> None:
    torch.manual_seed(0)
    rows = torch.randn(500, 4, dtype=torch.float64) * torch.tensor([1.0, 0.7, 0.4, 0.2])
    moment = (rows.T @ rows / 500).numpy()
    power = np.linalg.eigh(moment)
    root = (
        power.eigenvectors * power.eigenvalues ** (-strength / 2) @ power.eigenvectors.T
    )
    expected = rows.numpy() @ root
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(whitened(rows, strength).numpy(), expected, atol=1e-10)


@pytest.mark.gpu
def test_cuda_gives_the_same(make_pair: Any, cuda: torch.device) -> None:
    here, there = (make_encoder(make_pair(1), whitening=0.5) for _ in range(2))
    here.propagate(LINKS)
    there.to(cuda).propagate(LINKS.to(cuda))
    torch.testing.assert_close(there().cpu(), here(), rtol=0, atol=1e-4)


def test_an_encoder_that_is_trained_is_refused(make_pair: Any) -> None:
    encoder = RREA(join_graphs(make_pair()), dim=4)
    with pytest.raises(ConfigError, match="RREA cannot propagate labels"):
        LabelPropagation()(encoder, torch.tensor([[0, 9]]))


def test_weights_without_an_optimiser_are_refused(make_pair: Any) -> None:
    encoder = RREA(join_graphs(make_pair()), dim=4)
    with pytest.raises(ConfigError, match=r"it needs a model\.optimizer"):
        AlignmentModule(encoder, LabelPropagation(), None, num_source=9, num_target=10)


def test_fits_without_an_optimiser_follow_the_labels(make_pair: Any) -> None:
    encoder = LightEA(join_graphs(make_pair()), dim=4, output_dim=6)
    module = AlignmentModule(
        encoder, LabelPropagation(), None, num_source=9, num_target=10
    )
    twin = LightEA(join_graphs(make_pair()), dim=4, output_dim=6)
    twin.load_state_dict(encoder.state_dict())
    data = LabelDataModule(np.array([[0, 0], [1, 1]]), num_source=9)
    twin.propagate(
        data.links
    )  # torch warns once of its sparse format, which is not the point
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quieten_lightning()
        for links in (np.array([[0, 0], [1, 1]]), np.array([[2, 3]])):
            data.relabel([(links, None)])
            fit_members(module, data, (0,), 1)
            twin.propagate(data.links)
            assert twin().any()
            assert torch.equal(torch.cat(module.embeddings()), twin())
    assert not caught, [str(warning.message) for warning in caught]
    assert module.losses == [(1, 0.0, "loss"), (2, 0.0, "loss")]
    assert module.configure_optimizers() == []


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_links_are_passed_if_wanted(weighted: bool, make_pair: Any) -> None:
    links, weights = torch.tensor([[0, 9], [1, 10]]), torch.tensor([1.0, 0.1])
    encoder = LightEA(join_graphs(make_pair()), dim=6, output_dim=8)
    objective = LabelPropagation(weighted=weighted)
    objective.weigh(weights)
    objective(encoder, links)
    found = encoder().clone()
    encoder.propagate(links, weights if weighted else None)
    assert torch.equal(encoder(), found)
    encoder.propagate(links, None if weighted else weights)
    assert not torch.equal(encoder(), found)
