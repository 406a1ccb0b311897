"""Examples for the weights of the match model: the candidates of the entities of known links."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.pair_table import PairTable, places_in_groups


@dataclass(frozen=True, eq=False)
class Examples:
    """Holds where a table has the candidates of one side's entities of some links.

    The features of the candidates change with the beliefs, the examples do not.

    Args:
        places: ``[n, k]`` positions of each entity's pairs in the flattened table, 0 in empty
            slots.
        ids: ``[n]`` the entities.
        filled: ``[n, k]`` whether a slot contains a pair, on the CPU.
        slots: ``[n]`` the correct pair of each entity, -1 if it is not in the table, on the CPU.
    """

    places: Tensor
    ids: Tensor
    filled: Tensor
    slots: Tensor

    @classmethod
    def of(cls, places: Tensor, ids: Tensor, is_right: Tensor) -> "Examples":
        """Return the examples.

        Args:
            places: ``[n, k]`` positions of each entity's pairs, -1 in empty slots.
            ids: ``[n]`` the entities.
            is_right: ``[n, k]`` whether a slot contains the link of the entity.
        """
        slots = torch.where(is_right.any(1), is_right.int().argmax(1), -1)
        return cls(places.clamp(min=0), ids, (places >= 0).cpu(), slots.cpu())

    def values(self, columns: Sequence[Tensor], none: Tensor) -> Tensor:
        """Return the features of the candidates and of no match, on the CPU.

        Args:
            columns: One tensor ``[num_source, width]`` per feature.
            none: ``[n, num_features]`` features of the option to match none of the candidates.

        Returns:
            ``[n, k + 1, num_features]``, 0 in empty slots. The last slot means no match.
        """
        pairs = torch.stack([column.flatten()[self.places] for column in columns], dim=2)
        values = torch.cat([pairs, none.unsqueeze(1)], dim=1).cpu()
        values[:, :-1].masked_fill_(~self.filled.unsqueeze(2), 0.0)
        return values

    def offsets(self, of_none: float) -> Tensor:
        """Return what is added to the logits: minus infinity in empty slots, 0 for candidates.

        Args:
            of_none: Value of the option to match none of the candidates.
        """
        offsets = torch.where(self.filled, 0.0, -torch.inf)
        return torch.cat([offsets, torch.full((len(offsets), 1), of_none)], dim=1)

    def slots_or_none(self) -> Tensor:
        """Return the correct slots; if a link is not among the pairs, the slot of no match."""
        return torch.where(self.slots < 0, self.places.shape[1], self.slots)


def source_examples(table: PairTable, links: Tensor) -> Examples:
    """Return the pairs of the links' source entities."""
    sources, targets = links.T
    width = table.targets.shape[1]
    places = sources.unsqueeze(1) * width + torch.arange(width, device=links.device)
    filled = table.filled[sources]
    is_right = (table.targets[sources] == targets.unsqueeze(1)) & filled
    return Examples.of(torch.where(filled, places, -1), sources, is_right)


def target_examples(table: PairTable, links: Tensor) -> Examples:
    """Return the pairs of the links' target entities."""
    sources, targets = links.T
    wanted = torch.zeros(table.num_target, dtype=torch.bool, device=links.device)
    wanted[targets] = True
    flat = (table.filled & wanted[table.targets]).flatten().nonzero().squeeze(1)
    of_target = table.targets.flatten()[flat]
    order = torch.argsort(of_target, stable=True)
    flat, of_target = flat[order], of_target[order]
    slots = places_in_groups(of_target, table.num_target)
    width = int(slots.max()) + 1 if len(slots) else 1
    # rows for the links' entities only: there may be a million others
    number = wanted.cumsum(0) - 1
    places = torch.full((int(wanted.sum()), width), -1, device=links.device)
    places[number[of_target], slots] = flat
    places = places[number[targets]]
    is_right = (places // table.targets.shape[1] == sources.unsqueeze(1)) & (places >= 0)
    return Examples.of(places, targets, is_right)


def stacked_examples(
    examples: Sequence[tuple[Tensor, Tensor, Tensor]],
) -> tuple[Tensor, Tensor, Tensor]:
    """Concatenate features, offsets and correct slots, padded with empty slots to one width."""
    width = max(values.shape[1] for values, _, _ in examples)
    values = torch.cat([_widened(values, width, 0.0) for values, _, _ in examples])
    offsets = torch.cat([_widened(offset, width, -torch.inf) for _, offset, _ in examples])
    return values, offsets, torch.cat([slots for _, _, slots in examples])


def _widened(values: Tensor, width: int, filler: float) -> Tensor:
    """Return the values, padded with fillers for empty slots to the width."""
    shape = list(values.shape)
    shape[1] = width - shape[1]
    return torch.cat([values, values.new_full(shape, filler)], dim=1)
