"""The margin loss over Manhattan distances that RREA trains with."""

import torch
from torch import Tensor, nn

from emea.encoders.objective import Objective
from emea.encoders.pair_distance import pair_distances


class MarginObjective(Objective):
    """Linked entities closer than random ones, by a margin.

    For a link (s, t) and entities f_s, f_t drawn at random from both graphs the loss is
    ``max(0, margin + |s - t| - |s - f_t|) + max(0, margin + |s - t| - |f_s - t|)``,
    averaged over a batch in which each link stands as often as any other.

    Args:
        margin: gamma of the paper's reference settings.
        batch_size: links drawn per step, repeated where there are fewer; ``None`` means the
            number of entities, as the reference runs do.
    """

    def __init__(self, margin: float = 3.0, batch_size: int | None = None) -> None:
        super().__init__()
        self.margin = margin
        self.batch_size = batch_size

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Loss of one step."""
        rows = encoder()
        size = self.batch_size or len(rows)
        source, target = random_batch(links, size)
        false_source, false_target = torch.randint(len(rows), (2, size), device=rows.device)
        # a repeated link has one distance: computed once
        num_distinct = min(len(links), size)
        first = torch.cat([source[:num_distinct], source, target])
        second = torch.cat([target[:num_distinct], false_target, false_source])
        distances = pair_distances(rows, first, second)
        true, false = distances[:num_distinct], distances[num_distinct:]
        positive = true.repeat(-(-size // num_distinct))[:size]
        return torch.relu(self.margin + positive.repeat(2) - false).sum() / size


def random_batch(links: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Source and target ids of ``size`` links, in random order, repeated in turn."""
    order = torch.randperm(len(links), device=links.device)
    picked = order.repeat(-(-size // len(links)))[:size]
    source, target = links[picked].T.contiguous()
    return source, target
