"""Types and ranges of settings."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf


@dataclass(frozen=True)
class Limit:
    """A range of numbers.

    Args:
        least: the least that is allowed, or what must be exceeded.
        most: the most that is allowed, or what must not be reached.
        whole: no fractions.
        above: ``least`` itself is not allowed.
        below: ``most`` itself is not allowed.
    """

    least: float
    most: float = inf
    whole: bool = False
    above: bool = False
    below: bool = False

    def holds(self, value: Any) -> bool:
        """Whether the value is a number of the range."""
        if not is_number(value) or (self.whole and not isinstance(value, int)):
            return False
        enough = value > self.least if self.above else value >= self.least
        not_too_much = value < self.most if self.below else value <= self.most
        return enough and not_too_much and (isinstance(value, int) or isfinite(value))

    def __str__(self) -> str:
        """What is allowed, in words."""
        kind = "a whole number" if self.whole else "a number"
        low = f"above {self.least:g}" if self.above else f"of at least {self.least:g}"
        if self.most == inf:
            return f"{kind} {low}"
        if not (self.above or self.below):
            return f"{kind} from {self.least:,.15g} to {self.most:,.15g}"
        return f"{kind} {low} and {'below' if self.below else 'at most'} {self.most:g}"


COUNT = Limit(1, whole=True)
COUNT_OR_NONE = Limit(0, whole=True)
POSITIVE = Limit(0, above=True)
NOT_NEGATIVE = Limit(0)
SHARE = Limit(0, 1)
SHARE_BELOW_ONE = Limit(0, 1, below=True)
SHARE_ABOVE_ZERO = Limit(0, 1, above=True)
# what a random generator of numpy and torch both take
SEED = Limit(0, 2**32 - 1, whole=True)

PARIS_PLACES = ("method.reasoner", "method.paris.reasoner")
"""Of its own method, and within PRASE."""

PARIS_LIMITS = {
    "theta": SHARE_ABOVE_ZERO,
    "initial_inclusion": SHARE,
    "initial_iterations": COUNT_OR_NONE,
    "smoothing": NOT_NEGATIVE,
    "retention": SHARE,
    "least_evidence": SHARE,
    "max_iterations": COUNT,
    "tolerance": SHARE,
}

LIMITS = {
    "ratio.value": Limit(0, 1, above=True, below=True),
    "seed": SEED,
    "split_seed": SEED,
    "observed_links": COUNT,
    "data.num_entities": Limit(100, 1_000_000, whole=True),
    "data.triples_per_entity": Limit(1),
    "data.overlap": SHARE_ABOVE_ZERO,
    "data.keep_prob": SHARE_ABOVE_ZERO,
    "data.merged_share": SHARE,
    "data.split_share": SHARE,
    "data.num_relations": COUNT,
    "data.hub_skew": Limit(1),
    "data.seed": SEED,
    "data.fold": COUNT,
    "split.seed": SEED,
    "split.num_validation": COUNT_OR_NONE,
    "split.validation_share": SHARE_BELOW_ONE,
    "model.initial_epochs": COUNT,
    "model.epochs_per_iteration": COUNT,
    "model.epochs_per_turn": COUNT,
    "model.early_stopping.every": COUNT,
    "model.early_stopping.patience": COUNT,
    "model.early_stopping.start": COUNT_OR_NONE,
    "model.encoder.dim": COUNT,
    "model.encoder.depth": COUNT,
    "model.encoder.dropout": SHARE_BELOW_ONE,
    "model.encoder.num_proxies": COUNT,
    "model.encoder.num_common_patterns": COUNT_OR_NONE,
    "model.encoder.max_ends": COUNT,
    "model.encoder.output_dim": COUNT,
    "model.encoder.self_weight": NOT_NEGATIVE,
    "model.encoder.whitening": SHARE,
    "model.objective.margin": NOT_NEGATIVE,
    "model.objective.scale": POSITIVE,
    "model.objective.batch_size": COUNT,
    "model.objective.balance": NOT_NEGATIVE,
    "model.objective.num_negatives": COUNT,
    "model.objective.epsilon": SHARE_BELOW_ONE,
    "model.objective.refresh_every": COUNT,
    "model.objective.relation_weight": NOT_NEGATIVE,
    "model.objective.relation_window": COUNT,
    "model.objective.path_weight": NOT_NEGATIVE,
    "model.objective.bootstrap_every": COUNT,
    "model.objective.threshold": Limit(-1, 1),
    "model.optimizer.lr": POSITIVE,
    "model.optimizer.alpha": SHARE_BELOW_ONE,
    "model.optimizer.initial_accumulator_value": NOT_NEGATIVE,
    "training.turns": COUNT_OR_NONE,
    "training.turns_per_iteration": COUNT_OR_NONE,
    "training.epochs_per_turn": COUNT,
    "rule.num_neighbours": COUNT,
    "rule.rules.avoid_conflict.num_neighbours": COUNT,
    "em.iterations": COUNT_OR_NONE,
    "em.num_candidates": COUNT,
    "em.patience": COUNT,
    "em.ridge": POSITIVE,
    "em.two_way.sweeps": COUNT,
    "em.two_way.tolerance": NOT_NEGATIVE,
    "em.two_way.propagation": COUNT_OR_NONE,
    "em.two_way.max_candidates": COUNT,
    "em.two_way.ridge": POSITIVE,
    "em.two_way.memory": SHARE_BELOW_ONE,
    "similarity.k": COUNT,
    "decoding.rounds": COUNT,
    "decoding.temperature": POSITIVE,
    "decoding.unmatched_prob": SHARE_ABOVE_ZERO,
    "search.num_probes": COUNT,
    "search.num_cells": COUNT,
    "search.seed": SEED,
    "trainer.block_size": COUNT,
    "trainer.block_memory": Limit(0, 1000, above=True),
    "trainer.checkpoint_minutes": NOT_NEGATIVE,
    "tracking.max_artifact_mb": NOT_NEGATIVE,
    "tracking.flush_seconds": NOT_NEGATIVE,
    "tracking.patience_seconds": NOT_NEGATIVE,
    "export.top_k": COUNT,
    "export.threshold": SHARE,
    "export.target_precision": SHARE,
    "method.reasoner.rounds": COUNT_OR_NONE,
    "method.reasoner.weight": SHARE,
    "method.reasoner.least_prob": SHARE,
    **{f"{place}.{name}": limit for place in PARIS_PLACES for name, limit in PARIS_LIMITS.items()},
}
"""Settings that another encoder or rule has, too, mean the same there."""

REQUIRED = (
    "ratio.value",
    "model.initial_epochs",
    "model.epochs_per_iteration",
    "em.num_candidates",
    "em.iterations",
    "training.turns",
    "export.top_k",
)
"""No run can do without them; others have a meaning when they are null, or not every option."""

CHOICES = {
    "trainer.accelerator": ("auto", "cpu", "gpu"),
    "em.sampling": ("argmax", "sample"),
    "em.m_step": ("links", "pseudolikelihood"),
    "split.validation_from": ("rest", "train"),
    "data.on_error": ("stop", "skip"),
    "rule.subsumption_from": ("best", "expected"),
    "rule.mappings": ("best", "expected"),
    "rule.rules.paris.subsumption_from": ("best", "expected"),
    "rule.rules.avoid_conflict.mappings": ("best", "expected"),
}


def outside_limits(config: DictConfig) -> Iterator[str]:
    """A sentence for each number or word that is set and not allowed."""
    for key, limit in LIMITS.items():
        value = OmegaConf.select(config, key)
        if value is None and key not in REQUIRED:
            continue
        if not limit.holds(value):
            yield f"{key} must be {limit}, got {'null' if value is None else value}"
    for key, choices in CHOICES.items():
        value = OmegaConf.select(config, key)
        if value is not None and value not in choices:
            yield f"{key} must be one of {', '.join(choices)}, got {value}"


def is_number(value: object) -> bool:
    """Whether it is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


NULLABLE = ("model.objective.bootstrap_every",)
"""Numbers that may be null, although they are not in their option's file."""


def wrong_kind(key: str, config: DictConfig, usual: DictConfig) -> str | None:
    """A sentence where the value of a key is of another kind than the usual one.

    Args:
        key: of a setting that was typed.
        config: with what was typed.
        usual: without it; what is null there may become anything, and lists and groups of
            settings are compared by what is in them.
    """
    value, replaced = OmegaConf.select(config, key), OmegaConf.select(usual, key)
    if replaced is None or _fits(key, value, replaced):
        return None
    allowed = LIMITS.get(key) or _kind(replaced)
    example = "" if isinstance(replaced, bool) else f" (such as {_typed(replaced)})"
    return f"{key} must be {allowed}{example}, got {'null' if value is None else _typed(value)}"


def _fits(key: str, value: Any, usual: Any) -> bool:
    if value is None:
        # null stands for "none of it" where text or a group of settings may be left out
        return key in NULLABLE or isinstance(usual, str | DictConfig)
    if isinstance(usual, ListConfig) and isinstance(value, ListConfig) and len(usual):
        return all(_kind(item) == _kind(usual[0]) for item in value)
    return _kind(value) == _kind(usual)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if is_number(value):
        return "a number"
    if isinstance(value, ListConfig):
        return "a list"
    return "a group of settings" if isinstance(value, DictConfig) else "text"


def _typed(value: Any) -> str:
    """A value as one would type it."""
    return f"[{','.join(map(str, value))}]" if isinstance(value, ListConfig) else str(value)
