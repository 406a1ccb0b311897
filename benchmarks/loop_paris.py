"""Eq. 19 as a plain loop over candidates, for comparison with the vectorised rule."""

from collections import defaultdict

from emea.data.graph import KnowledgeGraph
from emea.matching.beliefs import Beliefs
from emea.rules.paris import PARIS

Neighbours = dict[int, list[tuple[int, int]]]


def neighbours_of(graph: KnowledgeGraph) -> Neighbours:
    """Return the (directed relation, neighbour) pairs of each entity."""
    found: Neighbours = defaultdict(list)
    for head, relation, tail in graph.triples.tolist():
        found[head].append((relation, tail))
        found[tail].append((relation + graph.num_relations, head))
    return found


def loop_values(
    entities: list[int],
    source: Neighbours,
    target: Neighbours,
    beliefs: Beliefs,
    rule: PARIS,
) -> list[list[float]]:
    """Return the rule's value of every candidate of the given entities."""
    targets, probs = beliefs.targets.tolist(), beliefs.probs.tolist()
    functional = rule.source.inverse_functionality.tolist()
    target_functional = rule.target.inverse_functionality.tolist()
    inclusion = rule.inclusions().as_dict()
    values = []
    for entity in entities:
        row = []
        for candidate in targets[entity]:
            doubt = 1.0
            for relation, neighbour in source[entity]:
                believed = dict(zip(targets[neighbour], probs[neighbour], strict=True))
                for target_relation, target_neighbour in target[candidate]:
                    prob = believed.get(target_neighbour, 0.0)
                    if prob:
                        forth, back = inclusion.get(
                            (relation, target_relation), (0.0, 0.0)
                        )
                        doubt *= 1 - back * functional[relation] * prob
                        doubt *= 1 - forth * target_functional[target_relation] * prob
            row.append(1 - doubt)
        values.append(row)
    return values
