"""Similarities, candidates, beliefs and answers in single against double precision."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.answer.decoding import (
    LEAST_REST,
    HungarianAnswer,
    MutualAnswer,
    SinkhornAnswer,
    claims,
)
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.candidates import mutual_pairs, top_candidates
from emea.matching.csls import CSLS
from emea.matching.kmeans_search import KMeansSearch
from emea.matching.matching_marginals import log_marginals, matching_messages
from emea.matching.pair_table import PairTable, tabulate
from emea.matching.similarity import Cosine, Decoder
from emea.matching.two_sided import two_sided

from ..matching.random_tables import random_table
from .both_precisions import ROUNDOFF, all_scores, assert_near, both, in_precision
from .embeddings import COSINE_ERROR, HARD_EMBEDDINGS, csls_error

DECODERS = {"cosine": (Cosine(), COSINE_ERROR), "csls": (CSLS(10), csls_error(10))}

on_hard_embeddings = pytest.mark.parametrize(
    "embeddings", HARD_EMBEDDINGS.values(), ids=HARD_EMBEDDINGS
)
by_each_decoder = pytest.mark.parametrize(
    ("decoder", "error"), DECODERS.values(), ids=DECODERS.keys()
)


@on_hard_embeddings
@by_each_decoder
def test_scores(
    embeddings: tuple[Tensor, Tensor], decoder: Decoder, error: float
) -> None:
    single, double = both(decoder, *embeddings)
    assert_near(all_scores(single), all_scores(double), absolute=error)
    pairs = torch.arange(40), torch.arange(40).flip(0)
    assert_near(single.of_pairs(*pairs), double.of_pairs(*pairs), absolute=error)


@on_hard_embeddings
@by_each_decoder
def test_candidates_are_the_best_but_for_rounding(
    embeddings: tuple[Tensor, Tensor], decoder: Decoder, error: float
) -> None:
    single, double = both(decoder, *embeddings)
    found, scores = top_candidates(single, 7), all_scores(double)
    best = scores.topk(7, dim=1).values
    assert (scores.gather(1, found.targets) >= best - 2 * error).all()
    assert_near(found.scores, best, absolute=error)


@by_each_decoder
def test_mutual_pairs_are_those_of_clear_choices(
    decoder: Decoder, error: float
) -> None:
    source, target = HARD_EMBEDDINGS["ordinary"]
    target = torch.cat([source[::2] + target[:20], target[20:]])
    single, double = both(decoder, source, target)
    scores = all_scores(double)
    for table in (scores, scores.T):
        best = table.topk(2, dim=1).values
        assert (best[:, 0] - best[:, 1]).min() > 2 * error
    assert torch.equal(mutual_pairs(single), mutual_pairs(double))


@on_hard_embeddings
def test_scores_of_an_approximate_search(embeddings: tuple[Tensor, Tensor]) -> None:
    decoder = Cosine(KMeansSearch(num_probes=2, num_cells=6))
    single, double = both(decoder, *embeddings)
    found = top_candidates(single, 5)
    exact = all_scores(double).gather(1, found.targets)
    assert_near(found.scores, exact, absolute=COSINE_ERROR)


@pytest.mark.parametrize("sharpness", [1e-6, 20.0, 1000.0])
@on_hard_embeddings
def test_probabilities_of_both_sides(
    embeddings: tuple[Tensor, Tensor], sharpness: float
) -> None:
    decoder, error = DECODERS["csls"]
    found = both(
        lambda *rows: two_sided(decoder(*rows), 5, (sharpness, 2 * sharpness)),
        *embeddings,
    )
    alike = torch.zeros(len(found[1].pairs.sources))
    exact = tabulate(found[1].pairs, alike, 40, 50, width=99)
    tables = [in_precision(exact, dtype) for dtype in (torch.float32, torch.float64)]
    # logits are off by what the scores are, and by their own rounding; so are the denominators
    size = 2 * sharpness * (float(exact.scores.abs().max()) + 4)
    off = 2 * (2 * sharpness * error + (2 * size + 50 + 4) * ROUNDOFF)
    for single, double in zip(
        *(one.log_probs(table) for one, table in zip(found, tables, strict=True)),
        strict=True,
    ):
        assert_near(single[exact.filled], double[exact.filled], absolute=off)
    rests = (
        one.log_rest(table, one.log_probs(table))
        for one, table in zip(found, tables, strict=True)
    )
    for single, double in zip(*rests, strict=True):
        # no better than the candidates' own: what is left is 1 less their sum
        assert_near(single.exp(), double.exp(), absolute=2 * off + 50 * ROUNDOFF)


def hard_beliefs(
    seed: int = 0, num_source: int = 30, num_target: int = 12, k: int = 6
) -> Beliefs:
    """Rows of all sorts: spread, sure, hopeless, empty."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.rand(num_source, num_target, generator=generator).argsort(1)[:, :k]
    probs = torch.rand(num_source, k, generator=generator, dtype=torch.float64)
    probs /= probs.sum(1, keepdim=True) * 1.1
    probs[::5] *= 1e-30
    probs[1::5] = torch.tensor([1 - 1e-8, 1e-9, 1e-20, 1e-30, 0, 0])
    probs[2::5] = 0
    return Beliefs(targets, probs)


def test_what_is_left_to_other_targets() -> None:
    single, double = both(lambda beliefs: beliefs.rest_prob, hard_beliefs())
    assert_near(single, double, absolute=6 * ROUNDOFF)


@pytest.mark.parametrize("num_rivals", [2, 3, 1000])
@pytest.mark.parametrize("doubt", [1e-7, 1e-8, 1e-10, 0.0])
def test_rivals_share_a_target_however_sure_they_are(
    num_rivals: int, doubt: float
) -> None:
    # rounding makes certainty of what is nearly certain: that must be no leap
    sure = torch.full((num_rivals, 1), 1 - doubt, dtype=torch.float64)
    beliefs = Beliefs(torch.zeros(num_rivals, 1, dtype=torch.int64), sure)
    rounded = Beliefs(beliefs.targets, sure.float())
    many = SinkhornAnswer(rounds=200)
    assert claims(many.balanced(rounded)) <= 1 + 1e-9
    assert_near(
        many.balanced(rounded).probs, many.balanced(beliefs).probs, relative=1e-9
    )
    few = [SinkhornAnswer().balanced(given).probs for given in (rounded, beliefs)]
    assert_near(*few, relative=4 * ROUNDOFF / LEAST_REST)


@pytest.mark.parametrize("answer", [HungarianAnswer(1e-12), MutualAnswer()])
def test_hard_answers(answer: Callable[[Beliefs, Tensor], Beliefs]) -> None:
    beliefs = hard_beliefs()
    beliefs.probs[::7] = 0.5  # ties stay ties
    single, double = both(lambda given: answer(given, torch.tensor([[3, 4]])), beliefs)
    assert torch.equal(single.targets, double.targets)
    assert torch.equal(single.probs.double(), double.probs)


@pytest.mark.parametrize("share", [1e-6, 0.9, 1.0])
def test_evidence_fades(share: float) -> None:
    probs = torch.tensor([0, 1e-30, 1e-10, 0.5, 1 - 2e-7, 1 - ROUNDOFF, 1])
    matching = Matching(torch.arange(7), probs, 7)
    single, double = both(lambda given: given.faded(share).probs, matching)
    # both functions are exact to two roundings, and the second does not enlarge what it is given
    assert_near(single, double, relative=8 * ROUNDOFF)


def test_a_hub_claimed_by_many() -> None:
    size = 100_000
    generator = torch.Generator().manual_seed(0)
    for values in (
        torch.rand(size, 1, generator=generator),
        torch.full((size, 1), 0.3),
    ):
        targets = torch.zeros(size, 1, dtype=torch.int64)
        table = PairTable(targets, values, torch.ones(size, 1, dtype=torch.bool), 1)
        single, double = both(partial(PairTable.sum_by_target, table), values)
        assert_near(single, double, relative=size * ROUNDOFF)


def test_marginals_of_matchings() -> None:
    rng = np.random.default_rng(1)
    table = random_table(rng, 40, 40, 10)
    logits = torch.from_numpy(rng.normal(scale=20, size=table.targets.shape)).float()
    sides = [
        matching_messages(table, values, tolerance=0)
        for values in (logits, logits.double())
    ]
    single, double = (
        log_marginals(table, values, messages).exp()
        for values, messages in zip((logits, logits.double()), sides, strict=True)
    )
    assert single.dtype == torch.float32
    # each of 50 passes rounds logits of up to 80 to eps; a pass passes on errors unchanged at most
    bound = 50 * 80 * torch.finfo(torch.float32).eps
    assert float((single - double).abs().max()) < bound
