"""The text of ``emea run --help``, from the groups and their options."""

import textwrap

from emea.config.composition import option_names
from emea.config.settings.groups import GROUPS

USAGE = """emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)

usage: emea run [key=value ...]       one run
       emea run -m [key=a,b,c ...]    a sweep over all combinations
       emea run resume=FOLDER         resume an interrupted run

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
    """Return the groups with their options."""
    lines = ["Groups (group=option):", ""]
    for name, group in GROUPS.items():
        lines.append(f"  {name:<10}  {group.help}")
        options = ", ".join(one for one in option_names(name) if "/" not in one)
        indent = " " * 14
        lines += textwrap.wrap(options, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return "\n".join([USAGE, "", *lines, "", EXAMPLES])
