"""The interface of an objective, the sampling of links for a step, and ensembles of encoders."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from emea.matching.rejected_pairs import RejectedPairs


class Objective(nn.Module, ABC):
    """Interface of the loss of an encoder on links; one call is one optimisation step.

    On CUDA a step is replayed as a graph, so the loss runs the same kernels on the same memory each
    time. Before the step, outside the graph, ``before_step`` writes data that changes between steps
    into buffers, such as negatives or rows that links share.

    Attributes:
        link_weights: ``[num_links]`` weight of each link of the turn; ``None`` means equal weights.
            An objective that samples links uses them as sampling weights. An objective that uses
            all links at once ignores them.
        rejected: Pairs of source and target entities, in the ids of their graphs, that an objective
            must not take for counterparts; ``None`` if there are none.
    """

    link_weights: Tensor | None = None
    rejected: RejectedPairs | None = None

    @abstractmethod
    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Return the loss of one step.

        Args:
            encoder: Called without arguments, returns the embeddings of all entities.
            links: ``[num_links, 2]`` entity ids in the joint id space.
        """

    def weigh(self, link_weights: Tensor | None) -> None:
        """Set the weights of the links before the first step of a turn."""
        self.link_weights = link_weights

    def steps_per_epoch(self, num_links: int) -> int:
        """Return the number of steps of one epoch; a full-batch objective needs one."""
        return 1

    def attach(self, encoder: nn.Module) -> None:
        """Receive the encoder; called once, before all other methods."""
        return None

    def before_step(self, encoder: nn.Module, links: Tensor, step: int) -> None:
        """Prepare a step; called before each step, outside the CUDA graph.

        Args:
            encoder: The encoder in training.
            links: The links of the fit.
            step: The number of the step in this fit. At step 0 the links may have changed, and
                tensors may be replaced. At later steps tensors may only be modified in place.
        """
        return None


def drawn_links(
    links: Tensor, size: int, weights: Tensor | None = None, keep_order: bool = False
) -> Tensor:
    """Return ``[size]`` positions of links, in random order unless ``keep_order`` is set.

    Without weights all links occur equally often, and links repeat if there are fewer than
    ``size``. With weights a link occurs in proportion to its weight, rounded up or down by one
    random offset for all links (systematic sampling). Only the remainder is random, and the host
    need not wait for the device to return the number of sampled links.

    Args:
        links: ``[num_links, 2]`` links.
        size: Number of links to sample.
        weights: ``[num_links]`` weights, not negative.
        keep_order: Keep the order of the links. Without weights only the first position is random,
            with weights only the offset. This takes less time on a GPU, but a batch that is
            smaller than the number of links then contains neighbouring links.
    """
    num_links = len(links)
    device = links.device
    if weights is None:
        if keep_order:
            start = torch.randint(num_links, (1,), device=device)
            return (torch.arange(size, device=device) + start) % num_links
        return _random_order(num_links, device).repeat(-(-size // num_links))[:size]
    order = None if keep_order else _random_order(num_links, device)
    ends = _running_sums(
        (weights if order is None else weights.index_select(0, order)).double()
    )
    places = torch.arange(size, device=device) + torch.rand(1, device=device)
    picked = torch.searchsorted(ends, places * (ends[-1] / size), right=True)
    # rounding may put the last position after the last end, where links may have no weight
    picked = torch.minimum(picked, torch.searchsorted(ends[:-1], ends[-1:]))
    return picked if order is None else order[picked]


MAX_SMALL_SORT = 4096
"""Numbers that one CUDA kernel of torch sorts; more need about ten kernels."""


def _random_order(size: int, device: torch.device) -> Tensor:
    """Return a random permutation. Few random numbers are equal, so their order does not matter."""
    if device.type == "cuda" and size <= MAX_SMALL_SORT:
        return torch.rand(size, device=device).argsort()
    return torch.randperm(size, device=device)


def _running_sums(values: Tensor) -> Tensor:
    if values.is_cuda and torch.are_deterministic_algorithms_enabled():
        # their last bits vary on a GPU
        return values.cpu().cumsum(0).to(values.device)
    return values.cumsum(0)


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
        rows = [
            scale * part for scale, part in zip(scales, self.member_rows(), strict=True)
        ]
        return torch.cat(rows, dim=1)

    def member_rows(self) -> Iterator[Tensor]:
        """Yield the unit vectors of all entities by each member, in single precision."""
        for member in self.members:
            rows = member()
            yield normalize(rows.to(torch.promote_types(rows.dtype, torch.float32)))
