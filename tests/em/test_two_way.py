"""Beliefs of both sides, updated until they settle."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor

from emea.data.arrays import NO_MATCH
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.em import normaliser, two_way
from emea.em.m_step import FEW_EXAMPLES
from emea.em.normaliser import DEFAULT_SHARPNESS, fitted_sharpness
from emea.em.settings import TwoWaySettings
from emea.em.two_way import TwoWayBeliefs
from emea.matching.pair_table import LabelledSlots, PairTable
from emea.matching.similarity import Similarity
from emea.rules.pair_evidence import PairEvidence
from emea.rules.subsumption import Subsumption

from .aligned_pairs import Aligned, aligned, as_dict

NO_LINKS = torch.zeros(0, 2, dtype=torch.int64)


def believed(
    rows: list[list[float]], scores: list[list[float]] | None = None
) -> TwoWayBeliefs:
    """Given probabilities of all pairs of a small table; those of 0 are empty slots."""
    probs = torch.tensor(rows, dtype=torch.float64)
    targets = torch.arange(probs.shape[1]).expand(probs.shape)
    given = probs if scores is None else torch.tensor(scores, dtype=torch.float64)
    table = PairTable(targets, given, probs > 0, probs.shape[1])
    nothing = torch.zeros(0)
    included = Subsumption(nothing.long(), nothing, nothing, 1)
    evidence = PairEvidence(torch.zeros_like(probs), included, {})
    logs = probs.log()
    return TwoWayBeliefs(table, logs, logs, (logs, logs), evidence, (1.0, 1.0), 1, 0.0)


@pytest.mark.parametrize(
    "options",
    [{}, {"both_directions": False}, {"one_to_one": True}],
    ids=["two-way", "one", "1:1"],
)
@pytest.mark.parametrize("rounds", [0, 2])
def test_labelled_pairs_are_certain_and_exclusive(
    rounds: int, options: dict[str, bool]
) -> None:
    problem = aligned(4, noise=3.0)
    settled = problem.settled(propagation=rounds, **options)
    beliefs, labels = as_dict(settled), set(map(tuple, problem.labels.tolist()))
    assert labels <= set(beliefs)
    taken = [set(problem.labels[:, side].tolist()) for side in (0, 1)]
    for pair, belief in beliefs.items():
        if pair in labels:
            assert belief == 1
        elif pair[0] in taken[0] or pair[1] in taken[1]:
            assert belief == 0 and "one_to_one" not in options
        else:
            assert 0 < belief < 1
    assert set(map(tuple, settled.mutual().pairs().tolist())) >= labels
    empty = ~settled.table.filled
    of_source = settled.from_source.exp().masked_fill(empty, 0)
    assert (of_source.sum(1) <= 1 + 1e-9).all()
    assert empty.any() and (settled.belief[empty] == -torch.inf).all()
    assert not settled.belief.isnan().any()


@pytest.mark.parametrize("both", [True, False])
def test_the_first_sweep_starts_from_the_encoders_beliefs(both: bool) -> None:
    problem = aligned(2)
    step = problem.two_way(both_directions=both, sweeps=1, propagation=0)
    seen: list[tuple[PairTable, Tensor]] = []
    evidence = step.evidence

    def recorded(table: PairTable, probs: Tensor) -> PairEvidence:
        seen.append((table, probs))
        return evidence(table, probs)

    step.evidence = recorded  # type: ignore[assignment]
    settled = step(problem.similarity, problem.labels, problem.links)
    scores = problem.similarity.scores(torch.arange(20)).numpy()
    forth, back = (
        softmax(sharpness * scores, axis=1 - side)
        for side, sharpness in enumerate(settled.sharpness)
    )
    (table, probs) = seen[0]
    expected = torch.from_numpy(forth * back if both else forth).gather(
        1, table.targets
    )
    expected = LabelledSlots.of(table, problem.labels).put_into(expected.log()).exp()
    torch.testing.assert_close(probs, expected)
    assert settled.num_updates == 1


def test_one_more_sweep_than_needed_changes_no_more_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, limit = aligned(3), 1e-3
    monkeypatch.setattr(two_way, "SMALL_CHANGE", limit)
    settled = problem.settled(propagation=0, sweeps=50)
    assert 1 < settled.num_updates < 50
    assert settled.change <= limit
    monkeypatch.setattr(two_way, "SMALL_CHANGE", -1.0)
    more = problem.settled(propagation=0, sweeps=settled.num_updates + 1)
    assert more.num_updates == settled.num_updates + 1
    change = (more.belief.exp() - settled.belief.exp()).abs().sum() / 20
    assert float(change) == pytest.approx(more.change)
    assert more.change <= limit


def test_neighbours_bring_pairs_the_encoder_does_not_see() -> None:
    problem = aligned(4, noise=3.0)
    alone, helped = (
        set(as_dict(problem.settled(propagation=rounds))) for rounds in (0, 1)
    )
    assert alone < helped
    links = set(map(tuple, problem.pair.links.tolist()))
    assert len(links & helped) > len(links & alone)


def test_rows_are_no_longer_than_allowed() -> None:
    problem = aligned(4, noise=3.0)
    long, short = (problem.settled(max_candidates=width).table for width in (20, 4))
    assert long.filled.sum(1).max() > 4
    assert short.filled.sum(1).max() == 4


@pytest.mark.parametrize("width", [1, 2])
def test_implied_pairs_never_push_out_a_label(width: int) -> None:
    problem = aligned(4, noise=3.0, num_labels=10)
    settled = problem.settled(max_candidates=width, propagation=2)
    assert settled.table.marked(problem.labels).sum() == 10


@pytest.mark.parametrize(
    ("rows", "scores", "expected"),
    [
        # entity 0 prefers target 0, which prefers 1; entity 2 prefers target 1, which prefers 0
        ([[0.5, 0.4, 0], [0.6, 0.2, 0.1], [0, 0.3, 0]], None, [NO_MATCH, 0, NO_MATCH]),
        ([[0.5, 0.1, 0], [0.5, 0.2, 0], [0, 0.1, 0.3]], None, [NO_MATCH, NO_MATCH, 2]),
        (
            [[0.5, 0.5, 0.1], [0.1, 0.1, 0.4]],
            [[0.9, 0.8, 0.1], [0.1, 0.1, 0.4]],
            [0, 2],
        ),
        (
            [[0.5, 0.5, 0.1], [0.1, 0.1, 0.4]],
            [[0.9, 0.9, 0.1], [0.1, 0.1, 0.4]],
            [NO_MATCH, 2],
        ),
        ([[0.5, 0.1], [0, 0]], None, [0, NO_MATCH]),
    ],
    ids=[
        "mutual",
        "tie for a target",
        "encoder decides",
        "encoder ties as well",
        "no pairs",
    ],
)
def test_mutual_pairs_choose_each_other(
    rows: list[list[float]], scores: list[list[float]] | None, expected: list[int]
) -> None:
    matching = believed(rows, scores).mutual()
    assert matching.targets.tolist() == expected
    probs = [
        0.0 if at == NO_MATCH else row[at]
        for row, at in zip(rows, expected, strict=True)
    ]
    assert matching.probs.tolist() == pytest.approx(probs)
    assert matching.num_target == len(rows[0])


def rounding(num_examples: int) -> float:
    """Return by how much beliefs may differ when their sums are taken in another order.

    A belief is made of sums over at most 20 * 20 pairs, whose terms are below 100, in 6 updates.
    The fit of the weights rounds more. It compares values of an objective near 1, which are exact
    to eps. Next to the minimum the objective grows by ``strength / 2 * distance ** 2`` or faster,
    so that weights within ``sqrt(2 * eps / strength)`` of it look equally good. A belief changes by
    ``p * (1 - p)`` times a difference of features times that: at most ten times as much.
    """
    eps = torch.finfo(torch.float64).eps
    if not num_examples:  # nothing to fit: the weights are the prior's
        return 6 * 20 * 20 * 100 * eps
    strength = TwoWaySettings().ridge * max(1.0, FEW_EXAMPLES / num_examples)
    return float(10 * np.sqrt(2 * eps / strength))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("num_links", [0, 5])
@pytest.mark.parametrize("num_pairs", [2, 99])
@pytest.mark.parametrize("kind", ["two-way", "one", "1:1"])
def test_new_names_of_entities_change_nothing_but_the_names(
    kind: str, num_pairs: int, num_links: int, seed: int
) -> None:
    both = kind != "one"
    problem = aligned(seed, num_links=num_links)
    rng = np.random.default_rng(seed)
    source_ids, target_ids = rng.permutation(20), rng.permutation(20)
    renamed_problem = problem.relabelled(source_ids, target_ids)
    one, other = (
        given.settled(
            num_pairs=num_pairs,
            both_directions=both,
            propagation=2,
            one_to_one=kind == "1:1",
        )
        for given in (problem, renamed_problem)
    )
    renamed = {
        (source_ids[s], target_ids[t]): value for (s, t), value in as_dict(one).items()
    }
    # one-to-one: the passes may end one earlier or later, within their tolerance
    allowed = max(rounding((1 + both) * num_links), 1e-6 if kind == "1:1" else 0.0)
    assert as_dict(other) == pytest.approx(renamed, abs=allowed)
    assert (other.num_updates, other.sharpness) == (
        one.num_updates,
        pytest.approx(one.sharpness),
    )
    moved = {(source_ids[s], target_ids[t]) for s, t in one.mutual().pairs().tolist()}
    assert set(map(tuple, other.mutual().pairs().tolist())) == moved


def bare(problem: Aligned) -> Aligned:
    """The same without any triple."""
    nothing = KnowledgeGraph(np.zeros((0, 3), dtype=np.int64), 20, 1)
    return replace(
        problem, pair=GraphPair("bare", nothing, nothing, problem.pair.links)
    )


@pytest.mark.parametrize(
    "problem",
    [
        replace(aligned(5), links=NO_LINKS),
        replace(aligned(5), labels=NO_LINKS),
        replace(aligned(5), labels=NO_LINKS, links=NO_LINKS),
        bare(aligned(5)),
    ],
    ids=["no held-out links", "no labels", "no links at all", "no triples"],
)
@pytest.mark.parametrize("unmatched", [True, False])
def test_little_input_gives_no_nonsense(problem: Aligned, unmatched: bool) -> None:
    settled = problem.settled(unmatched=unmatched, propagation=1)
    assert not settled.belief.isnan().any()
    assert np.isfinite(settled.change)
    assert (settled.belief[settled.table.filled] <= 1e-9).all()
    if not len(problem.links):
        assert settled.sharpness == (DEFAULT_SHARPNESS, DEFAULT_SHARPNESS)


def test_each_side_has_a_sharpness_of_its_own() -> None:
    problem = aligned(6)
    forth, back = fitted_sharpness(problem.similarity, problem.links)
    reversed_links = problem.links.flip(1)
    assert fitted_sharpness(problem.similarity.reversed(), reversed_links) == (
        back,
        forth,
    )
    assert forth != back


def test_the_fit_of_the_sharpness_holds_no_more_than_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = aligned(6)
    links = torch.from_numpy(problem.pair.links.copy())
    monkeypatch.setattr(normaliser, "FIT_SCORES", 200)
    monkeypatch.setattr(normaliser, "MIN_FIT_LINKS", 2)
    sizes = []
    scores = Similarity.scores

    def counted(
        self: Similarity, rows: Tensor, columns: Tensor | None = None
    ) -> Tensor:
        sizes.append(len(rows) * self.num_target)
        return scores(self, rows, columns)

    similarity = problem.similarity
    monkeypatch.setattr(Similarity, "scores", counted)
    fitted_sharpness(similarity, links)
    assert sizes == [200, 200]
