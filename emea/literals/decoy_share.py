"""The share of the source entities that have a counterpart, with its interval, from decoys.

The probabilities p_i of the best pairs count the counterparts that are best candidates. Others are
missed, because a wrong candidate ranks higher. With the share F(s) of entities whose best wrong
candidate ranks below s, a right pair of rank s_i is seen with the probability F(s_i), so

- share = sum_i p_i / F(s_i) / n (``corrected_share``; Horvitz and Thompson, 1952).

The interval comes from a bootstrap over entities (``counterpart_share``). Each sample also draws
what decoys do not determine: the level of ``share_of_right``, how much unsure decoys count, and the
rate of lookalikes. Its lower end counts no missed counterparts, because decoys show F only in part.
The draws were chosen on four pairs of tables with deleted counterparts. Shares below about .2 can
be estimated too high.
"""

from typing import NamedTuple

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.literals.decoys import (
    LEAST_SHARE,
    SHARE_LEVELS,
    Judgement,
    competing,
    right_probs,
    share_of_right,
)
from emea.literals.lookalikes import NUM_PASSES, RATE, expected_share, log_odds

NUM_SAMPLES = 100
"""Samples of the bootstrap."""

DRAWN_LEVELS = (0.3, 0.5, 0.7, 0.9)
"""Quantiles of the decoys that samples draw from."""

DRAWN_POWERS = (1.0, 4.0)
"""Powers of the probabilities that pairs are decoys: unsure ones count fully, or hardly."""

RATE_COUNT = 3.0
"""The rate of lookalikes is drawn as if it had been observed on so many entities."""

LEAST_SEEN = 0.2
"""Smallest probability that a right pair is seen; a smaller one would multiply few pairs."""

ENDS = (0.025, 0.975)
"""Quantiles of the samples that bound the interval."""


class Share(NamedTuple):
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float


class Seen(NamedTuple):
    """The best pairs of the entities without a link.

    Args:
        competition: ``[num_best]`` by how much better pairs of their targets lower them.
        scores: ``[num_best]`` s of the best pairs.
        decoy_scores: ``[num_best]`` s of the decoys, minus infinity without one.
        decoy_weights: ``[num_best]`` probability that each is a decoy.
        ranks: ``[num_best]`` by which the best pairs were chosen.
        decoy_ranks: ``[num_best]`` the same for the decoys, 0 without one.
        evidence: ``[num_best]`` evidence against lookalikes.
        is_compared: ``[num_best]`` whether there is such evidence.
        share: eta where there is.
    """

    competition: FloatArray
    scores: FloatArray
    decoy_scores: FloatArray
    decoy_weights: FloatArray
    ranks: FloatArray
    decoy_ranks: FloatArray
    evidence: FloatArray
    is_compared: np.ndarray
    share: float

    def taken(self, rows: IntArray) -> "Seen":
        """Return a sample of the entities."""
        return self._replace(
            competition=self.competition[rows],
            scores=self.scores[rows],
            decoy_scores=self.decoy_scores[rows],
            decoy_weights=self.decoy_weights[rows],
            ranks=self.ranks[rows],
            decoy_ranks=self.decoy_ranks[rows],
            evidence=self.evidence[rows],
            is_compared=self.is_compared[rows],
        )


def counterpart_share(judged: Judgement, targets: IntArray, num_free: int) -> Share:
    """Estimate the share of the source entities without a link that have a counterpart.

    Args:
        judged: The best pairs.
        targets: ``[num_best]`` their target entities.
        num_free: The number of source entities without a link.
    """
    seen = seen_pairs(judged, targets)
    num_seen = len(seen.scores)
    if not num_seen:
        return Share(0.0, 0.0, 0.0)
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(NUM_SAMPLES):
        sample = seen.taken(rng.integers(0, num_seen, num_seen))
        level = float(rng.choice(DRAWN_LEVELS))
        rate = float(rng.beta(RATE * RATE_COUNT, (1 - RATE) * RATE_COUNT))
        powers = sample.decoy_weights ** rng.choice(DRAWN_POWERS)
        sample = sample._replace(decoy_weights=powers)
        samples.append(both_shares(sample, (level,), rate))
    plain, corrected = np.array(samples).T
    scale = num_seen / max(1, num_free)
    value = both_shares(seen, SHARE_LEVELS, RATE)[1]
    low = float(np.quantile(plain, ENDS[0]))
    high = float(np.quantile(corrected, ENDS[1]))
    return Share(
        *(min(1.0, scale * one) for one in (value, min(low, value), max(high, value)))
    )


def seen_pairs(judged: Judgement, targets: IntArray) -> Seen:
    """Return what the bootstrap needs of the best pairs without a link."""
    fit = judged.fit
    sample = fit.sample
    num_best = len(sample.best)
    decoy_scores = np.full(num_best, -np.inf)
    decoy_scores[sample.has_decoy] = fit.weighed.scores[num_best:]
    decoy_ranks = np.zeros(num_best)
    decoy_ranks[sample.has_decoy] = fit.ranks[sample.decoys]
    found = judged.lookalikes
    whole = Seen(
        competition=competing(targets, judged.probs) / np.maximum(judged.probs, 1e-9),
        scores=fit.weighed.scores[:num_best],
        decoy_scores=decoy_scores,
        decoy_weights=fit.probs * sample.has_decoy,
        ranks=fit.ranks[sample.best],
        decoy_ranks=decoy_ranks,
        evidence=found.evidence,
        is_compared=found.is_compared,
        share=found.share,
    )
    return whole.taken(np.flatnonzero(~judged.is_known))


def both_shares(
    seen: Seen, levels: tuple[float, ...], rate: float
) -> tuple[float, float]:
    """Return the share of entities whose best pair is right, and with missed counterparts.

    Args:
        seen: The best pairs.
        levels: Quantiles of the decoys below which best pairs count as wrong.
        rate: The rate of lookalikes.
    """
    has_decoy = np.isfinite(seen.decoy_scores)
    share = share_of_right(
        seen.scores,
        seen.decoy_scores[has_decoy],
        seen.decoy_weights[has_decoy],
        levels,
    )
    share = float(np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE))
    # eta follows the rate: in proportion where it is estimated, and by its formula elsewhere
    compared = min(seen.share * rate / RATE, 0.9)
    right = 1.0
    for _ in range(NUM_PASSES // 5):
        lookalikes = np.where(seen.is_compared, compared, expected_share(right, rate))
        probs = right_probs(seen.scores, share, log_odds(seen.evidence, lookalikes))
        right = float(probs.mean())
    probs = probs * seen.competition
    return float(probs.mean()), corrected_share(probs, seen.ranks, seen.decoy_ranks)


def corrected_share(
    probs: FloatArray, ranks: FloatArray, decoy_ranks: FloatArray
) -> float:
    """Return sum_i p_i / F(s_i) / n.

    Args:
        probs: ``[n]`` p of the best pairs.
        ranks: ``[n]`` s of the best pairs.
        decoy_ranks: ``[n]`` ranks of the best wrong candidates, which show F.
    """
    below = np.searchsorted(np.sort(decoy_ranks), ranks, side="right")
    seen = np.maximum(below / len(decoy_ranks), LEAST_SEEN)
    return float((probs / seen).mean())
