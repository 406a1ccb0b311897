"""Inclusions between the relations and between the classes of two matched graphs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.data.graph import KnowledgeGraph
from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import TargetEdges, expand_ranges, join_neighbours, run_ends
from emea.rules.subsumption import estimate_subsumption, matched_sizes, once_each, share_of

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
    ours, theirs = DirectedTriples(source), DirectedTriples(target)
    edges, probs = TargetEdges(theirs), answer.probs[:, 0]
    join = join_neighbours(ours, theirs, edges, answer, filled=answer.probs > 0)
    sizes = (
        matched_sizes(ours, probs) + SMOOTHING,
        matched_sizes(theirs, _claimed(answer, target.num_entities)) + SMOOTHING,
    )
    found = estimate_subsumption(join, answer, ours, theirs, sizes)
    is_forward = found.keys < source.num_relations * theirs.num_directed
    rows = (join.relation < source.num_relations).nonzero().squeeze(1)
    heads, tails = join.entity[rows], join.neighbour[rows]
    keys = join.relation[rows] * theirs.num_directed + join.target_relation[rows]
    counts, examples = _examples(keys, probs[heads] * probs[tails], heads, tails, answer)
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
    counterparts, probs = answer.targets[entities, 0], answer.probs[entities, 0]
    known = (probs > 0) & (num_types[counterparts] > 0)
    entities, classes, probs = entities[known], classes[known], probs[known]
    counterparts = counterparts[known]
    index, place = expand_ranges(run_ends(num_types)[counterparts], num_types[counterparts])
    keys, inverse = torch.unique(
        classes[index] * target.num_entities + target_classes[place], return_inverse=True
    )
    weight = probs[index]
    size = probs.new_zeros(source.num_entities).index_add_(0, classes, probs)
    typed = Beliefs(answer.targets, answer.probs.clone())
    typed.probs[torch.bincount(entities, minlength=source.num_entities) == 0] = 0
    of_target = _claimed(typed, target.num_entities)[others]
    target_size = probs.new_zeros(target.num_entities).index_add_(0, target_classes, of_target)
    matched = probs.new_zeros(len(keys)).index_add_(0, inverse, weight)
    once = once_each(weight, inverse, counterparts[index], target.num_entities, len(keys))
    sources, targets = keys // target.num_entities, keys % target.num_entities
    counts, examples = _examples(keys[inverse], weight, entities[index], entities[index], answer)
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
    return counts, torch.stack([*ends, *(answer.targets[end, 0] for end in ends)], dim=1)
