"""Ensembles: joined embeddings, and fits that train one member at a time."""

import pytest
import torch
from torch import Tensor, nn

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.ensemble import Ensemble, EnsembleObjective
from emea.encoders.objective import Objective
from emea.errors import ConfigError


class Rows(nn.Module):
    """An encoder that returns a parameter."""

    def __init__(self, num_entities: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(num_entities, width))

    def forward(self) -> Tensor:
        return self.rows


class Distance(Objective):
    """The mean squared distance of linked entities, over so many steps per epoch."""

    def __init__(self, num_steps: int = 1) -> None:
        super().__init__()
        self.num_steps = num_steps
        self.attached: nn.Module | None = None

    def attach(self, encoder: nn.Module) -> None:
        self.attached = encoder

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        rows = encoder()
        loss: Tensor = (rows[links[:, 0]] - rows[links[:, 1]]).square().mean()
        return loss

    def steps_per_epoch(self, num_links: int) -> int:
        return self.num_steps


def module_of(*widths: int) -> AlignmentModule:
    members = [Rows(5, width) for width in widths]
    objectives = [Distance(number + 1) for number in range(len(widths))]
    return AlignmentModule(
        Ensemble(members),
        EnsembleObjective(objectives),
        [torch.optim.SGD] * len(widths),
        num_source=2,
        num_target=3,
    )


def test_cosines_are_weighted_means_of_the_members() -> None:
    torch.manual_seed(0)
    module = module_of(4, 7)
    module.weigh_members(torch.tensor([0.2, 0.8]))
    source, target = module.embeddings()
    assert source.shape == (2, 11) and target.shape == (3, 11)
    for i in range(2):
        for j in range(3):
            cosines = []
            for member in module.encoder.members:
                one, other = member.rows.detach()[[i, 2 + j]]
                cosines.append(float(one @ other / one.norm() / other.norm()))
            expected = 0.2 * cosines[0] + 0.8 * cosines[1]
            assert float(source[i] @ target[j]) == pytest.approx(expected, abs=1e-6)
    assert source.norm(dim=1).tolist() == pytest.approx([1, 1])


def test_a_step_changes_the_active_member_only() -> None:
    module = module_of(3, 3)
    links = torch.tensor([[0, 2], [1, 3]])
    before = [member.rows.detach().clone() for member in module.encoder.members]
    module.activate(1)
    assert module.is_last_member
    assert module.num_steps(5, len(links)) == 10
    optimizer = module.configure_optimizers()
    module.new_step(links, optimizer)()
    after = [member.rows.detach() for member in module.encoder.members]
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])
    module.activate(0)
    assert not module.is_last_member
    assert module.num_steps(5, len(links)) == 5


def test_each_objective_gets_its_own_member() -> None:
    module = module_of(3, 4)
    for objective, member in zip(module.objective.objectives, module.encoder.members, strict=True):
        assert objective.attached is member
    fresh, objective = Rows(5, 4), Distance()
    module.renew_member(1, fresh, objective)
    assert module.encoder.members[1] is fresh and objective.attached is fresh
    assert module.encoder.members[0] is not fresh


def test_a_member_with_a_wrong_number_of_rows_is_named() -> None:
    module = AlignmentModule(
        Ensemble([Rows(5, 3), Rows(4, 3)]),
        EnsembleObjective([Distance(), Distance()]),
        [torch.optim.SGD, torch.optim.SGD],
        num_source=2,
        num_target=3,
    )
    with pytest.raises(ConfigError, match=r"returned a tensor of shape \[4, 3\]"):
        module.embeddings()


def test_each_member_with_weights_needs_an_optimizer() -> None:
    with pytest.raises(ConfigError, match="Rows has weights to train"):
        AlignmentModule(
            Ensemble([Rows(5, 3), Rows(5, 3)]),
            EnsembleObjective([Distance(), Distance()]),
            [torch.optim.SGD, None],
            num_source=2,
            num_target=3,
        )
