"""emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emea.aligner import Aligner, Evaluation, Match, graph_of, read_graph, read_links

# A thread that waits for another should soon sleep instead of spinning on: on a busy machine it
# keeps the thread it waits for off its core, which made steps twenty times slower.
# Sleeping at once costs a third on an idle machine. OpenMP reads this when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

__version__ = "0.1.0"
__all__ = ["Aligner", "Evaluation", "Match", "graph_of", "read_graph", "read_links"]


def __getattr__(name: str) -> Any:
    """Load the library when one of its names is first asked for: torch takes seconds to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from emea import aligner

    return getattr(aligner, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
