"""Settings of the methods: EMEA, and baselines that reason."""

from dataclasses import dataclass
from typing import Any

from emea.setting import setting


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
        ("model", "training", "rule", "em", "similarity", "decoding", "search"),
        USES_HELP,
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
    uses: tuple[str, ...] = setting(
        ("model", "similarity", "decoding", "search"), USES_HELP
    )
    reasoner: Reasoner = Reasoner()
