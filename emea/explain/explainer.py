"""Explains why a finished run matched two entities, or did not."""

import math
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

import torch

from emea.explain.entities import (
    GraphSide,
    believed_back,
    best_of,
    prob_of,
    rank_of,
    ranked_targets,
    slot_of,
)
from emea.explain.evidence_inputs import run_grounds
from emea.explain.explanation import (
    Case,
    Claim,
    Contribution,
    Differing,
    Entity,
    Explanation,
    Relation,
    Term,
    Unmatched,
)
from emea.literals.similar_items import ALL_WORDS, ComparedWords, compared_words
from emea.matching.beliefs import Beliefs
from emea.record.run_folder import answered_entry
from emea.rules.literal_rows import with_values
from emea.rules.negative_evidence import Difference
from emea.rules.support import Piece, Support, support_of
from emea.run.building import with_literals
from emea.run.finished_run import FinishedRun
from emea.run.predicting import run_answers

NUM_CLAIMS, LEAST_CLAIM = 5, 0.01
"""Maximum number of rivals for a target that are named, and their minimum probability."""

MEANINGS = {
    "paris": "g, the noisy-or of the evidence (Eq. 19)",
    "follow_neural": "being the neural model's best candidate",
    "unique": "not being the best candidate of another near entity",
    "similarity": "log q(e'|e) of the neural model",
    "noisy_or": "g, the noisy-or of the evidence (Eq. 19)",
    "evidence": "log(1 + evidence)",
    "coverage": "matched neighbours, relative to those both sides expect",
    "rare_coverage": "the same, with a larger weight for neighbours that have few neighbours",
    "relation_overlap": "share of the relations that both entities have",
    "unmatched": "being none of the candidates",
    "competition": "log probability that the other entity is free",
}
"""Meaning of the values that the weights of rules and features multiply."""


class Place(NamedTuple):
    """An entity in its graph."""

    side: GraphSide
    entity: int


class Explainer:
    """Explains pairs of one run.

    Evidence is Eq. 19 over the final beliefs in the neighbours, with the relation inclusions that
    the run's next E-step would use (:func:`emea.explain.evidence_inputs.run_grounds`). They are
    estimated once for all pairs. Nothing is trained. Test links are used for ``Case.link`` only,
    unless the run's protocol used them.

    Args:
        run: A finished run.
    """

    def __init__(self, run: FinishedRun) -> None:
        self.run = run
        pair = with_literals(run.settings, run.pair)
        self.reasoning = run_grounds(run, pair)
        self.grounds = self.reasoning.grounds
        # the values of literals may be neighbours in the evidence
        has_values = self.grounds.source.num_entities > pair.source.num_entities
        shown = with_values(pair) if has_values else pair
        self.source = GraphSide(
            run.pair.source, shown.source, self.grounds.source, "source"
        )
        self.target = GraphSide(
            run.pair.target, shown.target, self.grounds.target, "target"
        )
        last = self.reasoning.last
        self._negative = None if last is None else last[0].negative
        self.weights: dict[str, float] = (
            answered_entry(run.metrics).get("weights") or {}
        )
        known = run.split.supervision
        parts = {
            "validation": known.validation,
            "train": known.train,
            "test": run.split.test,
        }
        self.links = {
            (source, target): part
            for part, links in parts.items()
            for source, target in links.tolist()
        }
        self.labels = dict(known.train.tolist())
        self._is_strict = run.metrics["protocol"] == "strict"

    def __call__(self, source: int, target: int) -> Explanation:
        """Explain why a source entity was matched to a target entity, or was not."""
        asked = self._case(source, target)
        other = self._rival(source, target)
        rival = None if other is None else self._case(source, other)
        answer, prob = self.answers.get(source, (None, None))
        for_asked = _supporters(asked)
        for_rival = _supporters(rival)
        return Explanation(
            source=self.source.entity(source),
            asked=asked,
            rival=rival,
            only_asked=tuple(entity for entity in for_asked if entity not in for_rival),
            only_rival=tuple(entity for entity in for_rival if entity not in for_asked),
            answer=None if answer is None else self.target.entity(answer),
            answer_prob=prob,
            is_labelled=source in self.labels,
            rule=self.reasoning.rule,
            rule_used=self.reasoning.used,
            both_sides=self.reasoning.both_sides,
            used_test_links=not self._is_strict,
            judged_by_decoys=self.run.metrics.get("decoys") is not None,
        )

    def best_target(self, source: int) -> int | None:
        """Return the match of a source entity, or its best candidate, or ``None``."""
        if source in self.answers:
            return self.answers[source][0]
        return self._rival(source, None)

    @cached_property
    def answers(self) -> dict[int, tuple[int, float]]:
        """Target and probability by source entity, as in the run's alignment."""
        return run_answers(self.run)

    @cached_property
    def _believed_back(self) -> Beliefs:
        return believed_back(self.grounds.carriers, self.grounds.target.num_entities)

    def _case(self, source: int, target: int) -> Case:
        run = self.run
        support = support_of(self.grounds, source, target)
        claims = self._claims(source, target)
        neural_prob = prob_of(run.neural, source, target)
        votes = None if run.votes is None else run.votes[:, source]
        slot = None if run.joint is None else slot_of(run.joint, source, target)
        features = {
            name: float(values[source, slot])
            for name, values in self.reasoning.features.items()
            if slot is not None
        }
        return Case(
            target=self.target.entity(target),
            rank=rank_of(run.beliefs, source, target),
            neural_rank=self._neural_rank(source, target),
            neural_prob=neural_prob,
            joint_prob=prob_of(run.joint, source, target),
            final_prob=prob_of(run.beliefs, source, target),
            witnesses=None
            if votes is None
            else (int((votes == target).sum()), len(votes)),
            differing=self._differing(source, target, support),
            value=support.value,
            evidence=support.total,
            coverage=features.get("coverage"),
            terms=self._terms(support, neural_prob, features),
            contributions=tuple(
                self._contribution(piece, share, (source, target))
                for piece, share in zip(support.pieces, support.shares(), strict=True)
            ),
            unmatched=self._unmatched(
                Place(self.source, source),
                Place(self.target, target),
                self.grounds.carriers,
                {piece.neighbour for piece in support.pieces},
            ),
            target_unmatched=self._unmatched(
                Place(self.target, target),
                Place(self.source, source),
                self._believed_back,
                {piece.counterpart for piece in support.pieces},
            ),
            claims=tuple(claims[:NUM_CLAIMS]),
            num_claims=len(claims),
            num_claimed_best=sum(claim.is_best for claim in claims),
            link=self.links.get((source, target)),
        )

    def _rival(self, source: int, target: int | None) -> int | None:
        """Return the best candidate other than a target.

        If there is none, it is the target with most evidence (for a baseline) or the encoder's
        nearest target (for a labelled entity).
        """
        offered = ranked_targets(self.run.beliefs, source)
        neural = self.run.neural
        if not set(offered) - {target}:
            offered = (
                self._implied(source)
                if neural is None
                else neural.targets[source].tolist()
            )
        return next((other for other in offered if other != target), None)

    def _implied(self, source: int) -> list[int]:
        """Return the targets by their evidence, largest first."""
        assert self.reasoning.last is not None
        reasoner, matching = self.reasoning.last
        wanted = torch.zeros(len(matching.targets), dtype=torch.bool)
        wanted[source] = True
        found = list(reasoner.implied(matching, wanted))
        if not found:
            return []
        doubt = torch.cat([pairs.log_doubt for pairs in found])
        return torch.cat([pairs.targets for pairs in found])[
            doubt.argsort(stable=True)
        ].tolist()

    def _neural_rank(self, source: int, target: int) -> int | None:
        neural = self.run.neural
        slot = None if neural is None else slot_of(neural, source, target)
        if neural is None or slot is None:
            return None
        # A label that is not a candidate is put into the last slot: its rank is unknown.
        is_put = self.labels.get(source) == target and slot == neural.num_candidates - 1
        return None if is_put else slot + 1

    def _terms(
        self, support: Support, neural_prob: float | None, features: Mapping[str, float]
    ) -> tuple[Term, ...]:
        sees_q = self._is_strict and self.reasoning.sees_q
        known: dict[str, float | None] = {
            "paris": support.value,
            "noisy_or": support.value,
            "evidence": math.log1p(support.total),
            **features,
            "similarity": math.log(neural_prob) if neural_prob and sees_q else None,
        }
        return tuple(
            Term(name, MEANINGS.get(name, name), weight, known.get(name))
            for name, weight in self.weights.items()
        )

    def _contribution(
        self, piece: Piece, share: float, asked: tuple[int, int]
    ) -> Contribution:
        """Return a piece of evidence for the pair that was asked about."""
        relation = self.source.relation(piece.relation)
        words = self._words(relation, *asked)
        return Contribution(
            neighbour=self.source.entity(piece.neighbour),
            counterpart=self.target.entity(piece.counterpart),
            relation=relation,
            target_relation=self.target.relation(piece.target_relation),
            source_in_target=piece.source_in_target,
            target_in_source=piece.target_in_source,
            source_functionality=piece.source_functionality,
            target_functionality=piece.target_functionality,
            neighbour_prob=piece.prob,
            evidence_prob=-math.expm1(-piece.weight),
            share=share,
            is_label=self.labels.get(piece.neighbour) == piece.counterpart,
            shared_words=() if words is None else words.shared,
        )

    def _words(
        self, relation: Relation, source: int, target: int
    ) -> ComparedWords | None:
        """Return the words of a pair if a relation is that of all words of its values."""
        if relation.name != ALL_WORDS:
            return None
        return compared_words(self.source.graph, source, self.target.graph, target)

    def _unmatched(
        self,
        here: Place,
        there: Place,
        beliefs: Beliefs,
        supporters: set[int],
    ) -> tuple[Unmatched, ...]:
        """Return the neighbours of an entity (``here``) that do not support its pair.

        The beliefs are those in the counterparts of the entities of its graph.
        """
        side, other = here.side, there.side
        near = set(other.neighbours(there.entity))
        found = []
        for neighbour in side.neighbours(here.entity):
            if neighbour not in supporters:
                best, prob = best_of(beliefs, neighbour)
                believed = None if best is None else other.entity(best)
                relations = side.relations(here.entity, neighbour)
                if any(relation.name == ALL_WORDS for relation in relations):
                    continue  # the words of all values are not a neighbour
                one = side.entity(neighbour)
                found.append(Unmatched(one, relations, believed, prob, best in near))
        return tuple(sorted(found, key=lambda one: -one.prob))

    @cached_property
    def _differences(self) -> list[Difference]:
        if self._negative is None or self.reasoning.last is None:
            return []
        matching = self.reasoning.last[1]
        pairs = matching.pairs()
        probs = matching.pair_probs()
        differences = partial(
            self._negative.differences, self.grounds.included, pairs, probs
        )
        return differences(differences())

    def _differing(
        self, source: int, target: int, support: Support
    ) -> tuple[Differing, ...]:
        """Return the values that count against a pair.

        Values that are similar enough to support the pair are not named as values that differ.
        """
        if self._negative is None:
            return ()
        supporting = {(piece.neighbour, piece.counterpart) for piece in support.pieces}
        found = self._negative.values_that_differ(self._differences, source, target)
        return tuple(
            Differing(
                self.source.relation(one.relation),
                self.target.relation(one.target_relation),
                self.source.entity(value),
                self.target.entity(other),
                factor,
                self._words(self.source.relation(one.relation), source, target),
            )
            for one, value, other, factor in found
            if (value, other) not in supporting
        )

    def _claims(self, source: int, target: int) -> list[Claim]:
        beliefs = self.run.beliefs
        held = (beliefs.targets == target) & (beliefs.probs > 0)
        held[source] = False
        rows, slots = held.nonzero(as_tuple=True)
        best = beliefs.best_slots()[rows] == slots
        columns = (rows, beliefs.probs[rows, slots], best)
        claims = [
            Claim(self.source.entity(row), prob, is_best)
            for row, prob, is_best in zip(
                *(column.tolist() for column in columns), strict=True
            )
            if is_best or prob >= LEAST_CLAIM
        ]
        return sorted(claims, key=lambda claim: -claim.prob)


def _supporters(case: Case | None) -> dict[Entity, None]:
    """Return the neighbours that support a target, largest share first.

    The keys of a dictionary are found in constant time; a hub has many of them. All words of an
    entity are not a neighbour with a name.
    """
    pieces: Any = () if case is None else case.contributions
    return dict.fromkeys(
        piece.neighbour for piece in pieces if piece.relation.name != ALL_WORDS
    )
