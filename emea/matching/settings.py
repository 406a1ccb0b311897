"""Settings of the similarity and of the searches."""

from dataclasses import dataclass

from emea.setting import SEED, setting, up_to


@dataclass(frozen=True)
class CSLSSettings:
    """Cross-domain similarity local scaling."""

    k: int = setting(
        10,
        "nearest neighbours whose mean similarity is subtracted",
        up_to(100_000),
        source="released EMEA",
    )


@dataclass(frozen=True)
class OnePassSearchSettings:
    """Comparison of all pairs with 8-bit vectors and exact re-ranking."""

    shortlist: int = setting(
        100,
        "candidates of each entity that are scored exactly; the recall is recorded",
        up_to(100_000),
        source="ours: recall .99 for LightEA",
    )


@dataclass(frozen=True)
class KMeansSearchSettings:
    """Approximate search in k-means cells."""

    num_probes: int = setting(
        16,
        "cells that are searched for each entity; the recall is recorded",
        up_to(1_000_000),
        source="ours",
    )
    num_cells: int | None = setting(
        None,
        "cells; null: the square root of the number of targets",
        up_to(1_000_000),
        "ours",
    )
    seed: int = setting("${seed}", "seed of the cells", SEED)
