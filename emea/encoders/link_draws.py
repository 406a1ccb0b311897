"""Links drawn for one optimisation step."""

import torch
from torch import Tensor


def drawn_links(links: Tensor, size: int, weights: Tensor | None = None) -> Tensor:
    """``[size]`` positions of links, in random order.

    Without weights every link stands as often as any other, repeated in turn where there are
    fewer. With weights a link's number of places is its share of the weight, rounded up or down
    by one random offset for all (systematic sampling): nothing is left to chance but the
    remainder, and no step waits for the device to tell how many were drawn.

    Args:
        links: ``[num_links, 2]``.
        size: how many to draw.
        weights: ``[num_links]``, none below 0.
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
    """Source and target ids of ``size`` drawn links."""
    source, target = links[drawn_links(links, size, weights)].T.contiguous()
    return source, target
