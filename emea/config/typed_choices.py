"""Options of the configuration as objects, for the Python API: ``LightEASettings(dim=512)``."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from emea.answer.settings import HungarianSettings
from emea.config.groups import GROUPS
from emea.em.settings import DualSettings, NoEMSettings, OneToOneSettings, PaperSettings
from emea.encoders.settings import (
    AliNetModelSettings,
    AliNetSettings,
    DualAMNModelSettings,
    DualAMNSettings,
    IPTransEModelSettings,
    IPTransESettings,
    LightEAModelSettings,
    LightEASettings,
    RREAModelSettings,
    RREASettings,
)
from emea.errors import ConfigError
from emea.fit.settings import SemiSettings, SupervisedSettings
from emea.literals.settings import (
    EqualLiteralsSettings,
    NoLiteralsSettings,
    SimilarLiteralsSettings,
)
from emea.rules.settings import (
    AvoidConflictSettings,
    ComposedRuleSettings,
    ParisRuleSettings,
)
from emea.setting import typed

EncoderSettings = (
    AliNetSettings | DualAMNSettings | IPTransESettings | LightEASettings | RREASettings
)
"""The settings of an encoder; its objective, optimiser and schedule have their defaults."""

ModelSettings = (
    AliNetModelSettings
    | DualAMNModelSettings
    | IPTransEModelSettings
    | LightEAModelSettings
    | RREAModelSettings
)
"""The settings of an encoder with objective, optimiser and schedule."""

EMSettings = PaperSettings | DualSettings | OneToOneSettings | NoEMSettings
RuleSettings = ParisRuleSettings | AvoidConflictSettings | ComposedRuleSettings
LiteralsSettings = NoLiteralsSettings | EqualLiteralsSettings | SimilarLiteralsSettings
TrainingSettings = SupervisedSettings | SemiSettings
DecodingSettings = HungarianSettings


class Choice(NamedTuple):
    """The option of a group, and the overrides of its values."""

    option: str
    values: list[str]


def choice(group: str, given: object) -> Choice:
    """Return the option that a name or settings choose.

    All values of the settings hold, also those that were left out, except for defaults that refer
    to other settings.

    Raises:
        ConfigError: If it is neither text nor settings of this group.
    """
    if isinstance(given, str):
        return Choice(given, [])
    for option, schema in GROUPS[group].schemas.items():
        if type(given) is schema:
            return Choice(option, list(_overrides(given, group)))
        if group == "model" and type(given) is type(schema().encoder):
            return Choice(option, list(_overrides(given, "model.encoder")))
    names = [schema.__name__ for schema in GROUPS[group].schemas.values()]
    raise ConfigError(
        f"{group} must be the name of an option or its settings ({', '.join(names)}), got "
        f"{'None' if given is None else type(given).__name__}."
    )


def _overrides(settings: Any, place: str) -> Iterator[str]:
    """Yield the values of settings as they are typed on the command line."""
    for one in fields(settings):
        value = getattr(settings, one.name)
        is_reference = isinstance(value, str) and "${" in value
        if is_reference and value == one.default:
            continue
        key = f"{place}.{one.name}"
        # a group that the option has; a group in place of null is given as a whole
        if is_dataclass(value) and one.default is not None:
            yield from _overrides(value, key)
        else:
            yield f"{key}={_text(value)}"


def _text(value: Any) -> str:
    """Return a value in the grammar of Hydra, with all texts in quotes."""
    if is_dataclass(value):
        inner = (
            f"{one.name}: {_text(getattr(value, one.name))}" for one in fields(value)
        )
        return f"{{{', '.join(inner)}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_text(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, str):
        # backslashes are special before a quote only
        escaped = re.sub(r"(\\*)'", r"\1\1\\'", value)
        at_end = len(escaped) - len(escaped.rstrip("\\"))
        return f"'{escaped}{escaped[len(escaped) - at_end :]}'"
    return typed(value)
