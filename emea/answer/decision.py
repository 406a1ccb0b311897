"""Turns the beliefs of a run into an alignment: decoding, then a threshold."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from torch import Tensor

from emea.answer.decoding import accepted
from emea.config.settings.execution import ExportSettings
from emea.data.arrays import IntArray
from emea.data.split import MORE_VALIDATION, Split
from emea.errors import ConfigError
from emea.evaluation.calibration import Acceptance, JudgedAnswer
from emea.matching.beliefs import Beliefs

logger = logging.getLogger(__name__)


def with_given(settings: ExportSettings, **given: Any) -> ExportSettings:
    """Return the settings with the given values; ``None`` means that a value is not given.

    A threshold replaces a target precision, and the other way round.
    """
    changed = {name: value for name, value in given.items() if value is not None}
    if "threshold" in changed or "target_precision" in changed:
        changed = {"threshold": None, "target_precision": None, **changed}
    if "formats" in changed:
        changed["formats"] = tuple(changed["formats"])
    return replace(settings, **changed)


Answering = Callable[[Beliefs, Tensor], Beliefs]
"""Maps beliefs and certain links to at most one target for each source entity."""


@dataclass(frozen=True, eq=False)
class Decision:
    """The selected matches and the threshold that selected them.

    Args:
        beliefs: Candidates and probabilities; labels are certain.
        answer: At most one target for each source entity, above the threshold.
        labels: ``[num_labels, 2]`` links that are certain.
        threshold: Minimum probability of a match; infinite if a target precision cannot be
            reached.
        best: The most precise threshold, if a target precision cannot be reached.
    """

    beliefs: Beliefs
    answer: Beliefs
    labels: Tensor
    threshold: float
    best: Acceptance | None = None


def check_founded(settings: ExportSettings, split: Split) -> None:
    """Check that there are validation links if a target precision is set.

    Raises:
        ConfigError: If there are no validation links.
    """
    if settings.target_precision is not None and not len(split.supervision.validation):
        raise ConfigError(
            "A target precision needs validation links to choose a threshold, and the run has "
            f"none. Set a threshold instead (--threshold or export.threshold). {MORE_VALIDATION}"
        )


def decide(
    answering: Answering,
    beliefs: Beliefs,
    labels: Tensor,
    settings: ExportSettings,
    validation: IntArray,
) -> Decision:
    """Decode the beliefs and apply the threshold.

    Args:
        answering: The decoder.
        beliefs: Final beliefs of the run.
        labels: Links that are certain.
        settings: Threshold or target precision.
        validation: Held-out links that choose the threshold for a target precision.
    """
    answer = answering(beliefs, labels)
    threshold, best = settings.threshold or 0.0, None
    if settings.target_precision is not None:
        judged = JudgedAnswer(answer, validation)
        found = judged.reaching(settings.target_precision)
        threshold = math.inf if found is None else found.threshold
        if found is None:
            best = judged.most_precise()
            logger.warning(unreached(settings.target_precision, best, len(validation)))
    kept = accepted(answer, threshold, labels)
    return Decision(beliefs.clamped(labels), kept, labels, threshold, best)


def unreached(target: float, best: Acceptance | None, num_links: int) -> str:
    """Explain that a target precision cannot be reached, and which one can."""
    if best is None:
        found = f"none of the {num_links} validation links has a match"
    else:
        found = (
            f"the best on {num_links} validation links is {best.precision:.3f} "
            f"({best.num_accepted} accepted, threshold {best.threshold:.6g})"
        )
    return (
        f"Precision {target:g} cannot be reached: {found}. Only training links are exported. "
        "Choose a lower target precision or set a threshold."
    )


class AcceptedNumbers(TypedDict, total=False):
    """Precision and recall of the accepted matches; no threshold if all are accepted."""

    num_links: int
    num_accepted: int
    precision: float
    precision_low: float
    recall: float
    threshold: float


class ExportNumbers(TypedDict):
    """The section ``export`` of ``metrics.json``: the threshold and its effect."""

    formats: list[str]
    top_k: int
    threshold: float | None
    target_precision: float | None
    reached: bool | None
    best: AcceptedNumbers | None
    num_answered: int
    num_unmatched: int
    share_answered: float
    mean_prob: float
    num_by_prob: dict[str, int]
    validation: AcceptedNumbers
    test: AcceptedNumbers


def decision_numbers(decision: Decision, settings: ExportSettings, split: Split) -> ExportNumbers:
    """Compute the section ``export``: the threshold, and number and precision of matches."""
    at, wanted = decision.threshold, settings.target_precision
    num_given = len(decision.labels)  # training links have probability 1
    num_free = decision.answer.num_source - num_given
    probs = decision.answer.probs.max(1).values.double()
    num_answered = int((probs > 0).sum()) - num_given
    validation = JudgedAnswer(decision.answer, split.supervision.validation).at(0)
    test = JudgedAnswer(decision.answer, split.test, split.num_missed).at(0)
    return {
        "formats": list(settings.formats),
        "top_k": settings.top_k,
        "threshold": at if 0 < at < math.inf else None,
        "target_precision": wanted,
        "reached": None if wanted is None else at < math.inf,
        "best": None if decision.best is None else _numbers(decision.best),
        "num_answered": num_answered,
        "num_unmatched": num_free - num_answered,
        "share_answered": num_answered / num_free if num_free else math.nan,
        "mean_prob": (float(probs.sum()) - num_given) / num_answered if num_answered else math.nan,
        "num_by_prob": _counts(probs, num_given),
        "validation": _numbers(validation),
        "test": _numbers(test),
    }


def _counts(probs: Tensor, num_given: int) -> dict[str, int]:
    """Count matches by probability, without the training links, whose probability is 1."""
    sure, likely = (int((probs >= bound).sum()) for bound in (0.9, 0.5))
    return {
        "from 0.9": sure - num_given,
        "from 0.5 to 0.9": likely - sure,
        "below 0.5": int((probs > 0).sum()) - likely,
    }


def _numbers(found: Acceptance) -> AcceptedNumbers:
    numbers: AcceptedNumbers = {
        "num_links": found.num_links,
        "num_accepted": found.num_accepted,
        "precision": found.precision,
        "precision_low": found.precision_low,
        "recall": found.recall,
    }
    if found.threshold:
        numbers["threshold"] = found.threshold
    return numbers
