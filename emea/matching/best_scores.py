"""The best scores of the rows and columns of large blocks.

On a CPU, ``topk`` takes a third to two thirds of the time of the product that computes the scores.
The functions here return the same results and read most scores only once.
"""

import torch
from torch import Tensor

from emea.kernels.flat_groups import places_in_groups

GROUP = 32
"""Scores that are compared by their maximum first."""


def best_of_rows(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best scores of each row and their columns, exactly as ``topk`` does.

    The k + 1 best scores of a row are in the k + 1 groups with the largest maxima. Which of several
    equal scores ``topk`` returns is not specified, so rows with equal scores are left to it.
    """
    num_rows, num_columns = scores.shape
    num_groups = num_columns // GROUP
    if scores.device.type != "cpu" or num_groups < 4 * (k + 1):
        found = scores.topk(k, dim=1)
        return found.values, found.indices
    maxima = scores[:, : num_groups * GROUP].view(num_rows, num_groups, GROUP).amax(2)
    groups = maxima.topk(k + 1, dim=1).indices
    members = (groups.unsqueeze(2) * GROUP + torch.arange(GROUP)).flatten(1)
    others = torch.arange(num_groups * GROUP, num_columns).expand(num_rows, -1)
    columns = torch.cat([members, others], dim=1)
    best = scores.gather(1, columns).topk(k + 1, dim=1)
    values = best.values[:, :k]
    found_columns = columns.gather(1, best.indices[:, :k])
    tied = (best.values[:, :-1] == best.values[:, 1:]).any(1).nonzero().squeeze(1)
    if len(tied):
        values[tied], found_columns[tied] = scores[tied].topk(k, dim=1)
    return values, found_columns


class ColumnBests:
    """Collects the best scores of each column of a matrix that comes in blocks of rows.

    After some blocks, few scores of a block are among the best of their column.

    Args:
        k: Number of scores per column.
        num_columns: Number of columns.
        like: Tensor of the scores' type and device.
    """

    def __init__(self, k: int, num_columns: int, like: Tensor) -> None:
        self.values = like.new_full((k, num_columns), -torch.inf)

    def add(self, scores: Tensor) -> None:
        """Add a block of rows."""
        k, num_columns = self.values.shape
        if scores.device.type != "cpu" or self.values[0].isinf().any():
            new = scores.topk(min(k, len(scores)), dim=0).values
        else:
            rows, columns = (scores > self.values[-1]).nonzero(as_tuple=True)
            order = torch.argsort(columns, stable=True)
            rows = rows[order]
            columns = columns[order]
            slots = places_in_groups(columns, num_columns)
            new = scores.new_full(
                (int(slots.max()) + 1 if len(slots) else 0, num_columns), -torch.inf
            )
            new[slots, columns] = scores[rows, columns]
        self.values = torch.cat([self.values, new]).topk(k, dim=0).values


def log_sums(logits: Tensor, most: Tensor) -> Tensor:
    """Return ``logsumexp`` of each row from its known maximum; overwrites the logits.

    Args:
        logits: ``[n, m]``.
        most: ``[n]`` the largest logit of each row.
    """
    shift = most.masked_fill(most.isinf(), 0)
    return logits.sub_(shift.unsqueeze(1)).exp_().sum(1).log_().add_(shift)
