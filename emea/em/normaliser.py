"""Conversion of similarities to probabilities (Eq. 1-3), and their means over iterations."""

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching import scanned_search
from emea.matching.beliefs import Beliefs
from emea.matching.best_scores import log_sums
from emea.matching.candidates import Candidates, top_candidates
from emea.matching.similarity import Similarity
from emea.runtime.block_memory import in_smaller_blocks

logger = logging.getLogger(__name__)

FIXED_SHARPNESS = 50.0
"""Sharpness of ``em.normaliser=fixed``: the inverse of LightEA's temperature of 0.02."""

DEFAULT_SHARPNESS = 20.0
"""Sharpness of the softmax if there are no links to fit it on."""

MAX_SHARPNESS = 1000.0
"""Largest sharpness of the softmax: it would be infinite if all links are ranked first."""

MAX_STEPS = 50
"""Largest number of Newton steps."""

FIT_SCORES, MIN_FIT_LINKS = 2**24, 100
"""Scores that the fit holds at a time (128 MB), and the least number of links that it uses."""


@dataclass(frozen=True, eq=False)
class FittedSearch:
    """Holds the search that q is based on, so that a joint step need not repeat it.

    Args:
        side: Candidates of every source entity, and the softmax over targets.
        links: Links on which the sharpness of the softmax was fitted.
    """

    side: Candidates
    links: Tensor

    def equals(self, k: int, links: Tensor) -> bool:
        """Return whether a search for k candidates with these links would give this result."""
        return torch.equal(self.links, links) and self.side.targets.shape[1] == k


class Normaliser(ABC):
    """Turns similarities into q(y_e) over the best candidates of each source entity."""

    @abstractmethod
    def fit(self, similarity: Similarity, links: Tensor) -> None:
        """Fit the parameters on links (source id, target id) that training has not seen."""

    @abstractmethod
    def beliefs(self, similarity: Similarity, num_candidates: int) -> Beliefs:
        """Return q(y_e) of every source entity over its best candidates."""

    def search(
        self, similarity: Similarity, num_candidates: int
    ) -> tuple[Beliefs, FittedSearch | None]:
        """Return the beliefs and their search, which is ``None`` if q is not a softmax."""
        return self.beliefs(similarity, num_candidates), None

    @abstractmethod
    def parameters(self) -> dict[str, float]:
        """Return the fitted parameters by name."""

    @abstractmethod
    def restore(self, parameters: dict[str, float]) -> None:
        """Restore fitted parameters."""


class SoftmaxNormaliser(Normaliser):
    """Computes q as a softmax over all targets with a fitted sharpness (Eq. 1-3).

    Eq. 1 has four parameters, but in the softmax of Eq. 2 every term that is constant along a
    row cancels. Only ``beta = (w1 - w2) / tau`` is identifiable, and the cross-entropy of Eq. 3 is
    convex in it.

    Args:
        sharpness: The value of beta before the first fit.

    Examples:
        >>> from emea.matching.similarity import Cosine
        >>> vectors = torch.eye(3)
        >>> normaliser = SoftmaxNormaliser(sharpness=2.0)
        >>> normaliser.fit(Cosine()(vectors, vectors), torch.tensor([[0, 0], [1, 1], [2, 2]]))
        >>> normaliser.sharpness > 2.0  # all links are right, so a sharper softmax fits better
        True
    """

    def __init__(self, sharpness: float = DEFAULT_SHARPNESS) -> None:
        self.sharpness = sharpness
        self._links = torch.zeros(0, 2, dtype=torch.int64)
        self._has_warned = False

    def fit(self, similarity: Similarity, links: Tensor) -> None:
        """Minimise the cross-entropy of the links (Eq. 3); the prior's mode is the default."""
        self._links = links
        if not len(links):
            self.sharpness = DEFAULT_SHARPNESS
            if not self._has_warned:  # once per run, not in every iteration
                logger.warning(
                    "There are no links to fit the normaliser on. Probabilities use the default "
                    "sharpness %g and are not calibrated.",
                    DEFAULT_SHARPNESS,
                )
            self._has_warned = True
            return
        self.sharpness = sharpness_of(similarity, links)

    def beliefs(self, similarity: Similarity, num_candidates: int) -> Beliefs:
        """Return the softmax over the searched targets (Eq. 2) for the best candidates."""
        return self._searched(similarity, num_candidates, with_mass=False)[0]

    def search(
        self, similarity: Similarity, num_candidates: int
    ) -> tuple[Beliefs, FittedSearch]:
        """Return the beliefs with their scores and denominators."""
        beliefs, side = self._searched(similarity, num_candidates, with_mass=True)
        return beliefs, FittedSearch(side, self._links)

    @in_smaller_blocks
    def _searched(
        self, similarity: Similarity, num_candidates: int, with_mass: bool
    ) -> tuple[Beliefs, Candidates]:
        """Return q and its search; the search's denominators are empty unless requested.

        There are two kinds of denominators: those of q are relative to the best score, those of
        ``Candidates`` are not. Neither can be computed from the other without rounding.
        """
        k = min(num_candidates, similarity.num_target)
        if scanned_search.usable(similarity, k):
            side = top_candidates(similarity, k, self.sharpness)
            probs = torch.exp(self.sharpness * side.scores - side.log_mass.unsqueeze(1))
            return Beliefs(side.targets, probs), side
        scores = similarity.source.new_empty(similarity.num_source, k)
        probs = torch.empty_like(scores)
        targets = torch.empty(probs.shape, dtype=torch.int64, device=probs.device)
        mass = scores.new_empty(similarity.num_source if with_mass else 0)
        for block in similarity.search(k):
            best, targets[block.rows] = block.best(k)
            scores[block.rows] = best
            distances = (block.scores - best[:, :1]).mul_(self.sharpness)
            relative = log_sums(distances, torch.zeros_like(best[:, 0]))
            logits = self.sharpness * (best - best[:, :1])
            probs[block.rows] = torch.exp(logits - relative.unsqueeze(1))
            if with_mass:
                most = self.sharpness * best[:, 0]
                mass[block.rows] = log_sums(self.sharpness * block.scores, most)
        return Beliefs(targets, probs), Candidates(
            targets, scores, mass, self.sharpness
        )

    def parameters(self) -> dict[str, float]:
        """Return the sharpness beta."""
        return {"sharpness": self.sharpness}

    def restore(self, parameters: dict[str, float]) -> None:
        """Restore a fitted sharpness."""
        self.sharpness = float(parameters["sharpness"])


class FixedNormaliser(SoftmaxNormaliser):
    """Computes q as a softmax over all targets with the fixed sharpness of LightEA's code."""

    def __init__(self) -> None:
        super().__init__(FIXED_SHARPNESS)

    def fit(self, similarity: Similarity, links: Tensor) -> None:
        """Do nothing: the sharpness is fixed."""


class MinMaxNormaliser(Normaliser):
    """Scales the candidates' scores to [0, 1] and then to sum 1 (footnote 1 of the paper)."""

    def fit(self, similarity: Similarity, links: Tensor) -> None:
        """Do nothing: there are no parameters."""

    def beliefs(self, similarity: Similarity, num_candidates: int) -> Beliefs:
        """Return the scaled scores of the best candidates; equal scores are equally probable."""
        best = top_candidates(similarity, num_candidates)
        lowest = best.scores[:, -1:]
        width = best.scores[:, :1] - lowest
        scaled = torch.where(width > 0, (best.scores - lowest) / width, 1.0)
        probs = scaled / scaled.sum(1, keepdim=True)
        return Beliefs(best.targets, probs)

    def parameters(self) -> dict[str, float]:
        """Return an empty dictionary: there are no parameters."""
        return {}

    def restore(self, parameters: dict[str, float]) -> None:
        """Do nothing: there is nothing to restore."""


NORMALISERS: dict[str, type[Normaliser]] = {
    "softmax": SoftmaxNormaliser,
    "minmax": MinMaxNormaliser,
    "fixed": FixedNormaliser,
}
"""Normalisers by the value of ``em.normaliser``."""


def sharpness_of(similarity: Similarity, links: Tensor) -> float:
    """Return the sharpness of the softmax over targets that fits the links best (Eq. 3).

    Args:
        similarity: Scores all pairs.
        links: Pairs (source id, target id), at least one.
    """
    # the examples that fit into one block of memory are enough for one parameter
    limit = max(MIN_FIT_LINKS, FIT_SCORES // similarity.num_target)
    links = links[:: -(-len(links) // limit)]
    return fit_sharpness(
        similarity.scores(links[:, 0]).double(), links[:, 1], DEFAULT_SHARPNESS
    )


def fitted_sharpness(
    similarity: Similarity, links: Tensor, forth: Candidates | None = None
) -> tuple[float, float]:
    """Return the sharpness of the softmaxes over targets and sources, fitted on links (Eq. 3).

    Args:
        similarity: Scores all pairs.
        links: Links to fit on. Without links, both have the default sharpness.
        forth: A search from the source side with a fitted sharpness.
    """
    if not len(links):
        return DEFAULT_SHARPNESS, DEFAULT_SHARPNESS
    first = None if forth is None else forth.sharpness
    if first is None:
        first = sharpness_of(similarity, links)
    return first, sharpness_of(similarity.reversed(), links.flip(1))


def fit_sharpness(
    scores: Tensor, labels: Tensor, expected: float | None = None
) -> float:
    """Return the beta >= 0 that minimises the cross-entropy of ``softmax(beta * scores)``.

    This is Newton's method on a convex function of one variable, kept inside a bracket of the root
    of its derivative. It converges from any start.

    Args:
        scores: ``[num_links, num_target]``.
        labels: ``[num_links]`` the correct target of each link.
        expected: Mode of a Gamma prior that adds ``beta / expected - log(beta)`` to the summed
            cross-entropy of the links. Without it, a few links that are all ranked first would
            make beta infinite. ``None``: no prior.
    """
    right = scores.gather(1, labels.unsqueeze(1)).squeeze(1)
    prior, rate = (0.0, 0.0) if expected is None else (1 / len(scores), 1 / expected)
    low = 0.0
    high = MAX_SHARPNESS
    beta = 10.0
    for _ in range(MAX_STEPS):
        probs = torch.softmax(beta * scores, dim=1)
        mean = (probs * scores).sum(1)
        second = (probs * scores.square()).sum(1) - mean.square()
        slope, curvature = torch.stack([(mean - right).mean(), second.mean()]).tolist()
        slope = slope + prior * (rate - 1 / beta)
        curvature = curvature + prior / beta**2
        low, high = (low, beta) if slope > 0 else (beta, high)
        step = beta - slope / curvature if curvature > 0 else low - 1
        step = step if low < step < high else (low + high) / 2
        if abs(step - beta) < 1e-6 * max(1.0, beta):
            return step
        beta = step
    return beta
