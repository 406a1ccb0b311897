"""What a run answers: its beliefs decoded, and of that what is probable enough."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor

from emea.answer.decoding import BestAnswer, accepted
from emea.config.checks import check_config
from emea.config.files import sentence
from emea.config.instantiate import maker
from emea.data.arrays import IntArray
from emea.data.split import Split
from emea.errors import ConfigError
from emea.evaluation.target_precision import Acceptance, JudgedAnswer
from emea.matching.beliefs import Beliefs

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExportSettings:
    """Of the node ``export``.

    Args:
        formats: what to write beside the tab-separated files.
        top_k: candidates of each source entity, in formats that have a place for them.
        threshold: least probability of an answer.
        target_precision: on the validation links; it chooses the threshold.
    """

    formats: tuple[str, ...] = ("tsv",)
    top_k: int = 1
    threshold: float | None = None
    target_precision: float | None = None

    def with_given(
        self,
        formats: Sequence[str] | None = None,
        top_k: int | None = None,
        threshold: float | None = None,
        target_precision: float | None = None,
    ) -> "ExportSettings":
        """The same with what is given in its place; the last two stand for each other."""
        changed: dict[str, Any] = {}
        if formats is not None:
            changed["formats"] = tuple(formats)
        if top_k is not None:
            changed["top_k"] = top_k
        if threshold is not None or target_precision is not None:
            changed |= {"threshold": threshold, "target_precision": target_precision}
        return replace(self, **changed)


def export_settings(config: DictConfig) -> ExportSettings:
    """Those of a config; of one from before there were any, the defaults."""
    node = OmegaConf.select(config, "export")
    if node is None:
        return ExportSettings()
    return ExportSettings(tuple(node.formats), node.top_k, node.threshold, node.target_precision)


def check_export(config: DictConfig, settings: ExportSettings) -> None:
    """Refuse settings that the config could not have.

    Raises:
        ConfigError: names the key, what was given and what is allowed.
    """
    asked = config.copy()
    try:
        for name, value in vars(settings).items():
            asked.export[name] = value
    except OmegaConfBaseException as error:  # no kind of value that a config can hold
        raise ConfigError(sentence(error)) from error
    check_config(asked)


Answering = Callable[[Beliefs, Tensor], Beliefs]
"""Beliefs and certain links into at most one target for each source entity."""


def build_answering(config: DictConfig) -> Answering:
    """What turns final beliefs into an answer; a method without decoding has its own."""
    answering: Answering = maker(config.decoding)() if _uses_decoding(config) else BestAnswer()
    return answering


def decoder_name(config: DictConfig) -> str:
    """What decodes the beliefs; none where the method has its own answer."""
    return str(config.decoding.name) if _uses_decoding(config) else "none"


def _uses_decoding(config: DictConfig) -> bool:
    return "decoding" in config.method.uses


@dataclass(frozen=True, eq=False)
class Decision:
    """What is answered, and why.

    Args:
        beliefs: candidates and probabilities, labels certain.
        answer: at most one target for each source entity, above the threshold.
        labels: ``[num_labels, 2]`` links that are certain.
        threshold: least probability of an answer; infinite where a target precision cannot be
            reached.
        best: the most precise there is, where a target precision cannot be reached.
    """

    beliefs: Beliefs
    answer: Beliefs
    labels: Tensor
    threshold: float
    best: Acceptance | None = None


def check_founded(settings: ExportSettings, split: Split) -> None:
    """Refuse a target precision that there are no links to choose a threshold by."""
    if settings.target_precision is not None and not len(split.supervision.validation):
        raise ConfigError(
            "export.target_precision needs validation links to choose a threshold by, and the "
            "split has none: raise split.num_validation, or give export.threshold"
        )


def decide(
    answering: Answering,
    beliefs: Beliefs,
    labels: Tensor,
    settings: ExportSettings,
    validation: IntArray,
) -> Decision:
    """Decode the beliefs and accept what the settings ask for.

    Args:
        answering: how beliefs become an answer.
        beliefs: of the run.
        labels: links it is certain of.
        settings: threshold or target precision.
        validation: links that are no labels; they choose the threshold.
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
    """That a target precision cannot be reached, and what can."""
    if best is None:
        found = f"none of the {num_links} validation links has an answer"
    else:
        found = (
            f"the best on {num_links} validation links is {best.precision:.3f} "
            f"({best.num_accepted} accepted, threshold {best.threshold:.6g})"
        )
    return f"precision {target:g} cannot be reached: {found}; only given links are answered"


class AcceptedNumbers(TypedDict, total=False):
    """How precise the accepted answers are; without a threshold where all are accepted."""

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
    """The threshold, and how many and how precise answers it leaves."""
    at, wanted = decision.threshold, settings.target_precision
    num_given = len(decision.labels)  # each with probability 1
    num_free = decision.answer.num_source - num_given
    probs = decision.answer.probs.max(1).values.double()
    num_answered = int((probs > 0).sum()) - num_given
    validation = JudgedAnswer(decision.answer, split.supervision.validation).at(0)
    test = JudgedAnswer(decision.answer, split.test).at(0)
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
    """Answers that were not given, by their probability; given links have probability 1."""
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
