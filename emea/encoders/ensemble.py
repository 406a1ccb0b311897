"""Several encoders of the same graphs, and their objectives."""

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


class EnsembleObjective(nn.Module):
    """Holds the objectives of an ensemble's members.

    Args:
        objectives: The objective of each member.
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        super().__init__()
        self.objectives = nn.ModuleList(objectives)
