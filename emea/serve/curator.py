"""What a run answers about its entities, and the decisions that people make about its matches."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from emea.answer.curation import ACCEPTED, REJECTED, Curated
from emea.answer.decided_pairs import read_decided, write_decided
from emea.errors import writing
from emea.explain.entities import prob_of, ranked_targets
from emea.explain.explainer import Explainer
from emea.explain.explanation import Case, Explanation
from emea.explain.facts import Facts
from emea.explain.text import json_text
from emea.run.finished_run import FinishedRun
from emea.run.predicting import run_answers
from emea.serve.limits import RequestError

Json = dict[str, Any]
Pair = tuple[str, str]

LONGEST_AUTHOR = 200

KNOWN_LINK = (
    "The run has the link {} = {}, which contradicts this decision. Take it back first: "
    "emea update RUN --take-back FILE."
)


class Curator:
    """Answers questions about the matches of a run, and keeps decisions in a file.

    Test links are not used, and no answer contains them.

    Args:
        run: The finished run.
        sides: The source graph and the target graph.
        file: The file of decisions. Decisions that it contains already are kept.
        author: Who decides, if a request does not say it.

    Raises:
        DataError: If the file exists and cannot be read.
    """

    def __init__(
        self,
        run: FinishedRun,
        sides: tuple[Facts, Facts],
        file: Path,
        author: str = "",
    ) -> None:
        self.run = run
        self.source, self.target = sides
        self.file = file
        self.author = author
        self._answers = run_answers(run)
        self._explainer: Explainer | None = None
        earlier = read_decided(file).decisions if file.exists() else ()
        self._decisions: dict[Pair, Curated] = {one.pair: one for one in earlier}
        known = run.split.supervision
        self._links = np.concatenate([known.train, known.validation]).tolist()

    def match(self, name: str) -> Json:
        """Return the match of a source entity, its candidates and the decisions about it."""
        entity = self._found(self.source, name, "source")
        answer = self._answers.get(entity)
        beliefs = self.run.beliefs
        candidates = [
            {**self._shown(one), "probability": prob_of(beliefs, entity, one)}
            for one in ranked_targets(beliefs, entity)
        ]
        match = None
        if answer is not None:
            match = {**self._shown(answer[0]), "probability": answer[1]}
        decisions = [
            one._asdict() for one in self._decisions.values() if one.source == name
        ]
        return {
            "source": {"id": name, "name": self.source.title(entity)},
            "match": match,
            "candidates": candidates,
            "decisions": decisions,
        }

    def explain(self, source: str, target: str | None = None) -> Json:
        """Return the explanation of a pair, by default of the match of the source entity.

        The first explanation takes longer, because it estimates the evidence of the run.
        """
        first = self._found(self.source, source, "source")
        if self._explainer is None:
            self._explainer = Explainer(self.run)
        if target is None:
            second = self._explainer.best_target(first)
        else:
            second = self._found(self.target, target, "target")
        if second is None:
            raise RequestError(404, "The entity has no candidate. Name a target.")
        explanation = _without_test(self._explainer(first, second))
        found: Json = json.loads(json_text(self.run, [explanation]))
        return found

    def decisions(self) -> Json:
        """Return all decisions."""
        return {"decisions": [one._asdict() for one in self._decisions.values()]}

    def decide(self, decision: str, given: Mapping[str, Any]) -> Json:
        """Accept or reject a pair, or withdraw a decision about it, and write the file.

        Args:
            decision: ``accepted``, ``rejected``, or an empty text to withdraw the decision.
            given: ``source``, ``target`` and, if it is known, ``author``.

        Raises:
            RequestError: If the pair does not exist, or the decision contradicts a known link or
                another decision.
        """
        names = given.get("source"), given.get("target")
        author = given.get("author", self.author)
        if not all(isinstance(text, str) for text in (*names, author)):
            raise RequestError(400, "source, target and author must be texts.")
        pair = str(names[0]), str(names[1])
        ends = (
            self._found(self.source, pair[0], "source"),
            self._found(self.target, pair[1], "target"),
        )
        self._check(decision, pair, ends)
        changed = dict(self._decisions)
        changed.pop(pair, None)
        if decision:
            who = author[:LONGEST_AUTHOR]
            changed[pair] = Curated(*pair, decision, who, date.today().isoformat())
        with writing(self.file):
            write_decided(self.file, changed.values())
        self._decisions = changed  # only what the file contains
        return {"source": pair[0], "target": pair[1], "decision": decision or None}

    def _check(self, decision: str, pair: Pair, ends: tuple[int, int]) -> None:
        """Raise an error if an update would refuse a decision."""
        for link in self._links:
            names = self.source.names[link[0]], self.target.names[link[1]]
            is_same = tuple(link) == ends
            if (decision == REJECTED and is_same) or (
                decision == ACCEPTED and not is_same and self._excludes(names, pair)
            ):
                raise RequestError(409, KNOWN_LINK.format(*names))
        for other in self._decisions.values():
            is_accepted = decision == ACCEPTED and other.decision == ACCEPTED
            if is_accepted and other.pair != pair and self._excludes(other.pair, pair):
                raise RequestError(
                    409,
                    f"{other.source} = {other.target} is accepted, which excludes this pair. "
                    "Withdraw or reject it first.",
                )

    def _excludes(self, one: Pair, other: Pair) -> bool:
        """Return whether the cardinality of the run allows one of two pairs only."""
        sides = self.run.pair.cardinality.unique_sides.values()
        return any(one[side] == other[side] for side in sides)

    def _found(self, side: Facts, name: str, which: str) -> int:
        entity = side.entity(name)
        if entity is None:
            raise RequestError(
                404, f"There is no such {which} entity. Give its full name."
            )
        return entity

    def _shown(self, target: int) -> Json:
        return {"id": self.target.names[target], "name": self.target.title(target)}


def _without_test(explanation: Explanation) -> Explanation:
    """Return an explanation that does not say which pairs are test links."""

    def hidden(case: Case) -> Case:
        return replace(case, link=None) if case.link == "test" else case

    rival = None if explanation.rival is None else hidden(explanation.rival)
    return replace(explanation, asked=hidden(explanation.asked), rival=rival)
