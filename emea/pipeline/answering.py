"""From the final beliefs of a run to its answer, and what the answer is worth."""

from collections.abc import Callable
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from emea.data.split import Split
from emea.evaluation.answer_metrics import answer_metrics
from emea.evaluation.calibration import answer_calibration
from emea.matching.beliefs import Beliefs
from emea.matching.best_answer import BestAnswer
from emea.pipeline.building import maker

Answering = Callable[[Beliefs, Tensor], Beliefs]
"""Beliefs and certain links into at most one target for each source entity."""


def build_answering(config: DictConfig) -> Answering:
    """What turns final beliefs into an answer; the best candidate where nothing is configured."""
    node = OmegaConf.select(config, "decoding.answer") if _uses_decoding(config) else None
    answering: Answering = BestAnswer() if node is None else maker(node)()
    return answering


def answer_numbers(config: DictConfig, split: Split, answer: Beliefs) -> dict[str, Any]:
    """What ``metrics.json`` says of the answer, beside the metrics of the ranking."""
    known = np.concatenate([split.supervision.train, split.supervision.validation])[:, 0]
    return {
        "answer": {"decoder": decoder_name(config), **answer_metrics(answer, known, split.test)},
        "calibration": answer_calibration(answer, split.test),
    }


def decoder_name(config: DictConfig) -> str:
    """What decodes the beliefs; none where the method has its own answer."""
    return str(config.decoding.name) if _uses_decoding(config) else "none"


def _uses_decoding(config: DictConfig) -> bool:
    return "decoding" in config.method.uses
