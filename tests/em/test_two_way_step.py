"""The two-way step: its parts, the labels it gives, and calibrated probabilities."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit, logit

from emea.data.protocol import Visible
from emea.em.normaliser import Normaliser, SoftmaxNormaliser
from emea.em.reports import JointReport, NeuralBeliefs
from emea.em.settings import TwoWaySettings
from emea.em.two_way_step import TwoWayStep, calibrated
from emea.errors import ConfigError
from emea.matching.beliefs import Beliefs
from emea.matching.similarity import Similarity
from emea.rules.avoid_conflict import AvoidConflict
from emea.rules.paris import PARIS

from ..matching.random_tables import pairs_of
from .aligned_pairs import ALL_OFF, Aligned, aligned

PARTS = [{name: value} for name, value in ALL_OFF.items()]


def visible(problem: Aligned) -> Visible:
    train, validation = problem.labels.numpy(), problem.links.numpy()
    return Visible(
        train=train,
        validation=validation,
        normaliser_links=validation,
        weight_links=np.concatenate([train, validation]),
        unseen_links=None,
        relation_links=None,
        label_pool=None,
        uses_test_links=False,
    )


def step(problem: Aligned, **options: Any) -> TwoWayStep:
    return TwoWayStep(PARIS(problem.pair), 4, TwoWaySettings(**options))


def reported(
    problem: Aligned, pool: np.ndarray | None = None, **options: Any
) -> JointReport:
    seen = replace(visible(problem), label_pool=pool)
    return step(problem, **options)(problem.similarity, seen)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: next(iter(part)))
def test_any_part_can_be_off_alone(part: dict[str, Any]) -> None:
    problem = aligned(0)
    report = reported(problem, **part)
    assert len(report.labels)
    assert report.is_answer is part.get("fused_answer", True)
    assert (report.label_weights is None) is ("weighted_labels" in part)
    assert not report.beliefs.probs.isnan().any()
    assert set(problem.labels[:, 0].tolist()).isdisjoint(report.labels[:, 0].tolist())
    assert set(problem.labels[:, 1].tolist()).isdisjoint(report.labels[:, 1].tolist())


def test_a_rule_without_evidence_for_pairs_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs rule=paris, got AvoidConflict"):
        TwoWayStep(AvoidConflict(aligned(0).pair), num_candidates=4)


def test_labels_are_mutual_pairs_with_their_belief() -> None:
    problem = aligned(1)
    report = reported(problem)
    ranking, weights = report.ranking, report.label_weights
    assert ranking is not None and weights is not None
    places = pairs_of(ranking.table)
    belief = {
        pair: float(ranking.scores[place].exp()) for pair, place in places.items()
    }
    assert 0 < len(report.labels) == len(weights)
    for (source, target), weight in zip(
        report.labels.tolist(), weights.tolist(), strict=True
    ):
        assert weight == pytest.approx(belief[source, target])
        rivals = [
            p
            for pair, p in belief.items()
            if (pair[0] == source) != (pair[1] == target)
        ]
        assert belief[source, target] > max(rivals)
    assert len(set(report.labels[:, 1].tolist())) == len(report.labels)


def test_without_mutual_labels_each_entity_has_its_best() -> None:
    problem = aligned(1)
    report = reported(problem, mutual_labels=False)
    ranking = report.ranking
    assert ranking is not None
    best = ranking.table.targets.gather(
        1, ranking.scores.argmax(1, keepdim=True)
    ).squeeze(1)
    free = sorted(set(range(20)) - set(problem.labels[:, 0].tolist()))
    assert report.labels.tolist() == [[source, int(best[source])] for source in free]


def test_only_the_pool_gets_labels() -> None:
    problem = aligned(1)
    everyone = reported(problem).labels
    pool = everyone[::2, 0]
    assert reported(problem, pool=pool).labels.tolist() == everyone[::2].tolist()


def test_beliefs_are_sorted_by_what_ranks_them() -> None:
    report = reported(aligned(2))
    ranking = report.ranking
    assert ranking is not None
    places = pairs_of(ranking.table)
    possible = report.beliefs.probs > 0
    for row, slots in enumerate(possible):
        targets = report.beliefs.targets[row][slots].tolist()
        scores = [float(ranking.scores[places[row, target]]) for target in targets]
        assert scores == sorted(scores, reverse=True)
    assert (report.beliefs.probs.sum(1) <= 1 + 1e-6).all()
    assert possible.sum(1).min() > 0


def test_it_reports_its_weights_and_its_updates() -> None:
    report = reported(aligned(2), sweeps=4, features=["similarity", "coverage"])
    assert list(report.weights) == ["similarity", "coverage", "unmatched"]
    assert 1 <= report.details["sweeps"] <= 4
    assert np.isfinite(report.details["change"])
    assert report.compatibility.shape == (20,)
    assert ((report.compatibility >= 0) & (report.compatibility <= 1)).all()


def test_compatibility_is_that_of_the_nearest_candidate() -> None:
    problem = aligned(3)
    two_way = step(problem)
    report = two_way(problem.similarity, visible(problem))
    settled = two_way.two_way(problem.similarity, problem.labels, problem.links)
    for row, nearest in enumerate(
        problem.similarity.scores(torch.arange(20)).argmax(1).tolist()
    ):
        slot = settled.table.targets[row].tolist().index(nearest)
        noisy_or = 1 - settled.evidence.log_doubt[row, slot].exp()
        assert float(report.compatibility[row]) == pytest.approx(float(noisy_or))


def searched(
    problem: Aligned, normaliser: Normaliser, num_fitted: int | None = None, k: int = 4
) -> NeuralBeliefs:
    """What the callback hands on after its own search."""
    normaliser.fit(problem.similarity, problem.links[:num_fitted])
    offered, search = normaliser.search(problem.similarity, k)
    return NeuralBeliefs(problem.similarity.source, offered, offered, search)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Similarity]:
    """The similarities that are searched from now on."""
    found: list[Similarity] = []
    search = Similarity.search

    def counting(similarity: Similarity, k: int = 1) -> Any:
        found.append(similarity)
        return search(similarity, k)

    monkeypatch.setattr(Similarity, "search", counting)
    return found


def assert_same(one: JointReport, other: JointReport) -> None:
    assert torch.equal(one.beliefs.targets, other.beliefs.targets)
    assert torch.equal(one.beliefs.probs, other.beliefs.probs)
    assert one.weights == other.weights
    assert one.labels.tolist() == other.labels.tolist()


@pytest.mark.parametrize(
    ("normaliser", "given", "num_searches"),
    [
        (SoftmaxNormaliser(), {}, 1),
        (SoftmaxNormaliser(), {"num_fitted": 2}, 2),
        (SoftmaxNormaliser(), {"k": 3}, 2),
    ],
    ids=["the same", "other links", "fewer candidates"],
)
@pytest.mark.parametrize("has_links", [True, False])
def test_only_a_search_that_differs_is_done_again(
    normaliser: Normaliser,
    given: dict[str, int],
    num_searches: int,
    has_links: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = aligned(1)
    if not has_links:
        problem = replace(problem, links=problem.links[:0])
        num_searches = 1 if "num_fitted" in given else num_searches
    similarity, neural = problem.similarity, searched(problem, normaliser, **given)
    searches = counted(monkeypatch)
    report = step(problem)(similarity, visible(problem), neural)
    assert len(searches) == num_searches
    assert searches[-1].source is similarity.target
    assert_same(report, reported(problem))


def overconfident(seed: int = 0, size: int = 4000) -> tuple[Beliefs, torch.Tensor]:
    """Entities whose best candidate says p and is right with probability sigmoid(logit(p) / 2)."""
    rng = np.random.default_rng(seed)
    best = rng.uniform(0.5, 0.999, size)
    probs = np.stack([best, (1 - best) * 0.6, (1 - best) * 0.3], axis=1)
    right = rng.random(size) < expit(logit(best) / 2)
    targets = np.stack(
        [np.arange(size), np.arange(size) + 1, np.arange(size) + 2], axis=1
    )
    links = np.stack([np.arange(size), np.arange(size) + np.where(right, 0, 1)], axis=1)
    beliefs = Beliefs(torch.from_numpy(targets), torch.from_numpy(probs))
    return beliefs, torch.from_numpy(links)


@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_calibration_equals_a_general_optimiser(ridge: float) -> None:
    beliefs, links = overconfident(1, size=60)
    x = logit(beliefs.probs[:, 0].numpy())
    y = (links[:, 1] == beliefs.targets[:, 0]).numpy()

    def loss(w: np.ndarray) -> float:
        z = w[0] * x + w[1]
        penalty = (
            100 / 60 * ridge / 2 * ((w[0] - 1) ** 2 + w[1] ** 2)
        )  # as among 100 links
        return float(np.mean(np.log1p(np.exp(z)) - y * z) + penalty)

    found = minimize(
        loss, [1.0, 0.0], bounds=[(0, None), (None, None)], method="L-BFGS-B"
    ).x
    expected = expit(found[0] * x + found[1])
    best = calibrated(beliefs, links, ridge).probs[:, 0].numpy()
    np.testing.assert_allclose(best, expected, atol=1e-4)


def test_the_order_stays_and_rows_are_probabilities() -> None:
    beliefs, links = overconfident(2)
    # so few are right that the best candidates lose most of what they had
    wrong = links + torch.tensor([0, 5])
    for given in (links, wrong):
        changed = calibrated(beliefs, given)
        assert torch.equal(changed.best_targets(), beliefs.best_targets())
        assert (changed.probs.sum(1) <= 1 + 1e-6).all() and (changed.probs >= 0).all()
        first, second = changed.probs[:, 0], changed.probs[:, 1]
        assert (first >= second).all()
    assert calibrated(beliefs, links[:0]) is beliefs
    gaps = Beliefs(
        torch.tensor([[3, 0], [4, 5]]), torch.tensor([[0.9, 0.0], [0.0, 0.0]])
    )
    changed = calibrated(gaps, torch.tensor([[0, 3]]))
    assert changed.probs[0, 1] == 0 and (changed.probs[1] == 0).all()
