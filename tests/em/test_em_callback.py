"""Both EM steps between fits, on an encoder whose embeddings are given."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.data.protocol import Visible
from emea.em.em_callback import EMCallback
from emea.em.joint import JointStep, NoStep
from emea.em.normaliser import SoftmaxNormaliser
from emea.em.paper_step import PaperStep
from emea.em.reports import IterationReport, JointReport, NeuralBeliefs
from emea.em.settings import PaperSettings
from emea.encoders.rrea import MarginObjective
from emea.errors import ConfigError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.step_block import LabelDataModule
from emea.matching.beliefs import Beliefs
from emea.matching.similarity import Cosine, Similarity
from emea.rules.rule import Composed, Rule, RuleView

SIZE = 6
TRAIN = np.array([[0, 0], [1, 1]])
VALIDATION = np.array([[2, 2]])
STRONG = 1e3  # a prior that keeps a rule's weight at 1, whatever the links say


class GivenRows(nn.Module):
    """An encoder whose source entity i is similar to target entity i."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.cat([torch.eye(SIZE), torch.eye(SIZE)]))

    def forward(self) -> Tensor:
        return self.rows


class PrefersTarget(Rule):
    """Supports the same target for every source entity."""

    names = ("prefers",)

    def __init__(self, target: int) -> None:
        self.target = target
        self.views: list[RuleView] = []

    def prepare(self, view: RuleView) -> None:
        self.views.append(view)

    def __call__(self, beliefs: Beliefs) -> Tensor:
        return (beliefs.targets == self.target).float().unsqueeze(2)


def make_visible(**changes: object) -> Visible:
    given: dict[str, object] = {
        "train": TRAIN,
        "validation": VALIDATION,
        "normaliser_links": VALIDATION,
        "weight_links": np.concatenate([TRAIN, VALIDATION]),
        "unseen_links": None,
        "relation_links": None,
        "label_pool": None,
        "uses_test_links": False,
    }
    return Visible(**{**given, **changes})  # type: ignore[arg-type]


Run = Callable[..., tuple[EMCallback, LabelDataModule, list[IterationReport]]]


@pytest.fixture
def run() -> Run:
    def between_fits(
        rule: Rule | JointStep | None,
        visible: Visible | None = None,
        times: int = 1,
        **settings: Any,
    ) -> tuple[EMCallback, LabelDataModule, list[IterationReport]]:
        reports: list[IterationReport] = []
        chosen = PaperSettings(**{"num_candidates": SIZE, **settings})
        step = NoStep() if rule is None else rule
        em = EMCallback(
            visible=visible or make_visible(),
            decoder=Cosine(),
            normaliser=SoftmaxNormaliser(),
            step=PaperStep(step, chosen) if isinstance(step, Rule) else step,
            observer=reports.append,
            settings=chosen,
        )
        optimizer = torch.optim.SGD
        module = AlignmentModule(
            GivenRows(),
            MarginObjective(),
            optimizer,
            num_source=SIZE,
            num_target=SIZE,
        )  # type: ignore[arg-type]
        data = LabelDataModule(TRAIN, SIZE)
        for _ in range(times):
            em.between_fits(module, data)
        return em, data, reports

    return between_fits


def labels(data: LabelDataModule) -> IntArray:
    links: IntArray = data.links.numpy() - np.array([0, SIZE])
    return links


def joint_of(reports: list[IterationReport]) -> JointReport:
    joint = reports[0].joint
    assert joint is not None
    return joint


def test_labels_follow_the_rule_and_training_links_stay(run: Run) -> None:
    _, data, _ = run(PrefersTarget(4), ridge=STRONG)
    assert labels(data)[:2].tolist() == TRAIN.tolist()
    assert labels(data)[2:].tolist() == [[source, 4] for source in range(2, SIZE)]


def test_without_a_rule_nothing_is_relabelled(run: Run) -> None:
    _, data, reports = run(None)
    assert labels(data).tolist() == TRAIN.tolist()
    assert reports[0].joint is None


def test_validation_ranks_are_those_among_all_targets(run: Run) -> None:
    # entity 2 is most similar to target 2, which is no target of a validation link
    _, _, reports = run(None, make_visible(validation=np.array([[2, 3]])))
    assert reports[0].validation["hit@1"] == 0
    assert run(None)[2][0].validation["hit@1"] == 1


def test_only_the_pool_gets_labels(run: Run) -> None:
    _, data, _ = run(
        PrefersTarget(4), make_visible(label_pool=np.array([0, 3])), ridge=STRONG
    )
    assert labels(data)[2:].tolist() == [[3, 4]]


def test_links_for_early_stopping_are_certain_but_not_trained_on(run: Run) -> None:
    rule = PrefersTarget(4)
    _, data, _ = run(rule, make_visible(stopping_links=TRAIN[1:]), ridge=STRONG)
    assert labels(data)[0].tolist() == TRAIN[0].tolist()
    assert labels(data)[1:].tolist() == [[source, 4] for source in range(2, SIZE)]
    assert rule.views[0].beliefs.best_targets()[:2].tolist() == [0, 1]


def test_the_rule_sees_certain_labels_and_given_relation_links(run: Run) -> None:
    rule = PrefersTarget(4)
    links = np.array([[5, 5]])
    run(rule, make_visible(relation_links=links), times=2)
    for view in rule.views:
        assert view.beliefs.best_targets()[:2].tolist() == [0, 1]
        assert view.beliefs.probs[:2].max(1).values.tolist() == [1, 1]
        assert view.relation_links is not None
        assert view.relation_links.tolist() == links.tolist()


class PrefersEvenUnseen(PrefersTarget):
    """The same, asking for links the encoder was not trained on."""

    fits_on_unseen_links = True


def test_unseen_links_are_for_rules_that_ask_for_them(run: Run) -> None:
    # on these the rule is right, on the others it is wrong
    visible = make_visible(unseen_links=np.array([[5, 4]]))
    weights = {}
    for kind in (PrefersTarget, PrefersEvenUnseen):
        rule = kind(4)
        _, data, reports = run(rule, visible, ridge=1e-3)
        joint = joint_of(reports)
        weights[kind] = joint.weights["prefers"]
        known = 4 if kind is PrefersEvenUnseen else 5
        assert rule.views[0].beliefs.best_targets().tolist() == [0, 1, 2, 3, 4, known]
        # the encoder does not train on them: their label comes from q* as everyone's
        assert dict(labels(data).tolist())[5] == joint.beliefs.best_targets()[5]
        assert joint.beliefs.probs[5].max() < 1
    assert weights[PrefersTarget] == pytest.approx(0.0)
    assert weights[PrefersEvenUnseen] > 2


def test_without_unseen_links_a_rule_that_asks_for_them_is_as_any_other(
    run: Run,
) -> None:
    results = [
        joint_of(run(kind(4), ridge=1e-3)[2])
        for kind in (PrefersTarget, PrefersEvenUnseen)
    ]
    assert results[0].weights == results[1].weights
    assert torch.equal(results[0].beliefs.probs, results[1].beliefs.probs)


def test_a_label_the_neural_model_does_not_offer_is_no_example(run: Run) -> None:
    # target 5 is no candidate of entity 1 until the label puts it there, next to another one
    visible = make_visible(train=np.array([[1, 5]]), weight_links=np.array([[1, 5]]))
    _, _, reports = run(PrefersTarget(5), visible, num_candidates=2)
    assert (
        5 not in joint_of(run(PrefersTarget(5), num_candidates=2)[2]).beliefs.targets[1]
    )
    assert joint_of(reports).weights == {"prefers": 1.0}
    assert reports[0].beliefs.best_targets()[1] == 5


class TwoOpinions(Rule):
    """Two indicator functions, of which the known links bear out the second."""

    names = ("wrong", "right")

    def prepare(self, view: RuleView) -> None:
        pass

    def __call__(self, beliefs: Beliefs) -> Tensor:
        own = torch.arange(SIZE).unsqueeze(1)
        values = [beliefs.targets == 4, beliefs.targets == own]
        return torch.stack(values, dim=2).float()


def test_every_indicator_has_a_weight_by_its_name(run: Run) -> None:
    em, _, reports = run(TwoOpinions(), ridge=1e-5)
    joint = joint_of(reports)
    assert joint.weights["wrong"] == pytest.approx(0.0)
    assert joint.weights["right"] > 2
    assert isinstance(em.step, PaperStep)
    assert em.step.weights.tolist() == list(joint.weights.values())


def test_a_rule_without_any_support_is_named(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    class HalfSilent(TwoOpinions):
        def __call__(self, beliefs: Beliefs) -> Tensor:
            values = super().__call__(beliefs)
            return values * torch.tensor([0.0, 1.0])

    run(HalfSilent(), times=2)
    (record,) = (
        r for r in caplog.records if "No candidate has support" in r.getMessage()
    )
    assert "rule wrong:" in record.getMessage()


def test_no_weight_means_the_neural_order(run: Run) -> None:
    _, data, _ = run(PrefersTarget(99))
    assert labels(data)[2:].tolist() == [[source, source] for source in range(2, SIZE)]


def test_state_survives(run: Run) -> None:
    em, _, reports = run(PrefersTarget(4), times=2)
    assert [report.iteration for report in reports] == [0, 1]
    other, _, _ = run(PrefersTarget(4), times=0)
    other.load_state_dict(em.state_dict())
    assert other.iteration == 2
    assert isinstance(em.step, PaperStep) and isinstance(other.step, PaperStep)
    assert torch.equal(other.step.weights, em.step.weights)
    assert other.normaliser.parameters() == em.normaliser.parameters()


class Faulty(PrefersTarget):
    """A rule whose values are changed by a function."""

    def __init__(self, change: Callable[[Tensor], Any]) -> None:
        super().__init__(0)
        self.change = change

    def __call__(self, beliefs: Beliefs) -> Tensor:
        changed: Tensor = self.change(super().__call__(beliefs))
        return changed


@pytest.mark.parametrize("composed", [False, True])
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            lambda values: values.squeeze(2),
            r"values of shape \[6, 6\]\..*here \[6, 6, 1\]",
        ),
        (lambda values: values / 0, "NaN or infinite values"),
        (lambda values: values.tolist(), "a list"),
    ],
)
def test_wrong_values_are_the_rules_fault(
    run: Run, change: Callable[[Tensor], Any], fault: str, composed: bool
) -> None:
    rule: Rule = Faulty(change)
    if composed:
        rule = Composed({"own": lambda **_: Faulty(change)}, cast(GraphPair, None))
    with pytest.raises(ConfigError, match=f"^Faulty returned {fault}"):
        run(rule)


class OwnStep(JointStep):
    """A step that labels entity 3 and records what it sees."""

    def __init__(self, uses_search: bool) -> None:
        self.uses_search = uses_search
        self.seen: list[NeuralBeliefs] = []

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        self.seen.append(neural)
        return JointReport(neural.beliefs, np.array([[3, 5]]), {}, torch.zeros(SIZE))

    def certain_links(self, visible: Visible) -> IntArray:
        return np.concatenate([visible.train, visible.validation])


@pytest.mark.parametrize("uses_search", [False, True])
def test_any_step_can_take_the_papers_place(run: Run, uses_search: bool) -> None:
    step = OwnStep(uses_search)
    em, data, _ = run(step, make_visible(normaliser_links=VALIDATION[:0]), times=2)
    assert labels(data).tolist() == [*TRAIN.tolist(), [3, 5]]
    first, second = step.seen
    assert (first.iteration, second.iteration) == (0, 1)
    assert first.beliefs.probs.max(1).values[:3].tolist() == [1, 1, 1]
    assert first.offered.probs[2].min() > first.beliefs.probs[2].min() == 0
    assert (first.searched is not None) is uses_search
    assert em.certain.tolist() == [[0, 0], [1, 1], [2, 2]]
