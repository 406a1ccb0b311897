"""The parameters of a run that MLflow shows."""

import ast
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from emea.config.idle import keys_without_effect
from emea.config.settings.groups import OPTIONAL
from emea.record.run_record import ParamValue

HIDDEN = (
    "data.download",
    "data.root",
    "export.formats",
    "export.top_k",
    "hydra",
    "initial_from",
    "method.label",
    "method.uses",
    "skip_recorded",
    "split.ratio",
    "split.seed",
    "study",
    "tracking",
    "trainer",
    "trust",
)
"""Places on a machine, repetitions of other keys, and how a run is carried out and recorded."""

KEPT = ("em.name", "em.iterations", "split.name", "method.name", "data.name")
"""Shown even if the rest of their group has no effect."""


def compared_params(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Return the parameters that can make the numbers of one run differ from those of another.

    Settings that have no effect in the run's configuration are left out.

    Args:
        params: All parameters, as in ``run.json``.
    """
    hidden = (*HIDDEN, *_unused_groups(params))
    idle = _without_effect(params)
    return {
        key: value
        for key, value in params.items()
        if not _is_hidden(key, hidden) and (key in KEPT or not _is_hidden(key, idle))
    }


def _is_hidden(key: str, hidden: tuple[str, ...]) -> bool:
    # _target_ and _partial_ are for Hydra; the name of the option contains the same information
    is_machinery = key.rpartition(".")[2].startswith("_")
    return is_machinery or any(key == name or key.startswith(f"{name}.") for name in hidden)


def _unused_groups(params: Mapping[str, ParamValue]) -> list[str]:
    """Return the groups that the run's method does not use; records store the list as text."""
    uses = params.get("method.uses")
    return [] if uses is None else [group for group in OPTIONAL if f"'{group}'" not in str(uses)]


def _without_effect(params: Mapping[str, ParamValue]) -> tuple[str, ...]:
    """Return the keys without effect; none if the parameters are not a whole configuration."""
    return () if "method.uses" not in params else tuple(keys_without_effect(_nested(params)))


def _nested(params: Mapping[str, ParamValue]) -> DictConfig:
    """Return the configuration that the flat parameters come from."""
    root: dict[str, Any] = {}
    for key, value in params.items():
        *parents, last = key.split(".")
        node = root
        for parent in parents:
            child = node.setdefault(parent, {})
            if not isinstance(child, dict):  # a group that another version stored as one value
                child = node[parent] = {}
            node = child
        node[last] = _parsed(value)
    return OmegaConf.create(root)


def _parsed(value: ParamValue) -> Any:
    """Return a value, converting text of a list back to the list."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return value
