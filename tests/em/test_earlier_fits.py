"""Probabilities from beliefs before shared labels, and their calibration, by slow references."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit, logit

from emea.em.counterparts import Share
from emea.em.earlier_fits import EarlierFits, PairBeliefs, calibrated
from emea.em.joint import JointStep
from emea.em.reports import JointReport, NeuralBeliefs
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking

from ..matching.random_tables import from_scores, pairs_of, random_table
from .aligned_pairs import aligned
from .test_two_way_step import visible

SHARES = (Share(0.5, 0.4, 0.6), Share(0.7, 0.6, 0.8))


def random_ranking(seed: int) -> PairRanking:
    rng = np.random.default_rng(seed)
    table = random_table(rng, 20, 20, 6)
    scores = torch.from_numpy(np.log(rng.random(table.targets.shape) ** 4))
    return PairRanking(table, torch.where(table.filled, scores, -torch.inf))


def as_beliefs(ranking: PairRanking) -> Beliefs:
    probs = ranking.scores.exp()
    return Beliefs(
        ranking.table.targets, probs / probs.sum(1, keepdim=True).clamp(min=1)
    )


def report_of(seed: int, shares: tuple[Share, ...] | None = SHARES) -> JointReport:
    ranking = random_ranking(seed)
    return JointReport(
        beliefs=as_beliefs(ranking),
        labels=np.zeros((0, 2), dtype=np.int64),
        weights={},
        compatibility=torch.zeros(20),
        ranking=ranking,
        is_answer=True,
        shares=shares,
        votes=torch.full((2, 20), seed),
    )


class Scripted(JointStep):
    """Answers each iteration with a report that was made before."""

    def __init__(self, reports: list[JointReport]) -> None:
        self.reports = reports

    def __call__(
        self, similarity: object, visible: object, neural: NeuralBeliefs
    ) -> JointReport:
        return self.reports[neural.iteration]


def asked(step: EarlierFits, iteration: int, is_crossed: bool = False) -> JointReport:
    seen = visible(aligned(0))
    if is_crossed:
        seen = replace(seen, validation=seen.train)
    similarity = from_scores(torch.zeros(20, 20))
    return step(similarity, seen, NeuralBeliefs(*[None] * 3, iteration=iteration))  # type: ignore[arg-type,list-item]


def test_beliefs_are_found_by_pair() -> None:
    ranking = random_ranking(1)
    known = {
        pair: float(ranking.scores[at].exp())
        for pair, at in pairs_of(ranking.table).items()
    }
    found = PairBeliefs.of(ranking).on(torch.arange(400).view(20, 20))
    for source in range(20):
        for target in range(20):
            prob = known.get((source, target), 0.0)
            expected = prob if prob >= 1e-3 else 0.0
            assert float(found[source, target]) == pytest.approx(expected, abs=1e-6)
    none = PairBeliefs(torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    assert not none.on(torch.arange(3)).any()


@pytest.mark.parametrize(("last_own", "used"), [(1, (0, 1)), (0, (0,)), (None, (0, 3))])
def test_the_first_and_the_last_own_fit_are_heard(
    last_own: int | None, used: tuple[int, ...]
) -> None:
    reports = [report_of(seed) for seed in range(4)]
    step = EarlierFits(Scripted(reports), last_own)
    for iteration in range(4):
        found = asked(step, iteration)
    problem, final = aligned(0), reports[3]
    beliefs, links, train = final.beliefs, problem.links, problem.labels
    heard = [
        {pair: float(one.scores[at].exp()) for pair, at in pairs_of(one.table).items()}
        for one in (reports[number].ranking for number in used)
        if one is not None
    ]
    # a pair counts for a link only if it is a candidate in the end
    there = [
        tuple(link) for link in links.tolist() if link[1] in beliefs.targets[link[0]]
    ]
    weights = np.array(
        [1e-6 + sum(one.get(pair, 0.0) for pair in there) for one in heard]
    )
    weights /= weights.sum()
    scores = torch.zeros_like(beliefs.probs)
    for source in range(20):
        for slot, target in enumerate(beliefs.targets[source].tolist()):
            probs = [one.get((source, target), 0.0) for one in heard]
            scores[source, slot] = float(
                weights @ np.where(np.array(probs) >= 1e-3, probs, 0)
            )
    expected = calibrated(beliefs, links, share=0.5, scores=scores).clamped(train)
    torch.testing.assert_close(found.beliefs.probs, expected.probs, atol=1e-5, rtol=0)
    assert torch.equal(found.beliefs.best_targets(), expected.best_targets())
    assert found.votes is not None and int(found.votes[0, 0]) == used[-1]
    assert found.shares == SHARES


def test_a_restored_step_continues_identically() -> None:
    reports = [report_of(seed, SHARES if seed == 0 else None) for seed in range(4)]
    step = EarlierFits(Scripted(reports), last_own=1)
    for iteration in range(2):
        asked(step, iteration)
    other = EarlierFits(Scripted(reports), last_own=1)
    other.load_state_dict(step.state_dict())
    one, same = asked(step, 2), asked(other, 2)
    assert torch.equal(one.beliefs.probs, same.beliefs.probs)
    assert one.shares == same.shares == SHARES
    assert torch.equal(one.votes, same.votes)  # type: ignore[arg-type]


def test_crossed_links_keep_the_beliefs_before_labels_were_shared() -> None:
    reports = [report_of(seed) for seed in range(3)]
    step = EarlierFits(Scripted(reports), last_own=1)
    answers = [asked(step, iteration, is_crossed=True) for iteration in range(3)]
    is_link = torch.zeros(20, dtype=torch.bool)
    is_link[aligned(0).labels[:, 0]] = True
    assert is_link.any() and not is_link.all()
    # iterations 0 and 1 have their own labels; the labels of iteration 2 also follow from encoders
    # that were trained on the links
    for number, of_links in ((0, 0), (1, 1), (2, 1)):
        targets = answers[number].beliefs.targets
        assert torch.equal(targets[is_link], reports[of_links].beliefs.targets[is_link])
        assert torch.equal(targets[~is_link], reports[number].beliefs.targets[~is_link])
    assert not torch.equal(reports[2].beliefs.targets[is_link], targets[is_link])


def test_a_restored_step_keeps_the_beliefs_in_crossed_links() -> None:
    reports = [report_of(seed) for seed in range(3)]
    step = EarlierFits(Scripted(reports), last_own=0)
    asked(step, 0, is_crossed=True)
    other = EarlierFits(Scripted(reports), last_own=0)
    other.load_state_dict(step.state_dict())
    for iteration in (1, 2):
        one, same = (asked(each, iteration, is_crossed=True) for each in (step, other))
        assert torch.equal(one.beliefs.targets, same.beliefs.targets)
        assert torch.equal(one.beliefs.probs, same.beliefs.probs)


@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_calibration_on_masked_links_equals_a_general_optimiser(share: float) -> None:
    rng = np.random.default_rng(1)
    targets = torch.from_numpy(np.stack([rng.permutation(9)[:3] for _ in range(60)]))
    probs = torch.from_numpy(rng.dirichlet((2.0, 1.0, 0.5, 0.5), 60)[:, :3])
    scores = torch.from_numpy(rng.random((60, 3)) * 0.5)
    links = torch.stack(
        [torch.arange(40), torch.from_numpy(rng.integers(0, 9, 40))], dim=1
    )
    links[:20, 1] = targets[torch.arange(20), probs[:20].argmax(1)]
    beliefs = Beliefs(targets, probs)
    examples = []
    for source, target in links.tolist():
        order = sorted(range(3), key=lambda slot: -float(probs[source, slot]))
        row = targets[source].tolist()
        best = order[0]
        examples.append((float(scores[source, best]), row[best] == target, 1.0))
        others = [slot for slot in order if row[slot] != target]
        of_link = sum(
            float(scores[source, slot]) for slot in order if row[slot] == target
        )
        examples.append(
            (float(scores[source, others[0]]) / (1 - of_link), False, 1 / share - 1)
        )
    x, right, counts = (np.array(column) for column in zip(*examples, strict=True))
    x = logit(np.clip(x, 1e-6, 1 - 1e-6))

    def loss(both: np.ndarray) -> float:
        logits = both[0] * x + both[1]
        losses = np.logaddexp(0, np.where(right, -logits, logits))
        num = len(x) if share < 1 else len(x) // 2
        strength = 0.1 * max(1.0, 100 / num)
        return float((losses * counts).sum() / counts.sum()) + strength / 2 * float(
            (both[0] - 1) ** 2 + both[1] ** 2
        )

    slope, shift = minimize(loss, [1.0, 0.0], bounds=[(0, None), (None, None)]).x
    slots = beliefs.best_slots().unsqueeze(1)
    best_scores = scores.gather(1, slots).squeeze(1).numpy()
    expected = expit(slope * logit(np.clip(best_scores, 1e-6, 1 - 1e-6)) + shift)
    found = calibrated(beliefs, links, share=share, scores=scores)
    np.testing.assert_allclose(
        found.probs.gather(1, slots).squeeze(1), expected, atol=1e-4
    )
    assert torch.equal(found.best_targets(), beliefs.best_targets())
    assert (found.probs.sum(1) <= 1 + 1e-9).all()
