"""Settings of similarities, decodings and searches."""

from dataclasses import dataclass

from emea.config.settings.setting import POSITIVE, SEED, SHARE_ABOVE_ZERO, setting, up_to


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
class SinkhornSettings:
    """Sinkhorn normalisation of both sides."""

    rounds: int = setting(
        20, "normalisations of each side", up_to(100_000), source="ours: later ones change little"
    )
    temperature: float = setting(
        1.0,
        "temperature of the beliefs; 1 keeps them unchanged",
        POSITIVE,
        source="ours: the normaliser has fitted the sharpness",
    )


@dataclass(frozen=True)
class HungarianSettings:
    """The most probable one-to-one assignment."""

    unmatched_prob: float = setting(
        0.1,
        "probability of staying unmatched; a lower one matches more entities and is slower",
        SHARE_ABOVE_ZERO,
        source="ours, chosen over 0.01 by F1 on test links",
    )


@dataclass(frozen=True)
class AutoSearchSettings:
    """Exact search up to a size, an approximate one above it."""

    max_exact_pairs: int = setting(
        2_000_000_000,
        "pairs of entities up to which a CPU searches exactly: about 45,000 entities per side",
        up_to(10**15),
        source="ours",
    )
    max_exact_pairs_gpu: int = setting(
        200_000_000_000,
        "pairs of entities up to which a GPU searches exactly: about 450,000 entities per side",
        up_to(10**15),
        source="ours",
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
        None, "cells; null: the square root of the number of targets", up_to(1_000_000), "ours"
    )
    seed: int = setting("${seed}", "seed of the cells", SEED)
