"""Edges and literals of a graph by name."""

from emea.data.graph import KnowledgeGraph

Facts = set[tuple[str, str, str]]


def named_edges(graph: KnowledgeGraph) -> Facts:
    """Head, relation and tail of each triple."""
    names = graph.all_entity_names
    return {
        (names[h], graph.relation_name(r), names[t])
        for h, r, t in graph.triples.tolist()
    }


def named_literals(graph: KnowledgeGraph) -> Facts:
    """Entity, attribute and value of each literal, if the graph has any."""
    found, names = graph.attributes, graph.all_entity_names
    rows = [] if found is None else found.triples.tolist()
    return {(names[e], found.attribute_names[a], found.values[v]) for e, a, v in rows}
