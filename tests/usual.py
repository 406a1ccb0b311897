"""Objects with the usual settings, for tests that give only the settings that matter to them."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import yaml

from emea.config.composition import CONF, option_names, required_groups
from emea.config.settings.data import ROOT
from emea.config.settings.groups import GROUPS
from emea.config.settings.setting import plain

Made = TypeVar("Made")

REFERENCES = {
    "${seed}": 0,
    "${split_seed}": 0,
    "${literals.reads}": False,
    ROOT: None,
}
"""Defaults that refer to other settings, and their values in tests."""


def usual(target: Callable[..., Made], *arguments: Any, **given: Any) -> Made:
    """Call a class or function of an option; settings that are not given have their defaults."""
    parameters = inspect.signature(target).bind_partial(*arguments, **given).arguments
    defaults = settings_by_target()[f"{target.__module__}.{target.__qualname__}"]
    others = {name: value for name, value in defaults.items() if name not in parameters}
    return target(*arguments, **given, **others)


@cache
def settings_by_target() -> dict[str, dict[str, Any]]:
    """The defaults of each class or function that an option names, those of the first option.

    Only settings count that all options of a class have.
    """
    found: dict[str, dict[str, Any]] = {}
    for group in required_groups():
        for option in option_names(group):
            content = yaml.safe_load((CONF / group / f"{option}.yaml").read_text(encoding="utf-8"))
            names = [one for one in content.get("defaults", ()) if str(one).startswith("schema_")]
            for name in names:
                defaults = plain(GROUPS[group].schemas[name.removeprefix("schema_")]())
                for target, settings in _targets(content, defaults):
                    earlier = found.get(target, settings)
                    found[target] = {key: earlier[key] for key in earlier if key in settings}
    return found


def _targets(node: dict[str, Any], defaults: dict[str, Any]) -> Iterator[tuple[str, dict]]:
    if "_target_" in node:
        yield (
            node["_target_"],
            {name: _resolved(value) for name, value in defaults.items() if value != "???"},
        )
    for name, value in node.items():
        if isinstance(value, dict) and isinstance(defaults.get(name), dict):
            yield from _targets(value, defaults[name])


def _resolved(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return REFERENCES.get(value, value) if isinstance(value, str) else value
