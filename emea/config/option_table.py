"""The table of all settings in ``docs/configuration.md``, from the YAML files and the ranges."""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import yaml

from emea.config.files import CONF, option_names, required_groups
from emea.config.ranges import CHOICES, LIMITS

HEAD = """# Configuration

Every setting with its default, what it may be, and what it does. The defaults live in `conf/`, next
to a comment that says where each comes from. This page is generated from them:
`python -m emea.config.option_table > docs/configuration.md`.

Choose an option of a group with `group=option` and set a value with `key=value`. A setting that has
no effect in the chosen configuration is refused.
"""


def options_page() -> str:
    """The page as Markdown."""
    parts = [HEAD, "## All runs\n", _table(_settings(CONF / "config.yaml", ""))]
    for group in required_groups():
        parts.append(f"## {group}\n")
        for option in option_names(group):
            path = CONF / group / f"{option}.yaml"
            title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
            parts.append(f"**`{group}={option}`**: {title}\n")
            rows = list(_settings(path, f"{group}."))
            parts += [_table(iter(rows))] if rows else []
    return "\n".join(parts).rstrip() + "\n"


def _table(rows: Iterator[tuple[str, str, str]]) -> str:
    lines = ["| key | default | allowed | meaning |", "|---|---|---|---|"]
    for key, default, comment in rows:
        allowed = _allowed(key)
        cells = (f"`{key}`", f"`{default}`", allowed, comment)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _allowed(key: str) -> str:
    if key in CHOICES:
        return ", ".join(CHOICES[key])
    return str(LIMITS[key]) if key in LIMITS else ""


def _settings(path: Path, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Key, default and comment of each value in a YAML file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, node in _leaves(root, prefix):
        if key.rpartition(".")[2] in ("name", "_target_", "_partial_"):
            continue
        default = text[node.start_mark.index : node.end_mark.index].strip() or "null"
        yield key, default, _comment(lines, node)


def _comment(lines: list[str], node: yaml.Node) -> str:
    """What is said about a value: after it and in lines that continue this, or above it."""
    first, last = node.start_mark.line, node.end_mark.line
    after = lines[last][node.end_mark.column :].strip()
    if after.startswith("#"):
        continued = takewhile(lambda line: re.match(r"\s*# [a-z]", line), lines[last + 1 :])
        said = [after, *continued]
    else:
        above = takewhile(lambda line: line.strip().startswith("#"), reversed(lines[1:first]))
        said = list(above)[::-1]
    return " ".join(line.strip().removeprefix("# ") for line in said)


def _leaves(node: yaml.Node | None, prefix: str) -> Iterator[tuple[str, yaml.Node]]:
    """Values that are not groups of settings, with their whole key; Hydra's own are left out."""
    if not isinstance(node, yaml.MappingNode):
        return
    for name, value in node.value:
        if name.value in ("defaults", "hydra"):
            continue
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from _leaves(value, f"{prefix}{name.value}.")
        else:
            yield f"{prefix}{name.value}", value


if __name__ == "__main__":
    print(options_page(), end="")
