"""The margin loss over Manhattan distances that RREA trains with."""

import torch
from torch import Tensor, nn

from emea.encoders.kernels.margin_loss import margin_loss
from emea.encoders.kernels.pair_distance import pair_distances
from emea.encoders.objective import Objective, drawn_links


class MarginObjective(Objective):
    """Makes linked entities closer than random pairs by a margin.

    For a link (s, t) and entities f_s, f_t sampled from both graphs the loss is
    ``max(0, margin + |s - t| - |s - f_t|) + max(0, margin + |s - t| - |f_s - t|)``,
    averaged over a batch that contains all links equally often, or in proportion to their weights.

    Args:
        margin: The margin (gamma in the paper).
        batch_size: Number of links sampled per step; links repeat if there are fewer. ``None``
            means the number of entities, as in the reference runs.
    """

    def __init__(self, margin: float = 3.0, batch_size: int | None = None) -> None:
        super().__init__()
        self.margin = margin
        self.batch_size = batch_size

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Return the loss of one step."""
        rows = encoder()
        size = self.batch_size or len(rows)
        # false entities are random, so the order of the links does not matter; sorting takes longer
        # than the loss on a GPU
        keep_order = rows.is_cuda and size >= len(links)
        picked = drawn_links(links, size, self.link_weights, keep_order)
        source, target = (ids.index_select(0, picked) for ids in links.unbind(1))
        false_source, false_target = torch.randint(len(rows), (2, size), device=rows.device)
        # the distance of a repeated link is computed once
        if self.link_weights is None:
            num_distinct = min(len(links), size)
            once = source[:num_distinct], target[:num_distinct]
        else:
            num_distinct = len(links)
            once = links[:, 0], links[:, 1]
        first = torch.cat([once[0], source, target])
        second = torch.cat([once[1], false_target, false_source])
        distances = pair_distances(rows, first, second)
        places = None if self.link_weights is None else picked
        return margin_loss(distances, places, num_distinct, self.margin)
