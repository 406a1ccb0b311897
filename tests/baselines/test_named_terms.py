"""Terms of ontologies: structure chooses between pairs whose names match, and adds no others."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from emea.baselines.paris_reasoner import ParisReasoner
from emea.data.graph_pair import GraphPair
from emea.data.sources.own_files import read_own_files
from emea.literals.match_literals import EqualLiterals
from emea.rules.literal_rows import named_pairs

from ..ontologies import PREFIXES

TERMS = {"a": "hasReview hasAuthor decides", "b": "has_review has_author hears"}
CLASSES = ("Paper", "Review", "Author")


def ontologies(folder: Path, renamed: bool = False) -> GraphPair:
    """Two schemas: ``decides`` and ``hears`` have the same domain and range, and differ."""
    files = []
    for side, properties in TERMS.items():
        lines = [f"<http://{side}.org> a owl:Ontology ."]
        lines += [f":{name} a owl:Class ." for name in CLASSES]
        ends = (*CLASSES[1:], CLASSES[0])
        for name, start, end in zip(properties.split(), CLASSES, ends, strict=True):
            lines.append(
                f":{name} a owl:ObjectProperty ; rdfs:domain :{start} ; rdfs:range :{end} ."
            )
        text = PREFIXES.replace("{side}", side) + "\n".join(lines)
        if renamed and side == "b":  # as in another language
            for name in (*CLASSES, "has_review", "has_author"):
                text = text.replace(f":{name} ", f":{name[::-1]} ")
        files.append(folder / f"{side}.ttl")
        files[-1].write_text(text)
    pair = read_own_files(*files, keep_literals=True)
    return replace(pair, literals=EqualLiterals()(pair))


def aligned(pair: GraphPair, seeds: dict[str, str]) -> set[tuple[str, str]]:
    names = [
        [name.split("#")[-1] for name in graph.all_entity_names]
        for graph in (pair.source, pair.target)
    ]
    links = [(names[0].index(a), names[1].index(b)) for a, b in seeds.items()]
    known = torch.tensor(links, dtype=torch.int64).reshape(-1, 2)
    matching = ParisReasoner(pair).align(known, None, lambda report: None)  # type: ignore[arg-type]
    return {(names[0][a], names[1][b]) for a, b in matching.pairs().tolist()}


@pytest.mark.parametrize("seeds", [{}, {"Paper": "Paper", "Review": "Review"}])
def test_structure_alone_matches_no_terms(
    tmp_path: Path, seeds: dict[str, str]
) -> None:
    found = aligned(ontologies(tmp_path), seeds)
    same = {(name, name) for name in CLASSES}
    assert found == same | {("hasReview", "has_review"), ("hasAuthor", "has_author")}


def test_structure_matches_terms_if_the_names_of_links_do_not_match(
    tmp_path: Path,
) -> None:
    seeds = {"Paper": "repaP", "Author": "rohtuA", "hasReview": "weiver_sah"}
    found = aligned(ontologies(tmp_path, renamed=True), seeds)
    assert {
        ("Review", "weiveR"),
        ("decides", "hears"),
        ("hasAuthor", "rohtua_sah"),
    } <= found


def test_named_pairs_are_those_of_a_loop(tmp_path: Path) -> None:
    pair = ontologies(tmp_path)
    assert pair.literals is not None
    sides = (pair.source, pair.literals.source), (pair.target, pair.literals.target)
    values: list[dict[int, set[int]]] = [{}, {}]
    for held, (graph, extended) in zip(values, sides, strict=True):
        for head, relation, tail in extended.triples.tolist():
            if relation >= graph.num_relations:
                held.setdefault(head, set()).add(tail)
    matched = set(map(tuple, pair.literals.pairs.tolist()))
    expected = {
        (a, b)
        for a in values[0]
        for b in values[1]
        if any(
            (one, other) in matched for one in values[0][a] for other in values[1][b]
        )
    }
    keys = named_pairs(pair)
    assert keys is not None
    size = pair.target.num_entities
    assert set(zip(*np.divmod(keys.numpy(), size), strict=True)) == expected
