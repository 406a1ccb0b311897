"""Ontologies are aligned within the kinds of their terms."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.cli.main import main
from emea.data.sources.own_files import read_own_files
from emea.em.joint import ExcludedPairs, NoStep, of_other_kinds
from emea.literals.match_literals import SimilarLiterals
from emea.matching.beliefs import Beliefs
from emea.record.run_folder import read_config
from emea.run.job import run_job

from ..ontologies import GOLD, PREFIXES, write_ontologies

Configs = Callable[..., DictConfig]

SAME_NAMES = {
    "a": ":Review a owl:Class ; rdfs:subClassOf :Thing . :Thing a owl:Class .",
    "b": ":review a owl:ObjectProperty ; rdfs:domain :Item . :Item a owl:Class .",
}
"""A class and a property with the same name."""


def answer(config: DictConfig, files: tuple[Path, Path], folder: Path, **links: Path):
    pair = read_own_files(*files, keep_literals=True, **links)
    run_job(config, folder, pair=pair)
    rows = [
        line.split("\t")
        for line in (folder / "alignment.tsv").read_text().splitlines()[1:]
    ]
    kinds = [
        dict(zip(graph.all_entity_names, graph.kinds.tolist(), strict=True))
        for graph in (pair.source, pair.target)
        if graph.kinds is not None
    ]
    assert all(kinds[0][source] == kinds[1][target] for source, target, *_ in rows)
    return {(one.partition("#")[2], other.partition("#")[2]) for one, other, *_ in rows}


def test_names_alone_align_ontologies(tiny_config: Configs, tmp_path: Path) -> None:
    config = tiny_config("method=paris", "literals=similar", "split=known")
    assert answer(config, write_ontologies(tmp_path), tmp_path / "run") == GOLD


@pytest.mark.parametrize(
    "settings",
    [("em=paper",), ("em=one_to_one",), ("em=one_to_one", "ensemble=independent")],
)
def test_encoders_match_within_kinds(
    settings: tuple[str, ...], tiny_config: Configs, tmp_path: Path
) -> None:
    links = tmp_path / "links.tsv"
    named = [
        ("Person", "Person"),
        ("writesPaper", "writes_paper"),
        ("Document", "Document"),
    ]
    links.write_text("".join(f"http://a.org#{a}\thttp://b.org#{b}\n" for a, b in named))
    config = tiny_config(*settings, "model=lightea", "em.iterations=1", "split=known")
    found = answer(config, write_ontologies(tmp_path), tmp_path / "run", links=links)
    assert len(found) > len(named)


def test_equal_names_of_different_kinds_are_no_evidence(
    tiny_config: Configs, tmp_path: Path
) -> None:
    for side, text in SAME_NAMES.items():
        (tmp_path / f"{side}.ttl").write_text(PREFIXES.replace("{side}", side) + text)
    files = tmp_path / "a.ttl", tmp_path / "b.ttl"
    config = tiny_config("method=paris", "literals=equal", "split=known")
    assert answer(config, files, tmp_path / "run") == set()
    literals = SimilarLiterals(True, 20, "auto", None, True, 0.1, 0.1, 3)
    matched = literals(read_own_files(*files, keep_literals=True))
    ends = [
        [graph.entity_name(value) for value in column.tolist()]
        for graph, column in zip(
            (matched.source, matched.target), matched.pairs.T, strict=True
        )
    ]
    assert ('"Review"', '"review"') not in zip(*ends, strict=True)


def test_beliefs_of_other_kinds_have_no_probability() -> None:
    excludes = of_other_kinds((np.array([1, 2]), np.array([2, 1, 1])))
    beliefs = Beliefs(
        torch.tensor([[0, 1], [0, 2]]), torch.tensor([[0.5, 0.25], [0.5, 0.25]])
    )
    found = ExcludedPairs(NoStep(), excludes).possible(beliefs)
    assert found.probs.tolist() == [[0, 0.25], [0.5, 0]]
    pairs = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert excludes(*pairs.T).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], (0.75, 0.5)),
        (["--threshold", "0.1", "literals.least_similarity=0.9"], (0.9, 0.1)),
    ],
)
def test_the_defaults_suit_ontologies(
    given: list[str], expected: tuple[float, float], tmp_path: Path
) -> None:
    files = map(str, write_ontologies(tmp_path))
    assert main(["align", *files, *given, "--out", str(tmp_path / "run")]) == 0
    config = read_config(tmp_path / "run")
    assert (config.literals.least_similarity, config.export.threshold) == expected
