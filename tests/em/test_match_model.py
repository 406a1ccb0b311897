"""Beliefs and their weights, against loops over entities and a general optimiser."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp

from emea.em.counterparts import estimated_shares, weighted_examples
from emea.em.m_step import Choices, fit_weights
from emea.em.match_model import (
    PRIORS,
    UNMATCHED,
    MatchModel,
    OneToOneModel,
    PairFeatures,
)
from emea.em.settings import TwoWaySettings

from ..matching.random_tables import pairs_of, random_table

Array = np.ndarray
NAMES = ("similarity", "noisy_or", "evidence", "coverage")
NUM_SOURCE, NUM_TARGET = 8, 9
NO_LINKS = torch.zeros(0, 2, dtype=torch.int64)


def random_features(seed: int, fill: float = 0.6) -> PairFeatures:
    """Features of random pairs; what empty slots hold must not matter."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, NUM_SOURCE, NUM_TARGET, 5, fill)

    def values() -> torch.Tensor:
        drawn = torch.from_numpy(rng.normal(size=table.targets.shape))
        return torch.where(table.filled, drawn, 1e4)

    rest = [
        torch.from_numpy(rng.normal(size=size)) for size in (NUM_SOURCE, NUM_TARGET)
    ]
    return PairFeatures(
        table,
        log_probs=(values(), values()),
        log_rest=(rest[0], rest[1]),
        evidence={name: values() for name in NAMES[1:]},
    )


def random_links(seed: int, num_links: int = 6) -> torch.Tensor:
    rng = np.random.default_rng(seed + 100)
    sides = [rng.permutation(size)[:num_links] for size in (NUM_SOURCE, NUM_TARGET)]
    return torch.from_numpy(np.stack(sides, axis=1))


def all_free() -> tuple[torch.Tensor, torch.Tensor]:
    """Every entity counts as unlabelled."""
    source, target = (
        torch.ones(size, dtype=torch.bool) for size in (NUM_SOURCE, NUM_TARGET)
    )
    return source, target


def options(
    features: PairFeatures, side: int, entity: int, names: list[str]
) -> tuple[list[int], Array]:
    """An entity's candidates and the values of each, being none of them last."""
    others, rows = [], []
    for pair, place in pairs_of(features.table).items():
        if pair[side] == entity:
            named = {
                "similarity": features.log_probs[side],
                **features.evidence,
                UNMATCHED: None,
            }
            row = [
                0.0 if named[name] is None else float(named[name][place])
                for name in names
            ]
            others.append(pair[1 - side])
            rows.append(row)
    none = {"similarity": float(features.log_rest[side][entity]), UNMATCHED: 1.0}
    return others, np.array([*rows, [none.get(name, 0.0) for name in names]])


def log_beliefs(model: MatchModel, features: PairFeatures, side: int) -> dict:
    """Log probability of each pair, seen from one side."""
    weights = model.weights.numpy()
    found = {}
    for entity in range((NUM_SOURCE, NUM_TARGET)[side]):
        others, values = options(features, side, entity, model.names)
        logits = (values if model.unmatched else values[:-1]) @ weights
        for other, logit in zip(others, logits, strict=False):
            pair = (entity, other) if side == 0 else (other, entity)
            found[pair] = logit - logsumexp(logits)
    return found


def loss(
    weights: Array, model: MatchModel, features: PairFeatures, links: torch.Tensor
) -> float:
    """What the weights minimise: one example a link and side."""
    losses = []
    for side, link in product((0, 1) if model.both else (0,), links.tolist()):
        others, values = options(features, side, link[side], model.names)
        if link[1 - side] not in others and not model.unmatched:
            continue
        right = (
            others.index(link[1 - side]) if link[1 - side] in others else len(others)
        )
        logits = (values if model.unmatched else values[:-1]) @ weights
        losses.append(logsumexp(logits) - logits[right])
    prior = np.array([PRIORS[name] for name in model.names])
    ridge = model.ridge * max(1.0, 100 / len(losses))
    return float(np.mean(losses) + ridge / 2 * ((weights - prior) ** 2).sum())


CHOICES = list(
    product([NAMES, NAMES[:1], NAMES[1:2], NAMES[1:]], [True, False], [True, False])
)


@pytest.mark.parametrize(("names", "unmatched", "both"), CHOICES)
def test_beliefs_equal_a_loop(
    names: tuple[str, ...], unmatched: bool, both: bool
) -> None:
    features = random_features(len(names))
    model = MatchModel(
        TwoWaySettings(features=names, unmatched=unmatched, both_directions=both)
    )
    model.weights = torch.from_numpy(
        np.random.default_rng(0).normal(size=len(model.names))
    )
    from_source, from_target, belief = model.beliefs(features)
    forth, back = log_beliefs(model, features, 0), log_beliefs(model, features, 1)
    for pair, place in pairs_of(features.table).items():
        one, other = forth[pair], back[pair] if both else 0.0
        assert from_source[place].item() == pytest.approx(one, abs=1e-9)
        assert from_target[place].item() == pytest.approx(other, abs=1e-9)
        assert belief[place].item() == pytest.approx(one + other, abs=1e-9)
    assert not torch.cat([from_source, from_target, belief]).isnan().any()


def test_single_precision_bears_extreme_logits() -> None:
    features = random_features(1)
    extreme = PairFeatures(
        features.table,
        log_probs=(
            features.log_probs[0].float() * 2000,
            features.log_probs[1].float() * 2000,
        ),
        log_rest=(
            features.log_rest[0].float() - 2000,
            features.log_rest[1].float() - 2000,
        ),
        evidence={name: values.float() for name, values in features.evidence.items()},
    )
    for values in MatchModel(TwoWaySettings()).beliefs(extreme):
        assert not values.isnan().any()
        assert (values[features.table.filled] <= 0).all()


@pytest.mark.parametrize(("names", "unmatched", "both"), CHOICES)
def test_fit_equals_a_general_optimiser(
    names: tuple[str, ...], unmatched: bool, both: bool
) -> None:
    features, links = random_features(7), random_links(7)
    missing = [tuple(link) not in pairs_of(features.table) for link in links.tolist()]
    assert any(missing) and not all(missing)
    model = MatchModel(
        TwoWaySettings(
            features=names, unmatched=unmatched, both_directions=both, ridge=0.05
        )
    )
    model.fit(features, model.examples(features.table, links), all_free())
    bounds = [(None if name == UNMATCHED else 0.0, None) for name in model.names]
    arguments = (model, features, links)
    best = minimize(
        loss, np.ones(len(bounds)), arguments, method="L-BFGS-B", bounds=bounds
    )
    assert loss(model.weights.numpy(), *arguments) <= best.fun + 1e-9
    np.testing.assert_allclose(model.weights, best.x, atol=2e-3)
    assert (model.weights[: len(names)] >= 0).all()


def test_the_weight_of_no_match_may_have_any_sign() -> None:
    features = random_features(7)
    there = torch.tensor(list(pairs_of(features.table)))[::4]
    absent = [
        pair
        for pair in product(range(8), range(9))
        if pair not in pairs_of(features.table)
    ]
    signs = []
    for links in (there, torch.tensor(absent)[::4]):
        model = MatchModel(TwoWaySettings(ridge=1e-4))
        model.fit(features, model.examples(features.table, links), all_free())
        signs.append(float(model.weights[-1]) > 0)
    assert signs == [False, True]


@pytest.mark.parametrize("kind", [MatchModel, OneToOneModel])
@pytest.mark.parametrize("unmatched", [True, False])
def test_without_links_it_is_the_prior(kind: type[MatchModel], unmatched: bool) -> None:
    model = kind(TwoWaySettings(unmatched=unmatched))
    prior = model.prior.tolist()
    assert model.weights.tolist() == prior
    features = random_features(2)
    absent = [
        pair
        for pair in product(range(8), range(9))
        if pair not in pairs_of(features.table)
    ]
    # links to no candidate say nothing without room for them
    for links in (NO_LINKS, torch.tensor(absent))[
        : 1 if unmatched or kind is OneToOneModel else 2
    ]:
        model.weights = model.weights + 1
        model.fit(features, model.examples(features.table, links), all_free())
        assert model.weights.tolist() == prior


def examples_of(
    model: MatchModel, features: PairFeatures, side: int, links: torch.Tensor
) -> Choices:
    """The links of a side as examples."""
    rows, slots = [], []
    for link in links.tolist():
        others, values = options(features, side, link[side], model.names)
        rows.append(values)
        slots.append(others.index(link[1 - side]) if link[1 - side] in others else -1)
    width = max(map(len, rows))
    values = np.zeros((len(rows), width, len(model.names)))
    offsets = np.full((len(rows), width), -np.inf)
    for row, known in enumerate(rows):
        values[row, : len(known) - 1], values[row, -1] = known[:-1], known[-1]
        offsets[row, : len(known) - 1] = offsets[row, -1] = 0
    slots = [width - 1 if slot < 0 else slot for slot in slots]
    return Choices(
        torch.from_numpy(values), torch.from_numpy(offsets), torch.tensor(slots)
    )


@pytest.mark.parametrize("seed", range(2))
def test_shares_follow_from_weights_that_also_saw_masked_links(seed: int) -> None:
    features, links = random_features(seed), random_links(seed)
    model = MatchModel(TwoWaySettings(features=NAMES))
    given = [examples_of(model, features, side, links) for side in (0, 1)]
    unlabelled = tuple(
        torch.arange(size) >= size // 2 for size in (NUM_SOURCE, NUM_TARGET)
    )
    shares = None
    for _ in range(2):  # the second fit counts masked links by the shares of the first
        values, offsets, slots, counts = weighted_examples(given, shares)
        weights = fit_weights(
            values,
            slots,
            model.ridge,
            prior=model.prior,
            least=model.least,
            offsets=offsets,
            counts=counts,
        )
        shares = estimated_shares(
            model.matched(features, weights), unlabelled, given, weights
        )
        model.fit(features, model.examples(features.table, links), unlabelled)
        assert model.shares is not None
        assert np.array(model.shares) == pytest.approx(np.array(shares), abs=1e-4)
    assert not torch.allclose(weights, model.weights, atol=1e-2)


def test_the_share_is_that_of_unlabelled_entities() -> None:
    features, links = random_features(0), random_links(0)
    shares = []
    for least_first in (True, False):
        model = MatchModel(TwoWaySettings(features=NAMES))
        matched = model.matched(features, model.weights)
        order = [one.argsort(descending=not least_first)[:4] for one in matched]
        sizes = NUM_SOURCE, NUM_TARGET
        marked = [torch.zeros(size, dtype=torch.bool) for size in sizes]
        for one, chosen in zip(marked, order, strict=True):
            one[chosen] = True
        model.fit(features, model.examples(features.table, links), marked)
        assert model.shares is not None
        shares.append(model.shares[0].value)
    assert shares[0] < shares[1] - 0.05
