"""Probabilities that a relation or class of one graph is included in one of the other."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.data.graph import KnowledgeGraph
from emea.kernels.flat_groups import expand_ranges, run_ends
from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import NeighbourJoin, join_neighbours

SMOOTHING = 0.5
"""Number added to the matched triples or instances, as in ``em=dual``: few of them count less."""

TYPE_RELATIONS = frozenset(
    {
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
        "http://www.wikidata.org/prop/direct/P31",
        "rdf:type",
        "wdt:P31",
    }
)
"""Relations that lead from an entity to its class."""


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
        return self.source_in_target[position] * seen, self.target_in_source[
            position
        ] * seen

    def as_dict(self) -> dict[tuple[int, int], tuple[float, float]]:
        """Return both probabilities by (r, r')."""
        pairs = [divmod(key, self.num_target_relations) for key in self.keys.tolist()]
        forth = self.source_in_target.tolist()
        back = self.target_in_source.tolist()
        return dict(zip(pairs, zip(forth, back, strict=True), strict=True))


def estimate_subsumption(
    join: NeighbourJoin,
    beliefs: Beliefs,
    source: DirectedTriples,
    target: DirectedTriples,
    *,
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
    of_triples = once_each(
        weight, index, join.target_pair, len(target.pair_heads), len(keys)
    )
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
    return weight.new_zeros(triples.num_directed).index_add_(
        0, triples.relations, weight
    )


def once_each(
    weight: Tensor, index: Tensor, edge: Tensor, num_edges: int, size: int
) -> Tensor:
    """Return the sum of the weights by index, in which an edge counts at most once.

    Args:
        weight: ``[n]`` weights.
        index: ``[n]`` index of each weight.
        edge: ``[n]`` number of each weight's edge.
        num_edges: Number of all edges.
        size: Number of indices.
    """
    counts = (weight > 0).nonzero().squeeze(1)  # hard beliefs leave only a few rows
    weight = weight[counts]
    index = index[counts]
    edge = edge[counts]
    claims, claim = torch.unique(index * num_edges + edge, return_inverse=True)
    total = weight.new_zeros(len(claims)).index_add_(0, claim, weight).clamp_(max=1)
    return weight.new_zeros(size).index_add_(0, claims // max(1, num_edges), total)


def share_of(matched: Tensor, sizes: Tensor) -> Tensor:
    """Return the matched share of each size, at most 1."""
    # without triples that have matched ends, the share is 0 instead of 0 / 0
    return torch.where(matched > 0, matched / sizes, 0.0).clamp_(max=1)


@dataclass(frozen=True, eq=False)
class TermInclusions:
    """Holds all pairs of terms (relations or classes) that have a matched triple in common.

    Args:
        sources: ``[n]`` term of the source graph.
        targets: ``[n]`` term of the target graph.
        is_inverse: ``[n]`` whether the target relation is read from tail to head.
        source_in_target: ``[n]`` probability that the source term is included in the target term.
        target_in_source: ``[n]`` probability of the other inclusion.
        num_matched: ``[n]`` number of source triples whose counterpart has the target term.
        examples: ``[n, 4]`` the most probable of them: head and tail of the source triple, head
            and tail of the target triple.
    """

    sources: Tensor
    targets: Tensor
    is_inverse: Tensor
    source_in_target: Tensor
    target_in_source: Tensor
    num_matched: Tensor
    examples: Tensor


def relation_inclusions(
    source: KnowledgeGraph, target: KnowledgeGraph, answer: Beliefs
) -> TermInclusions:
    """Estimate inclusions of relations: shares of the triples whose two ends are matched.

    This is Eq. 12 of PARIS on the answer of a run. Each source relation is compared with each
    target relation and with its inverse.

    Args:
        source: The source graph.
        target: The target graph.
        answer: ``[num_source, 1]`` the target of each source entity; probability 0 means no match.
    """
    ours = DirectedTriples(source)
    theirs = DirectedTriples(target)
    probs = answer.probs[:, 0]
    join = join_neighbours(ours, theirs, answer, filled=answer.probs > 0)
    sizes = (
        matched_sizes(ours, probs) + SMOOTHING,
        matched_sizes(theirs, _claimed(answer, target.num_entities)) + SMOOTHING,
    )
    found = estimate_subsumption(join, answer, ours, theirs, sizes=sizes)
    # each inclusion exists in both directions of the relation; the inverse of both repeats it
    is_forward = found.keys < source.num_relations * theirs.num_directed
    rows = (join.relation < source.num_relations).nonzero().squeeze(1)
    heads = join.entity[rows]
    tails = join.neighbour[rows]
    keys = join.relation[rows] * theirs.num_directed + join.target_relation[rows]
    # how many matched triples each inclusion has, and the most probable one. If the target relation
    # is inverse, its example is written in the direction of the file
    counts, examples = _examples(
        keys, probs[heads] * probs[tails], heads, tails, answer
    )
    directed = found.keys[is_forward] % theirs.num_directed
    is_inverse = directed >= target.num_relations
    examples[is_inverse] = examples[is_inverse][:, [0, 1, 3, 2]]
    return TermInclusions(
        found.keys[is_forward] // theirs.num_directed,
        directed % target.num_relations,
        is_inverse,
        found.source_in_target[is_forward],
        found.target_in_source[is_forward],
        counts,
        examples,
    )


def class_inclusions(
    source: KnowledgeGraph, target: KnowledgeGraph, answer: Beliefs
) -> TermInclusions:
    """Estimate inclusions of classes: shares of the instances whose counterpart has a class.

    An instance counts by the probability of its match. An instance whose counterpart has no class
    does not count, because nothing is known about it.

    Args:
        source: The source graph. Its classes are the tails of ``TYPE_RELATIONS``.
        target: The target graph.
        answer: ``[num_source, 1]`` the target of each source entity; probability 0 means no match.
    """
    entities, classes = _types(source)
    others, target_classes = _types(target)
    num_types = torch.bincount(others, minlength=target.num_entities)
    counterparts = answer.targets[entities, 0]
    probs = answer.probs[entities, 0]
    known = (probs > 0) & (num_types[counterparts] > 0)
    entities = entities[known]
    classes = classes[known]
    probs = probs[known]
    counterparts = counterparts[known]
    # one row for each class of an instance and each class of its counterpart
    index, place = expand_ranges(
        run_ends(num_types)[counterparts], num_types[counterparts]
    )
    keys, inverse = torch.unique(
        classes[index] * target.num_entities + target_classes[place],
        return_inverse=True,
    )
    weight = probs[index]
    # the instances of each class
    size = probs.new_zeros(source.num_entities).index_add_(0, classes, probs)
    typed = Beliefs(answer.targets, answer.probs.clone())
    typed.probs[torch.bincount(entities, minlength=source.num_entities) == 0] = 0
    of_target = _claimed(typed, target.num_entities)[others]
    target_size = probs.new_zeros(target.num_entities).index_add_(
        0, target_classes, of_target
    )
    # instances that both classes have; a target instance with several claims counts once
    matched = probs.new_zeros(len(keys)).index_add_(0, inverse, weight)
    once = once_each(
        weight, inverse, counterparts[index], target.num_entities, len(keys)
    )
    sources = keys // target.num_entities
    targets = keys % target.num_entities
    counts, examples = _examples(
        keys[inverse], weight, entities[index], entities[index], answer
    )
    examples[:, 1], examples[:, 3] = sources, targets
    return TermInclusions(
        sources,
        targets,
        torch.zeros_like(keys, dtype=torch.bool),
        share_of(matched, size[sources] + SMOOTHING),
        share_of(once, target_size[targets] + SMOOTHING),
        counts,
        examples,
    )


def _types(graph: KnowledgeGraph) -> tuple[Tensor, Tensor]:
    """Return entity and class of each type triple, ascending and distinct."""
    names = graph.relation_names or ()
    wanted = [relation for relation, name in enumerate(names) if name in TYPE_RELATIONS]
    triples = torch.from_numpy(graph.triples.copy())
    rows = triples[torch.isin(triples[:, 1], torch.tensor(wanted, dtype=torch.int64))]
    keys = torch.unique(rows[:, 0] * graph.num_entities + rows[:, 2])
    return keys // graph.num_entities, keys % graph.num_entities


def _claimed(answer: Beliefs, num_target: int) -> Tensor:
    """Return ``[num_target]`` the probability that a target entity is matched."""
    total = answer.probs.new_zeros(num_target)
    return total.index_add_(0, answer.targets[:, 0], answer.probs[:, 0]).clamp_(max=1)


def _examples(
    keys: Tensor, weight: Tensor, heads: Tensor, tails: Tensor, answer: Beliefs
) -> tuple[Tensor, Tensor]:
    """Return the number of rows of each distinct key, and its most probable row as an example."""
    order = torch.argsort(weight, descending=True, stable=True)
    order = order[torch.argsort(keys[order], stable=True)]
    _, counts = torch.unique_consecutive(keys[order], return_counts=True)
    first = order[run_ends(counts)[:-1]]
    ends = heads[first], tails[first]
    return counts, torch.stack(
        [*ends, *(answer.targets[end, 0] for end in ends)], dim=1
    )
