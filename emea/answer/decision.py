"""Turns the beliefs of a run into an alignment: decoding, then a threshold."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.answer.decoding import MORE_LIKELY, accepted, with_certain
from emea.answer.settings import ExportSettings
from emea.data.arrays import IntArray, are_among
from emea.data.settings import Cardinality
from emea.data.split import MORE_VALIDATION, Split, Supervision
from emea.errors import ConfigError
from emea.evaluation.calibration import (
    CONFIDENCE,
    Acceptance,
    JudgedAnswer,
    confirmable,
    lower_bound,
)
from emea.matching.beliefs import Beliefs
from emea.matching.rejected_pairs import RejectedPairs

logger = logging.getLogger(__name__)

ROUNDING = 1e-9
"""Tolerance of a sum of probabilities."""


def with_given(
    settings: ExportSettings,
    *,
    formats: Sequence[str] | None = None,
    top_k: int | None = None,
    threshold: float | None = None,
    target_precision: float | None = None,
    vocabulary: str | None = None,
    close_below: float | None = None,
    license: str | None = None,
    least_inclusion: float | None = None,
) -> ExportSettings:
    """Return the settings with the given values; ``None`` means that a value is not given.

    A threshold replaces a target precision, and the other way round. The arguments are settings
    of ``export``.
    """
    if threshold is not None or target_precision is not None:
        settings = replace(
            settings, threshold=threshold, target_precision=target_precision
        )
    given = {
        "formats": None if formats is None else tuple(formats),
        "top_k": top_k,
        "vocabulary": vocabulary,
        "close_below": close_below,
        "license": license,
        "least_inclusion": least_inclusion,
    }
    changed: dict[str, Any] = {
        name: value for name, value in given.items() if value is not None
    }
    return replace(settings, **changed)


Answering = Callable[[Beliefs, Tensor], Beliefs]
"""Maps beliefs and certain links to at most one target for each source entity."""


@dataclass(frozen=True)
class Reach:
    """The threshold for a target precision, infinite if none reaches it, and what supports it.

    Args:
        target: The precision.
        threshold: The chosen threshold.
        num_links: The number of validation links.
        num_judged: How many of them have an accepted match.
        num_right: How many of these matches are correct.
        num_open: Source entities without a label and without a validation link.
        num_accepted: Their accepted matches.
        least_share: Lower end of the 95% interval of the share of these entities that have a
            counterpart; ``None`` if the method does not estimate it.
        is_estimated: Whether probabilities come from decoys, so that no link has to support the
            choice of the threshold.
    """

    target: float
    threshold: float
    num_links: int
    num_judged: int
    num_right: int
    num_open: int = 0
    num_accepted: int = 0
    least_share: float | None = None
    is_estimated: bool = False

    @property
    def confirmable(self) -> float:
        """The largest precision that all validation links could confirm."""
        return confirmable(self.num_links)

    @property
    def of_links(self) -> float:
        """The 95% lower bound of the precision on entities with a counterpart."""
        return lower_bound(self.num_right, self.num_judged)

    @property
    def precision_low(self) -> float:
        """The 95% lower bound of the precision over all source entities; NaN without a share.

        Validation links are drawn like other entities with a counterpart. So a share r of these
        has a correct match, and of N entities of which a share pi has a counterpart, pi r N have.
        With A accepted matches, the precision is pi r N / A. The bound takes the lower ends of pi
        and r. It is at most the bound on the links, which have no match for an entity without a
        counterpart.
        """
        if self.least_share is None:
            return math.nan
        num_right = lower_bound(self.num_right, self.num_links) * self.num_open
        of_all = self.least_share * num_right / max(1, self.num_accepted)
        return min(self.of_links, of_all)

    @property
    def is_confirmed(self) -> bool:
        """Whether there is a threshold, and the bound over all source entities is the target."""
        return self.threshold < math.inf and self.precision_low >= self.target

    def text(self) -> str:
        """Explain why the target precision is not confirmed."""
        if self.threshold == math.inf:
            return (
                f"Precision {self.target:g} cannot be reached: no matches are probable enough. "
                "Only training links are exported. Choose a lower target precision or set a "
                "threshold."
            )
        if not self.num_links:
            return (
                f"Precision {self.target:g} is an estimate from decoys: no validation link "
                f"confirms it. {MORE_VALIDATION}"
            )
        low = self.precision_low
        bound = f"with 95% confidence, it is above {low:.3f} over all source entities"
        if self.least_share is None:
            bound = (
                f"with 95% confidence, it is above {self.of_links:.3f} on entities with a "
                "counterpart, and how many entities have one is not estimated"
            )
        higher = " The threshold is higher than with more links."
        return (
            f"Precision {self.target:g} is expected, but not confirmed: {bound}. "
            f"{self.num_judged} of {self.num_links} validation links have a match with a "
            f"probability of at least {self.threshold:.6g}, of which {self.num_right} are correct."
            f"{higher if self.confirmable < self.target else ''} {MORE_VALIDATION}"
        )


@dataclass(frozen=True, eq=False)
class Decision:
    """The selected matches and the threshold that selected them.

    Args:
        beliefs: Candidates and probabilities; labels are certain.
        answer: At most one target for each source entity, above the threshold.
        labels: ``[num_labels, 2]`` links that are certain.
        threshold: Minimum probability of a match; infinite if a target precision cannot be
            reached.
        decoded: The matches before the threshold; ``None`` if they are those of the answer.
        reach: How far a target precision is reached; ``None`` without one.
        votes: ``[num_members, num_source]`` best target of each encoder of an ensemble.
        cardinality: How many counterparts an entity may have.
        unseen: The matches before the threshold without the labels that are also validation links;
            ``None`` if no label is one.
    """

    beliefs: Beliefs
    answer: Beliefs
    labels: Tensor
    threshold: float
    decoded: Beliefs | None = None
    reach: Reach | None = None
    votes: Tensor | None = None
    cardinality: Cardinality = Cardinality.ONE_TO_ONE
    unseen: Beliefs | None = None

    def on_validation(self, known: Supervision) -> JudgedAnswer:
        """Judge the matches on the validation links; other labels are not judged."""
        given = known.train[~are_among(known.train, known.validation)]
        answer = self.answer if self.unseen is None else self.unseen
        return JudgedAnswer(answer, known.validation, given=given)

    def witnesses(self) -> Tensor | None:
        """Return how many encoders have each match as their best, ``[num_source]``."""
        if self.votes is None:
            return None
        return (self.votes.cpu() == self.answer.best_targets().cpu()).sum(0)


def check_founded(
    settings: ExportSettings, split: Split, is_estimated: bool = False
) -> None:
    """Check that there are validation links, or decoys, if a target precision is set.

    Args:
        settings: The settings of the answer.
        split: The split of the links.
        is_estimated: Whether probabilities come from decoys.

    Raises:
        ConfigError: If there are no validation links.
    """
    if is_estimated:
        return
    if settings.target_precision is not None and not len(split.supervision.validation):
        raise ConfigError(
            "A target precision needs validation links to choose a threshold, and the run has "
            "none. Without links, only the probabilities of tables and other records are "
            "calibrated, not those of ontologies, of other graphs whose structure decides, and of "
            "fewer than 100 entities. Set a threshold instead (--threshold or export.threshold). "
            f"{MORE_VALIDATION}"
        )


def decide(
    answering: Answering,
    beliefs: Beliefs,
    labels: Tensor,
    settings: ExportSettings,
    validation: IntArray,
    *,
    votes: Tensor | None = None,
    cardinality: Cardinality = Cardinality.ONE_TO_ONE,
    rejected: IntArray | None = None,
    is_estimated: bool = False,
    least_share: float | None = None,
) -> Decision:
    """Decode the beliefs and apply the threshold.

    This is the one place where the answer of a run is made, so that the decisions of a person bind
    for all methods: labels are in the answer, and rejected pairs are not.

    Args:
        answering: The decoder.
        beliefs: Final beliefs of the run.
        labels: Links that are certain.
        settings: Threshold or target precision.
        validation: Held-out links that check the threshold for a target precision.
        votes: ``[num_members, num_source]`` best target of each encoder of an ensemble.
        cardinality: How many counterparts an entity may have.
        rejected: ``[num_pairs, 2]`` pairs that are not in the answer; ``None`` if there are none.
        is_estimated: Whether probabilities come from decoys. Then matches are more likely right
            than wrong, unless a threshold is set, and no link must support a target precision.
        least_share: Lower bound of the share of the source entities without a label and without a
            validation link that have a counterpart; ``None`` if it is not estimated.
    """
    refused = RejectedPairs(rejected)
    beliefs = refused.removed_from(beliefs)
    if len(refused) and len(labels):
        # labels of a method, such as test links of protocol=released, are not decisions
        labels = labels[~refused(labels[:, 0], labels[:, 1])]
    answer = answering(beliefs, labels)
    usual = MORE_LIKELY if is_estimated else 0.0
    threshold = usual if settings.threshold is None else settings.threshold
    reach = None
    apart = labels[_are_apart(labels, validation)]
    unseen = None if len(apart) == len(labels) else answering(beliefs, apart)
    if settings.target_precision is not None:
        shown = answer if unseen is None else unseen
        judged = JudgedAnswer(shown, validation, given=apart.cpu().numpy())
        reach = reaching(
            answer,
            labels,
            settings.target_precision,
            judged,
            is_estimated=is_estimated,
            least_share=least_share,
        )
        threshold = reach.threshold
    kept = accepted(answer, threshold, labels, cardinality)
    certain = with_certain(beliefs, labels, cardinality)
    return Decision(
        certain, kept, labels, threshold, answer, reach, votes, cardinality, unseen
    )


def _are_apart(labels: Tensor, validation: IntArray) -> Tensor:
    """Return which labels are not validation links."""
    found = ~are_among(labels.cpu().numpy(), validation)
    return torch.from_numpy(found).to(labels.device)


def reaching(
    answer: Beliefs,
    labels: Tensor,
    target: float,
    judged: JudgedAnswer,
    *,
    is_estimated: bool = False,
    least_share: float | None = None,
) -> Reach:
    """Choose the lowest threshold whose matches have a mean probability of the target precision.

    The mean counts all matches, also those of entities without a counterpart. If the validation
    links cannot confirm the target, even if all their matches are correct, the mean must be higher:
    the share of errors that it allows shrinks in proportion to the number of links. Thresholds at
    which the validation links contradict the target are not chosen.

    Args:
        answer: The matches before the threshold.
        labels: Links that are certain; they do not count.
        target: The precision.
        judged: The matches of the validation links.
        is_estimated: Whether probabilities come from decoys, so that no link must support them.
        least_share: Lower bound of the share of the other source entities with a counterpart.
    """
    free = ~are_among(answer.pairs().cpu().numpy(), labels.cpu().numpy())
    probs = -np.sort(-answer.probs[answer.probs > 0].double().cpu().numpy()[free])
    num_links = judged.num_links
    needed = np.log(1 - CONFIDENCE) / np.log(target) if 0 < target < 1 else num_links
    # a target of 0 or 1 without a link allows the same errors with any support
    is_certain = is_estimated or not needed
    support = 1.0 if is_certain else min(1.0, num_links / needed)
    allowed = (1 - target) * support
    expected = np.cumsum(probs) / np.arange(1, len(probs) + 1)
    last = np.append(probs[1:] != probs[:-1], len(probs) > 0)[: len(probs)]
    fits = (
        last & (1 - expected <= allowed + ROUNDING) & ~judged.contradicts(probs, target)
    )
    chosen = np.flatnonzero(fits)
    threshold = float(probs[chosen[-1]]) if len(chosen) else math.inf
    found = judged.at(threshold)
    known = np.union1d(labels[:, 0].cpu().numpy(), judged.sources)
    accepted_probs = np.delete(answer.probs.double().cpu().numpy(), known, axis=0)
    reach = Reach(
        target=target,
        threshold=threshold,
        num_links=num_links,
        num_judged=found.num_accepted,
        num_right=found.num_right,
        num_open=answer.num_source - len(known),
        num_accepted=int(((accepted_probs >= threshold) & (accepted_probs > 0)).sum()),
        least_share=least_share,
        is_estimated=is_estimated,
    )
    if not reach.is_confirmed:
        logger.warning("%s", reach.text())
    return reach


def decision_numbers(
    decision: Decision, settings: ExportSettings, split: Split
) -> dict[str, Any]:
    """Compute the section ``export``: the threshold, and number and precision of matches."""
    at = decision.threshold
    wanted = settings.target_precision
    num_given = len(decision.labels)  # training links have probability 1
    num_labelled = len(torch.unique(decision.labels[:, 0]))
    num_free = decision.answer.num_source - num_labelled
    probs = decision.answer.probs.double().flatten()
    num_answered = int((decision.answer.probs > 0).any(1).sum()) - num_labelled
    num_matches = int((probs > 0).sum()) - num_given
    sure, likely = (int((probs >= bound).sum()) - num_given for bound in (0.9, 0.5))
    known = split.supervision
    given = np.concatenate([known.train, known.validation])
    validation = decision.on_validation(known).at(0 if decision.unseen is None else at)
    test = JudgedAnswer(decision.answer, split.test, split.num_missed, given).at(0)
    return {
        "formats": list(settings.formats),
        "top_k": settings.top_k,
        "threshold": at if 0 < at < math.inf else None,
        "target_precision": wanted,
        "reached": None if decision.reach is None else decision.reach.is_confirmed,
        "confirmable": None if decision.reach is None else decision.reach.confirmable,
        "precision_low": None
        if decision.reach is None
        else decision.reach.precision_low,
        "num_answered": num_answered,
        "num_unmatched": num_free - num_answered,
        "share_answered": num_answered / num_free if num_free else math.nan,
        "mean_prob": (float(probs.sum()) - num_given) / num_matches
        if num_matches
        else math.nan,
        "num_by_prob": {
            "from 0.9": sure,
            "from 0.5 to 0.9": likely - sure,
            "below 0.5": num_matches - likely,
        },
        "validation": _numbers(validation),
        "test": _numbers(test),
    }


def _numbers(found: Acceptance) -> dict[str, float]:
    numbers = {
        "num_links": found.num_links,
        "num_accepted": found.num_accepted,
        "precision": found.precision,
        "precision_low": found.precision_low,
        "recall": found.recall,
    }
    if 0 < found.threshold < math.inf:
        numbers["threshold"] = found.threshold
    return numbers
