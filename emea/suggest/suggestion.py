"""Suggests the entities of a finished run that a person should label next."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from emea.answer.exporting import top_candidates
from emea.data.arrays import IntArray
from emea.data.entity_kinds import is_blank
from emea.errors import ConfigError
from emea.explain.explainer import Explainer
from emea.run.finished_run import FinishedRun
from emea.suggest.scores import Influence, most_helpful, relation_weights, uncertainties

NUM_ALTERNATIVES = 5
"""Number of candidates that a suggestion offers."""


@dataclass(frozen=True)
class Suggestion:
    """An entity to label.

    Args:
        source: The source entity.
        candidates: Its most probable targets with their probabilities, best first.
        score: What its label would bring: uncertainty times influence.
        uncertainty: Probability that its best candidate is wrong.
        influence: Expected number of uncertain neighbours that its match determines.
        degree: Number of its triples.
    """

    source: int
    candidates: tuple[tuple[int, float], ...]
    score: float
    uncertainty: float
    influence: float
    degree: int


def suggest(explainer: Explainer, count: int, among: IntArray | None = None) -> list[Suggestion]:
    """Return the entities whose labels would help most, the most helpful first.

    Entities with a training or validation link are not suggested, and neither are blank nodes,
    which a person cannot identify. Test links are not used.

    Args:
        explainer: Explains pairs of the finished run.
        count: Largest number of suggestions.
        among: Source entities that can be suggested; ``None`` means all.

    Raises:
        ConfigError: If the count is not positive.
    """
    if count < 1:
        raise ConfigError(f"The number of suggestions must be at least 1, got {count}.")
    run, grounds = explainer.run, explainer.grounds
    influence = Influence.of(grounds.source, relation_weights(grounds))
    num_source = run.pair.source.num_entities
    uncertainty = torch.zeros(influence.num_entities, dtype=torch.float64)  # values are known
    uncertainty[:num_source] = uncertainties(run.beliefs)
    is_open = torch.zeros(influence.num_entities, dtype=torch.bool)
    is_open[:num_source] = _unlabelled(run)
    uncertainty[~is_open] = 0
    names = run.pair.source.all_entity_names
    is_open[:num_source] &= torch.tensor([not is_blank(name) for name in names])
    if among is not None:  # the others stay uncertain, so their neighbours can help them
        is_open &= torch.isin(torch.arange(len(is_open)), torch.from_numpy(among))
    chosen = most_helpful(uncertainty, influence, is_open, count)
    around = influence.on_others(uncertainty)
    degrees = run.pair.source.degrees()
    targets, probs = top_candidates(run.beliefs, NUM_ALTERNATIVES)
    return [
        Suggestion(
            entity,
            _positive(targets[entity], probs[entity]),
            score,
            float(uncertainty[entity]),
            float(around[entity]),
            int(degrees[entity]),
        )
        for entity, score in chosen
    ]


def _unlabelled(run: FinishedRun) -> Tensor:
    """Return whether an entity has neither a training nor a validation link, ``[num_source]``."""
    known = np.concatenate([run.labels.numpy(), run.split.supervision.validation])
    is_open = torch.ones(run.pair.source.num_entities, dtype=torch.bool)
    is_open[known[:, 0]] = False
    return is_open


def _positive(targets: IntArray, probs: np.ndarray) -> tuple[tuple[int, float], ...]:
    both = zip(targets.tolist(), probs.tolist(), strict=True)
    return tuple((target, prob) for target, prob in both if prob > 0)
