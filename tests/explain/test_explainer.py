"""Explanations of every kind of run, against the rules as the runs evaluate them."""

import math
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from emea.baselines.paris_reasoner import ParisReasoner
from emea.explain.entities import ranked_targets
from emea.explain.explainer import Explainer
from emea.explain.explanation import Case, Entity
from emea.matching.pair_table import PairTable
from emea.rules.directed_triples import DirectedTriples
from emea.rules.implied_pairs import FIXED_POINT
from emea.rules.pair_evidence import EvidenceModel, PairEvidence
from emea.rules.paris import PARIS
from emea.rules.rule import RuleView
from emea.run.finished_run import FinishedRun

from ..finished_runs import KINDS, Finished
from ..rules.literal_evidence import LiteralEvidence
from .fabricated import case, piece

WITH_RULE = ("paper", "released", "both_rules", "none", "avoid_conflict", "mutual")
DUAL = ("dual", "dual_all_triples", "one_to_one")
SOURCES = range(0, 150, 25)


def rule_values(run: FinishedRun, kind: str) -> Any:
    """Eq. 19 of the neural model's candidates, as ``rule=paris`` takes it."""
    assert run.neural is not None
    links = torch.from_numpy(run.pair.links.copy()) if kind == "released" else None
    rule = PARIS(run.pair)
    rule.prepare(RuleView(run.neural, torch.zeros(run.neural.num_source, 1), links))
    return rule(run.neural)[:, :, 0]


def two_way_evidence(run: FinishedRun, of_matched: bool) -> PairEvidence:
    assert run.joint is not None
    source, target = DirectedTriples(run.pair.source), DirectedTriples(run.pair.target)
    features = ["rare_coverage", "relation_overlap"]
    model = EvidenceModel(source, target, features=features, of_matched=of_matched)
    probs = run.joint.probs
    return model(
        PairTable(run.joint.targets, probs, probs > 0, target.num_entities), probs
    )


def assert_whole(case: Case) -> None:
    shares = [one.share for one in case.contributions]
    assert math.isclose(sum(shares), 1) or not shares
    assert shares == sorted(shares, reverse=True)
    doubt = math.prod(1 - one.evidence_prob for one in case.contributions)
    assert case.value == pytest.approx(1 - doubt, abs=1e-6)
    assert case.value == pytest.approx(-math.expm1(-case.evidence))


@pytest.mark.parametrize("kind", WITH_RULE)
def test_evidence_is_what_the_rule_gives(kind: str, finished: Finished) -> None:
    run = finished(kind)
    assert run.neural is not None
    values, explainer = rule_values(run, kind), Explainer(run)
    for source in SOURCES:
        for slot, target in enumerate(run.neural.targets[source].tolist()):
            found = explainer(source, target)
            assert found.asked.value == pytest.approx(
                float(values[source, slot]), abs=1e-5
            )
            assert found.rule_used == (kind not in ("none", "avoid_conflict"))
            assert found.asked.neural_prob == pytest.approx(
                float(run.neural.probs[source, slot])
            )
            assert_whole(found.asked)
    assert values.any()


def test_supporters_of_two_hubs_are_compared_in_linear_time(finished: Finished) -> None:
    explainer, num_shared, num_compared = Explainer(finished("dual")), 300, 0
    equal = Entity.__eq__

    def counted(self: Entity, other: object) -> bool:
        nonlocal num_compared
        num_compared += 1
        return equal(self, other)

    def hub(_: int, target: int) -> Case:
        pieces = [piece(one, one, 1 / (num_shared + 1)) for one in range(num_shared)]
        return case(target, (*pieces, piece(1000 + target, 0, 1 / (num_shared + 1))))

    with patch.object(explainer, "_case", hub), patch.object(Entity, "__eq__", counted):
        found = explainer(0, 5)
    assert found.rival is not None
    assert [one.id for one in found.only_asked] == [1005]
    assert [one.id for one in found.only_rival] == [1000 + found.rival.target.id]
    assert num_compared < 10 * num_shared


@pytest.mark.parametrize("kind", ["paper", "released"])
def test_weights_and_evidence_give_the_joint_distribution(
    kind: str, finished: Finished
) -> None:
    run = finished(kind)
    assert run.neural is not None and run.joint is not None
    explainer = Explainer(run)
    for source in set(SOURCES) - set(explainer.labels):
        cases = [
            explainer(source, t).asked for t in run.neural.targets[source].tolist()
        ]
        scores = torch.tensor(
            [one.terms[0].weight * (one.terms[0].value or 0) for one in cases]
        )
        np.testing.assert_allclose(
            scores.softmax(0), run.joint.probs[source], atol=1e-5
        )
        assert cases[0].terms[0].name == "paris"


@pytest.mark.parametrize("kind", DUAL)
def test_two_way_evidence_and_coverage(kind: str, finished: Finished) -> None:
    run, explainer = finished(kind), Explainer(finished(kind))
    assert run.joint is not None
    evidence = two_way_evidence(run, kind != "dual_all_triples")
    for source in SOURCES:
        for slot, target in enumerate(run.joint.targets[source].tolist()):
            if run.joint.probs[source, slot] > 0:
                case = explainer(source, target).asked
                doubt = float(evidence.log_doubt[source, slot])
                assert case.evidence == pytest.approx(-doubt, rel=1e-4, abs=1e-6)
                coverage = float(evidence.features["coverage"][source, slot])
                assert case.coverage == pytest.approx(coverage, rel=1e-4)
                values = {term.name: term.value for term in case.terms}
                if kind == "one_to_one":
                    rare = float(evidence.features["rare_coverage"][source, slot])
                    assert values["rare_coverage"] == pytest.approx(rare, rel=1e-4)
                    overlap = float(evidence.features["relation_overlap"][source, slot])
                    assert values["relation_overlap"] == pytest.approx(
                        overlap, rel=1e-4
                    )
                assert_whole(case)


def test_two_way_evidence_equals_the_literal_twin_beyond_candidates(
    finished: Finished,
) -> None:
    run, explainer = finished("dual"), Explainer(finished("dual"))
    assert run.joint is not None
    rows = zip(run.joint.targets.tolist(), run.joint.probs.tolist(), strict=True)
    believed = {
        (source, target): prob
        for source, (targets, probs) in enumerate(rows)
        for target, prob in zip(targets, probs, strict=True)
        if prob > 0
    }
    twin = LiteralEvidence(run.pair, believed)
    others = [(s, t) for s in (3, 40) for t in range(0, 150, 37)]
    for pair in [*list(believed)[::300], *others]:
        found = explainer(*pair).asked
        if all(key in twin.included for key in _relation_pairs(twin, *pair)):
            assert found.evidence == pytest.approx(
                -twin.log_doubt(*pair), rel=1e-4, abs=1e-6
            )
        assert (found.rank is None) == (pair not in believed)


def _relation_pairs(twin: LiteralEvidence, e: int, e2: int) -> list[tuple[int, int]]:
    around = [(r, n) for h, r, n in twin.source if h == e]
    around2 = [(r2, n2) for h2, r2, n2 in twin.target if h2 == e2]
    return [
        (r, r2) for r, n in around for r2, n2 in around2 if (n, n2) in twin.carriers
    ]


def test_terms_are_the_weights_of_the_last_m_step(finished: Finished) -> None:
    run = finished("dual")
    found = Explainer(run)(0, int(run.beliefs.targets[0, 0]))
    weights = run.metrics["history"][-1]["weights"]
    assert {term.name: term.weight for term in found.asked.terms} == weights
    values = {term.name: term.value for term in found.asked.terms}
    assert values["noisy_or"] == found.asked.value
    assert values["evidence"] == pytest.approx(math.log1p(found.asked.evidence))
    assert values["unmatched"] is None
    both = Explainer(finished("both_rules"))(0, 0).asked.terms
    assert [term.name for term in both] == ["paris", "follow_neural", "unique"]
    assert both[1].value is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["paris", "prase"])
def test_baselines_are_explained_by_what_their_next_iteration_hears(
    kind: str, finished: Finished
) -> None:
    run, explainer = finished(kind), Explainer(finished(kind))
    assert explainer.reasoning.last is not None
    _, matching = explainer.reasoning.last
    reasoner = ParisReasoner(run.pair)
    implied = list(reasoner.implied(matching, torch.ones(150, dtype=torch.bool)))
    doubts = {
        (source, target): -doubt / FIXED_POINT
        for pairs in implied
        for source, target, doubt in zip(
            *(column.tolist() for column in pairs), strict=True
        )
    }
    for source, target in [*matching.pairs()[::4].tolist(), *list(doubts)[::60]]:
        found = explainer(source, target)
        assert found.asked.evidence == pytest.approx(
            doubts.get((source, target), 0.0), abs=1e-6
        )
        assert found.asked.neural_prob is None and found.rule_used
        assert_whole(found.asked)
        if found.rival is not None and found.rival.rank is None:
            others = [
                doubt for (s, t), doubt in doubts.items() if s == source and t != target
            ]
            assert found.rival.evidence == pytest.approx(max(others))


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_the_alignments(kind: str, finished: Finished) -> None:
    run, explainer = finished(kind), Explainer(finished(kind))
    names = {line.split("\t")[0] for line in _lines(run.folder)}
    for source in SOURCES:
        target = explainer.best_target(source)
        if target is None:
            continue
        found = explainer(source, target)
        assert found.is_matched == (found.source.name in names)
        assert found.rival is None or found.rival.target != found.asked.target
        assert found.is_labelled == (source in explainer.labels)
        if found.is_matched:
            # a decoding may leave the best candidate to somebody else, who has it then
            best = ranked_targets(run.beliefs, source)[0]
            others = {
                other for one, (other, _) in explainer.answers.items() if one != source
            }
            assert found.asked.rank == 1 or kind == "mutual" or best in others
            assert found.answer_prob == pytest.approx(found.asked.final_prob, abs=1e-6)


def _lines(folder: Path) -> list[str]:
    return (folder / "alignment.tsv").read_text().splitlines()[1:]


@pytest.mark.parametrize("kind", ["paper", "dual", "paris"])
def test_every_neighbour_is_reported_once(kind: str, finished: Finished) -> None:
    run, explainer = finished(kind), Explainer(finished(kind))
    for source in SOURCES:
        target = explainer.best_target(source)
        case = explainer(source, 0 if target is None else target).asked
        for graph, entity, heard, silent in (
            (
                run.pair.source,
                source,
                [c.neighbour for c in case.contributions],
                case.unmatched,
            ),
            (
                run.pair.target,
                case.target.id,
                [c.counterpart for c in case.contributions],
                case.target_unmatched,
            ),
        ):
            ends = graph.triples[(graph.triples[:, [0, 2]] == entity).any(1)][:, [0, 2]]
            loops = ends[(ends == entity).all(1)]
            around = set(ends.ravel().tolist()) - (
                {entity} if not len(loops) else set()
            )
            found = {one.id for one in heard} | {one.neighbour.id for one in silent}
            assert found == around
            assert not {one.id for one in heard} & {one.neighbour.id for one in silent}


def test_conflicts_name_who_else_claims_the_target(finished: Finished) -> None:
    run, explainer = finished("paper"), Explainer(finished("paper"))
    best = run.beliefs.best_targets()
    wanted = torch.bincount(best).argmax().item()
    claimers = (best == wanted).nonzero().squeeze(1).tolist()
    assert len(claimers) > 1
    case = explainer(claimers[0], int(wanted)).asked
    assert case.num_claimed_best == len(claimers) - 1
    assert claimers[0] not in [claim.source.id for claim in case.claims]
    probs = [claim.prob for claim in case.claims]
    assert probs == sorted(probs, reverse=True)


def test_labels_are_reported(finished: Finished) -> None:
    run, explainer = finished("dual"), Explainer(finished("dual"))
    train = run.split.supervision.train.tolist()
    for source, target in train[:10]:
        found = explainer(source, target)
        assert found.is_labelled and found.is_matched and found.asked.link == "train"
        assert found.asked.final_prob == 1
    labels = {tuple(link) for link in train}
    for source, target in run.split.test.tolist()[:30]:
        case = explainer(source, target).asked
        assert case.link == "test"
        for one in case.contributions:
            assert one.is_label == ((one.neighbour.id, one.counterpart.id) in labels)


@pytest.mark.parametrize("kind", ["paper", "dual", "none", "paris"])
def test_a_pair_outside_the_candidates_is_explained(
    kind: str, finished: Finished
) -> None:
    run, explainer = finished(kind), Explainer(finished(kind))
    source = int(run.split.test[0, 0])
    target = next(
        t for t in range(150) if t not in run.beliefs.targets[source].tolist()
    )
    found = explainer(source, target)
    assert (
        found.asked.rank is None
        and found.asked.final_prob is None
        and not found.is_matched
    )
    assert_whole(found.asked)


def test_what_only_one_of_both_has(finished: Finished) -> None:
    explainer = Explainer(finished("dual"))
    for source in SOURCES:
        found = explainer(source, explainer.best_target(source) or 0)
        assert found.rival is not None
        asked = {one.neighbour for one in found.asked.contributions}
        rival = {one.neighbour for one in found.rival.contributions}
        assert set(found.only_asked) == asked - rival
        assert set(found.only_rival) == rival - asked
