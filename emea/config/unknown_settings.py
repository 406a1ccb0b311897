"""Settings that nothing reads: refused in a new run, ignored with a warning in an earlier one."""

import difflib
import logging
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from omegaconf import DictConfig, OmegaConf, open_dict

from emea.answer.settings import ExportSettings
from emea.config.groups import GROUPS
from emea.config.instantiate import our_targets
from emea.em.settings import DualSettings, TwoWaySettings
from emea.fit.settings import StoppingSettings
from emea.run.settings import RunSettings

logger = logging.getLogger(__name__)

CLASSLESS = ("ratio", "method", "ensemble")
"""Groups whose options name no class, so that only the run itself reads their settings."""

WITH_CLASS = ("split", "training")
"""Groups whose options name a class, and whose settings others also refer to."""


class UnknownSetting(NamedTuple):
    """A setting that nothing reads, and the settings at its place that are read."""

    key: str
    known: list[str]


def unknown_settings(config: DictConfig) -> list[UnknownSetting]:
    """Return the settings that nothing reads.

    Settings of a class are its arguments, so a class of the user itself refuses unknown ones. A
    model of the user may have further settings, to which others refer.
    """
    known = {"": {*_names(RunSettings), *GROUPS}}
    known["export"] = _names(ExportSettings)
    known["em"] = _names(DualSettings)
    known |= {group: _names_of_group(group) for group in CLASSLESS}
    for group in WITH_CLASS:
        if OmegaConf.select(config, f"{group}._target_") in our_targets():
            known[group] = {*_names_of_group(group), "_target_", "_partial_"}
    if OmegaConf.select(config, "em.two_way._target_") in our_targets():
        known["em.two_way"] = {*_names(TwoWaySettings), "_target_", "_partial_"}
    others = OmegaConf.select(config, "ensemble.models") or {}
    for place in ("model", *(f"ensemble.models.{name}" for name in others)):
        option = OmegaConf.select(config, f"{place}.name")
        schema = GROUPS["model"].schemas.get(option)
        if schema is not None:
            known[place] = _names(schema)
        known[f"{place}.early_stopping"] = _names(StoppingSettings)
    found = []
    for place, names in known.items():
        node = OmegaConf.select(config, place) if place else config
        keys = set(map(str, node)) if OmegaConf.is_dict(node) else set()
        here = [f"{place}.{name}".lstrip(".") for name in sorted(names)]
        for key in sorted(keys - names - {"name"}):
            found.append(UnknownSetting(f"{place}.{key}".lstrip("."), here))
    return found


def unknown_keys(config: DictConfig) -> list[str]:
    """Return the keys of the settings that nothing reads."""
    return [one.key for one in unknown_settings(config)]


def refusal(unknown: UnknownSetting) -> str:
    """Return the sentence that refuses a setting, with the nearest names."""
    near = nearest(unknown.key, unknown.known)
    return f"{unknown.key} is unknown: nothing reads it{near}. Check the spelling, or remove it."


def nearest(name: str, names: Sequence[str]) -> str:
    """Return the names that are most similar to a mistyped one, in brackets; empty if none is."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f" (nearest: {', '.join(near)})" if near else ""


def without_unknown(config: DictConfig, place: Path) -> DictConfig:
    """Return the settings of an earlier run without those that this version does not have.

    They are reported, because the version that wrote the run may have used them.
    """
    unknown = unknown_keys(config)
    if not unknown:
        return config
    logger.warning(
        "%s has settings that this version does not have; they are ignored: %s.",
        place,
        ", ".join(unknown),
    )
    known = config.copy()
    with open_dict(known):
        for key in unknown:
            parent, _, name = key.rpartition(".")
            del (OmegaConf.select(known, parent) if parent else known)[name]
    return known


def _names(schema: type) -> set[str]:
    return {one.name for one in fields(schema)}


def _names_of_group(group: str) -> set[str]:
    """Return the settings of all options of a group."""
    return {
        name for schema in GROUPS[group].schemas.values() for name in _names(schema)
    }
