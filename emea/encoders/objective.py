"""The interface of an objective, and how labels are drawn for a step."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Objective(nn.Module, ABC):
    """Loss of an encoder on links; one call is one optimisation step.

    On CUDA a step is replayed as a graph, so the loss itself runs the same kernels on the same
    memory each time. Data that changes between steps (negatives, rows shared by links) is
    written into buffers by ``before_step``, outside the graph.

    Attributes:
        link_weights: ``[num_links]`` weight of each link of the turn; ``None``: equal weights.
            An objective that samples links uses them as sampling weights; one that uses all
            links at once ignores them.
    """

    link_weights: Tensor | None = None

    @abstractmethod
    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Loss of one step.

        Args:
            encoder: called without arguments, gives the embeddings of all entities.
            links: ``[num_links, 2]`` entity ids in the joint id space.
        """

    def weigh(self, link_weights: Tensor | None) -> None:
        """Set the weights of the links before the first step of a turn."""
        self.link_weights = link_weights

    def steps_per_epoch(self, num_links: int) -> int:
        """Return the steps of one epoch; a full-batch objective needs one."""
        return 1

    def attach(self, encoder: nn.Module) -> None:
        """Receive the encoder, once, before all other calls."""
        return None

    def before_step(self, encoder: nn.Module, links: Tensor, step: int) -> None:
        """Called before each step, outside the graph.

        Args:
            encoder: the one in training.
            links: those of the fit.
            step: of this fit; at 0 the links may be others than before, and tensors may be
                replaced. Later they may only be written to.
        """
        return None


def drawn_links(links: Tensor, size: int, weights: Tensor | None = None) -> Tensor:
    """Return ``[size]`` positions of links, in random order.

    Without weights all links occur equally often, repeated in turn if there are fewer than
    ``size``. With weights a link occurs in proportion to its weight, rounded up or down by one
    random offset for all (systematic sampling): only the remainder is random, and no step waits
    for the device to return the number of links drawn.

    Args:
        links: ``[num_links, 2]``.
        size: how many to draw.
        weights: ``[num_links]``, not negative.
    """
    order = torch.randperm(len(links), device=links.device)
    if weights is None:
        return order.repeat(-(-size // len(links)))[:size]
    ends = _running_sums(weights.index_select(0, order).double())
    places = torch.arange(size, device=links.device) + torch.rand(1, device=links.device)
    picked = torch.searchsorted(ends, places * (ends[-1] / size), right=True)
    # rounding may put the last place behind the last end
    return order[picked.clamp_(max=len(links) - 1)]


def _running_sums(values: Tensor) -> Tensor:
    if values.is_cuda and torch.are_deterministic_algorithms_enabled():
        # on a GPU their last bits vary
        return values.cpu().cumsum(0).to(values.device)
    return values.cumsum(0)


def random_batch(links: Tensor, size: int, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return source and target ids of ``size`` drawn links."""
    source, target = links[drawn_links(links, size, weights)].T.contiguous()
    return source, target
