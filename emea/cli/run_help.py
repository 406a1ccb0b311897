"""The text of ``emea run --help``: all groups, one group, or the sweep of an experiment."""

import re
import textwrap
from collections.abc import Sequence
from math import prod

from emea.config.command_line import swept_values
from emea.config.composition import CONF, option_names
from emea.config.groups import GROUPS
from emea.runtime.time_left import in_words
from emea.setting import Setting, settings_of, typed

USAGE = """emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)

usage: emea run [key=value ...]       one run
       emea run -m [key=a,b,c ...]    a sweep over all combinations
       emea run resume=FOLDER         resume an interrupted run
       emea run --help GROUP          the options and settings of a group, such as em
       emea run -m experiment=NAME --help    what the sweep of an experiment runs

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


def run_help(arguments: Sequence[str]) -> str:
    """Return the help that a command line with ``--help`` asks for."""
    for argument in arguments:
        if argument in GROUPS:
            return group_help(argument)
        key, _, value = argument.partition("=")
        if key == "experiment" and value in option_names("experiment"):
            return experiment_help(value, arguments)
    return overview()


def overview() -> str:
    """Return the groups with their options."""
    lines = ["Groups (group=option):", ""]
    for name, group in GROUPS.items():
        lines.append(f"  {name:<10}  {group.help}")
        options = ", ".join(one for one in option_names(name) if "/" not in one)
        lines += _indented(options, 14)
    return "\n".join([USAGE, "", *lines, "", EXAMPLES])


def group_help(name: str) -> str:
    """Return the options of a group with their titles, and its settings."""
    group = GROUPS[name]
    options = [one for one in option_names(name) if "/" not in one]
    lines = [f"{name}: {group.help}", "", "Options:", "", *_titles(name, options)]
    for schema, declared in group.schemas.items():
        settings = [one for one in settings_of(declared, f"{name}.") if one.help]
        if settings:
            title = f"{name}={schema}" if schema in options else f"{name} ({schema})"
            lines += ["", f"Settings of {title}:", ""]
            lines += [line for one in settings for line in _setting_lines(one)]
    return "\n".join(lines)


def experiment_help(name: str, arguments: Sequence[str]) -> str:
    """Return what an experiment runs: its swept settings, its variants and the number of jobs.

    Args:
        name: The experiment.
        arguments: The command line, whose settings replace those of the experiment.
    """
    given = [one for one in arguments if not one.startswith("-")]
    swept = swept_values(given)
    num_jobs = prod(map(len, swept.values()))
    lines = [f"experiment={name}: {_title('experiment', name)}", "", "The sweep:", ""]
    for key, values in swept.items():
        if len(values) > 1:
            lines += _indented(f"{key}={','.join(values)}  ({len(values)} values)", 2)
    noun = "job" if num_jobs == 1 else "jobs"
    lines += [
        "",
        f"In total {num_jobs:,} {noun}. Values that you type replace those of the sweep.",
    ]
    lines += duration(name, num_jobs)
    variants = swept.get("variant", [])
    if variants:
        lines += ["", "Variants:", "", *_titles("variant", variants)]
    # the first value of each setting is one cell of the table
    cell = " ".join(
        f"{key}={values[0]}" for key, values in swept.items() if key != "experiment"
    )
    lines += [
        "",
        "One job of the sweep:",
        "",
        f"  emea run -m experiment={name} {cell}",
    ]
    return "\n".join(lines)


SECONDS = re.compile(
    r"^# Seconds per job: (?P<seconds>[\d.]+) \((?P<runs>.*), (?P<machine>.*)\)$", re.M
)
"""What the file of an experiment says about its recorded runs."""


def duration(name: str, num_jobs: int) -> list[str]:
    """Return how long the jobs of an experiment take, if its file says how long one took."""
    path = CONF / "experiment" / f"{name}.yaml"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    recorded = SECONDS.search(text)
    if recorded is None:
        return []
    seconds = float(recorded["seconds"])
    total = in_words(num_jobs * seconds)
    return _indented(
        f"About {total} one after the other, without the start of each: {seconds:g} s per job "
        f"({recorded['runs']}, {recorded['machine']}).",
        0,
    )


def _titles(group: str, options: Sequence[str]) -> list[str]:
    """Return a line for each option: its name and what its file says about it."""
    width = max(map(len, options), default=0)
    return [f"  {one:<{width}}  {_title(group, one)}".rstrip() for one in options]


def _title(group: str, option: str) -> str:
    """Return the comment at the beginning of an option of ``conf/``; empty for other folders."""
    path = CONF / group / f"{option}.yaml"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    comments = [line.removeprefix("# ") for line in lines[:2] if line.startswith("# ")]
    return next((one for one in comments if not one.startswith("@package")), "")


def _setting_lines(setting: Setting) -> list[str]:
    lines = _indented(f"{setting.key}={typed(setting.default)}", 2)
    lines += _indented(f"{setting.help} ({setting.described()})", 6)
    return lines


def _indented(text: str, width: int) -> list[str]:
    indent = " " * width
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
