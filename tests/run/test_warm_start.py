"""The state that a run takes from an earlier run."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emea.data.arrays import NO_MATCH
from emea.fit.step_block import LabelDataModule
from emea.matching.beliefs import Matching
from emea.run.warm_start import RowMap, WarmStart, carried_state, joint_rows

SOURCE = RowMap(np.array([1, NO_MATCH, 0]), 2)
"""Three source entities, of which the second is new; there were two."""

TARGET = RowMap(np.array([NO_MATCH, 2]), 3)


def test_rows_of_both_graphs_and_directions() -> None:
    both = joint_rows([SOURCE, TARGET])
    assert both.old_rows.tolist() == [1, NO_MATCH, 0, NO_MATCH, 4] and both.num_old == 5
    twice = joint_rows([SOURCE, TARGET], directions=2)
    assert (
        twice.old_rows.tolist()[5:] == [6, NO_MATCH, 5, NO_MATCH, 9]
        and twice.num_old == 10
    )


def test_known_rows_are_carried_and_new_ones_stay() -> None:
    maps = [joint_rows([SOURCE, TARGET])]
    old = {
        "entities": torch.arange(10.0).view(5, 2),
        "layer": torch.full((2, 2), 7.0),
        "edges": torch.zeros(4),
        "step": torch.tensor(3),
    }
    new = {
        "entities": -torch.ones(5, 2),
        "layer": torch.zeros(2, 2),
        "edges": torch.ones(6),
        "step": torch.tensor(0),
        "other": torch.zeros(1),
    }
    found = carried_state(old, new, maps)
    assert found["entities"].tolist() == [[2, 3], [-1, -1], [0, 1], [-1, -1], [8, 9]]
    assert torch.equal(found["layer"], old["layer"]) and int(found["step"]) == 3
    assert found.keys() == {"entities", "layer", "step"}


def test_a_new_row_starts_from_the_mean_of_its_neighbours() -> None:
    # row 1 is new and has three neighbours, row 3 is new and has none
    edges = np.array([[1, 0], [1, 2], [1, 2]])
    rows = RowMap(np.array([1, NO_MATCH, 0, NO_MATCH]), 2, edges)
    old = torch.tensor([[3.0, 0.0], [0.0, 9.0]])
    found = rows.carried(old, torch.full((4, 2), -1.0))
    assert found.tolist() == [[0, 9], [2, 3], [3, 0], [-1, -1]]
    # ids have no mean
    assert rows.carried(
        torch.tensor([7, 8]), torch.zeros(4, dtype=torch.int64)
    ).tolist() == [
        *(8, 0),
        *(7, 0),
    ]


GIVEN, FOUND = np.array([[0, 0], [1, 1]]), np.array([[2, 3]])


class Started:
    """A step that keeps the matches from which it starts."""

    def __init__(self, reasons: bool) -> None:
        self.reasons = reasons
        self.known: Matching | None = None

    def start_from(self, known: Matching) -> bool:
        self.known = known
        return True


def parts_of(before: Tensor | None, reasons: bool = True) -> Any:
    """What a run has before its first fit: a module, its links and a step."""
    data = LabelDataModule(GIVEN, num_source=3)
    data.relabel([(GIVEN, before)])
    module = nn.Embedding(2, 1)
    return SimpleNamespace(
        module=module,
        data=SimpleNamespace(
            num_source=3, relabel=data.relabel, member_labels=data.member_labels
        ),
        em=SimpleNamespace(step=Started(reasons)),
        links=data,
    )


def warm_start(weights: Tensor | None) -> WarmStart:
    known: Any = object()
    rows = RowMap(np.array([0, NO_MATCH]), 1)
    encoder = {"weight": torch.tensor([[5.0]])}
    return WarmStart(known, FOUND, weights, encoder, [rows])


@pytest.mark.parametrize(
    ("before", "weights", "expected"),
    [
        (None, [0.25], [1, 1, 0.25]),
        ([0.5, 0.75], [0.25], [0.5, 0.75, 0.25]),
        (None, None, None),
    ],
    ids=["equal", "weighted", "none"],
)
def test_a_run_starts_from_the_matches_of_an_earlier_one(
    before: list[float] | None,
    weights: list[float] | None,
    expected: list[float] | None,
) -> None:
    parts = parts_of(None if before is None else torch.tensor(before))
    start = warm_start(None if weights is None else torch.tensor(weights))
    start.apply(parts)
    assert parts.links.labels.tolist() == [*GIVEN.tolist(), *FOUND.tolist()]
    found = parts.links.weights
    assert (None if found is None else found.tolist()) == expected
    assert parts.em.step.known is start.known
    assert float(parts.module.weight[0].detach()) == 5


def test_without_em_only_the_encoder_is_taken_over() -> None:
    parts = parts_of(None, reasons=False)
    warm_start(torch.tensor([0.25])).apply(parts)
    assert parts.links.labels.tolist() == GIVEN.tolist()
    assert parts.em.step.known is None
    assert float(parts.module.weight[0].detach()) == 5
