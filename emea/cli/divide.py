"""``emea divide`` cuts a large pair into parts; ``emea join`` joins the runs of the parts."""

import argparse
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emea.cli.arguments import (
    AT_LEAST_ONE,
    add_out_argument,
    check_output_folder,
    command_parser,
    data_settings,
    number_in,
)
from emea.config.checks import check_config
from emea.config.command_line import check_overrides
from emea.config.paths import check_writable
from emea.config.run_config import RunConfig
from emea.data.arrays import IntArray
from emea.errors import ConfigError, DataError, writing
from emea.record.checked_files import SUFFIX
from emea.record.pair_file import load_pair
from emea.record.run_folder import CONFIG_FILE, LOG_FILE, write_config
from emea.record.run_header import Launch, without_secrets
from emea.record.run_record import LOCK_FILE
from emea.runtime.console import logged, say
from emea.setting import SHARE

if TYPE_CHECKING:
    from emea.divide.division import Division

OVERLAP, LIKELY = 0.15, 0.5
"""Default overlap, and the least probability of a match of an earlier run that guides the cut."""

FILES = ("links", "test_links", "rejected")

DIVIDE = """Cut a pair of graphs into parts that keep matched entities and their neighbours
together. Each part is aligned by a job of its own (emea run data=part), on one machine or on many.
Then emea join makes one run of them."""

DIVIDE_EXAMPLES = """examples:
  emea divide atlas.nt karte.ttl --links seeds.tsv --parts 4
  emea divide data=contea_fr_en split=official --parts 8 --out fr_en_8
  emea run -m data=part data.division=division data.part=0,1,2,3 hydra.sweep.dir=division/runs
  emea join division
  emea divide --from-run division/joined --parts 4 --out second

The data are two graph files, or settings of emea run. The parts contain no test links."""

JOIN = """Join the runs of all parts of a divided pair into one run, on which emea predict, show,
explain and update work. Several runs of each part, such as those of several seeds, are averaged."""


def main(arguments: Sequence[str]) -> int:
    """Divide a pair, print the parts and the next command, and return the exit status."""
    options = _divide_parser().parse_intermixed_args(arguments)
    folder: Path = options.out
    _check_empty(folder)
    check_writable(folder)
    of_run = options.from_run is not None
    config, matched, checksum = (
        _from_run(options) if of_run else (_from_files(options), None, None)
    )
    if "few_links" in config.split:
        config.split.few_links = 0  # the runs of all parts hold out the same links
    check_config(config)
    with logged():
        pair = load_pair(config)
    if checksum not in (None, pair.checksum()):
        raise DataError(
            f"The data changed since the run in {options.from_run}. Restore them or run it again."
        )
    # torch is imported after the files were read
    from emea.divide.cutting import divide
    from emea.divide.division import remove_unfinished
    from emea.run.building import draw_split, with_literals
    from emea.run.resuming import locked_folder

    settings = RunConfig.of(config)
    known = draw_split(settings, pair).supervision
    graphs = replace(pair, links=pair.links[:0], official=None, unmatched=None)
    graphs = with_literals(settings, graphs)
    with locked_folder(folder):
        _check_empty(folder)  # another command may have written it meanwhile
        remove_unfinished(folder)
        try:
            with writing(folder):
                write_config(folder, without_secrets(config))
                division = divide(
                    graphs,
                    known,
                    folder,
                    num_parts=options.parts,
                    overlap=options.overlap,
                    matched=matched,
                )
        except BaseException:
            remove_unfinished(folder)
            raise
    say(_summary(division, folder))
    return 0


def _check_empty(folder: Path) -> None:
    """Raise an error unless a folder is missing or empty, or has the rest of a killed command."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file. Choose another --out folder.")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    is_unfinished = LOCK_FILE in names and not any(map(_is_foreign, names))
    if names and not is_unfinished:
        raise DataError(f"{folder} is not empty. Choose another --out folder.")


def _is_foreign(name: str) -> bool:
    """Return whether a killed division cannot have left a file or folder of this name."""
    is_temporary = name.startswith(".") and name.endswith(SUFFIX)
    own = name in (LOCK_FILE, CONFIG_FILE) or re.fullmatch(r"part-\d+", name)
    return not (own or is_temporary)


def _from_files(options: argparse.Namespace) -> Any:
    """Compose the settings of two graph files, or those that were typed."""
    files = [one for one in options.inputs if "=" not in one]
    settings = [one for one in options.inputs if "=" in one]
    given = {key: value for key, value in vars(options).items() if value is not None}
    if len(files) not in (0, 2) or (
        not files and (given.keys() & FILES or not settings)
    ):
        raise ConfigError(
            "Name two graph files, as in emea divide SOURCE TARGET --links FILE, or the data of "
            "emea run, as in emea divide data=zh."
        )
    if files:
        paths = dict(zip(("source", "target"), files, strict=True))
        paths |= {key: given[key] for key in FILES if key in given}
        settings = ["data=files", *data_settings(paths), *settings]
    return check_overrides(settings)


def _from_run(options: argparse.Namespace) -> tuple[Any, IntArray, str]:
    """Return the settings of a finished run, its likely matches and the checksum of its data."""
    if options.inputs or any(vars(options)[key] is not None for key in FILES):
        raise ConfigError("--from-run takes the data of the run. Name no other data.")
    from emea.run.finished_run import load_run
    from emea.update.updating import mutual_matches

    run = load_run(options.from_run)
    if "_target_" not in run.config.data:
        raise DataError(
            f"{options.from_run} cannot be divided: only its folder contains its graphs. Divide "
            "the files of the graphs."
        )
    pairs, probs = mutual_matches(run)
    return run.config, pairs[probs >= LIKELY].numpy(), run.pair.checksum()


def _summary(division: "Division", folder: Path) -> str:
    """Describe the parts and name the next commands."""
    num_parts = len(division.parts)
    place = shlex.quote(str(folder))
    lines = [
        f"part {number}: {one.num_source:,} + {one.num_target:,} entities, {one.num_triples:,} "
        f"triples, {one.num_train:,} training and {one.num_validation:,} validation links"
        for number, one in enumerate(division.parts)
    ]
    if division.separated is not None:
        lines.append(
            f"The cut separates {division.separated:.1%} of the validation links."
        )
    lines.append(f"{division.lost:.1%} of the triples are in none of the parts.")
    numbers = ",".join(map(str, range(num_parts)))
    return "\n".join(
        [
            f"Divided {division.name} into {num_parts} parts:",
            *lines,
            f"Align the parts: emea run -m data=part data.division={place} data.part={numbers} "
            f"hydra.sweep.dir={place}/runs skip_recorded=true",
            f"Then join them:  emea join {place}",
        ]
    )


def join(arguments: Sequence[str]) -> int:
    """Join the runs of the parts, print the results and return the exit status."""
    parser = command_parser("join", JOIN)
    parser.add_argument(
        "division", type=Path, metavar="DIVISION", help="folder of emea divide"
    )
    parser.add_argument(
        "runs",
        type=Path,
        nargs="*",
        metavar="RUNS",
        help="folders with the runs of the parts (default: DIVISION/runs)",
    )
    parser.add_argument(
        "--trust",
        nargs="+",
        default=[],
        metavar="MODULE",
        help="your own modules of the runs",
    )
    add_out_argument(parser, "DIVISION/joined")
    options = parser.parse_args(arguments)
    folder: Path = options.out or options.division / "joined"
    check_output_folder(folder)
    from emea.divide.division import Division
    from emea.divide.joining import JoinedRun, chosen_runs, joined_config, joined_tags
    from emea.run.job import run_job
    from emea.run.result_table import print_results

    runs = chosen_runs(
        Division.read(options.division), options.runs or [options.division / "runs"]
    )
    if folder.resolve() in {one.folder.resolve() for one in runs}:
        raise DataError(f"{folder} is a run of a part. Choose another --out folder.")
    config = joined_config(options.division, runs)
    config.trust = options.trust
    folder.mkdir(parents=True, exist_ok=True)
    launch = Launch(shlex.join(["emea", "join", *arguments]), tags=joined_tags(runs))
    with logged(folder / LOG_FILE):
        made = partial(JoinedRun, options.division, runs)
        print_results(run_job(config, folder, launch, made=made))
    return 0


def _divide_parser() -> argparse.ArgumentParser:
    parser = command_parser("divide", DIVIDE, DIVIDE_EXAMPLES)
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="SOURCE TARGET key=value",
        help="graph files and settings",
    )
    parser.add_argument("--links", metavar="FILE", help="known links to learn from")
    parser.add_argument(
        "--test-links", metavar="FILE", help="links that measure the joined run"
    )
    parser.add_argument("--rejected", metavar="FILE", help="pairs that are not links")
    parser.add_argument(
        "--parts",
        type=number_in(AT_LEAST_ONE, int),
        required=True,
        metavar="N",
        help="number of parts; the memory of a part shrinks in proportion",
    )
    parser.add_argument(
        "--overlap",
        type=number_in(SHARE, float),
        default=OVERLAP,
        metavar="P",
        help="most entities that a part gets from other parts, relative to its own "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--from-run",
        type=Path,
        metavar="RUN",
        help="cut again, guided by a run's matches",
    )
    add_out_argument(parser, "division", Path("division"))
    return parser
