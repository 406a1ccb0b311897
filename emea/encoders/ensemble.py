"""Several encoders of the same graphs, trained one after another on the same labels."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from emea.encoders.objective import Objective


class Ensemble(nn.Module):
    """Joins the embeddings of its members, so that cosines become weighted means.

    The embedding of an entity contains the unit vector of each member, scaled by the square root
    of the member's weight. The weights sum to 1, so the cosine of two entities is the weighted
    mean of the members' cosines.

    Args:
        members: Encoders of the same entities; their widths may differ.

    Shapes:
        output: ``[num_entities, sum of the members' widths]``, source entities first.
    """

    weights: Tensor

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.register_buffer("weights", torch.full((len(members),), 1 / len(members)))

    def forward(self) -> Tensor:
        """Return the joined embeddings of all entities."""
        scales = self.weights.sqrt()
        rows = [scale * part for scale, part in zip(scales, self.member_rows(), strict=True)]
        return torch.cat(rows, dim=1)

    def member_rows(self) -> Iterator[Tensor]:
        """Yield the unit vectors of all entities by each member, in single precision."""
        for member in self.members:
            rows = member()
            yield normalize(rows.to(torch.promote_types(rows.dtype, torch.float32)))


class EnsembleObjective(Objective):
    """The loss of the member in training.

    Args:
        objectives: The objective of each member.

    Attributes:
        active: Index of the member in training.
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        super().__init__()
        self.objectives = nn.ModuleList(objectives)
        self.active = 0

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Return the loss of one step of the active member."""
        loss: Tensor = self._current(self._member(encoder), links)
        return loss

    def weigh(self, link_weights: Tensor | None) -> None:
        """Set the weights of the links before the first step of a turn."""
        self._current.weigh(link_weights)

    def steps_per_epoch(self, num_links: int) -> int:
        """Return the steps of one epoch of the active member."""
        return self._current.steps_per_epoch(num_links)

    def attach(self, encoder: nn.Module) -> None:
        """Give each objective its member."""
        assert isinstance(encoder, Ensemble)
        for objective, member in zip(self.objectives, encoder.members, strict=True):
            assert isinstance(objective, Objective)
            objective.attach(member)

    def before_step(self, encoder: nn.Module, links: Tensor, step: int) -> None:
        """Prepare a step of the active member."""
        self._current.before_step(self._member(encoder), links, step)

    @property
    def _current(self) -> Objective:
        objective = self.objectives[self.active]
        assert isinstance(objective, Objective)
        return objective

    def _member(self, encoder: nn.Module) -> nn.Module:
        assert isinstance(encoder, Ensemble)
        return encoder.members[self.active]
