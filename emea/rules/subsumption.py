"""Probabilities that a relation of one graph is included in a relation of the other."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import NeighbourJoin


@dataclass(frozen=True, eq=False)
class Subsumption:
    """Holds ``Pr(r in r')`` and ``Pr(r' in r)`` for all pairs of relations that occur together.

    Args:
        keys: One key ``r * num_target_relations + r'`` per pair of relations, ascending.
        source_in_target: Pr(r in r') of each key.
        target_in_source: Pr(r' in r) of each key.
        num_target_relations: Number of directed relations of the target graph.
    """

    keys: Tensor
    source_in_target: Tensor
    target_in_source: Tensor
    num_target_relations: int

    def of(self, relation: Tensor, target_relation: Tensor) -> tuple[Tensor, Tensor]:
        """Return both probabilities for each pair of relations; 0 if they never occur together."""
        keys = relation * self.num_target_relations + target_relation
        if not len(self.keys):
            zeros = torch.zeros(len(keys), device=keys.device)
            return zeros, zeros
        position = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        seen = (self.keys[position] == keys).to(self.source_in_target.dtype)
        return self.source_in_target[position] * seen, self.target_in_source[position] * seen

    def as_dict(self) -> dict[tuple[int, int], tuple[float, float]]:
        """Return both probabilities by (r, r')."""
        pairs = [divmod(key, self.num_target_relations) for key in self.keys.tolist()]
        forth, back = self.source_in_target.tolist(), self.target_in_source.tolist()
        return dict(zip(pairs, zip(forth, back, strict=True), strict=True))


def estimate_subsumption(
    join: NeighbourJoin,
    beliefs: Beliefs,
    source: DirectedTriples,
    target: DirectedTriples,
    sizes: tuple[Tensor, Tensor] | None = None,
    neighbours: Beliefs | None = None,
) -> Subsumption:
    """Return the expected share of a relation's triples that hold with the other relation.

    A triple r(h, t) counts for r' by the probability that h and t are matched to the ends of a
    triple of r'. The same applies to a triple r'(h', t') for r, which counts at most once even if
    several source entities claim its ends.

    Args:
        join: Join of the candidates.
        beliefs: Probabilities of the candidates.
        source: The source graph.
        target: The target graph.
        sizes: Denominators of the shares, for each directed relation of both graphs; by default
            the number of all triples, as in the released code of EMEA.
        neighbours: Beliefs to which the join's neighbour slots refer; ``None`` means ``beliefs``.
    """
    source_sizes, target_sizes = sizes or (source.relation_sizes, target.relation_sizes)
    of_neighbours = (neighbours or beliefs).probs[join.neighbour, join.neighbour_slot]
    weight = beliefs.probs[join.entity, join.slot] * of_neighbours
    pair = join.relation * target.num_directed + join.target_relation
    keys, index = torch.unique(pair, return_inverse=True)
    matched = weight.new_zeros(len(keys)).index_add_(0, index, weight)
    of_triples = once_each(weight, index, join.target_pair, len(target.pair_heads), len(keys))
    of_source = source_sizes[keys // target.num_directed]
    of_target = target_sizes[keys % target.num_directed]
    return Subsumption(
        keys=keys,
        source_in_target=share_of(matched, of_source),
        target_in_source=share_of(of_triples, of_target),
        num_target_relations=target.num_directed,
    )


def matched_sizes(triples: DirectedTriples, probs: Tensor) -> Tensor:
    """Return the expected number of triples of each directed relation with matched ends.

    Args:
        triples: A graph.
        probs: ``[num_entities]`` probability of each entity's match, 0 if it has no match.
    """
    per_pair = probs[triples.pair_heads] * probs[triples.pair_tails]
    weight = per_pair.index_select(0, triples.pair_of_triple)
    return weight.new_zeros(triples.num_directed).index_add_(0, triples.relations, weight)


def once_each(weight: Tensor, index: Tensor, edge: Tensor, num_edges: int, size: int) -> Tensor:
    """Return the sum of the weights by index, in which an edge counts at most once.

    Args:
        weight: ``[n]`` weights.
        index: ``[n]`` index of each weight.
        edge: ``[n]`` number of each weight's edge.
        num_edges: Number of all edges.
        size: Number of indices.
    """
    counts = (weight > 0).nonzero().squeeze(1)  # hard beliefs leave only a few rows
    weight, index, edge = weight[counts], index[counts], edge[counts]
    claims, claim = torch.unique(index * num_edges + edge, return_inverse=True)
    total = weight.new_zeros(len(claims)).index_add_(0, claim, weight).clamp_(max=1)
    return weight.new_zeros(size).index_add_(0, claims // max(1, num_edges), total)


def share_of(matched: Tensor, sizes: Tensor) -> Tensor:
    """Return the matched share of each size, at most 1."""
    # without triples that have matched ends, the share is 0 instead of 0 / 0
    return torch.where(matched > 0, matched / sizes, 0.0).clamp_(max=1)
