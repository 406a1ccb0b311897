"""Interface of a candidate search, which chooses the targets to compare with each source entity."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from torch import Tensor


class SearchGroup(NamedTuple):
    """Holds some source entities and the targets to compare them with.

    Args:
        rows: ``[n]`` source ids.
        columns: ``[m]`` target ids for all rows, or ``[n, m]`` target ids of each row.
        dots: ``[n, m]`` dot products with ``columns``; ``None`` if they have to be computed.
    """

    rows: Tensor
    columns: Tensor
    dots: Tensor | None = None


class Scope(Protocol):
    """Interface of the targets that an approximate search compares with each source entity."""

    def groups(self, least: int) -> Iterator[SearchGroup]:
        """Yield every source entity once.

        Args:
            least: Number of targets that every source entity needs.
        """

    def reversed(self) -> "Scope":
        """Return the scope of a search from the target side."""


Search = Callable[[Tensor, Tensor], Scope | None]
"""Takes the unit vectors of both sides; returns ``None`` to search all targets."""


@dataclass(frozen=True)
class ExactSearch:
    """Compares each source entity with all targets."""

    def __call__(self, source: Tensor, target: Tensor) -> None:
        """Return ``None``, which means that all targets are compared."""
        return None
