"""Updates that recompute some entities only."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH
from emea.em.joint import JointStep, LocalStep
from emea.em.local import LEAST_KEPT, LocalSearch, LocalUpdate
from emea.em.normaliser import SoftmaxNormaliser
from emea.em.reports import JointReport, NeuralBeliefs
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.pair_table import PairTable, ScoredPairs
from emea.matching.similarity import Similarity
from emea.matching.two_sided import Subset, two_sided

from .aligned_pairs import Aligned, aligned
from .test_two_way_step import assert_same, step, visible

KINDS: list[dict[str, Any]] = [{}, {"one_to_one": True}, {"both_directions": False}]

NO_LABELS = torch.empty(0, 2, dtype=torch.int64)


def former(problem: Aligned, **options: Any) -> tuple[JointReport, Beliefs]:
    """The joint report and the neural beliefs of an earlier run."""
    similarity = problem.similarity
    neural = SoftmaxNormaliser().beliefs(similarity, 4)
    return step(problem, **options)(similarity, visible(problem)), neural


def matching_of(report: JointReport, problem: Aligned) -> Matching:
    pair = problem.pair
    known = Matching.of_links(
        problem.labels, pair.source.num_entities, pair.target.num_entities
    )
    labels = torch.from_numpy(report.labels)
    known.targets[labels[:, 0]] = labels[:, 1]
    known.probs[labels[:, 0]] = (
        report.beliefs.probs.max(1).values[labels[:, 0]].double()
    )
    return known


def local_of(
    problem: Aligned, report: JointReport, neural: Beliefs, rows: Tensor
) -> LocalUpdate:
    """Mark some source entities, those of the held-out links, and all of their targets."""
    rows, target = (
        rows.clone(),
        torch.zeros(problem.pair.target.num_entities, dtype=torch.bool),
    )
    rows[problem.links[:, 0]] = True
    target[problem.links[:, 1]] = True
    target[neural.targets[rows].flatten()] = True
    return LocalUpdate(rows, target, torch.zeros_like(target), neural, report.beliefs)


class GivenReport(JointStep):
    """A step that returns a given report."""

    def __init__(self, report: JointReport) -> None:
        self.report = report

    def __call__(self, *_: Any) -> JointReport:
        return self.report


def given_beliefs(
    problem: Aligned, neural: Beliefs, local: LocalUpdate | None = None
) -> NeuralBeliefs:
    return NeuralBeliefs(problem.similarity.source, neural, neural, local=local)


def run(
    problem: Aligned,
    local: LocalUpdate | None,
    start: Matching,
    neural: Beliefs,
    **options: Any,
) -> JointReport:
    similarity, joint = problem.similarity, step(problem, **options)
    joint.start_from(start)
    return joint(similarity, visible(problem), given_beliefs(problem, neural, local))


def changed(problem: Aligned) -> Aligned:
    """The same graphs with other embeddings."""
    rng = torch.Generator().manual_seed(5)
    source, target = (
        rows + 0.2 * torch.randn(rows.shape, generator=rng)
        for rows in problem.embeddings
    )
    return replace(problem, embeddings=(source, target))


def every_pair(similarity: Similarity) -> PairTable:
    targets = torch.arange(similarity.num_target).repeat(similarity.num_source, 1)
    filled = torch.ones_like(targets, dtype=torch.bool)
    return PairTable(targets, torch.zeros(targets.shape), filled, similarity.num_target)


def as_set(pairs: ScoredPairs) -> set[tuple[int, int]]:
    return set(zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True))


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_with_all_entities_it_equals_a_complete_update(
    seed: int, options: dict[str, Any]
) -> None:
    problem = aligned(seed)
    report, neural = former(problem, **options)
    later, start = changed(problem), matching_of(report, problem)
    everything = Subset.unlabelled(problem.similarity, NO_LABELS)
    nothing = torch.zeros_like(everything.target)
    local = LocalUpdate(
        everything.source, everything.target, nothing, neural, report.beliefs
    )
    found = run(later, local, start, neural, **options)
    expected = run(later, None, start, neural, **options)
    assert found.ranking is not None and expected.ranking is not None
    assert torch.equal(found.ranking.table.targets, expected.ranking.table.targets)
    assert torch.equal(found.ranking.scores, expected.ranking.scores)
    assert_same(found, expected)
    assert found.recomputed is not None and found.recomputed.all()


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_other_entities_keep_their_beliefs(seed: int, options: dict[str, Any]) -> None:
    problem = aligned(seed)
    report, neural = former(problem, **options)
    later, start = changed(problem), matching_of(report, problem)
    rows = torch.arange(problem.pair.source.num_entities) % 4 == seed % 4
    local = local_of(problem, report, neural, rows)
    found = run(later, local, start, neural, **options)
    assert found.recomputed is not None
    assert (found.recomputed | ~local.source).all() and not found.recomputed.all()
    around = LocalStep(GivenReport(found), local)
    merged = around(later.similarity, visible(later), given_beliefs(later, neural))
    assert around.local.source is found.recomputed
    assert merged.ranking is not None
    others, width = ~found.recomputed, report.beliefs.num_candidates
    assert torch.equal(
        merged.beliefs.probs[others, :width], report.beliefs.probs[others]
    )
    assert torch.equal(
        merged.beliefs.targets[others, :width], report.beliefs.targets[others]
    )
    assert not merged.beliefs.probs[others, width:].any()
    filled = merged.ranking.table.filled[others]
    assert filled.sum() == (report.beliefs.probs[others] > 0).sum()
    kept = report.beliefs.best_targets()
    for source, target in merged.labels.tolist():
        assert found.recomputed[source] or target == kept[source]
    mine = found.recomputed
    assert torch.equal(
        merged.beliefs.targets[mine, : found.beliefs.num_candidates],
        found.beliefs.targets[mine],
    )


def test_neighbours_of_entities_with_another_match_are_recomputed() -> None:
    grown = 0
    for seed in range(6):
        problem = aligned(seed, noise=0.3)
        report, neural = former(problem)
        start = matching_of(report, problem)
        local = local_of(
            problem, report, neural, torch.zeros(neural.num_source, dtype=torch.bool)
        )
        # the recomputed entities lost their matches, and find them again
        lost = problem.links[:, 0]
        assert (start.targets[lost] == problem.links[:, 1]).any()
        start.targets[lost], start.probs[lost] = NO_MATCH, 0.0
        found = run(problem, local, start, neural).recomputed
        assert found is not None
        triples = problem.pair.source.triples.tolist()
        reached = {
            end
            for head, _, tail in triples
            for one, end in ((head, tail), (tail, head))
            if found[one]
        }
        added = set((found & ~local.source).nonzero().squeeze(1).tolist())
        assert added <= reached
        grown += bool(added)
    assert grown > 3


def test_pairs_and_probabilities_of_other_entities() -> None:
    problem = aligned(1)
    report, neural = former(problem)
    rows = torch.arange(problem.pair.source.num_entities) % 3 == 0
    nothing = torch.zeros(problem.pair.target.num_entities, dtype=torch.bool)
    local = LocalUpdate(rows, nothing, nothing, neural, report.beliefs)
    expected: dict[tuple[int, int], float] = {}
    for source in range(len(rows)):
        probs, targets = report.beliefs.probs[source], report.beliefs.targets[source]
        for slot, prob in enumerate(probs.tolist()):
            is_best = prob > 0 and slot == int(probs.argmax())
            if not rows[source] and (prob >= LEAST_KEPT or is_best):
                expected[source, int(targets[slot])] = prob
    similarity = problem.similarity
    found = local.kept_pairs(similarity)
    assert as_set(found) == set(expected)
    assert torch.equal(found.scores, similarity.of_pairs(found.sources, found.targets))
    kept = local.kept_probs(every_pair(similarity))
    for (source, target), prob in expected.items():
        assert kept[source, target] == prob
    assert not kept[rows].any()
    put = local.put_former(kept, torch.ones_like(kept))
    assert (put[rows] == 1).all() and torch.equal(put[~rows], kept[~rows])


@pytest.mark.parametrize("seed", range(3))
def test_the_search_of_some_entities_agrees_with_that_of_all(seed: int) -> None:
    problem = aligned(seed)
    similarity, sharpness = problem.similarity, (15.0, 12.0)
    normaliser = SoftmaxNormaliser()
    normaliser.sharpness = sharpness[0]
    neural = normaliser.beliefs(similarity, 3)
    whole = two_sided(similarity, 3, sharpness)
    rows = torch.arange(similarity.num_source) % 4 == 0
    local = local_of(
        problem, JointReport(neural, np.zeros((0, 2)), {}, neural.probs), neural, rows
    )
    everyone = Subset.unlabelled(similarity, NO_LABELS)
    search = LocalSearch(
        similarity, 3, sharpness=sharpness, both=True, local=local, whole=everyone
    )
    every = as_set(whole.pairs)
    found = as_set(search.pairs)
    assert found <= every and all(local.source[source] for source, _ in found)
    wanted = {(s, t) for s, t in every if local.source[s] and local.target[t]}
    assert wanted <= found
    sides = search.sides(every_pair(similarity))
    # denominators of other source entities follow from the former probabilities
    torch.testing.assert_close(
        sides.log_mass[0], whole.log_mass[0], atol=1e-4, rtol=1e-4
    )
    torch.testing.assert_close(sides.log_mass[1], whole.log_mass[1])
    assert search.widen(~rows) and not search.widen(~rows)
    wider = as_set(search.pairs)
    assert found <= wider <= every and bool(search.local.source.all())


def test_the_nearest_entities_of_unmatched_targets_are_recomputed() -> None:
    problem = aligned(2)
    similarity = problem.similarity
    neural = SoftmaxNormaliser().beliefs(similarity, 3)
    nobody = torch.zeros(similarity.num_source, dtype=torch.bool)
    unmatched = torch.arange(similarity.num_target) % 5 == 0
    local = LocalUpdate(nobody, unmatched, unmatched, neural, neural)
    scores = similarity.scores(torch.arange(similarity.num_source))
    expected = set(scores[:, unmatched].argmax(0).tolist())
    wider = local.with_nearest(similarity)
    assert set(wider.source.nonzero().squeeze(1).tolist()) == expected
    assert wider.numbers()["source"] == len(expected)
