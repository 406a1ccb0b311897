"""The choice of the method for graphs with literals and few or no links."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from omegaconf import DictConfig

from emea import Aligner
from emea.config.composition import composed
from emea.config.run_config import RunConfig
from emea.config.usual_settings import CPU_SETTINGS, LITERALS
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.settings import Cardinality
from emea.run.building import with_literals
from emea.run.method_choice import (
    LEAST_CONFIRMING,
    NO_VALIDATION,
    are_few,
    choose_method,
    is_judged_by_decoys,
    is_open,
    suited,
)
from tests.literals.pairs_with_values import graph_with_values, pair_with_values

NUM = 200


def graph(triples_per_entity: int, shift: int = 0) -> KnowledgeGraph:
    """Entities of which half have a name; the edges are the same for each shift of the ids."""
    ends = np.random.default_rng(3).integers(0, NUM, (triples_per_entity * NUM, 2))
    moved = (ends + shift) % NUM
    edges = [
        (int(a), 0, int(b))
        for (a, b), (c, d) in zip(moved, ends, strict=True)
        if c != d
    ]
    names = [
        ((entity + shift) % NUM, 0, f"name {entity}") for entity in range(NUM // 2)
    ]
    return graph_with_values(NUM, names, edges)


def pair(triples_per_entity: int, num_links: int = 0) -> GraphPair:
    made = pair_with_values(graph(triples_per_entity), graph(triples_per_entity, 7))
    entities = np.arange(num_links)
    return replace(made, links=np.stack([entities, (entities + 7) % NUM], axis=1))


Found = tuple[DictConfig, GraphPair, str | None]


def found_for(pair: GraphPair, *settings: str, is_open: bool = True) -> Found:
    """The configuration that suits a pair, with settings of the user."""

    def compose(usual: list[str]) -> DictConfig:
        return composed([*usual, "split=known", "tracking=none", *settings])

    found = suited(compose, pair, is_open, has_gpu=False)
    return compose(found.settings), found.pair, found.reason


@pytest.mark.parametrize(
    ("triples", "method"), [(4, "emea"), (1, "paris"), (0, "paris")]
)
def test_the_structure_decides(triples: int, method: str) -> None:
    config, graphs, reason = found_for(pair(triples))
    assert config.method.name == method and config.literals.name == "similar"
    assert graphs.literals is not None and reason is not None
    found = f"{graphs.literals.num_confirming:.1f} neighbours of a right pair agree"
    assert (found if triples else "too few neighbours can be compared") in reason
    assert ("EM with lightea" if method == "emea" else "PARIS") in reason


@pytest.mark.parametrize(
    ("num_confirming", "method"),
    [(LEAST_CONFIRMING, "emea"), (LEAST_CONFIRMING - 1e-6, "paris"), (0.0, "paris")],
)
def test_em_needs_enough_neighbours_that_agree(
    num_confirming: float, method: str
) -> None:
    found: Any = SimpleNamespace(num_confirming=num_confirming)
    settings, reason = choose_method(found, 0, CPU_SETTINGS)
    assert ("method=paris" in settings) == (method == "paris")
    assert reason.startswith("PARIS" if method == "paris" else "EM")


def test_the_user_decides_first() -> None:
    closed = found_for(pair(4), "model=rrea", is_open=is_open(["model=rrea"]))
    assert closed[0].model.name == "rrea" and closed[0].literals.name == "similar"
    assert closed[2] is None
    without = found_for(pair(4, 20), "literals=none")
    assert without[0].literals.name == "none" and without[1].literals is None
    for settings in (
        ["em.iterations=2"],
        ["method=paris"],
        ["ensemble=seeds"],
        ["decoding=greedy"],
    ):
        assert not is_open(settings)
    assert is_open(
        ["literals=equal", "seed=3", "data.iri_names=true", "export.threshold=0.5"]
    )


def test_links_join_the_anchors_until_there_are_enough() -> None:
    half = NUM // 2
    assert are_few(pair(4, max(half, 100) - 1)) and not are_few(pair(4, max(half, 100)))
    enough = found_for(pair(4, max(half, 100)))
    assert enough[0].literals.name == "none"
    config, _, reason = found_for(pair(4, 19))
    assert config.literals.name == "similar" and config.split.num_validation == 0
    assert reason is not None
    precise, _, _ = found_for(pair(4, 19), "export.target_precision=0.9")
    assert precise.split.num_validation > 0


def test_validation_links_are_held_out_if_they_are_needed() -> None:
    literals = with_literals(RunConfig.of(composed([LITERALS])), pair(4)).literals
    assert literals is not None
    settings, _ = choose_method(literals, 19, CPU_SETTINGS)
    assert settings == [*CPU_SETTINGS, LITERALS, NO_VALIDATION]
    for needs in ({"num_links": 19, "needs_validation": True}, {"num_links": 100}):
        assert (
            NO_VALIDATION not in choose_method(literals, usual=CPU_SETTINGS, **needs)[0]
        )


def test_the_library_chooses_in_the_same_way() -> None:
    names = [str(entity) for entity in range(NUM)]
    rich = [
        replace(one, entity_names=names) for one in (pair(4).source, pair(4).target)
    ]
    aligner = Aligner().fit(*rich)
    found = {match.source: match.target for match in aligner.predict()}
    right = [found[str(entity)] == str((entity + 7) % NUM) for entity in range(NUM)]
    assert "lightea" in repr(aligner) and np.mean(right) > 0.9
    assert np.mean(right[NUM // 2 :]) > 0.8  # these have no name


def literal_pair(**changed: Any) -> Any:
    """What the choice of decoys reads of a pair of tables."""
    texts = changed.pop("texts", (["a"], ["b"]))
    confirming = changed.pop("num_confirming", 0.0)
    sizes = changed.pop("sizes", (5000, 3000))
    vectors = changed.pop("vectors", ())
    usual = {
        "literals": SimpleNamespace(texts=texts, num_confirming=confirming),
        "cardinality": Cardinality.ONE_TO_ONE,
        "matched_kinds": None,
        "source": SimpleNamespace(num_entities=sizes[0], vectors=vectors),
        "target": SimpleNamespace(num_entities=sizes[1], vectors=vectors),
    }
    return SimpleNamespace(**(usual | changed))


@pytest.mark.parametrize(
    ("changed", "num_links", "expected"),
    [
        ({}, 0, True),
        ({}, 1499, True),
        ({}, 1500, False),  # half of the smaller side, here the target
        ({"sizes": (3000, 5000)}, 1500, False),
        ({"sizes": (150, 150)}, 99, True),
        ({"sizes": (150, 150)}, 100, False),
        ({"literals": None}, 0, False),
        ({"texts": (["a"], [])}, 0, False),
        ({"texts": ([], ["b"])}, 0, False),
        ({"cardinality": Cardinality.ONE_TO_MANY}, 0, False),
        ({"matched_kinds": ("class",)}, 0, False),
        ({"vectors": ("names",)}, 0, False),
        ({"num_confirming": LEAST_CONFIRMING}, 0, False),
        ({"num_confirming": LEAST_CONFIRMING - 0.1}, 0, True),
    ],
)
def test_when_decoys_judge(
    changed: dict[str, Any], num_links: int, expected: bool
) -> None:
    assert is_judged_by_decoys(literal_pair(**changed), num_links) is expected
