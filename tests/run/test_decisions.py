"""The decisions of a person bind, whatever the method."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig

from emea.answer.curation import read_decisions
from emea.record.pair_file import load_pair
from emea.run.job import run_job

Configs = Callable[..., DictConfig]
Pairs = set[tuple[str, str]]

METHODS = {
    "paris": ("method=paris",),
    "prase": ("method=prase",),
    "none": ("em=none", "rule=none", "model=lightea"),
    "paper": ("em=paper", "em.iterations=1", "model=lightea"),
    "dual": ("em=dual", "em.iterations=1", "model=lightea"),
    "one_to_one": ("em=one_to_one", "em.iterations=1", "model=lightea"),
    "semi": ("em=none", "rule=none", "training=semi", "training.epochs_per_turn=1"),
    "released": (
        *("em=paper", "em.iterations=1", "model=lightea"),
        *("protocol=released", "rule=avoid_conflict"),
    ),
}


def answered(folder: Path) -> Pairs:
    rows = (folder / "alignment.tsv").read_text().splitlines()[1:]
    return {(row.split("\t")[0], row.split("\t")[1]) for row in rows}


@pytest.mark.parametrize("method", METHODS)
def test_a_rejected_pair_is_in_no_answer(
    method: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(*METHODS[method], "data.num_entities=100", "ratio=0.3")
    pair = load_pair(config)
    first = run_job(config, tmp_path / "first", pair=pair)
    known = first.split.supervision
    given = np.concatenate([known.train, known.validation])
    pairs = first.decision.answer.pairs().numpy()
    rejected = pairs[~np.isin(pairs[:, 0], given[:, 0])]
    assert len(rejected) > 10
    run_job(config, tmp_path / "second", pair=replace(pair, rejected=rejected))
    wrong = {(str(source), str(target)) for source, target in rejected.tolist()}
    accepted = {(str(source), str(target)) for source, target in known.train.tolist()}
    found = answered(tmp_path / "second")
    assert wrong <= answered(tmp_path / "first")
    assert not wrong & found
    assert accepted <= found
    # without an author, only the rejected pairs are known to be decisions
    stored = read_decisions(tmp_path / "second")
    assert {one.pair for one in stored} == wrong
    assert {one.decision for one in stored} == {"rejected"}
    assert not read_decisions(tmp_path / "first")


def test_all_known_links_are_in_the_answer(
    tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config("em=none", "rule=none", "split=known", "split.few_links=0")
    result = run_job(config, tmp_path)
    known = result.split.supervision
    assert len(known.validation)
    links = np.concatenate([known.train, known.validation]).tolist()
    assert {(str(a), str(b)) for a, b in links} <= answered(tmp_path)
    # they are still judged by the answer without them
    judged = result.metrics["export"]["validation"]
    assert judged["num_links"] == len(known.validation)
    assert judged["precision"] < 1
