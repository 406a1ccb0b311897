"""One-to-one beliefs against enumerated matchings and a general optimiser."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from emea.em import match_model as one_to_one
from emea.em.match_model import COMPETITION, UNMATCHED, OneToOneModel, PairFeatures
from emea.em.normaliser import SoftmaxNormaliser
from emea.em.settings import TwoWaySettings
from emea.em.two_way_step import TwoWayStep
from emea.errors import ConfigError
from emea.matching.matching_marginals import matching_messages
from emea.matching.two_sided import Subset
from emea.rules.paris import PARIS

from ..matching.random_tables import pairs_of
from ..matching.test_matching_marginals import exact
from .aligned_pairs import Aligned, aligned
from .test_match_model import all_free, random_features, random_links
from .test_two_way_step import assert_same, counted, searched, visible

Pair = tuple[int, int]


def pair_features(features: PairFeatures, names: list[str]) -> dict[Pair, np.ndarray]:
    """Features of each pair, by loops."""
    (forth, back), (of_source, of_target) = features.log_probs, features.log_rest
    found = {}
    for (source, target), place in pairs_of(features.table).items():
        odds = forth[place] - of_source[source] + back[place] - of_target[target]
        named = {
            name: float(values[place]) for name, values in features.evidence.items()
        }
        named |= {"similarity": float(odds) / 2, UNMATCHED: -1.0}
        found[source, target] = np.array([named[name] for name in names])
    return found


def step(problem: Aligned, **options: Any) -> TwoWayStep:
    settings = TwoWaySettings(one_to_one=True, **options)
    return TwoWayStep(PARIS(problem.pair), 4, settings)


@pytest.mark.parametrize("seed", [0, 1])
def test_beliefs_are_marginals_of_matchings(seed: int) -> None:
    features = random_features(seed, fill=0.25)
    model = OneToOneModel(TwoWaySettings())
    assert model.names[-1] == COMPETITION and float(model.weights[-1]) == 1
    weights = model.weights[:-1].numpy()
    logits = {
        pair: float(values @ weights)
        for pair, values in pair_features(features, model.names[:-1]).items()
    }
    expected = exact(logits)
    belief = model.beliefs(features)[2].exp()
    found = {
        pair: float(belief[place]) for pair, place in pairs_of(features.table).items()
    }
    assert found == pytest.approx(expected, abs=0.05)
    assert (belief[~features.table.filled] == 0).all()


def test_fit_equals_a_general_optimiser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_to_one, "NUM_FITS", 1)
    features, links = random_features(7), random_links(7)
    model = OneToOneModel(TwoWaySettings(ridge=0.05))
    named = pair_features(features, model.names[:-1])
    prior = model.prior.double().numpy()
    logits = torch.zeros_like(features.log_probs[0])
    for pair, place in pairs_of(features.table).items():
        logits[place] = float(named[pair] @ prior[:-1])
    messages = matching_messages(features.table, logits)
    received = (messages.from_target, messages.from_source)
    places = pairs_of(features.table)

    def loss(weights: np.ndarray) -> float:
        losses = []
        for side in (0, 1):
            for link in map(tuple, links.tolist()):
                options = [pair for pair in named if pair[side] == link[side]]
                values = [
                    [*named[pair], float(received[side][places[pair]])]
                    for pair in options
                ]
                scores = np.array([*(np.array(row) @ weights for row in values), 0.0])
                right = options.index(link) if link in options else len(options)
                losses.append(logsumexp(scores) - scores[right])
                # before there is an estimate, masked links count as often as links
                others = np.delete(scores, right) if right < len(options) else scores
                losses.append(logsumexp(others) - others[-1])
        strength = 0.05 * max(1.0, 100 / len(losses))
        return float(np.mean(losses) + strength / 2 * ((weights - prior) ** 2).sum())

    model.fit(features, model.examples(features.table, links), all_free())
    bounds = [(None if name == UNMATCHED else 0.0, None) for name in model.names[:-1]]
    best = minimize(loss, prior, method="L-BFGS-B", bounds=[*bounds, (0.0, 1.0)])
    assert loss(model.weights.numpy()) <= best.fun + 1e-6
    np.testing.assert_allclose(model.weights, best.x, atol=5e-3)


def test_the_weight_of_the_competition_stays_between_0_and_1() -> None:
    weights = []
    for seed in range(6):
        model = OneToOneModel(TwoWaySettings(ridge=1e-4))
        features = random_features(seed)
        model.fit(
            features, model.examples(features.table, random_links(seed)), all_free()
        )
        weights.append(float(model.weights[-1]))
    assert min(weights) >= 0 and max(weights) == 1 and min(weights) < 1


def test_denominators_hold_unlabelled_entities_only() -> None:
    problem = aligned(2)
    two_way = problem.two_way(propagation=0, one_to_one=True)
    settled = two_way(problem.similarity, problem.labels, problem.links)
    free = Subset.unlabelled(problem.similarity, problem.labels)
    scores = problem.similarity.scores(torch.arange(20)).numpy()
    scores[~free.source.numpy()] = scores[:, ~free.target.numpy()] = -np.inf
    scores = scores[free.source.numpy()]
    expected = softmax(settled.sharpness[0] * scores, axis=1)
    rows = free.source.nonzero().squeeze(1).tolist()
    for row, probs in zip(rows, expected, strict=True):
        for slot in settled.table.filled[row].nonzero().squeeze(1).tolist():
            target = int(settled.table.targets[row, slot])
            assert float(settled.log_probs[0][row, slot].exp()) == pytest.approx(
                probs[target]
            )


def test_an_earlier_iteration_leaves_no_trace() -> None:
    first, second = aligned(1), aligned(1, noise=2.0)
    used = step(first)
    used(first.similarity, visible(first))
    assert used.state_dict() == {}
    fresh = step(first)(second.similarity, visible(second))
    assert_same(used(second.similarity, visible(second)), fresh)


def test_the_search_behind_q_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = aligned(1)
    two_way = step(problem)
    assert not two_way.uses_search
    alone = two_way(problem.similarity, visible(problem))
    neural = searched(problem, SoftmaxNormaliser())
    similarity = problem.similarity
    searches = counted(monkeypatch)
    assert_same(two_way(similarity, visible(problem), neural), alone)
    assert [len(one.source) for one in searches] == [16, 16]  # 20 entities, 4 labels


def test_the_answer_holds_the_beliefs_themselves() -> None:
    problem = aligned(2, num_links=0)
    report = step(problem)(problem.similarity, visible(problem))
    assert report.ranking is not None
    beliefs = report.ranking.scores.exp().sort(dim=1, descending=True).values
    torch.testing.assert_close(report.beliefs.probs, beliefs, atol=1e-2, rtol=0)


@pytest.mark.parametrize("part", ["both_directions", "unmatched"])
def test_it_needs_both_sides_and_room_for_no_match(part: str) -> None:
    with pytest.raises(
        ConfigError, match=r"one_to_one needs em.two_way.both_directions=true"
    ):
        step(aligned(0), **{part: False})
