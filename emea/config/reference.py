"""The text of ``emea run --help``, from the schemas and the options."""

import textwrap

from emea.config.composition import option_names
from emea.config.settings.execution import ExportSettings
from emea.config.settings.groups import GROUPS
from emea.config.settings.setting import settings_of, typed

USAGE = """emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)

usage: emea run [key=value ...]       one run
       emea run -m [key=a,b,c ...]    a sweep over all combinations
       emea run resume=FOLDER         resume an interrupted run
       emea run --help GROUP          list the settings of a group, such as em

`python run.py` is the same as `emea run`."""

EXAMPLES = """Examples:

  emea run
  emea run data=dbp15k_zh ratio=0.05
  emea run -m data=dbp15k_zh,fr,ja ratio=0.01,0.05
  emea run data=openea data.folder=my_pair split=official
  emea run data=files data.source=a.nt.gz data.target=b.ttl data.links=seeds.tsv
  emea run data=zh em=none rule=none seed=1 split_seed=1
  emea run -m experiment=table1 data=zh

Set any value of a group with group.key=value: em.num_candidates=20 model.encoder.dim=200.
`emea run --cfg job` prints the whole configuration, `emea data NAME` describes a data set, and
`emea predict RUN` exports the alignment of a finished run again. All settings are in
docs/configuration.md."""

WIDTH = 98


def help_text() -> str:
    """Return the groups with their options, and the settings of the answer."""
    lines = ["Groups (group=option):", ""]
    for name, group in GROUPS.items():
        lines.append(f"  {name:<10}  {group.help}")
        options = ", ".join(one for one in option_names(name) if "/" not in one)
        lines += _indented(options, 14)
    lines += ["", "The answer and its files:", ""]
    for one in settings_of(ExportSettings, "export."):
        lines += _indented(f"{one.key}={typed(one.default)}  {one.help}", 2)
    return "\n".join([USAGE, "", *lines, "", EXAMPLES])


def group_help(name: str) -> str:
    """Return the settings of a group: default, meaning and allowed values."""
    group = GROUPS[name]
    lines = [f"{name}: {group.help}", f"options: {', '.join(option_names(name))}"]
    for schema, settings in group.schemas.items():
        lines += ["", f"{name}={schema}" if schema in option_names(name) else f"{name} ({schema})"]
        for one in settings_of(settings, f"{name}."):
            if one.help:
                lines += _indented(f"{one.key}={typed(one.default)}", 2)
                lines += _indented(f"{one.help} ({one.described()})", 6)
    return "\n".join(lines)


def _indented(text: str, width: int) -> list[str]:
    indent = " " * width
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
