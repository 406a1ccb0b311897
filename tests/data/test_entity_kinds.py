import numpy as np

from emea.data.entity_kinds import OWL, RDF, RDFS, EntityKind, entity_kinds
from emea.data.graph import KnowledgeGraph

INDIVIDUAL, CLASS, PROPERTY = EntityKind


def kinds(*statements: tuple[str, str, str]) -> dict[str, EntityKind]:
    entities = sorted({end for head, _, tail in statements for end in (head, tail)})
    relations = sorted({relation for _, relation, _ in statements})
    triples = np.array(
        [
            (entities.index(h), relations.index(r), entities.index(t))
            for h, r, t in statements
        ]
    )
    graph = KnowledgeGraph(triples, len(entities), len(relations), entities, relations)
    return dict(
        zip(entities, map(EntityKind, entity_kinds(graph).tolist()), strict=True)
    )


def test_the_object_of_a_type_is_a_class() -> None:
    found = kinds(("berlin", f"{RDF}type", "City"), ("berlin", "in", "germany"))
    assert found == {"berlin": INDIVIDUAL, "City": CLASS, "germany": INDIVIDUAL}


def test_declared_classes_and_properties() -> None:
    found = kinds(
        ("City", f"{RDF}type", f"{OWL}Class"),
        ("mayor", f"{RDF}type", f"{OWL}ObjectProperty"),
        ("x", f"{RDF}type", "City"),
    )
    assert (found["City"], found["mayor"], found["x"]) == (CLASS, PROPERTY, INDIVIDUAL)


def test_schema_relations_decide_for_both_ends() -> None:
    found = kinds(
        ("City", f"{RDFS}subClassOf", "Place"),
        ("capital", f"{RDFS}subPropertyOf", "city"),
        ("mayor", f"{RDFS}domain", "Town"),
    )
    assert found == {
        **dict.fromkeys(("City", "Place", "Town"), CLASS),
        **dict.fromkeys(("capital", "city", "mayor"), PROPERTY),
    }


def test_a_graph_without_relation_names_has_individuals() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
    assert entity_kinds(graph).tolist() == [INDIVIDUAL, INDIVIDUAL]
