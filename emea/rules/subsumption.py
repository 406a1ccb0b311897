"""How likely a relation of one graph is included in one of the other."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import NeighbourJoin


@dataclass(frozen=True, eq=False)
class Subsumption:
    """``Pr(r in r')`` and ``Pr(r' in r)`` for the relation pairs seen together.

    Args:
        keys: ``r * num_target_relations + r'``, ascending.
        source_in_target: Pr(r in r') of each key.
        target_in_source: Pr(r' in r) of each key.
        num_target_relations: directed relations of the target graph.
    """

    keys: Tensor
    source_in_target: Tensor
    target_in_source: Tensor
    num_target_relations: int

    def of(self, relation: Tensor, target_relation: Tensor) -> tuple[Tensor, Tensor]:
        """Both probabilities for each given pair of relations; 0 where never seen together."""
        keys = relation * self.num_target_relations + target_relation
        if not len(self.keys):
            zeros = torch.zeros(len(keys), device=keys.device)
            return zeros, zeros
        position = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        seen = (self.keys[position] == keys).to(self.source_in_target.dtype)
        return self.source_in_target[position] * seen, self.target_in_source[position] * seen

    def as_dict(self) -> dict[tuple[int, int], tuple[float, float]]:
        """Both probabilities by (r, r')."""
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
    """Expected share of a relation's triples whose counterpart holds with the other relation.

    A triple r(h, t) counts for r' by the probability that h and t are matched to the ends of a
    triple of r', and a triple r'(h', t') for r likewise: once at most, however many source
    entities claim its ends.

    Args:
        join: of the candidates.
        beliefs: their probabilities.
        source: the source graph.
        target: the target graph.
        sizes: what the shares are taken of, for each directed relation of either graph; by
            default *all* its triples, as in EMEA's released code.
        neighbours: beliefs to which the join's neighbour slots refer; ``None``: the same.
    """
    source_sizes, target_sizes = sizes or (source.relation_sizes, target.relation_sizes)
    of_neighbours = (neighbours or beliefs).probs[join.neighbour, join.neighbour_slot]
    weight = beliefs.probs[join.entity, join.slot] * of_neighbours
    pair = join.relation * target.num_directed + join.target_relation
    keys, index = torch.unique(pair, return_inverse=True)
    matched = weight.new_zeros(len(keys)).index_add_(0, index, weight)
    heads = beliefs.targets[join.entity, join.slot]
    tails = (neighbours or beliefs).targets[join.neighbour, join.neighbour_slot]
    of_triples = _once_each(weight, index, heads * target.num_entities + tails, len(keys))
    of_source = source_sizes[keys // target.num_directed]
    of_target = target_sizes[keys % target.num_directed]
    return Subsumption(
        keys=keys,
        source_in_target=_share(matched, of_source),
        target_in_source=_share(of_triples, of_target),
        num_target_relations=target.num_directed,
    )


def matched_sizes(triples: DirectedTriples, probs: Tensor) -> Tensor:
    """Expected triples of each directed relation whose two ends are matched.

    Args:
        triples: a graph.
        probs: ``[num_entities]`` probability of each entity's match, 0 where it has none.
    """
    per_pair = probs[triples.pair_heads] * probs[triples.pair_tails]
    weight = torch.repeat_interleave(per_pair, triples.pair_sizes)
    return weight.new_zeros(triples.num_directed).index_add_(0, triples.relations, weight)


def _once_each(weight: Tensor, index: Tensor, edge: Tensor, size: int) -> Tensor:
    """``[size]`` sum of the weights by index, in which no edge counts more than once."""
    counts = weight > 0  # with hard beliefs few rows do
    weight, index = weight[counts], index[counts]
    edges, edge = torch.unique(edge[counts], return_inverse=True)
    claims, claim = torch.unique(index * len(edges) + edge, return_inverse=True)
    total = weight.new_zeros(len(claims)).index_add_(0, claim, weight).clamp_(max=1)
    return weight.new_zeros(size).index_add_(0, claims // max(1, len(edges)), total)


def _share(matched: Tensor, sizes: Tensor) -> Tensor:
    # where no triple has matched ends, nothing is included: a share of nothing is no number
    return torch.where(matched > 0, matched / sizes, 0.0).clamp_(max=1)
