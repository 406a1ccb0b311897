"""Predictions depend neither on test links in files nor on the order of lines."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig

from emea.config.composition import composed
from emea.data.graph import KnowledgeGraph
from emea.data.sources.synthetic import synthetic_pair
from emea.run.job import run_job

Files = Mapping[str, list[str]]

NUM_LOST = 15
"""Test links whose entities have no triples."""

SHORT = (
    *(
        "model.initial_epochs=5",
        "model.epochs_per_iteration=2",
        "split.num_validation=10",
    ),
    *("trainer=cpu", "trainer.block_size=8", "tracking=none"),
)
METHODS = [
    ("model=lightea", "em=dual", "em.iterations=1", "model.encoder.dim=32"),
    *(
        (f"model={model}", "em.iterations=1")
        for model in ("rrea", "dual_amn", "alinet", "iptranse")
    ),
    (
        "em=one_to_one",
        "ensemble=independent",
        "ensemble.num_members=2",
        "em.iterations=1",
    ),
    ("method=paris",),
]


def triples(graph: KnowledgeGraph, mark: str, form: str) -> list[str]:
    return [form.format(mark, h, r, t) for h, r, t in graph.triples.tolist()]


def openea_files() -> Files:
    """A pair in OpenEA's layout, some of whose test links have entities without triples."""
    pair = synthetic_pair(num_entities=100, seed=2)
    links = [f"a{source}\tb{target}" for source, target in pair.links.tolist()]
    lost = [f"lost{number}\tlost{number + 1}" for number in range(NUM_LOST)]
    parts = {"train": links[:30], "valid": links[30:40], "test": [*links[40:], *lost]}
    return {
        "rel_triples_1": triples(pair.source, "a", "{0}{1}\tr{2}\t{0}{3}"),
        "rel_triples_2": triples(pair.target, "b", "{0}{1}\tr{2}\t{0}{3}"),
        "ent_links": [*links, *lost],
        **{f"721_5fold/1/{part}_links": rows for part, rows in parts.items()},
    }


def id_files() -> Files:
    pair = synthetic_pair(num_entities=100, seed=2)
    return {
        "triples_1": triples(pair.source, "", "{1}\t{2}\t{3}"),
        "triples_2": triples(pair.target, "", "{1}\t{2}\t{3}"),
        "ref_ent_ids": [
            f"{source}\t{target}" for source, target in pair.links.tolist()
        ],
    }


def permuted(files: Files) -> Files:
    rng = np.random.default_rng(3)
    return {
        name: [rows[index] for index in rng.permutation(len(rows))]
        for name, rows in files.items()
    }


def with_test_links(files: Files, change: Callable[[list[str]], list[str]]) -> Files:
    name = "721_5fold/1/test_links"
    known = [link for link in files["ent_links"] if link not in files[name]]
    test = change(files[name])
    return {**files, name: test, "ent_links": [*known, *test]}


def other_targets(links: list[str]) -> list[str]:
    sources, targets = zip(*(link.split("\t") for link in links), strict=True)
    moved = np.random.default_rng(1).permutation(targets).tolist()
    return [
        f"{source}\t{target}" for source, target in zip(sources, moved, strict=True)
    ]


def found(
    config: Callable[[Path], DictConfig], folder: Path, files: Files
) -> tuple[bytes, dict]:
    for name, rows in files.items():
        path = folder / "pair" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    run_job(config(folder / "pair"), folder / "run")
    metrics = json.loads((folder / "run" / "metrics.json").read_text(encoding="utf-8"))
    return (folder / "run" / "alignment.tsv").read_bytes(), metrics


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_openea_predictions_depend_on_triples_and_labels_only(
    method: tuple[str, ...], tmp_path: Path
) -> None:
    def config(folder: Path) -> DictConfig:
        data = ("data=openea", f"data.folder={folder}", "split=official")
        return composed([*data, *SHORT, *method])

    files = openea_files()
    expected, metrics = found(config, tmp_path / "a", files)
    assert metrics["num_links"]["missed"] == NUM_LOST
    share = metrics["num_links"]["test"] / (metrics["num_links"]["test"] + NUM_LOST)
    changes = {
        "deleted": with_test_links(files, lambda links: links[:1]),
        "moved": with_test_links(files, other_targets),
        "permuted": permuted(files),
    }
    for name, changed in changes.items():
        predicted, other = found(config, tmp_path / name, changed)
        assert predicted == expected, name
        if name == "permuted":
            assert (other["final"], other["answer"]) == (
                metrics["final"],
                metrics["answer"],
            )
    complete = with_test_links(files, lambda links: links[:-NUM_LOST])
    predicted, other = found(config, tmp_path / "complete", complete)
    assert predicted == expected and "missed" not in other["num_links"]
    assert metrics["final"]["hit@1"] == pytest.approx(share * other["final"]["hit@1"])
    assert metrics["answer"]["recall"] == pytest.approx(
        share * other["answer"]["recall"]
    )
    assert (
        metrics["mapping"]["all"]["precision"] == other["mapping"]["all"]["precision"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_lines_with_ids_changes_no_prediction(
    method: tuple[str, ...], tmp_path: Path
) -> None:
    def config(folder: Path) -> DictConfig:
        data = ("data=zh", "data.download=null", f"data.folder={folder}", "ratio=0.3")
        return composed([*data, *SHORT, *method])

    expected, metrics = found(config, tmp_path / "a", id_files())
    predicted, other = found(config, tmp_path / "b", permuted(id_files()))
    assert predicted == expected and other["final"] == metrics["final"]
