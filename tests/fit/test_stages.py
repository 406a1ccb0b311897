"""Which members of an ensemble are trained side by side."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emea.encoders.objective import Ensemble, Objective
from emea.fit import training_loop as stages
from emea.fit.alignment_module import AlignmentModule
from emea.fit.step_block import LabelDataModule
from emea.fit.training_loop import Stage, fits

from .small_fits import Rows

NAMES = ("first training", "EM iteration 1")


class ByLinks(Objective):
    """One step per link and epoch."""

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        raise AssertionError("not trained here")

    def steps_per_epoch(self, num_links: int) -> int:
        return num_links


def parts_of(untrained: int | None = None, num_members: int = 3) -> Any:
    members = range(num_members)
    module = AlignmentModule(
        Ensemble([Rows(10, 2, member != untrained) for member in members]),
        nn.ModuleList([ByLinks() for _ in members]),
        [None if member == untrained else torch.optim.SGD for member in members],
        num_source=5,
        num_target=5,
    )
    data = LabelDataModule(np.zeros((4, 2), dtype=np.int64), num_source=5)
    return SimpleNamespace(module=module, data=data, stopping=None)


def plan_of(*changes: tuple[int, dict[str, Any]], num_members: int = 3) -> list[Stage]:
    """Two stages of each member, with changes by their numbers."""
    plan = [
        Stage(name, 8, 0, False, (member,), member == num_members - 1)
        for name in NAMES
        for member in range(num_members)
    ]
    for number, changed in changes:
        plan[number] = plan[number]._replace(**changed)
    return plan


def joined(
    plan: list[Stage], parts: Any, first: int = 0
) -> list[tuple[int, tuple[int, ...]]]:
    return [(number, stage.members) for number, stage in fits(plan, first, parts)]


def test_members_of_one_iteration_are_joined() -> None:
    plan, parts = plan_of(), parts_of()
    found = list(fits(plan, 0, parts))
    assert [number for number, _ in found] == [0, 3]
    first, second = (stage for _, stage in found)
    assert first == Stage("first training", 8, 0, False, (0, 1, 2), True)
    assert second == Stage("EM iteration 1", 8, 0, False, (0, 1, 2), True)
    assert joined(plan, parts, first=3) == [(3, (0, 1, 2))]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(1, {"num_epochs": 9})], [(0, (0,)), (1, (1,)), (2, (2,)), (3, (0, 1, 2))]),
        ([(3, {"restart": True})], [(0, (0, 1, 2)), (3, (0,)), (4, (1, 2))]),
        ([(n, {"restart": True}) for n in (3, 4, 5)], [(0, (0, 1, 2)), (3, (0, 1, 2))]),
        (
            [(n, {"num_turns": 1}) for n in (0, 1, 2)],
            [(0, (0,)), (1, (1,)), (2, (2,)), (3, (0, 1, 2))],
        ),
    ],
)
def test_stages_that_differ_or_have_turns_are_not_joined(
    changes: list[tuple[int, dict[str, Any]]],
    expected: list[tuple[int, tuple[int, ...]]],
) -> None:
    assert joined(plan_of(*changes), parts_of()) == expected


def test_early_stopping_needs_single_fits() -> None:
    parts = parts_of()
    parts.stopping = object()
    assert joined(plan_of(), parts, 3) == [(3, (0,)), (4, (1,)), (5, (2,))]


def test_a_member_without_an_optimiser_is_trained_by_itself() -> None:
    assert joined(plan_of(), parts_of(untrained=2), 3) == [(3, (0, 1)), (5, (2,))]
    assert joined(plan_of(), parts_of(untrained=1), 3) == [
        (3, (0,)),
        (4, (1,)),
        (5, (2,)),
    ]


def test_members_with_other_numbers_of_steps_are_not_joined() -> None:
    parts = parts_of()
    links = np.zeros((4, 2), dtype=np.int64)
    found = fits(plan_of(), 0, parts)
    assert next(found)[1].members == (0, 1, 2)
    parts.data.relabel([(links, None), (links[:3], None), (links[:3], None)])
    assert [stage.members for _, stage in found] == [
        (0,),
        (1, 2),
    ]  # by the labels of its time


def test_few_members_of_large_graphs_are_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for limit, sizes in (
        (100, [5]),
        (49, [4, 1]),
        (20, [2, 2, 1]),
        (19, [1] * 5),
        (0, [1] * 5),
    ):
        monkeypatch.setattr(stages, "MAX_JOINT_ENTITIES", limit)
        found = joined(plan_of(num_members=5), parts_of(num_members=5), first=5)
        assert [len(members) for _, members in found] == sizes
