"""Few links: each independent encoder holds out another part of them, and all of them validate."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.answer.decision import decide
from emea.answer.decoding import BestAnswer
from emea.answer.settings import ExportSettings
from emea.config.run_config import RunConfig
from emea.data.arrays import NO_MATCH
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.protocol import Strict
from emea.data.sources.synthetic import synthetic_pair
from emea.data.split import Split, Supervision
from emea.em.members import mean_report
from emea.em.reports import JointReport
from emea.explain.alignment_page import run_page
from emea.explain.explainer import Explainer
from emea.matching.beliefs import Beliefs
from emea.run.building import build_run
from emea.run.job import run_job
from emea.run.predicting import run_decision
from emea.run.result import RunResult
from emea.update.updating import Update, update_config
from tests.matching.random_tables import from_scores, pairs_of

from ..em.test_earlier_fits import random_ranking

Configs = Callable[..., DictConfig]
CROSSED = ("split=known", "model=lightea", "em=one_to_one", "ensemble=independent")
CROSSED += ("em.iterations=2", "ensemble.shared_fits=1", "model.encoder.dim=64")


def links_of(num: int) -> np.ndarray:
    return np.stack([np.arange(num), np.arange(num)[::-1]], axis=1)


def test_each_encoder_holds_out_another_part() -> None:
    links = links_of(8)
    visible = Strict()(Split(Supervision(links, links), links[:0]))
    assert visible.is_crossed and not len(visible.held_out) and not len(visible.certain)
    views = visible.of_members(3)
    for view in views:
        both = np.concatenate([view.train, view.validation])
        assert sorted(map(tuple, both.tolist())) == sorted(map(tuple, links.tolist()))
        assert not view.is_crossed and len(view.held_out) == len(view.validation)
    held_out = np.concatenate([view.validation for view in views])
    assert sorted(map(tuple, held_out.tolist())) == sorted(map(tuple, links.tolist()))
    usual = Strict()(Split(Supervision(links[:5], links[5:]), links[:0]))
    assert all(view is usual for view in usual.of_members(3))
    views = replace(usual, in_folds=True).of_members(3)
    for view in views:
        assert view.validation[:3].tolist() == links[5:].tolist()
        both = np.concatenate([view.train, view.validation[3:]])
        assert sorted(map(tuple, both.tolist())) == sorted(
            map(tuple, links[:5].tolist())
        )
    held_out = np.concatenate([view.validation[3:] for view in views])
    assert sorted(map(tuple, held_out.tolist())) == sorted(
        map(tuple, links[:5].tolist())
    )


def test_encoders_with_folds_are_trained_on_their_own_links(
    tiny_config: Configs, tmp_path: Path
) -> None:
    folds = ("split=random", "ratio.value=0.2", "ensemble.folds=true")
    config = tiny_config(*CROSSED, *folds, "data.num_entities=100")
    result = run_job(config, tmp_path / "run")
    known = result.split.supervision
    visible = Strict()(result.split)
    assert not known.is_crossed and len(known.validation)
    parts = build_run(
        RunConfig.of(config),
        result.pair,
        visible,
        observer=print,
        device=torch.device("cpu"),
    )
    views = replace(visible, in_folds=True).of_members(3)
    for view, labels in zip(views, parts.data.member_labels, strict=True):
        links = labels.links.numpy() - [0, result.pair.source.num_entities]
        assert links.tolist() == view.train.tolist() and len(links) < len(known.train)
    given = torch.from_numpy(known.train.copy())
    assert (
        result.decision.answer.best_targets()[given[:, 0]].tolist()
        == given[:, 1].tolist()
    )
    assert result.metrics["num_links"]["train"] == len(given)


def test_the_mean_has_the_beliefs_of_the_encoder_that_held_a_link_out() -> None:
    links = links_of(6)
    visible = Strict()(Split(Supervision(links, links), links[:0]))
    rankings = [random_ranking(seed) for seed in range(3)]
    none = np.zeros((0, 2), dtype=np.int64)
    reports = [
        JointReport(
            as_nothing(), none, {}, torch.zeros(20), ranking=one, is_answer=True
        )
        for one in rankings
    ]
    found = mean_report(reports, from_scores(torch.zeros(20, 20)), visible).ranking
    assert found is not None
    expected: dict[tuple[int, int], float] = {}
    for number, ranking in enumerate(rankings):
        for (source, target), place in pairs_of(ranking.table).items():
            belief, of_fold = float(ranking.scores[place].exp()), source % 3 == number
            share = belief / 3 if source >= 6 else belief if of_fold else 0.0
            expected[source, target] = expected.get((source, target), 0.0) + share
    for pair, place in pairs_of(found.table).items():
        assert float(found.scores[place].exp()) == pytest.approx(
            expected.pop(pair), abs=1e-9
        )
    assert not any(expected.values())


def as_nothing() -> Beliefs:
    return Beliefs(torch.zeros(20, 1, dtype=torch.int64), torch.zeros(20, 1))


def test_links_are_judged_without_being_given() -> None:
    beliefs = Beliefs(
        torch.tensor([[0], [9], [2], [3]]), torch.tensor([[0.9], [0.8], [0.7], [0.6]])
    )
    links = np.array([[0, 0], [1, 1], [2, 2]])
    settings = ExportSettings(target_precision=0.6)
    found = decide(BestAnswer(), beliefs, torch.from_numpy(links), settings, links)
    assert found.answer.probs[:3].tolist() == [[1.0]] * 3
    assert found.answer.targets[:3].tolist() == [[0], [1], [2]]
    assert found.unseen is not None and found.unseen.targets.tolist() == [
        [0],
        [9],
        [2],
        [3],
    ]
    assert found.reach is not None and found.reach.num_links == 3
    usual = decide(
        BestAnswer(), beliefs, torch.from_numpy(links[:2]), settings, links[2:]
    )
    assert usual.unseen is None


def crossed(tiny_config: Configs, folder: Path, step: int = 1) -> RunResult:
    """A run with 24 links; the targets of the test links are reversed with a step of -1."""
    pair = synthetic_pair(num_entities=100, seed=2)
    test = pair.links[24:].copy()
    test[:, 1] = test[::step, 1]
    official = OfficialSplit(pair.links[:24], pair.links[:0], test)
    pair = replace(
        pair, official=official, links=np.concatenate([pair.links[:24], test])
    )
    return run_job(tiny_config(*CROSSED), folder, pair=pair)


def test_a_run_validates_all_links_and_sees_no_test_link(
    tiny_config: Configs, tmp_path: Path
) -> None:
    result = crossed(tiny_config, tmp_path / "run")
    numbers, known = result.metrics, result.split.supervision
    assert known.is_crossed and numbers["num_links"]["crossed"] is True
    untested = replace(result, split=replace(result.split, test=known.train[:0]))
    page = run_page(Explainer(untested), None)
    assert "<dd>24 links, each held out from one encoder, " in page
    assert "<summary>Chart: probabilities</summary>" in page
    judged = numbers["export"]["validation"]
    assert judged["num_links"] == 24 and 0.5 < judged["recall"] <= 1
    assert numbers["final"]["hit@1"] > 0.6
    given = torch.from_numpy(known.train.copy())
    assert (
        result.decision.answer.best_targets()[given[:, 0]].tolist()
        == given[:, 1].tolist()
    )
    # beliefs in the links are those of encoders that were not trained on them
    assert result.joint is not None
    assert float(result.joint.probs[given[:, 0]].max()) < 1
    again = run_decision(result, result.export)
    assert torch.equal(again.answer.probs, result.decision.answer.probs)
    other = crossed(tiny_config, tmp_path / "other", step=-1)
    assert torch.equal(other.joint.probs, result.joint.probs)  # type: ignore[union-attr]
    assert other.metrics["export"]["validation"] == judged

    more = newly_known(result.pair)
    update = Update.of(result, result.pair.source, result.pair.target, more, more[:0])
    assert not len(update.split.validation) and len(update.split.train) == 24 + len(
        more
    )
    start, train = update.start(), update.split.train
    assert (start.known.targets.numpy()[train[:, 0]] == NO_MATCH).all() and len(
        start.labels
    ) > 20
    visible = Strict()(Split(Supervision(train, train), train[:0]))
    parts = build_run(
        RunConfig.of(update_config(result)),
        update.pair,
        visible,
        observer=print,
        device=torch.device("cpu"),
    )
    start.apply(parts)
    for view, labels in zip(
        visible.of_members(3), parts.data.member_labels, strict=True
    ):
        links = labels.links.numpy() - [0, update.pair.source.num_entities]
        expected = [*view.train.tolist(), *start.labels.tolist()]
        assert links.tolist() == expected


def newly_known(pair: GraphPair) -> np.ndarray:
    assert pair.official is not None
    return pair.official.test[:3]
