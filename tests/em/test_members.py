"""Independent encoders: what each receives, their weights, and the mean of their rankings.

The weights and the mean are compared with slow references.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import normalize

from emea.data.protocol import Visible
from emea.em.counterparts import Share
from emea.em.joint import JointStep
from emea.em.members import (
    IndependentMembers,
    mean_ranking,
    mean_report,
    member_weights,
)
from emea.em.normaliser import DEFAULT_SHARPNESS
from emea.em.reports import JointReport, NeuralBeliefs
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking, PairTable
from emea.matching.similarity import Cosine, Similarity

from ..matching.random_tables import from_scores, pairs_of, random_table


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_rankings", [1, 3])
def test_equals_the_mean_by_dictionaries(seed: int, num_rankings: int) -> None:
    rng = np.random.default_rng(seed)
    rankings, total = [], dict[tuple[int, int], float]()
    for _ in range(num_rankings):
        table = random_table(rng, 8, 9, 4)
        scores = torch.from_numpy(np.log(rng.random(table.targets.shape)))
        scores[
            rng.random(table.targets.shape) < 0.1
        ] = -torch.inf  # a labelled entity's pairs
        rankings.append(PairRanking(table, scores))
        for pair, place in pairs_of(table).items():
            if scores[place] > -torch.inf:
                total[pair] = (
                    total.get(pair, 0.0) + float(scores[place].exp()) / num_rankings
                )
    matrix = torch.from_numpy(rng.random((8, 9))).float()
    mean = mean_ranking(rankings, from_scores(matrix))
    found = {pair: mean.scores[place] for pair, place in pairs_of(mean.table).items()}
    assert found.keys() == total.keys()
    for pair, belief in total.items():
        assert float(found[pair].exp()) == pytest.approx(belief)
        place = pairs_of(mean.table)[pair]
        assert mean.table.scores[place] == matrix[pair]
    assert bool((mean.scores[~mean.table.filled] == -torch.inf).all())


NUM_SOURCE, NUM_TARGET, RIDGE = 30, 40, 1e-3


def members_with_noise(*noise: float) -> list[Tensor]:
    """Unit vectors in which source i is close to target i; one member for each noise."""
    generator = torch.Generator().manual_seed(0)
    members = []
    for level in noise:
        target = torch.randn(NUM_TARGET, 8, generator=generator)
        source = target[:NUM_SOURCE] + level * torch.randn(
            NUM_SOURCE, 8, generator=generator
        )
        members.append(normalize(torch.cat([source, target])))
    return members


def slow_weights(members: list[Tensor], links: list[tuple[int, int]]) -> np.ndarray:
    """Maximise the penalised likelihood over all entities with a general optimiser."""
    rows = [member.double().numpy() for member in members]
    prior = DEFAULT_SHARPNESS / len(members)

    def loss(beta: np.ndarray) -> float:
        total = 0.0
        for source, target in links:
            forth = sum(
                b * m[NUM_SOURCE:] @ m[source] for b, m in zip(beta, rows, strict=True)
            )
            back = sum(
                b * m[:NUM_SOURCE] @ m[NUM_SOURCE + target]
                for b, m in zip(beta, rows, strict=True)
            )
            total += np.log(np.exp(forth).sum()) - forth[target]
            total += np.log(np.exp(back).sum()) - back[source]
        # fewer than 100 examples count as much against the prior as 100 would
        strength = RIDGE * max(1.0, 100 / (2 * len(links)))
        return total / (2 * len(links)) + strength / 2 * float(
            ((beta - prior) ** 2).sum()
        )

    found = minimize(
        loss, np.full(len(members), prior), bounds=[(0, None)] * len(members)
    )
    weights: np.ndarray = found.x / found.x.sum()
    return weights


def test_weights_maximise_the_likelihood_of_links() -> None:
    members = members_with_noise(0.5, 1.5, 1.0)
    links = [(i, i) for i in range(20)]
    found = member_weights(members, NUM_SOURCE, torch.tensor(links), RIDGE)
    assert found.numpy() == pytest.approx(slow_weights(members, links), abs=2e-3)
    assert found[0] > found[2] > found[1]


def test_without_links_all_members_count_equally() -> None:
    members = members_with_noise(0.5, 1.5)
    none = torch.zeros(0, 2, dtype=torch.int64)
    assert member_weights(members, NUM_SOURCE, none).tolist() == [0.5, 0.5]


def test_rivals_beyond_the_limit_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    members = members_with_noise(0.5, 1.0)
    links = torch.tensor([(i, i) for i in range(10)])
    whole = member_weights(members, NUM_SOURCE, links)
    monkeypatch.setattr("emea.em.members.NUM_RIVALS", 25)
    assert member_weights(members, NUM_SOURCE, links).tolist() == pytest.approx(
        whole.tolist(), abs=0.02
    )


LINKS = np.stack([np.arange(10), np.arange(10)], axis=1)
NO_LINKS = LINKS[:0]
SHARES = (Share(0.6, 0.5, 0.7), Share(0.6, 0.5, 0.7))


def seen(train: np.ndarray, validation: np.ndarray, in_folds: bool = False) -> Visible:
    """The links of a run; no rule uses others."""
    return Visible(
        train=train,
        validation=validation,
        normaliser_links=NO_LINKS,
        weight_links=train,
        unseen_links=None,
        relation_links=None,
        label_pool=None,
        uses_test_links=False,
        in_folds=in_folds,
    )


def report_with(probs: Tensor, shares: tuple[Share, ...] | None = None) -> JointReport:
    """The report of an encoder that believes in these pairs of each source and target."""
    num_source, num_target = probs.shape
    targets = torch.arange(num_target).expand(num_source, -1)
    table = PairTable(targets, probs, probs > 0, num_target)
    return JointReport(
        beliefs=Beliefs(targets, probs),
        labels=NO_LINKS,
        weights={},
        compatibility=torch.zeros(num_source),
        ranking=PairRanking(table, probs.double().log()),
        is_answer=True,
        shares=shares,
    )


class Asked(JointStep):
    """Keeps what it is asked; each encoder believes in other pairs, with its own strength."""

    def __init__(self) -> None:
        self.asked: list[tuple[Similarity, Visible]] = []

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        self.asked.append((similarity, visible))
        strength = 1 / (1 + len(self.asked))
        return report_with(torch.eye(NUM_SOURCE, NUM_TARGET) * strength)


def run_members(
    visible: Visible, first_shared_fit: int | None = None, iteration: int = 0
) -> tuple[list[Tensor], Asked, JointReport]:
    """Three encoders, what their step was asked, and the report of all."""
    members = members_with_noise(0.1, 0.5, 1.0)
    module: Any = SimpleNamespace(
        num_source=NUM_SOURCE,
        num_members=len(members),
        member_rows=lambda: members,
        weigh_members=lambda weights: None,
        embeddings=lambda: (members[0][:NUM_SOURCE], members[0][NUM_SOURCE:]),
    )
    asked = Asked()
    step = IndependentMembers(asked, Cosine(), first_shared_fit)
    similarity = Cosine()(*step.embeddings(module, visible))
    neural: Any = NeuralBeliefs(*[None] * 3, iteration=iteration)  # type: ignore[arg-type,list-item]
    return members, asked, step(similarity, visible, neural)


def as_set(links: np.ndarray) -> set[tuple[int, int]]:
    return {(source, target) for source, target in links.tolist()}


@pytest.mark.parametrize("is_crossed", [True, False], ids=["crossed", "in folds"])
def test_each_encoder_of_a_fold_receives_its_own_links_and_rows(
    is_crossed: bool,
) -> None:
    train, held_out = (LINKS, NO_LINKS) if is_crossed else (LINKS[:8], LINKS[8:])
    visible = seen(train, LINKS if is_crossed else held_out, in_folds=not is_crossed)
    members, asked, _ = run_members(visible)
    folds = []
    for rows, (similarity, view) in zip(members, asked.asked, strict=True):
        torch.testing.assert_close(similarity.source, rows[:NUM_SOURCE])
        torch.testing.assert_close(similarity.target, rows[NUM_SOURCE:])
        trained, fold = as_set(view.train), as_set(view.validation) - as_set(held_out)
        # an encoder is judged by links that it was not trained on
        assert trained and fold and not trained & fold
        assert trained | fold == as_set(train)
        assert as_set(held_out) <= as_set(view.validation)
        folds.append(fold)
    assert sum(map(len, folds)) == len(train) and set().union(*folds) == as_set(train)


def test_without_folds_all_encoders_receive_the_same_links() -> None:
    visible = seen(LINKS[:6], LINKS[6:])
    _, asked, _ = run_members(visible)
    assert [view for _, view in asked.asked] == [visible] * 3


@pytest.mark.parametrize(
    ("first_shared_fit", "iteration", "is_shared"),
    [
        (None, 0, False),
        (None, 5, False),
        (2, 0, False),
        (2, 1, True),
        (2, 2, True),
        (1, 0, True),
    ],
)
def test_the_next_fit_has_shared_labels_from_the_given_one_on(
    first_shared_fit: int | None, iteration: int, is_shared: bool
) -> None:
    _, _, report = run_members(seen(LINKS[:6], LINKS[6:]), first_shared_fit, iteration)
    assert report.members is not None
    rankings = [one.ranking for one in report.members if one.ranking is not None]
    beliefs = [float(one.scores[20].max().exp()) for one in rankings]
    own = [1 / 2, 1 / 3, 1 / 4]
    assert beliefs == pytest.approx([np.mean(own)] * 3 if is_shared else own)
    # of the mean follow the labels of all entities without a training link
    labelled = [set(one.labels[:, 0].tolist()) for one in report.members]
    assert labelled == [{*range(6, NUM_SOURCE)} if is_shared else set()] * 3


@pytest.mark.parametrize(
    ("shares", "labelled"),
    [(None, [2, 3, 4]), (SHARES, [2, 3])],
    ids=["all matched", "shares"],
)
def test_entities_that_probably_have_no_counterpart_are_not_labelled(
    shares: tuple[Share, ...] | None, labelled: list[int]
) -> None:
    # each source has one candidate; source 0 is a training link, as is the target of source 1
    probs = torch.diag(
        torch.tensor([0.9, 0.9, 0.6, 0.5, 0.49], dtype=torch.float64)
    ).flip(1)
    visible = seen(np.array([[0, 3]]), NO_LINKS)
    similarity = Cosine()(*torch.eye(5).expand(2, 5, 5))
    report = mean_report([report_with(probs, shares)] * 2, similarity, visible)
    assert report.labels.tolist() == [[entity, 4 - entity] for entity in labelled]


def test_the_probabilities_follow_from_the_share_of_the_source_side() -> None:
    probs = torch.rand(10, 10, generator=torch.Generator().manual_seed(0)).double() / 8
    probs += torch.diag(torch.full((10,), 0.4))
    similarity = Cosine()(*torch.eye(10).expand(2, 10, 10))
    low, high = Share(0.3, 0.2, 0.4), Share(0.9, 0.8, 1.0)

    def beliefs(*shares: Share) -> Tensor:
        reports = [report_with(probs, shares)] * 2
        return mean_report(reports, similarity, seen(NO_LINKS, LINKS)).beliefs.probs

    assert torch.equal(beliefs(low, low), beliefs(low, high))
    assert not torch.allclose(beliefs(low, high), beliefs(high, low), atol=1e-3)


def test_a_crossed_link_is_judged_by_the_encoder_that_held_it_out() -> None:
    # the first of two encoders holds out links 0 and 2, and the second one link 1
    links = np.array([[0, 0], [1, 1], [2, 2]])
    similarity = Cosine()(*torch.eye(4).expand(2, 4, 4))
    trained, held_out = 0.9, 0.2
    first = torch.diag(
        torch.tensor([held_out, trained, held_out, 0.4], dtype=torch.float64)
    )
    second = torch.diag(
        torch.tensor([trained, held_out, trained, 0.6], dtype=torch.float64)
    )
    report = mean_report(
        [report_with(first), report_with(second)], similarity, seen(links, links)
    )
    assert report.ranking is not None
    scores = report.ranking.scores.exp()[report.ranking.table.filled]
    assert scores.tolist() == pytest.approx([held_out, held_out, held_out, 0.5])
