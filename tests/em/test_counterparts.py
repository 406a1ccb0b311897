"""Masked links and the share of entities with a counterpart, by slow references."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from emea.config.composition import composed
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.em.counterparts import (
    Estimate,
    Share,
    adjusted_count,
    admitting_errors,
    masked_copies,
    near_mean,
    pooled,
    truncated,
    weighted_examples,
)
from emea.em.m_step import Choices, fit_weights
from emea.em.match_model import MatchModel
from emea.em.settings import TwoWaySettings
from emea.record.pair_file import load_pair
from emea.run.job import run_job

from ..matching.random_tables import pairs_of
from .test_match_model import NUM_SOURCE, NUM_TARGET, random_features


def estimated_share(
    every: torch.Tensor, linked: torch.Tensor, masked: torch.Tensor
) -> Estimate:
    """The estimate that an interval begins with."""
    return admitting_errors(adjusted_count(every, linked, masked))


def test_the_estimate_stays_near_the_mean_and_the_interval_does_not() -> None:
    every, linked, masked = (
        torch.full((size,), prob, dtype=torch.float64)
        for size, prob in ((100, 0.5), (20, 0.9), (20, 0.3))
    )
    counted = adjusted_count(every, linked, masked)
    assert counted[:2] == pytest.approx((0.5, 1 / 3))
    variance = 22**-2  # without a variance of the bootstrap
    near = (0.5 / 0.01 + 1 / 3 / variance) / (1 / 0.01 + 1 / variance)
    assert near_mean(counted).mean == pytest.approx(near)
    wide = admitting_errors(counted)
    assert wide.mean < near and wide.deviation > near_mean(counted).deviation


def random_examples(seed: int, num: int = 7, width: int = 4) -> Choices:
    """Examples with empty slots, of which some have no correct pair; none is the last slot."""
    rng = np.random.default_rng(seed)
    offsets = np.zeros((num, width + 1))
    slots = rng.integers(0, width + 1, num)
    for row in range(num):
        empty = rng.random(width) < 0.3
        empty[slots[row] : slots[row] + 1] = False
        offsets[row, :-1][empty] = -np.inf
    values = torch.from_numpy(rng.normal(size=(num, width + 1, 3)))
    return Choices(values, torch.from_numpy(offsets), torch.from_numpy(slots))


def test_a_masked_copy_lacks_its_pair_and_matches_none() -> None:
    values, offsets, slots = random_examples(1)
    masked = masked_copies(Choices(values, offsets, slots))
    for row in range(len(slots)):
        allowed = [slot for slot in range(5) if offsets[row, slot] == 0]
        kept = [slot for slot in allowed if slot == 4 or slot != slots[row]]
        assert (masked[1][row] == 0).nonzero().squeeze(1).tolist() == kept
    assert masked[2].tolist() == [4] * len(slots)
    assert torch.equal(masked[0], values)


def test_counts_make_links_the_given_share_of_a_side() -> None:
    sides = [random_examples(1), random_examples(2, num=5)]
    shares = [Share(0.25, 0.1, 0.5), Share(1.0, 0.9, 1.0)]
    _, _, slots, counts = weighted_examples(sides, shares)
    # all entities of the second side have a counterpart, so it has no masked copies
    assert len(slots) == 7 + 5 + 7
    assert counts[:12].tolist() == [1] * 12
    assert float(
        counts[:7].sum() / (counts[:7].sum() + counts[12:].sum())
    ) == pytest.approx(0.25)
    assert len(weighted_examples(sides, None)[2]) == 2 * 12


@pytest.mark.parametrize("seed", range(3))
def test_counted_examples_equal_repeated_ones(seed: int) -> None:
    values, offsets, slots = random_examples(seed, num=120)
    counts = torch.from_numpy(np.random.default_rng(seed).integers(1, 4, 120))
    repeated = [
        one.repeat_interleave(counts, dim=0) for one in (values, slots, offsets)
    ]
    found = fit_weights(values, slots, 0.1, offsets=offsets, counts=counts.double())
    expected = fit_weights(repeated[0], repeated[1], 0.1, offsets=repeated[2])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_the_probability_of_any_match_equals_loops() -> None:
    features, model = random_features(3), MatchModel(TwoWaySettings())
    weights = model.weights
    found = model.matched(features, weights)
    for side, num in enumerate((NUM_SOURCE, NUM_TARGET)):
        for entity in range(num):
            rest = float(features.log_rest[side][entity])
            logits = [float(weights[0]) * rest + float(weights[-1])]
            for pair, place in pairs_of(features.table).items():
                named = [features.log_probs[side], *features.evidence.values()]
                if pair[side] == entity:
                    row = [float(one[place]) for one in named]
                    logits.append(float(np.dot(row, weights[:-1].numpy())))
            assert float(found[side][entity]) == pytest.approx(
                1 - softmax(logits)[0], abs=1e-9
            )


def drawn(share: float, num: int, seed: int, shift: float = 0.0) -> np.ndarray:
    """Calibrated probabilities of entities of which a share has a counterpart."""
    rng = np.random.default_rng(seed)
    has = rng.random(num) < share
    score = rng.normal(np.where(has, 2.0, -2.0), 2.0)  # log likelihood ratio: score
    return expit(score + np.log(share / (1 - share)) + shift)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("shift", [0.0, -1.0])
def test_the_share_of_a_mixture_is_found(share: float, shift: float) -> None:
    rng = np.random.default_rng(0)
    odds = np.log(share / (1 - share)) + shift
    linked, masked = (expit(rng.normal(mean, 2.0, 400) + odds) for mean in (2.0, -2.0))
    every = drawn(share, 20_000, 1, shift)
    found, deviation = estimated_share(*map(torch.from_numpy, (every, linked, masked)))
    assert found == pytest.approx(share, abs=min(0.06, 2.5 * deviation))
    few, wider = estimated_share(
        *map(torch.from_numpy, (every, linked[:10], masked[:10]))
    )
    assert few == pytest.approx(share, abs=2.5 * wider) and deviation < wider < 0.35


@pytest.mark.parametrize(("num_links", "num_unlabelled"), [(8, 100), (8, 25), (40, 25)])
def test_the_spread_follows_from_the_numbers_of_links_and_entities(
    num_links: int, num_unlabelled: int
) -> None:
    # links and masked links are told apart without error: only two numbers are uncertain
    share = 0.4
    num_matched = int(share * num_unlabelled)
    every = torch.tensor([1.0] * num_matched + [0.0] * (num_unlabelled - num_matched))
    found, deviation = estimated_share(
        every, torch.ones(num_links), torch.zeros(num_links)
    )
    of_entities = share * (1 - share) / num_unlabelled  # variance of a mean
    of_links = (
        1 / (num_links + 2) ** 2
    )  # a share that was 1 in as many links, by Laplace's rule
    prior = 1 / 0.35**2
    expected = (1 / (of_entities + of_links + 0.04**2) + prior) ** -0.5
    assert found == pytest.approx(share)
    assert deviation == pytest.approx(expected, rel=0.02)  # a bootstrap of 500 samples


def test_a_count_that_cannot_be_right_does_not_outweigh_the_mean() -> None:
    # entities without a counterpart have few triples: they look less matched than masked links
    linked, masked, every = (
        torch.full((num,), prob)
        for num, prob in ((300, 0.46), (300, 0.29), (9_000, 0.21))
    )
    found, deviation = estimated_share(every, linked, masked)
    assert found == pytest.approx(0.21, abs=0.05) and deviation > 0.08


def test_both_sides_have_the_same_number_of_matches() -> None:
    source, target = pooled([(0.4, 0.1), (0.6, 0.05)], (100, 50))
    number = (40 / 10**2 + 30 / 2.5**2) / (1 / 10**2 + 1 / 2.5**2)
    assert (100 * source.value, 50 * target.value) == pytest.approx((number, number))
    spread = 1.96 * (10 / 10**2 + 2.5 / 2.5**2) / (1 / 10**2 + 1 / 2.5**2)
    assert 100 * source.low == pytest.approx(number - spread, abs=1e-3)
    # the smaller side is a limit of the interval, but the estimate is below it
    source, target = pooled([(0.8, 0.1), (1.1, 0.1)], (100, 50))
    assert (source.high, target.high) == (0.5, 1.0)
    assert 0.4 < source.value < 0.5 and target.value == pytest.approx(2 * source.value)
    assert pooled([(0.4, 0.05)], (10,))[0].value == pytest.approx(0.4)
    # a side of which hardly any entity can have a counterpart
    source, target = pooled([(0.002, 0.0002), (0.2, 0.02)], (10_000, 100))
    assert (
        source.value * 10_000 == pytest.approx(20)
        and source.low < source.value < source.high
    )
    assert target.value * 100 == pytest.approx(20)


@pytest.mark.parametrize(
    ("mean", "deviation"),
    [(0.5, 0.1), (0.9, 0.2), (0.1, 0.1), (1.4, 0.2), (-0.5, 0.3), (0.4, 2.0)],
)
def test_a_truncated_distribution_equals_a_sum(mean: float, deviation: float) -> None:
    grid = np.linspace(0.02, 1, 20_001)
    density = np.exp(-(((grid - mean) / deviation) ** 2) / 2)
    density /= density.sum()

    value, low, high = truncated(mean, deviation, 0.02, 1)

    assert value == pytest.approx((grid * density).sum(), abs=1e-3)
    inside = (grid >= low - 1e-9) & (grid <= high + 1e-9)
    assert density[inside].sum() == pytest.approx(0.95, abs=2e-3)
    if deviation < 1:  # the most probable range
        assert density[inside].min() >= density[~inside].max() - 1e-4


@pytest.mark.parametrize("mean", [1e3, -1e3])
def test_a_distribution_far_beyond_a_limit_is_at_this_limit(mean: float) -> None:
    expected = 1.0 if mean > 0 else 0.02
    found = truncated(mean, 0.1, 0.02, 1)
    assert found == pytest.approx([expected] * 3, abs=0.02)
    assert 0.02 <= found[1] <= found[0] <= found[2] <= 1


def studied_case(seed: int) -> tuple[list[float], tuple[Share, ...]]:
    """The true and estimated shares of two sides, of which entities of both lack a counterpart.

    The probabilities are shifted, up to what recorded runs show: their mean is up to .3 too low.
    Entities with a counterpart look a little less, or more, like links.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1500, 6000, 2).tolist()
    num = int(rng.uniform(0.15, 0.95) * min(sizes))
    num_links = int(rng.choice([30, 90, 300, 1000]))
    distance = rng.uniform(0.5, 2.5)
    shift = rng.uniform(-2.0, 0.7)
    unlike = rng.normal(0, 0.25)
    estimates = []
    for size in sizes:
        odds = np.log(num / max(1, size - num)) + shift
        groups = [
            (distance + unlike, num),
            (-distance, size - num),
            (distance, num_links),
            (-distance, num_links),
        ]
        right, wrong, linked, masked = (
            torch.from_numpy(expit(rng.normal(mean, 2.0, count) + odds))
            for mean, count in groups
        )
        estimates.append(estimated_share(torch.cat([right, wrong]), linked, masked))
    return [num / size for size in sizes], pooled(estimates, sizes)


@pytest.mark.slow
def test_intervals_cover_the_truth_in_forty_cases() -> None:
    covered = []
    errors = []
    for seed in range(40):
        truth, shares = studied_case(seed)
        covered.append(shares[0].low <= truth[0] <= shares[0].high)
        errors.append(shares[0].value - truth[0])
    assert np.mean(covered) >= 0.85
    assert abs(np.mean(errors)) < 0.05


def without_targets(pair: GraphPair, share: float, seed: int) -> GraphPair:
    """Delete the target entities of a share of the links, with their triples."""
    order = np.random.default_rng(seed).permutation(len(pair.links))
    cut = int(share * len(order))
    gone, kept = pair.links[order[:cut]], pair.links[np.sort(order[cut:])]
    triples = pair.target.triples
    left = ~np.isin(triples[:, [0, 2]], gone[:, 1]).any(1)
    there = np.unique(triples[left][:, [0, 2]])
    new = np.full(pair.target.num_entities, -1)
    new[there] = np.arange(len(there))
    triples = np.stack(
        [new[triples[left, 0]], triples[left, 1], new[triples[left, 2]]], axis=1
    )
    target = KnowledgeGraph(triples, len(there), pair.target.num_relations)
    links = np.stack([kept[:, 0], new[kept[:, 1]]], axis=1)
    unmatched = np.sort(np.concatenate([gone[:, 0], links[links[:, 1] < 0, 0]]))
    return replace(
        pair, target=target, links=links[links[:, 1] >= 0], unmatched=unmatched
    )


@pytest.mark.parametrize(("deleted", "overlap"), [(0.0, 1.0), (0.4, 1.0), (0.0, 0.7)])
def test_the_share_of_a_synthetic_pair_is_found(
    deleted: float, overlap: float, tmp_path: Path
) -> None:
    settings = [
        "data.num_entities=600",
        f"data.overlap={overlap}",
        "ratio=0.2",
        "tracking=none",
    ]
    config = composed([*settings, "model=lightea", "em=one_to_one", "em.iterations=1"])
    pair = without_targets(load_pair(config), deleted, 1)
    found: dict[str, Any] = run_job(config, tmp_path, pair=pair).metrics
    num_known = found["num_links"]["train"] + found["num_links"]["validation"]
    truth = found["num_links"]["test"] / (pair.source.num_entities - num_known)
    share = found["counterparts"]["source"]
    assert share["value"] == pytest.approx(truth, abs=0.1)
    assert share["low"] - 0.02 <= truth <= share["high"] + 0.02
    if deleted:
        judged = found["sources"]
        assert judged["num_without_counterpart"] == len(pair.unmatched)  # type: ignore[arg-type]
        assert judged["detection"]["auc"] > 0.8
