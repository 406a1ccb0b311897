"""Pairs that a person rejected are never candidates, labels or answers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.data.protocol import Visible
from emea.data.sources.synthetic import synthetic_pair
from emea.em.joint import ExcludedPairs, JointStep, NoStep, of_other_kinds, of_rejected
from emea.em.reports import JointReport, NeuralBeliefs
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import ScoredPairs
from emea.matching.similarity import Cosine, Similarity
from emea.record.pair_file import load_pair, read_pair, write_pair
from emea.run.job import run_job

Configs = Callable[..., DictConfig]


def test_excluded_pairs_have_no_probability() -> None:
    beliefs = Beliefs(
        torch.tensor([[3, 1], [0, 3]]), torch.tensor([[0.6, 0.3], [0.5, 0.5]])
    )
    step = ExcludedPairs(NoStep(), of_rejected(np.array([[0, 3], [1, 1]])))
    found = step.possible(beliefs)
    assert torch.equal(found.probs, torch.tensor([[0, 0.3], [0.5, 0.5]]))
    pairs = ScoredPairs(torch.tensor([0, 0, 1]), torch.tensor([3, 1, 3]), torch.rand(3))
    assert pairs.among(torch.tensor([[0, 3], [1, 1]]), 4).tolist() == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("em", ["paper", "dual"])
def test_rejected_answers_do_not_come_back(
    em: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config("model=lightea", f"em={em}", "em.iterations=1")
    pair = load_pair(config)
    first = run_job(config, tmp_path / "first", pair=pair)
    known = np.concatenate(
        [first.split.supervision.train, first.split.supervision.validation]
    )
    free = np.setdiff1d(np.arange(150), known[:, 0])
    rejected = np.stack([free, first.beliefs.best_targets().numpy()[free]], axis=1)
    second = run_job(config, tmp_path / "second", pair=replace(pair, rejected=rejected))
    pairs = set(map(tuple, rejected.tolist()))
    for beliefs in (second.neural, second.joint):
        assert beliefs is not None
        rows, slots = (beliefs.probs > 0).nonzero(as_tuple=True)
        held = zip(rows.tolist(), beliefs.targets[rows, slots].tolist(), strict=True)
        assert not pairs & set(held)
    assert (second.beliefs.probs.max(1).values > 0).float().mean() > 0.5


class FixedStep(JointStep):
    """Labels each source entity with the target of the same number."""

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        labels = np.stack([np.arange(4), np.arange(4)], axis=1)
        weights = torch.arange(4.0) if self.uses_search else None
        return JointReport(
            neural.beliefs, labels, {}, torch.zeros(4), label_weights=weights
        )


def report_of(step: JointStep) -> JointReport:
    beliefs = Beliefs(torch.arange(4).unsqueeze(1), torch.full((4, 1), 0.5))
    neural = NeuralBeliefs(torch.eye(4), beliefs, beliefs, None)
    return step(Cosine()(torch.eye(4), torch.eye(4)), cast(Visible, None), neural)


def test_pairs_of_different_kinds_are_no_labels() -> None:
    kinds = np.array([1, 1, 2, 2]), np.array([1, 2, 2, 1])
    joint = report_of(ExcludedPairs(FixedStep(), of_other_kinds(kinds)))
    assert joint.labels.tolist() == [[0, 0], [2, 2]]
    assert joint.beliefs.probs[:, 0].tolist() == [0.5, 0.0, 0.5, 0.0]


@pytest.mark.parametrize("weighted", [False, True])
def test_rejected_pairs_are_no_labels(weighted: bool) -> None:
    step = FixedStep()
    step.uses_search = weighted
    joint = report_of(ExcludedPairs(step, of_rejected(np.array([[2, 2], [0, 1]]))))
    assert joint.labels.tolist() == [[0, 0], [1, 1], [3, 3]]
    assert joint.beliefs.probs[:, 0].tolist() == [0.5, 0.5, 0.0, 0.5]
    if weighted:
        assert joint.label_weights is not None and joint.label_weights.tolist() == [
            0,
            1,
            3,
        ]
    else:
        assert joint.label_weights is None


def test_rejected_pairs_follow_the_ids_and_change_the_checksum(tmp_path: Path) -> None:
    pair = synthetic_pair(num_entities=100)
    marked = replace(pair, rejected=np.array([[0, 1], [0, 2]]))
    assert pair.checksum() != marked.checksum()
    write_pair(tmp_path / "pair.npz", marked)
    assert read_pair(tmp_path / "pair.npz").checksum() == marked.checksum()
    shuffled = marked.shuffled(3)
    assert shuffled.rejected is not None
    ids = np.random.default_rng(3).permutation(pair.source.num_entities)
    assert shuffled.rejected[:, 0].tolist() == [ids[0], ids[0]]
