"""Prints the page of all settings, ``docs/configuration.md``, from schemas and options."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from emea.config.composition import CONF, option_names, required_groups
from emea.config.groups import GROUPS
from emea.run.settings import RunSettings
from emea.setting import MISSING, Setting, settings_of, typed

HEAD = """# Configuration

Every setting with its default, its allowed values, its meaning and the source of the default. This
page is generated from the file `settings.py` of each package and the options in `conf/`:
`python docs/configuration_page.py > docs/configuration.md`.

Choose an option of a group with `group=option` and set a value with `key=value`. A setting of a
group that the method does not use is refused.
"""

SCHEMA = "schema_"


@dataclass(frozen=True)
class Option:
    """Holds an option of a group, read from its file.

    Args:
        title: The description in the first line of the file.
        settings: The settings that it inherits, by key.
        values: The values that it sets itself, by key.
    """

    title: str
    settings: dict[str, Setting]
    values: dict[str, Any]


def read_option(group: str, name: str) -> Option:
    """Return an option of ``conf/`` with what it inherits from schemas and other options."""
    text = (CONF / group / f"{name}.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)
    settings: dict[str, Setting] = {}
    values: dict[str, Any] = {}
    for parent in content.pop("defaults", ()):
        if not isinstance(parent, str):
            continue  # the entry chooses an option of another group
        if parent.startswith(SCHEMA):
            schema = GROUPS[group].schemas[parent.removeprefix(SCHEMA)]
            settings |= {one.key: one for one in settings_of(schema, f"{group}.")}
        elif "@" not in parent:
            inherited = read_option(group, parent)
            settings |= inherited.settings
            values |= inherited.values
    values |= dict(_leaves(content, f"{group}."))
    return Option(text.splitlines()[0].removeprefix("# "), settings, values)


def _leaves(node: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield values that are not groups of settings, with their full key."""
    for name, value in node.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        elif name not in ("_target_", "_partial_"):
            yield f"{prefix}{name}", value


def options_page() -> str:
    """Return the page as Markdown."""
    parts = [HEAD, "## All runs\n", _table(settings_of(RunSettings), {})]
    for group in required_groups():
        parts.append(f"## {group}\n")
        parts.append(f"{_sentence(GROUPS[group].help)}\n")
        for name in option_names(group):
            option = read_option(group, name)
            parts.append(f"**`{group}={name}`**: {option.title}\n")
            table = _table(option.settings.values(), option.values)
            parts += [table] if table else []
    return "\n".join(parts).rstrip() + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _table(settings: Iterable[Setting], values: dict[str, Any]) -> str:
    """Return a row for each setting, but none for a group of settings that have rows."""
    lines = []
    for one in settings:
        if (one.kind is dict and not one.nullable) or one.key.endswith(".two_way"):
            continue
        default = typed(values.get(one.key, one.default))
        cells = (
            f"`{one.key}`",
            "" if default == MISSING else f"`{default}`",
            _allowed(one),
            one.help,
            one.source,
        )
        lines.append(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
        )
    if not lines:
        return ""
    head = ["| key | default | allowed | meaning | source |", "|---|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"


def _allowed(one: Setting) -> str:
    text = one.described()
    null = " or null" if one.nullable and "null" not in text else ""
    return f"{text}{null}"


if __name__ == "__main__":
    print(options_page(), end="")
