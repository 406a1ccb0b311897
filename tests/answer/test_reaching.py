"""The threshold for a target precision, by a loop, and what few links can support."""

import math

import numpy as np
import pytest
import torch
from scipy.special import expit

from emea.answer.decision import Decision, check_founded, decide, reaching
from emea.answer.decoding import BestAnswer
from emea.answer.settings import ExportSettings
from emea.data.settings import Cardinality
from emea.data.split import Split, Supervision
from emea.errors import ConfigError
from emea.evaluation.calibration import JudgedAnswer
from emea.matching.beliefs import Beliefs

NONE = torch.zeros(0, 2, dtype=torch.int64)


def answers(seed: int, num: int = 300, levels: int = 40) -> Beliefs:
    rng = np.random.default_rng(seed)
    probs = np.round(rng.beta(2, 1, num) * levels) / levels
    return Beliefs(torch.arange(num).unsqueeze(1), torch.from_numpy(probs).unsqueeze(1))


def right_links(num: int) -> np.ndarray:
    return np.stack([np.arange(num)] * 2, axis=1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_links", [3, 20, 100])
@pytest.mark.parametrize("target", [0.8, 0.9, 0.95])
def test_it_is_the_lowest_threshold_that_the_mean_allows(
    seed: int, num_links: int, target: float
) -> None:
    answer = answers(seed)
    labels = torch.tensor([[299, 299], [298, 298]])
    judged = JudgedAnswer(answer, right_links(num_links))
    found = reaching(answer, labels, target, judged)
    free = answer.probs[:298, 0].tolist()
    needed = math.log(0.05) / math.log(target)
    allowed = (1 - target) * min(1, num_links / needed)
    lowest = math.inf
    for threshold in sorted({prob for prob in free if prob}, reverse=True):
        taken = [prob for prob in free if prob >= threshold]
        if 1 - sum(taken) / len(taken) <= allowed + 1e-9:
            lowest = threshold
    assert found.threshold == lowest
    num_judged = sum(prob >= lowest for prob in free[:num_links])
    assert found.num_judged == num_judged
    rest = [prob for prob in free[num_links:] if prob >= lowest]
    assert (found.num_open, found.num_accepted) == (298 - num_links, len(rest))


def decided(num_links: int, probs: float) -> Decision:
    answer = Beliefs(torch.arange(50).unsqueeze(1), torch.full((50, 1), probs))
    settings = ExportSettings(target_precision=0.9)
    links = right_links(num_links)
    return decide(BestAnswer(), answer, NONE, settings, links, least_share=1.0)


def test_validation_links_that_are_in_the_answer_are_judged_without_it() -> None:
    # the beliefs are wrong about the last 8 of the 40 validation links; 50 entities have no link
    targets = torch.arange(100)
    targets[32:40] += 100
    beliefs = Beliefs(targets.unsqueeze(1), torch.full((100, 1), 0.99))
    labels, links = torch.from_numpy(right_links(50)), right_links(40)
    settings = ExportSettings(target_precision=0.75)
    found = decide(BestAnswer(), beliefs, labels, settings, links, least_share=1.0)
    assert found.reach is not None and found.unseen is not None
    assert (found.reach.num_judged, found.reach.num_right) == (40, 32)
    # without the validation links, but with the other labels
    assert found.unseen.targets[:, 0].tolist() == targets.tolist()
    is_given = torch.tensor([0.99] * 40 + [1.0] * 10 + [0.99] * 50)
    assert torch.equal(found.unseen.probs[:, 0], is_given)
    assert found.answer.targets[:, 0].tolist() == list(range(100))


def test_a_handful_of_links_confirms_nothing() -> None:
    few, many, none = decided(4, 0.999), decided(40, 0.999), decided(40, 0.7)
    assert few.reach is not None and many.reach is not None and none.reach is not None
    assert not few.reach.is_confirmed and many.reach.is_confirmed
    assert bool((few.answer.probs > 0).all())
    assert "it is above 0.473 over all source entities" in few.reach.text()
    assert none.reach.threshold == math.inf and not (none.answer.probs > 0).any()
    assert "cannot be reached" in none.reach.text()


def test_links_without_an_accepted_match_confirm_nothing() -> None:
    probs = torch.tensor([0.95] * 20 + [0.1] * 80).double()
    answer = Beliefs(torch.arange(100).unsqueeze(1), probs.unsqueeze(1))
    found = reaching(answer, NONE, 0.9, JudgedAnswer(answer, right_links(100)))
    assert (found.num_links, found.num_judged, found.is_confirmed) == (100, 20, False)
    assert "higher" not in found.text()  # so many links need no higher threshold


def test_errors_of_links_are_no_confirmation() -> None:
    answer = Beliefs(torch.arange(100).unsqueeze(1), torch.full((100, 1), 0.95))
    links = right_links(100)
    links[:12, 1] += 100
    found = reaching(answer, NONE, 0.9, JudgedAnswer(answer, links))
    assert found.num_right == 88 and not found.is_confirmed
    assert "how many entities have one is not estimated" in found.text()


@pytest.mark.parametrize(
    ("probs", "target"),
    [([0.9, 0.8, 0.7], 0.8), ([0.95, 0.9, 0.85], 0.9), ([0.7, 0.6, 0.5], 0.6)],
)
def test_a_mean_that_equals_the_target_is_enough(
    probs: list[float], target: float
) -> None:
    exact = torch.tensor(probs, dtype=torch.float64).unsqueeze(1)
    answer = Beliefs(torch.arange(3).unsqueeze(1), exact)
    many = JudgedAnswer(answer, np.stack([np.zeros(100, dtype=np.int64)] * 2, axis=1))
    assert reaching(answer, NONE, target, many).threshold == pytest.approx(min(probs))
    assert reaching(answer, NONE, target + 1e-6, many).threshold > min(probs)


def test_equal_probabilities_are_accepted_together() -> None:
    # with the first of the matches of 0.4 the mean is 0.85, with all of them 0.7
    probs = torch.tensor([1.0] * 3 + [0.4] * 3).double()
    answer = Beliefs(torch.arange(6).unsqueeze(1), probs.unsqueeze(1))
    judged = JudgedAnswer(answer, np.repeat([[0, 0]], 100, axis=0))
    assert reaching(answer, NONE, 0.8, judged).threshold == 1.0
    assert reaching(answer, NONE, 0.7, judged).threshold == pytest.approx(0.4)


def test_a_threshold_that_the_links_contradict_is_not_chosen() -> None:
    # the mean probability allows all matches, but those of the last 60 links are wrong
    probs = torch.tensor([0.99] * 100 + [0.9] * 60).double()
    answer = Beliefs(torch.arange(160).unsqueeze(1), probs.unsqueeze(1))
    links = right_links(160)
    right = reaching(answer, NONE, 0.9, JudgedAnswer(answer, links))
    assert right.threshold == pytest.approx(0.9)
    links[100:, 1] += 200
    found = reaching(answer, NONE, 0.9, JudgedAnswer(answer, links))
    assert found.threshold == pytest.approx(0.99)
    assert (found.num_judged, found.num_right) == (100, 100)


def run_with_shifted_probs(
    seed: int, share: float, shift: float, num_links: int, spread: float
) -> tuple[bool, float]:
    """Return whether .9 is reached, and the true precision over all source entities.

    Probabilities are calibrated but for a shift of their log odds. The share of entities with a
    counterpart is known with an error of ``spread`` standard deviations.
    """
    rng = np.random.default_rng(seed)
    num = 2000
    has = np.arange(num) < share * num
    score = rng.normal(np.where(has, 2.5, -2.5), 5**0.5)  # log likelihood ratio: score
    odds = score + np.log(share / (1 - share)) if share < 1 else rng.normal(2.5, 2, num)
    is_right = has & (rng.random(num) < (1.0 if share < 1 else expit(odds)))
    targets = np.where(is_right, np.arange(num), num + np.arange(num))
    probs = torch.from_numpy(expit(odds + shift)).unsqueeze(1)
    answer = Beliefs(torch.from_numpy(targets).unsqueeze(1), probs)
    links = right_links(num)[rng.permutation(int(has.sum()))[:num_links]]
    of_others = (has.sum() - num_links) / (num - num_links)
    low = np.clip(of_others + spread * (rng.normal() - 1.96), 0, 1)
    found = reaching(answer, NONE, 0.9, JudgedAnswer(answer, links), least_share=low)
    others = np.setdiff1d(np.flatnonzero(probs[:, 0] >= found.threshold), links[:, 0])
    return found.is_confirmed, float(is_right[others].mean()) if len(others) else 1.0


@pytest.mark.parametrize("num_links", [100, 500])
@pytest.mark.parametrize("shift", [0.3, 1.0])
@pytest.mark.parametrize(("share", "spread"), [(1.0, 0.0), (0.6, 0.0), (0.6, 0.05)])
def test_probabilities_that_are_too_high_seldom_reach_a_target(
    share: float, spread: float, shift: float, num_links: int
) -> None:
    runs = [
        run_with_shifted_probs(seed, share, shift, num_links, spread)
        for seed in range(100)
    ]
    missed = [is_reached for is_reached, precision in runs if precision < 0.9]
    assert len(missed) > 50 and np.mean(missed) <= 0.08


def test_many_links_confirm_a_target_that_is_kept() -> None:
    runs = [run_with_shifted_probs(seed, 0.95, -1.5, 1000, 0.0) for seed in range(20)]
    assert np.mean([is_reached for is_reached, _ in runs]) > 0.8
    assert min(precision for _, precision in runs) > 0.9


def test_crossed_links_are_judged_without_their_labels() -> None:
    # the beliefs prefer a wrong target for each link; as labels, the links are right
    targets = torch.stack([torch.arange(50) + 100, torch.arange(50)], dim=1)
    beliefs = Beliefs(targets, torch.tensor([[0.95, 0.04]]).expand(50, 2))
    links = right_links(40)
    settings = ExportSettings(target_precision=0.9)
    crossed = decide(BestAnswer(), beliefs, torch.from_numpy(links), settings, links)
    assert crossed.reach is not None
    assert crossed.reach.num_right == 0 and not crossed.reach.is_confirmed
    assert crossed.answer.best_targets()[:40].tolist() == list(range(40))
    assert crossed.unseen is not None
    assert crossed.unseen.best_targets()[:40].tolist() == list(range(100, 140))
    train = torch.from_numpy(right_links(50)[40:])
    plain = decide(BestAnswer(), beliefs, train, settings, links)
    assert plain.unseen is None and plain.reach is not None
    assert plain.reach.num_right == 0 and plain.reach.num_links == 40


def test_all_matches_of_an_entity_count() -> None:
    probs = torch.tensor([[0.99, 0.7]] * 100 + [[0.7, 0.0]] * 10).double()
    answer = Beliefs(torch.arange(220).view(110, 2), probs)
    links = right_links(100) * [1, 2]
    found = reaching(answer, NONE, 0.9, JudgedAnswer(answer, links))
    assert found.threshold == pytest.approx(0.99)  # with the others, the mean is 0.838


def test_other_labels_of_an_entity_are_not_judged() -> None:
    targets, probs = (
        torch.tensor([[0, 1], [2, 3]]),
        torch.tensor([[0.9, 0.8], [0.7, 0.0]]),
    )
    settings, validation = ExportSettings(target_precision=0.5), np.array([[0, 1]])
    labels = torch.tensor([[0, 0]])
    found = decide(
        BestAnswer(),
        Beliefs(targets, probs),
        labels,
        settings,
        validation,
        cardinality=Cardinality.ONE_TO_MANY,
    ).on_validation(Supervision(labels.numpy(), validation))
    assert found.at(0).num_accepted == 0


def test_the_encoders_that_agree_are_counted() -> None:
    answer = Beliefs(torch.tensor([[5], [6]]), torch.tensor([[0.9], [0.8]]))
    votes = torch.tensor([[5, 5], [5, 6], [-1, 6]])
    found = decide(
        BestAnswer(), answer, NONE, ExportSettings(), right_links(0), votes=votes
    )
    assert found.witnesses().tolist() == [2, 2]  # type: ignore[union-attr]


def test_a_target_precision_needs_validation_links() -> None:
    links, none = right_links(4), right_links(0)
    settings = ExportSettings(target_precision=0.9)
    with pytest.raises(ConfigError, match="needs validation links"):
        check_founded(settings, Split(Supervision(links, none), links))
    check_founded(settings, Split(Supervision(none, links), links))
    check_founded(ExportSettings(), Split(Supervision(links, none), links))
