"""Settings of the methods, rules, similarities, decodings and searches."""

from dataclasses import dataclass
from typing import Any

from emea.config.settings.conditions import RELEASED, REPLACED
from emea.config.settings.setting import (
    POSITIVE,
    SEED,
    SHARE,
    SHARE_ABOVE_ZERO,
    setting,
    up_to,
)

BEST_OR_EXPECTED = ("best", "expected")


@dataclass(frozen=True)
class ParisRuleSettings:
    """The PARIS rule."""

    subsumption_from: str = setting(
        "best",
        "estimate inclusions of relations from labels and best predictions, or from all "
        "candidates by their probability (expected)",
        BEST_OR_EXPECTED,
        idle=[REPLACED, RELEASED],
    )
    markov_blanket: bool = setting(
        False,
        "score all factors of an entity's Markov blanket; false: only its own",
        source="released EMEA",
        idle=[REPLACED],
    )


@dataclass(frozen=True)
class AvoidConflictSettings:
    """The AvoidConf rule."""

    num_neighbours: int = setting(
        5, "nearest entities that are compared (N)", up_to(100_000), source="paper, appendix C.2"
    )
    mappings: str = setting(
        "best",
        "other entities map to their best candidate, or to all by probability (expected)",
        BEST_OR_EXPECTED,
        source="paper, section 4.5",
    )


@dataclass(frozen=True)
class BothRules:
    """The settings of both rules, as in their own options."""

    paris: ParisRuleSettings = ParisRuleSettings()
    avoid_conflict: AvoidConflictSettings = AvoidConflictSettings()


@dataclass(frozen=True)
class ComposedRuleSettings:
    """PARIS and AvoidConf together."""

    rules: BothRules = BothRules()


LABEL_HELP = "label of the method in the names of run folders"
USES_HELP = "groups that the method uses"


@dataclass(frozen=True)
class EMEASettings:
    """EM around a neural model."""

    label: str = setting("${model.name}", LABEL_HELP)
    uses: tuple[str, ...] = setting(
        ("model", "training", "rule", "em", "similarity", "decoding", "search"), USES_HELP
    )
    reasoner: dict[str, Any] | None = setting(None, "null: EMEA trains a neural model")


@dataclass(frozen=True)
class ParisSettings:
    """The PARIS baseline."""

    theta: float = setting(
        0.1,
        "equivalences and inclusions below this probability are ignored",
        SHARE_ABOVE_ZERO,
        source="released PARIS and PRASE",
    )
    max_iterations: int = setting(
        50, "iterations at most", up_to(10_000), source="ours, seldom reached; released PRASE: 10"
    )
    tolerance: float = setting(
        0.01, "share of changed matches at which the matching has converged", SHARE, source="ours"
    )


@dataclass(frozen=True)
class ParisMethodSettings:
    """PARIS: reasoning from seeds, on structure."""

    label: str = setting("paris", LABEL_HELP)
    uses: tuple[str, ...] = setting((), USES_HELP)
    reasoner: ParisSettings = ParisSettings()


@dataclass(frozen=True)
class PraseSettings:
    """The PRASE baseline; its PARIS has the settings under ``method.paris.reasoner``."""

    weight: float = setting(
        0.2,
        "weight of the cosine in the probability of a pair",
        SHARE,
        source="released PRASE: 0.8 of the probability, 0.2 of the cosine",
    )
    least_prob: float = setting(
        0.1, "lowest probability of a pair that trains the embedding", SHARE, "released PRASE"
    )
    paris: ParisSettings = setting("${method.paris.reasoner}", "the settings of its PARIS")


@dataclass(frozen=True)
class PraseMethodSettings:
    """PRASE: PARIS and a neural model, each trained on the other's pairs."""

    label: str = setting("prase-${model.name}", LABEL_HELP)
    uses: tuple[str, ...] = setting(("model", "similarity", "decoding", "search"), USES_HELP)
    reasoner: PraseSettings = PraseSettings()
    paris: ParisMethodSettings = ParisMethodSettings()


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
