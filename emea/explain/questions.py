"""Questions about single pairs, which a person, a script or a language model can answer."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from emea.answer.exporting import DIGITS
from emea.explain.explanation import beginning
from emea.explain.facts import Facts

MOST_FACTS = 12
"""Facts about each entity of a question."""

QUESTION = (
    "Do both descriptions mean the same thing: {source} in the first graph, and {target} in the "
    "second? Answer yes, no or unsure."
)

Json = dict[str, Any]
Candidates = Sequence[tuple[int, float]]


class Unsure(NamedTuple):
    """A pair to ask about.

    Args:
        source: The source entity.
        target: One of its candidates.
        prob: The probability of the pair.
        others: Its other candidates with their probabilities, best first.
    """

    source: int
    target: int
    prob: float
    others: Candidates


def unsure_pairs(
    suggested: Iterable[tuple[int, Candidates]], low: float, high: float
) -> Iterator[Unsure]:
    """Yield the pairs of an entity and a candidate whose probability is in a range.

    Args:
        suggested: Source entities, each with its candidates.
        low: Smallest probability.
        high: Largest probability.
    """
    for source, candidates in suggested:
        for target, prob in candidates:
            if low <= prob <= high:
                others = [one for one in candidates if one[0] != target]
                yield Unsure(source, target, prob, others)


def question_lines(
    pairs: Iterable[Unsure], source: Facts, target: Facts
) -> Iterator[str]:
    """Yield one JSON object for each pair, with an empty answer.

    Nothing in it comes from links, so an answer does not depend on them.

    Args:
        pairs: The pairs.
        source: The source graph.
        target: The target graph.
    """
    for one in pairs:
        titles = source.title(one.source), target.title(one.target)
        question: Json = {
            "source": source.names[one.source],
            "target": target.names[one.target],
            "question": QUESTION.format(
                source=beginning(titles[0]), target=beginning(titles[1])
            ),
            "source_label": titles[0],
            "target_label": titles[1],
            "source_facts": _facts(source, one.source),
            "target_facts": _facts(target, one.target),
            "probability": round(one.prob, DIGITS),
            "other_candidates": [
                {"target": target.names[other], "label": target.title(other)}
                for other, _ in one.others
            ],
            "answer": None,
        }
        yield json.dumps(question, ensure_ascii=False)


def _facts(side: Facts, entity: int) -> list[str]:
    return [beginning(fact.words()) for fact in side.about(entity, MOST_FACTS)]
