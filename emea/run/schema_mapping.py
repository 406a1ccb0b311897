"""Computes which relations and classes of the two graphs correspond, from the answer of a run."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from emea.answer.decision import Decision
from emea.answer.schema import Mapping, Schema, TermMatch
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.literals.similar_items import ALL_WORDS
from emea.matching.beliefs import Beliefs
from emea.rules.literal_rows import literal_rows, with_values
from emea.rules.subsumption import (
    TYPE_RELATIONS,
    TermInclusions,
    class_inclusions,
    relation_inclusions,
)

LEAST_LISTED = 0.1
"""Pairs of terms are left out if both inclusions are less probable than this."""


def schema_mapping(
    pair: GraphPair, decision: Decision, least_inclusion: float
) -> Schema:
    """Return the mapping of relations and classes that the matches of a run imply.

    Args:
        pair: The graphs, with the literals that the run used as evidence. Attributes are then
            mapped like relations.
        decision: The matches.
        least_inclusion: Probability from which an inclusion is stated.
    """
    graphs = with_values(pair)
    answer = _answer(pair, decision)
    relations = relation_inclusions(graphs.source, graphs.target, answer)
    classes = class_inclusions(graphs.source, graphs.target, answer)
    terms = _rows(
        relations,
        least_inclusion,
        *map(_relation_names, (graphs.source, graphs.target)),
    )
    return Schema(
        pair.name,
        # the words of all values are not an attribute of the data
        [row for row in terms if ALL_WORDS not in (row.source, row.target)],
        _rows(
            classes, least_inclusion, *map(_class_names, (graphs.source, graphs.target))
        ),
    )


def _answer(pair: GraphPair, decision: Decision) -> Beliefs:
    """Return the matches of entities, and those of literal values, with one slot each."""
    answer = decision.answer
    targets = answer.best_targets().cpu().unsqueeze(1)
    probs = answer.probs.max(1, keepdim=True).values.double().cpu()
    literals = literal_rows(pair)
    if literals is None:
        return Beliefs(targets, probs)
    return Beliefs(
        torch.cat([targets, literals.targets[:, :1]]),
        torch.cat([probs, literals.probs[:, :1]]),
    )


Names = tuple[Callable[[int], str], Callable[[int], str], Callable[[int], str]]
"""Names of terms, of entities, and of the relation in an example, by id of entity or term."""


def _relation_names(graph: KnowledgeGraph) -> Names:
    return graph.relation_name, graph.entity_name, graph.relation_name


def _class_names(graph: KnowledgeGraph) -> Names:
    types = [name for name in graph.relation_names or () if name in TYPE_RELATIONS]
    return graph.entity_name, graph.entity_name, lambda _: types[0]


def _rows(
    found: TermInclusions, least: float, ours: Names, theirs: Names
) -> list[TermMatch]:
    """Return the pairs of terms by name, most evidence first."""
    listed = (
        torch.maximum(found.source_in_target, found.target_in_source) >= LEAST_LISTED
    )
    mappings = _mappings(found, least)
    columns = (
        *(found.sources, found.targets, found.is_inverse),
        *(
            found.source_in_target,
            found.target_in_source,
            found.num_matched,
            found.examples,
        ),
    )
    rows = []
    for place, values in zip(
        listed.nonzero().squeeze(1).tolist(),
        zip(*(column[listed].tolist() for column in columns), strict=True),
        strict=True,
    ):
        (
            source,
            target,
            inverse,
            forth,
            back,
            evidence,
            (head, tail, other_head, other_tail),
        ) = values
        rows.append(
            TermMatch(
                ours[0](source),
                theirs[0](target),
                inverse,
                mappings[place],
                forth,
                back,
                evidence,
                (ours[1](head), ours[2](source), ours[1](tail)),
                (theirs[1](other_head), theirs[2](target), theirs[1](other_tail)),
            )
        )
    return sorted(
        rows, key=lambda row: (-row.evidence, row.source, row.target, row.inverse)
    )


def _mappings(found: TermInclusions, least: float) -> Sequence[Mapping]:
    """Return what is stated about each pair.

    Two terms are equivalent if both inclusions are probable enough and no other pair of one of
    them, read in the same direction, is more probable. Otherwise the more probable inclusion is
    stated.
    """
    forth = found.source_in_target
    back = found.target_in_source
    score = (forth * back).sqrt()
    sources, targets = (
        2 * terms + found.is_inverse for terms in (found.sources, found.targets)
    )
    is_best = (score >= _largest(sources, score)) & (score >= _largest(targets, score))
    is_equivalent = is_best & (torch.minimum(forth, back) >= least)
    is_narrower = (forth >= least) & (forth >= back)
    is_broader = (back >= least) & (back > forth)
    flags = (is_equivalent, is_narrower, is_broader)
    return [
        "equivalent"
        if equal
        else "narrower"
        if narrower
        else "broader"
        if broader
        else ""
        for equal, narrower, broader in zip(
            *(flag.tolist() for flag in flags), strict=True
        )
    ]


def _largest(terms: Tensor, score: Tensor) -> Tensor:
    """Return the largest score among the pairs that have the same term."""
    size = int(terms.max()) + 1 if len(terms) else 0
    return score.new_zeros(size).scatter_reduce_(0, terms, score, "amax")[terms]
