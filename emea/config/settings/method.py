"""Settings of the methods, rules, similarities, decodings and searches."""

from dataclasses import dataclass
from typing import Any

from emea.config.settings.setting import SEED, SHARE_ABOVE_ZERO, setting, up_to


@dataclass(frozen=True)
class ParisRuleSettings:
    """The PARIS rule."""

    markov_blanket: bool = setting(
        False,
        "score all factors of an entity's Markov blanket; false: only its own",
        source="released EMEA",
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
        ("best", "expected"),
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


@dataclass(frozen=True)
class Reasoner:
    """A baseline that reasons; it has no settings."""


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
class ParisMethodSettings:
    """PARIS: reasoning from seeds, on structure."""

    label: str = setting("paris", LABEL_HELP)
    uses: tuple[str, ...] = setting((), USES_HELP)
    reasoner: Reasoner = Reasoner()


@dataclass(frozen=True)
class PraseMethodSettings:
    """PRASE: PARIS and a neural model, each trained on the other's pairs."""

    label: str = setting("prase-${model.name}", LABEL_HELP)
    uses: tuple[str, ...] = setting(("model", "similarity", "decoding", "search"), USES_HELP)
    reasoner: Reasoner = Reasoner()


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
