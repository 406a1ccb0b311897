"""Support for earlier versions: their command lines and the configs of their runs."""

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from emea.errors import ConfigError

logger = logging.getLogger(__name__)

MOVED = {
    "emea.data.id_format": "emea.data.sources.id_format",
    "emea.data.openea_format": "emea.data.sources.openea_format",
    "emea.data.own_files": "emea.data.sources.own_files",
    "emea.data.synthetic": "emea.data.sources.synthetic",
    "emea.encoders.label_propagation": "emea.encoders.light_ea",
    "emea.matching.cells": "emea.matching.search",
    "emea.matching.cosine": "emea.matching.similarity",
    "emea.matching.exact_search": "emea.matching.search",
    "emea.matching.hungarian_answer": "emea.answer.decoding",
    "emea.matching.mutual_answer": "emea.answer.decoding",
    "emea.matching.sinkhorn_answer": "emea.answer.decoding",
    "emea.rules.composed": "emea.rules.rule",
    "emea.tracking.mlflow_tracker": "emea.record.mlflow_tracker",
    "emea.tracking.no_tracker": "emea.record.tracker",
}
"""Modules that the configs of earlier runs name, and the modules that have their classes now."""

RENAMED = {
    "emea.baselines.paris.PARIS": "emea.baselines.paris_reasoner.ParisReasoner",
    "emea.matching.search.AutoSearch": "emea.matching.auto_search.AutoSearch",
    "emea.matching.search.CellSearch": "emea.matching.kmeans_search.KMeansSearch",
}
"""Classes that configurations of earlier runs name, and their names and modules now."""

SIMILARITIES = ("csls", "cosine")
"""Options of ``similarity`` that were options of ``decoding``; their answer was greedy."""

USUAL_SIMILARITY = "csls"
"""The similarity of all other earlier options of ``decoding``."""

GREEDY = {"name": "greedy", "_target_": "emea.answer.decoding.BestAnswer"}


def current_settings(settings: dict[Any, Any]) -> dict[Any, Any]:
    """Convert the settings of an earlier run to those of this version."""
    current: dict[Any, Any] = _with_current_targets(settings)
    decoding = current.get("decoding")
    if "similarity" in current or not isinstance(decoding, dict):
        return current
    similarity = dict(decoding)
    answer = similarity.pop("answer", None)
    name = similarity.get("name")
    if isinstance(answer, dict):
        current["decoding"] = {"name": name, **answer}
        similarity["name"] = USUAL_SIMILARITY
    else:
        current["decoding"] = dict(GREEDY)
    current["similarity"] = similarity
    method = current.get("method")
    uses = method.get("uses") if isinstance(method, dict) else None
    if isinstance(uses, list) and "decoding" in uses:
        uses.insert(uses.index("decoding"), "similarity")
    return current


def current_params(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert the flat parameters of a recorded run: similarity and decoding are two groups."""
    name = params.get("decoding.name")
    if "similarity.name" in params or name not in SIMILARITIES:
        return params
    return {**params, "similarity.name": name, "decoding.name": GREEDY["name"]}


def _with_current_targets(settings: Any) -> Any:
    """Return a copy of the settings with the current module of each class."""
    if isinstance(settings, list):
        return [_with_current_targets(value) for value in settings]
    if not isinstance(settings, dict):
        return settings
    current = {key: _with_current_targets(value) for key, value in settings.items()}
    target = current.get("_target_")
    if isinstance(target, str):
        module, _, name = target.rpartition(".")
        moved = f"{MOVED.get(module, module)}.{name}"
        current["_target_"] = RENAMED.get(moved, moved)
    return current


def current_overrides(arguments: Sequence[str]) -> list[str]:
    """Convert a command line to the spelling of this version, and warn about earlier ones.

    Raises:
        ConfigError: If an earlier spelling conflicts with another setting, or has no equivalent.
    """
    found: list[str] = []
    for argument in arguments:
        current = _current(argument)
        if current == [argument]:
            found.append(argument)
            continue
        if len(current) > 1 and any(one.startswith("similarity=") for one in arguments):
            raise ConfigError(
                f"{argument} is an earlier spelling of {' '.join(current)} and conflicts with "
                "similarity. Use the new spelling."
            )
        _warn(argument, " ".join(current))
        found += current
    return found


def current_decoding(name: str) -> str:
    """Return the current name of an option of ``decoding``; warns about an earlier name."""
    if name not in SIMILARITIES:
        return name
    _warn(f"decoding={name}", "decoding=greedy")
    return "greedy"


@cache  # one warning for each spelling, although a command line is read several times
def _warn(earlier: str, current: str) -> None:
    logger.warning("%s is deprecated. Use %s", earlier, current)


def _current(argument: str) -> list[str]:
    """Return the current spelling of an argument, or the argument if nothing changed."""
    key, equals, value = argument.partition("=")
    if key == "search" and "cells" in _names(argument):
        return [
            f"search={','.join('kmeans' if one == 'cells' else one for one in _names(argument))}"
        ]
    if not key.lstrip("+~").startswith("decoding"):
        return [argument]
    if key.endswith("decoding.k"):
        return [f"{key.replace('decoding.k', 'similarity.k')}{equals}{value}"]
    if "decoding.answer." in key:
        return [f"{key.replace('decoding.answer.', 'decoding.')}{equals}{value}"]
    names = _names(argument) if key == "decoding" else []
    if not set(names) & set(SIMILARITIES):
        return [argument]
    pairs = [(one, "greedy") if one in SIMILARITIES else (USUAL_SIMILARITY, one) for one in names]
    similarities, decodings = (list(dict.fromkeys(column)) for column in zip(*pairs, strict=True))
    if len(similarities) > 1 and len(decodings) > 1:
        raise ConfigError(
            f"{argument} mixes similarities and decodings, which are two groups now. Run two "
            "sweeps: one over similarity, one over decoding."
        )
    return [f"similarity={','.join(similarities)}", f"decoding={','.join(decodings)}"]


def _names(argument: str) -> list[str]:
    """Return the options that an override of a group names; empty if it cannot be read."""
    try:
        (override,) = OverridesParser.create().parse_overrides([argument])
        is_sweep = override.is_sweep_override()
        texts = override.sweep_string_iterator() if is_sweep else [argument.partition("=")[2]]
        return [text.strip("'\"") for text in texts]
    except (HydraException, ValueError, RecursionError):
        return []  # check_overrides reports what is wrong
