"""How precise the accepted part of an answer is, and the threshold that makes it so."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from emea.data.arrays import FloatArray, IntArray
from emea.matching.beliefs import Beliefs

CONFIDENCE = 0.95
"""Of the lower bound of a precision."""


@dataclass(frozen=True)
class Acceptance:
    """What accepting answers from a threshold on comes to, on some links.

    Args:
        threshold: least probability of an accepted answer.
        num_links: links that it was tried on.
        num_accepted: of them, those whose source entity gets an answer.
        num_right: of these, those whose answer is the link's target.
    """

    threshold: float
    num_links: int
    num_accepted: int
    num_right: int

    @property
    def precision(self) -> float:
        """Share of the accepted that is right; not a number where none is."""
        return self.num_right / self.num_accepted if self.num_accepted else float("nan")

    @property
    def recall(self) -> float:
        """Share of the links that is answered rightly; not a number where there are none."""
        return self.num_right / self.num_links if self.num_links else float("nan")

    @property
    def precision_low(self) -> float:
        """What the precision lies above with 95% confidence (Clopper and Pearson, 1934).

        For a threshold that was fixed beforehand: one chosen on the same links does a little
        worse.
        """
        if not self.num_right:
            return 0.0 if self.num_accepted else float("nan")
        wrong = self.num_accepted - self.num_right
        return float(beta.ppf(1 - CONFIDENCE, self.num_right, wrong + 1))


class JudgedAnswer:
    """An answer's probabilities for the source entities of links, and whether it is right.

    Args:
        answer: its most probable target is what it says of an entity, nothing where that has
            probability 0.
        links: ``[num_links, 2]``.
    """

    def __init__(self, answer: Beliefs, links: IntArray) -> None:
        sources, targets = links.T
        self.probs: FloatArray = answer.probs.max(1).values.double().cpu().numpy()[sources]
        self.right: npt.NDArray[np.bool_] = (
            answer.best_targets().cpu().numpy()[sources] == targets
        ) & (self.probs > 0)

    def at(self, threshold: float) -> Acceptance:
        """What accepting from this threshold on comes to."""
        taken = (self.probs >= threshold) & (self.probs > 0)
        num_right = int(self.right[taken].sum())
        return Acceptance(threshold, len(self.probs), int(taken.sum()), num_right)

    def reaching(self, precision: float) -> Acceptance | None:
        """The lowest threshold at which the precision is reached, which answers most.

        ``None`` where no threshold reaches it.
        """
        thresholds, num_accepted, num_right = self._curve()
        # compared as counts would be, if the precision were not a rounded number
        enough = np.flatnonzero(num_right >= precision * num_accepted - 1e-9)
        return self.at(float(thresholds[enough[-1]])) if len(enough) else None

    def most_precise(self) -> Acceptance | None:
        """The threshold of the highest precision, of several the lowest; ``None``: no answer."""
        thresholds, num_accepted, num_right = self._curve()
        if not len(thresholds):
            return None
        precision = num_right / num_accepted
        return self.at(float(thresholds[np.flatnonzero(precision == precision.max())[-1]]))

    def _curve(self) -> tuple[FloatArray, IntArray, IntArray]:
        """Probabilities that occur, highest first; accepted and right from each of them on."""
        order = np.argsort(-self.probs, kind="stable")
        order = order[self.probs[order] > 0]
        probs = self.probs[order]
        # equal probabilities are accepted together
        last = np.flatnonzero(np.append(probs[1:] != probs[:-1], len(probs) > 0))
        num_right = np.cumsum(self.right[order].astype(np.int64))
        return probs[last], last + 1, num_right[last]
