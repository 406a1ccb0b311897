"""Neighbourhood means against a loop over triples."""

from typing import Any

import torch

from emea.encoders.joint_graph import join_graphs
from emea.encoders.reflection_layers import NeighbourhoodMeans


def test_means_count_each_neighbour_and_relation_once(make_pair: Any) -> None:
    pair = make_pair(0)
    graph = join_graphs(pair)
    around: list[set[int]] = [{entity} for entity in range(graph.num_entities)]
    incident: list[set[int]] = [set() for _ in range(graph.num_entities)]
    shift, relation_shift = pair.source.num_entities, pair.source.num_relations
    for side, by, relation_by in ((pair.source, 0, 0), (pair.target, shift, relation_shift)):
        for head, relation, tail in side.triples.tolist():
            around[head + by].add(tail + by)
            around[tail + by].add(head + by)
            incident[head + by].add(relation + relation_by)
            incident[tail + by].add(relation + relation_by + graph.num_relations)
    generator = torch.Generator().manual_seed(0)
    entities = torch.randn(graph.num_entities, 3, generator=generator, dtype=torch.float64)
    relations = torch.randn(2 * graph.num_relations, 3, generator=generator, dtype=torch.float64)

    by_entity, by_relation = NeighbourhoodMeans(graph)(entities, relations)
    for entity in range(graph.num_entities):
        torch.testing.assert_close(by_entity[entity], entities[sorted(around[entity])].mean(0))
        found = sorted(incident[entity])
        expected = relations[found].mean(0) if found else torch.zeros(3).double()
        torch.testing.assert_close(by_relation[entity], expected)
