"""emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emea.aligner import Aligner, Evaluation, Match, graph_of, read_graph, read_links

# A waiting thread should sleep soon instead of spinning. On a busy machine, a spinning thread
# blocks the core that the other thread needs, which made steps twenty times slower. Sleeping
# immediately costs a third on an idle machine. OpenMP reads this setting when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

__version__ = "0.1.0"
__all__ = ["Aligner", "Evaluation", "Match", "graph_of", "read_graph", "read_links"]


def __getattr__(name: str) -> Any:
    """Load the library when one of its names is first used, because torch imports slowly."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from emea import aligner

    return getattr(aligner, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
