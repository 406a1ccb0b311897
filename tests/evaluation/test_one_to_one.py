"""Hit@k of test links after one-to-one inference."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.answer.decoding import BalancedAnswer, SinkhornAnswer
from emea.answer.settings import ExportSettings
from emea.config.run_config import RunConfig
from emea.evaluation import one_to_one
from emea.evaluation.one_to_one import one_to_one_metrics
from emea.matching.beliefs import Beliefs
from emea.record.pair_file import load_pair
from emea.run.building import draw_split
from emea.run.finished_run import load_run
from emea.run.job import run_job
from emea.run.predicting import predict

from ..matching.random_beliefs import free_table, random_beliefs

Configs = Callable[..., DictConfig]


def slow_metrics(
    balanced: np.ndarray, links: list[list[int]], pool: set[int]
) -> dict[str, float]:
    """Return the metrics of a dense table of balanced beliefs, with a loop over the links."""
    hits, tens, reciprocals = [], [], []
    for source, target in links:
        row = balanced[source]
        own = row[target]
        others = [row[other] for other in pool if other != target]
        better = sum(value > own for value in others)
        rank = 1 + better if own > 0 else np.inf
        hits.append(rank <= 1)
        tens.append(rank <= 10)
        reciprocals.append(1 / rank)
    means = map(float, map(np.mean, (hits, tens, reciprocals)))
    return dict(zip(("hit@1", "hit@10", "mrr"), means, strict=True))


@pytest.mark.parametrize("inference", [SinkhornAnswer(), BalancedAnswer()])
def test_metrics_are_those_of_a_dense_table(
    inference: SinkhornAnswer | BalancedAnswer,
) -> None:
    num_hits = 0.0
    for seed in range(40):
        beliefs, labels = random_beliefs(seed)
        free = beliefs.without(labels)
        table = free_table(beliefs, labels)
        rng = np.random.default_rng(seed)
        num_links = min(table.shape)
        links = np.stack(
            [
                rng.permutation(table.shape[0])[:num_links],
                rng.permutation(table.shape[1])[:num_links],
            ],
            axis=1,
        )
        found = one_to_one_metrics(inference.balanced, free, links)
        balanced = free_table(inference.balanced(free), labels)
        pool = set(links[:, 1].tolist())
        assert found is not None
        for numbers, columns in (
            ({key: found[key] for key in one_to_one.SHOWN}, pool),
            (found["all_targets"], set(range(table.shape[1]))),
        ):
            expected = slow_metrics(balanced, links.tolist(), columns)
            assert numbers == pytest.approx(expected)
        num_hits += found["hit@1"]
    assert num_hits > 2


def test_links_that_cannot_be_found_lower_the_metrics() -> None:
    beliefs = Beliefs(torch.tensor([[0], [1]]), torch.tensor([[0.9], [0.9]]))
    links = np.array([[0, 0], [1, 1]])
    found = one_to_one_metrics(BalancedAnswer().balanced, beliefs, links, 0.5)
    assert found is not None
    assert found["hit@1"] == found["all_targets"]["hit@1"] == 0.5


def test_too_many_beliefs_and_no_links_have_no_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beliefs = Beliefs(torch.tensor([[0], [1]]), torch.tensor([[0.9], [0.9]]))
    links = np.array([[0, 0], [1, 1]])
    balanced = BalancedAnswer().balanced
    assert one_to_one_metrics(balanced, beliefs, links[:0]) is None
    monkeypatch.setattr(one_to_one, "MOST_BELIEFS", 1)
    assert one_to_one_metrics(balanced, beliefs, links) is None


def test_published_lightea_answers_within_the_test_pool(
    tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(
        "variant=lightea_published",
        "model.encoder.output_dim=128",
        "model.encoder.dim=64",
    )
    result = run_job(config, tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    split = draw_split(RunConfig.of(config), load_pair(config))
    pairs = result.decision.answer.pairs().numpy()
    known = split.supervision.train[:, 0]
    answered = pairs[~np.isin(pairs[:, 0], known)]

    assert metrics["protocol"] == "test_pool"
    assert set(answered[:, 0]) <= set(split.test[:, 0].tolist())
    assert set(answered[:, 1]) <= set(split.test[:, 1].tolist())
    right = {(s, t) for s, t in split.test.tolist()} & {(s, t) for s, t in answered}
    share = len(right) / len(split.test)
    assert metrics["one_to_one"]["inference"] == "balanced"
    assert metrics["one_to_one"]["hit@1"] == pytest.approx(share)
    assert metrics["answer"]["recall"] == pytest.approx(share)

    predict(load_run(tmp_path / "run"), tmp_path / "again", ExportSettings())
    first, second = (
        (tmp_path / name / "alignment.tsv").read_text() for name in ("run", "again")
    )
    assert first == second
