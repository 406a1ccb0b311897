"""Suggests the entities of a finished run that a person should label next, and writes them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from emea.answer.exporting import DIGITS, top_candidates
from emea.data.arrays import IntArray
from emea.data.entity_kinds import is_blank
from emea.data.graph_pair import GraphPair
from emea.data.names import cell
from emea.explain.explainer import Explainer
from emea.matching.beliefs import Beliefs
from emea.record.checked_files import write_lines
from emea.rules.directed_triples import DirectedTriples
from emea.rules.support import Grounds
from emea.run.finished_run import FinishedRun

TSV_FILE, JSON_FILE = "suggestions.tsv", "suggestions.jsonl"
COLUMNS = (
    "source",
    "candidate",
    "probability",
    "score",
    "uncertainty",
    "influence",
    "degree",
)

NUM_ALTERNATIVES = 5
"""Number of candidates that a suggestion offers."""


LEAST_UNCERTAINTY = 0.01
"""Probability that the best candidate is wrong, from which a label is worth the effort."""


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


def suggest(
    explainer: Explainer, count: int, among: IntArray | None = None
) -> list[Suggestion]:
    """Return the entities whose labels would help most, the most helpful first.

    Entities with a training or validation link are not suggested, and neither are those whose best
    candidate is nearly certain, and blank nodes, which a person cannot identify. Test links are not
    used.

    Args:
        explainer: Explains pairs of the finished run.
        count: Largest number of suggestions.
        among: Source entities that can be suggested; ``None`` means all.
    """
    run = explainer.run
    grounds = explainer.grounds
    influence = Influence.of(grounds.source, relation_weights(grounds))
    num_source = run.pair.source.num_entities
    uncertainty = torch.zeros(
        influence.num_entities, dtype=torch.float64
    )  # values are known
    uncertainty[:num_source] = uncertainties(run.beliefs)
    is_open = torch.zeros(influence.num_entities, dtype=torch.bool)
    is_open[:num_source] = _unlabelled(run)
    uncertainty[~is_open] = 0
    is_open &= uncertainty >= LEAST_UNCERTAINTY
    names = run.pair.source.all_entity_names
    is_open[:num_source] &= torch.tensor([not is_blank(name) for name in names])
    if (
        among is not None
    ):  # the others stay uncertain, so their neighbours can help them
        is_open &= torch.isin(torch.arange(len(is_open)), torch.from_numpy(among))
    chosen = most_helpful(uncertainty, influence, is_open, count)
    around = influence.on_others(uncertainty)
    degrees = run.pair.source.degrees()
    targets, probs = top_candidates(run.beliefs, NUM_ALTERNATIVES)
    suggestions = []
    for entity, score in chosen:
        both = zip(targets[entity].tolist(), probs[entity].tolist(), strict=True)
        candidates = tuple((target, prob) for target, prob in both if prob > 0)
        values = float(uncertainty[entity]), float(around[entity]), int(degrees[entity])
        suggestions.append(Suggestion(entity, candidates, score, *values))
    return suggestions


def _unlabelled(run: FinishedRun) -> Tensor:
    """Return whether an entity has neither a training nor a validation link, ``[num_source]``."""
    known = np.concatenate([run.labels.numpy(), run.split.supervision.validation])
    is_open = torch.ones(run.pair.source.num_entities, dtype=torch.bool)
    is_open[known[:, 0]] = False
    return is_open


def uncertainties(beliefs: Beliefs) -> Tensor:
    """Return the probability that the best candidate of an entity is wrong, ``[num_source]``.

    An entropy would be near 0 for an entity that no evidence reaches, because nearly all of its
    probability belongs to the targets that are not candidates. Its label helps most.
    """
    return 1 - beliefs.probs.double().max(1).values.clamp(max=1)


def sources_between(beliefs: Beliefs, low: float, high: float) -> IntArray:
    """Return the source entities that have a candidate with a probability in a range."""
    _, probs = top_candidates(beliefs, NUM_ALTERNATIVES)
    found: IntArray = np.flatnonzero(((probs >= low) & (probs <= high)).any(1))
    return found


def relation_weights(grounds: Grounds) -> Tensor:
    """Return how much a match says about a neighbour, for each directed relation.

    It is the inverse functionality of the relation times its largest inclusion in, or of, a
    relation of the target graph. A relation without a counterpart carries no evidence.
    """
    triples = grounds.source
    included = grounds.included
    likelier = torch.maximum(
        included.source_in_target, included.target_in_source
    ).double()
    largest = torch.zeros(triples.num_directed, dtype=torch.float64)
    relations = included.keys // included.num_target_relations
    largest.scatter_reduce_(0, relations, likelier, "amax")
    return triples.inverse_functionality.double() * largest


@dataclass(frozen=True, eq=False)
class Influence:
    """Holds how much the match of one entity determines the matches of its neighbours.

    Args:
        entities: ``[num_pairs]`` entities whose match is known.
        neighbours: ``[num_pairs]`` their neighbours.
        probs: ``[num_pairs]`` probability that the match determines the neighbour's match.
        num_entities: Number of entities of the source graph.
    """

    entities: Tensor
    neighbours: Tensor
    probs: Tensor
    num_entities: int

    @classmethod
    def of(cls, triples: DirectedTriples, weights: Tensor) -> "Influence":
        """Combine the relations between two entities by a noisy-or.

        Args:
            triples: The source graph.
            weights: ``[num_directed]`` weight of each relation (:func:`relation_weights`).
        """
        doubt = torch.log1p(-weights[triples.relations].clamp(max=1 - 1e-6))
        pair = triples.pair_of_triple
        doubts = doubt.new_zeros(len(triples.pair_heads)).index_add_(0, pair, doubt)
        # r(n, e) is evidence for n if e is matched, so the known entity is the tail
        return cls(
            triples.pair_tails,
            triples.pair_heads,
            -torch.expm1(doubts),
            triples.num_entities,
        )

    def on_others(self, worth: Tensor) -> Tensor:
        """Return the worth of the neighbours that an entity's match determines, by entity."""
        values = self.probs * worth[self.neighbours]
        return values.new_zeros(self.num_entities).index_add_(0, self.entities, values)

    def resolved(self, worth: Tensor, entity: int) -> Tensor:
        """Return what is left of each entity's worth after the match of one entity is known."""
        is_its = self.entities == entity
        left = worth.clone()
        left[self.neighbours[is_its]] *= 1 - self.probs[is_its]
        left[entity] = 0
        return left


def most_helpful(
    uncertainty: Tensor, influence: Influence, is_open: Tensor, count: int
) -> list[tuple[int, float]]:
    """Choose entities one after the other by uncertainty times influence.

    The score of an entity is its uncertainty times one plus the uncertainty of the neighbours that
    its match determines. Once an entity is chosen, its neighbours count as partly resolved, so the
    choices spread over the graph.

    Args:
        uncertainty: ``[num_entities]`` uncertainty of each entity.
        influence: Influence of the entities on their neighbours.
        is_open: ``[num_entities]`` bool: whether an entity may be chosen.
        count: Largest number of entities.

    Returns:
        The entities with their scores when they were chosen.
    """
    left = uncertainty.clone()
    is_open = is_open.clone()
    chosen = []
    for _ in range(min(count, int(is_open.sum()))):
        scores = left * (1 + influence.on_others(left))
        scores = torch.where(is_open, scores, -torch.inf)
        best = int(scores.argmax())
        chosen.append((best, float(scores[best])))
        is_open[best] = False
        left = influence.resolved(left, best)
    return chosen


def write_suggestions(
    folder: Path, pair: GraphPair, suggestions: Sequence[Suggestion]
) -> list[Path]:
    """Write suggestions as TSV, with the best candidate, and as JSON Lines, with all candidates."""
    write_lines(folder / TSV_FILE, _rows(pair, suggestions))
    write_lines(
        folder / JSON_FILE,
        (json.dumps(one, ensure_ascii=False) for one in _objects(pair, suggestions)),
    )
    return [folder / TSV_FILE, folder / JSON_FILE]


def _rows(pair: GraphPair, suggestions: Sequence[Suggestion]) -> Iterator[str]:
    yield "\t".join(COLUMNS)
    for one in suggestions:
        target, prob = one.candidates[0] if one.candidates else (None, 0.0)
        best = "" if target is None else cell(pair.target.entity_name(target))
        names = f"{cell(pair.source.entity_name(one.source))}\t{best}\t{prob:.6f}"
        yield f"{names}\t{one.score:.4f}\t{one.uncertainty:.4f}\t{one.influence:.4f}\t{one.degree}"


def _objects(
    pair: GraphPair, suggestions: Sequence[Suggestion]
) -> Iterator[dict[str, object]]:
    for one in suggestions:
        yield {
            "source": pair.source.entity_name(one.source),
            "candidates": [
                {
                    "target": pair.target.entity_name(target),
                    "probability": round(prob, DIGITS),
                }
                for target, prob in one.candidates
            ],
            "score": round(one.score, DIGITS),
            "uncertainty": round(one.uncertainty, DIGITS),
            "influence": round(one.influence, DIGITS),
            "degree": one.degree,
        }


def reason(suggestion: Suggestion) -> str:
    """Say why a person should label an entity."""
    return (
        f"Probability that no match or another one is right: {suggestion.uncertainty:.2f}. "
        f"Uncertain neighbours that its match would determine: {suggestion.influence:.1f}. "
        f"Number of triples: {suggestion.degree}."
    )
