"""The library: what its examples show, and what it refuses."""

import doctest
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import emea.aligner
from emea.aligner import Aligner, graph_of, read_graph, read_links
from emea.data.synthetic import synthetic_pair
from emea.errors import ConfigError, DataError, UserError
from emea.pipeline.finished_run import load_run

Triples = list[tuple[str, str, str]]
QUICK = ["em.iterations=1", "trainer=cpu"]


@pytest.fixture(scope="module")
def example() -> tuple[Triples, Triples, list[tuple[str, str]]]:
    """Two graphs by name, and all links between them."""
    pair = synthetic_pair(num_entities=120, seed=1)
    sides = []
    for side, graph in (("s", pair.source), ("t", pair.target)):
        sides.append([(f"{side}{h}", f"{side}r{r}", f"{side}{t}") for h, r, t in graph.triples])
    named = {entity for triples in sides for head, _, tail in triples for entity in (head, tail)}
    links = [(f"s{one}", f"t{other}") for one, other in pair.links.tolist()]
    return sides[0], sides[1], [link for link in links if named.issuperset(link)]


@pytest.fixture(scope="module")
def fitted(example: tuple[Triples, Triples, list[tuple[str, str]]]) -> Aligner:
    source, target, links = example
    aligner = Aligner(model="lightea", em="dual", settings=QUICK)
    return aligner.fit(graph_of(source), graph_of(target), links[:40])


def test_the_example_of_the_docstring() -> None:
    assert doctest.testmod(emea.aligner).failed == 0


def test_given_links_are_kept_and_others_found(
    fitted: Aligner, example: tuple[Triples, Triples, list[tuple[str, str]]]
) -> None:
    _, _, links = example
    found = {match.source: match.target for match in fitted.predict()}
    held_out = fitted._fitted.split.supervision.validation
    names = {fitted._fitted.pair.source.entity_name(one) for one in held_out[:, 0]}
    assert all(found[one] == other for one, other in links[:40] if one not in names)
    right = [found[one] == other for one, other in links[40:]]
    assert sum(right) > len(right) / 3


def test_a_threshold_leaves_the_improbable_out(fitted: Aligner) -> None:
    every, some = fitted.predict(), fitted.predict(threshold=0.9)
    assert len(every) == len(some)
    for match, kept in zip(every, some, strict=True):
        assert kept.target == (match.target if match.probability >= 0.9 else None)
    assert any(match.target is None for match in some)


def test_numbers_of_numpy_are_numbers(fitted: Aligner) -> None:
    plain = fitted.predict(top_k=2, threshold=0.5)
    assert fitted.predict(top_k=np.int64(2), threshold=np.float32(0.5)) == plain  # type: ignore[arg-type]


def test_candidates_come_best_first(fitted: Aligner) -> None:
    for match in fitted.predict(top_k=3):
        probs = [prob for _, prob in match.candidates]
        assert probs == sorted(probs, reverse=True)
        assert len(probs) <= 3


def test_a_pair_is_explained_after_the_run_is_gone(fitted: Aligner) -> None:
    match = max(fitted.predict(), key=lambda match: match.probability)
    assert match.target is not None
    explanation = fitted.explain(match.source, match.target)
    assert explanation.answer is not None
    assert explanation.answer.name == match.target
    lines = fitted.why(match.source, match.target).splitlines()
    assert match.target in lines[0]
    assert not any(line.endswith(" ") for line in lines)


def test_a_folder_keeps_the_run(
    example: tuple[Triples, Triples, list[tuple[str, str]]], tmp_path: Path
) -> None:
    source, target, links = example
    aligner = Aligner(model="lightea", em="none", settings=["trainer=cpu"], folder=tmp_path)
    aligner.fit(graph_of(source), graph_of(target), links[:40])
    assert (tmp_path / "alignment.tsv").exists()
    assert load_run(tmp_path).pair.name == "pair"


def test_graphs_come_from_files(
    example: tuple[Triples, Triples, list[tuple[str, str]]], tmp_path: Path
) -> None:
    file = tmp_path / "graph.tsv"
    file.write_text("".join("\t".join(triple) + "\n" for triple in example[0]))
    read, made = read_graph(file), graph_of(example[0])
    assert read.num_triples == made.num_triples
    assert sorted(read.entity_names or ()) == sorted(made.entity_names or ())


def test_few_links_and_early_stopping(
    example: tuple[Triples, Triples, list[tuple[str, str]]],
) -> None:
    source, target, links = example
    aligner = Aligner(model="alinet", em="none", settings=["trainer=cpu"])
    with pytest.raises(ConfigError, match=r"or model\.early_stopping=null"):
        aligner.fit(graph_of(source), graph_of(target), links[:3])


def test_what_cannot_be_done_is_told() -> None:
    graph = graph_of([("a", "r", "b")])
    first, second = r"number 1: source entity nobody", r"number 2: target entity elsewhere"
    with pytest.raises(DataError, match=f"{first} is not in its graph; the links, {second}"):
        Aligner().fit(graph, graph, [("nobody", "a"), ("b", "elsewhere")])
    with pytest.raises(DataError, match="number 2: source entity a is already linked"):
        Aligner().fit(graph, graph, [("a", "a"), ("a", "b")])
    with pytest.raises(UserError, match="call fit"):
        Aligner().predict()
    with pytest.raises(UserError, match="call fit"):
        Aligner().explain("a", "b")
    with pytest.raises(DataError, match="at least one triple"):
        graph_of([])


@pytest.mark.parametrize("row", [("a", "r"), ("a", 1, "b"), ("a", "r", "b", "c")])
def test_a_triple_has_three_names(row: Any) -> None:
    with pytest.raises(DataError, match="each a str, got"):
        graph_of([("a", "r", "b"), row])


def test_triples_may_be_rows_of_an_array() -> None:
    rows = [["a", "r", "b"], ["b", "r", "c"]]
    for given in (rows, np.array(rows)):
        assert graph_of(given).entity_names == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"threshold": 2.0}, "export.threshold"),
        ({"threshold": math.nan}, "export.threshold"),
        ({"target_precision": 1.5}, "export.target_precision"),
        ({"threshold": "half"}, "export.threshold must be a number from 0 to 1, got half"),
        ({"threshold": True}, "export.threshold must be a number"),
        ({"threshold": object()}, "object.* is not a supported primitive type"),
        ({"target_precision": [0.9]}, "export.target_precision must be a number"),
        ({"top_k": -1}, "export.top_k"),
        ({"top_k": 0}, "export.top_k must be a whole number of at least 1, got 0"),
        ({"top_k": 2.5}, "export.top_k must be a whole number of at least 1, got 2.5"),
        ({"top_k": 2.0}, "export.top_k must be a whole number of at least 1, got 2.0"),
        ({"top_k": "3"}, "export.top_k must be a whole number"),
        ({"threshold": 0.5, "target_precision": 0.9}, "leave export.threshold out"),
    ],
)
def test_answers_that_nobody_can_give(fitted: Aligner, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        fitted.predict(**asked)


@pytest.fixture(scope="module")
def choosy(example: tuple[Triples, Triples, list[tuple[str, str]]]) -> Aligner:
    source, target, links = example
    chosen = ["export.threshold=0.9", "export.top_k=3"]
    aligner = Aligner(model="lightea", em="dual", settings=[*QUICK, *chosen])
    return aligner.fit(graph_of(source), graph_of(target), links[:40])


def test_what_is_not_given_is_as_the_settings_have_it(fitted: Aligner, choosy: Aligner) -> None:
    assert choosy.predict() == fitted.predict(top_k=3, threshold=0.9)
    assert choosy.predict(top_k=1, threshold=0) == fitted.predict()
    assert choosy.predict(target_precision=0.5) == fitted.predict(top_k=3, target_precision=0.5)


def test_odd_names_and_other_random_numbers(
    example: tuple[Triples, Triples, list[tuple[str, str]]],
) -> None:
    def odd(name: str) -> str:
        return f"{name}\t\n"

    source, target, links = example
    source = [(odd(head), relation, odd(tail)) for head, relation, tail in source]
    turned = [(other, odd(one)) for one, other in links[:40]]
    state = torch.get_rng_state()
    aligner = Aligner(model="lightea", em="none", settings=["trainer=cpu"])
    aligner.fit(graph_of(source), graph_of(target), [*turned, turned[0]])
    assert torch.equal(torch.get_rng_state(), state)
    match = aligner.predict()[0]
    assert match.target is not None
    assert aligner.explain(match.source, match.target).answer is not None


def test_links_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "seeds.tsv"
    file.write_text("source\ttarget\na\tx\nb\ty\n")
    assert read_links(file) == [("a", "x"), ("b", "y")]
    table = tmp_path / "seeds.sssom.tsv"
    table.write_text("#curie_map:\n#  A: http://a/\nsubject_id\tobject_id\nA:1\thttp://b/1\n")
    assert read_links(table) == [("http://a/1", "http://b/1")]
