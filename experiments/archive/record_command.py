"""``python -m experiments record``: adds runs to a study, restores, lists and checks them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from emea.errors import DataError, writing
from emea.record.run_record import RUN_FILE, is_run_folder
from experiments.archive.measurements import add_measurements
from experiments.archive.packing import packed_runs, restore_run
from experiments.archive.study import (
    EXPERIMENTS,
    add_runs,
    check_study,
    find_run,
    find_studies,
    is_study,
    read_study,
    study_folder,
)
from experiments.archive.study_files import PackedRun
from experiments.origins import is_of_committed_code

DESCRIPTION = """Keeps finished runs in a study: a folder with two files, runs.jsonl (one line per
run) and details.zip (histories, series and ranks of test links).

STUDY is a folder, or the name of a folder in experiments/."""


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand that the arguments name, and return the exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _add(options: argparse.Namespace) -> int:
    places = [run for place in options.runs for run in _runs_in(place)]
    if options.name and len(places) > 1:
        raise DataError("--name needs exactly one run. Add the runs one by one.")
    packed: dict[str, PackedRun] = {}
    for place in places:
        found = packed_runs(place, options.name)
        for name in found.keys() & packed.keys():
            raise DataError(
                f"Two of the runs are named {name}. Add them one by one with --name."
            )
        packed |= found
    folder = study_folder(options.study)
    with writing(folder):
        added = add_runs(folder, packed, options.replace)
    for name in added:
        tags = packed[name].entry["tags"]
        is_reported = is_of_committed_code(
            {"commit": "unknown", "dirty": "unknown", **tags}
        )
        remark = (
            "" if is_reported else " (not in reports: it was made by uncommitted code)"
        )
        print(f"added {name}{remark}")
    print(f"{folder}: {len(added)} added, {len(packed) - len(added)} already recorded")
    return 0


def _runs_in(place: Path) -> list[Path]:
    """Return the run folders in the folder of a sweep; any other place is returned itself."""
    if is_study(place) or is_run_folder(place):
        return [place]
    return sorted(file.parent for file in place.glob(f"*/{RUN_FILE}")) or [place]


def _restore(options: argparse.Namespace) -> int:
    study = study_folder(options.study)
    if options.name is not None:
        places = {options.out: find_run(study, options.name)}
    else:
        places = {options.out / run.name: run for run in read_study(study)}
    with writing(options.out):
        for folder, run in places.items():
            restore_run(run, folder)
    print(f"restored {options.name or f'{len(places)} runs'} in {options.out}")
    return 0


def _list(options: argparse.Namespace) -> int:
    for folder in _studies(options.studies):
        runs = read_study(folder)
        print(f"{folder.name}: {len(runs)} runs")
        width = max((len(run.name) for run in runs), default=0)
        for run in runs if options.studies else []:
            scores = run.scores["final"]
            numbers = [
                f"{key} {scores[key]:.4f}"
                for key in ("hit@1", "mrr")
                if scores.get(key) is not None
            ]
            protocol = f"protocol {run.scores.get('protocol', 'unknown')}"
            print(f"  {run.name:<{width}}  {'  '.join([*numbers, protocol])}")
    return 0


def _check(options: argparse.Namespace) -> int:
    for folder in _studies(options.studies):
        print(f"{folder.name}: {check_study(folder)} runs, all checksums match")
    return 0


def _bench(options: argparse.Namespace) -> int:
    folder = EXPERIMENTS / "speed"
    print(f"{folder}: added {', '.join(add_measurements(folder, options.files))}")
    return 0


def _studies(names: Sequence[str]) -> list[Path]:
    found = [study_folder(name) for name in names] or find_studies([EXPERIMENTS])
    if not found:
        raise DataError(
            f"{EXPERIMENTS} has no recorded runs. Add runs with record add."
        )
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments record",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("add", help="add finished runs: record add STUDY RUN ...")
    add.add_argument(
        "study", metavar="STUDY", help="the study, created if it is missing"
    )
    add.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="folders of runs, sweeps or studies",
    )
    add.add_argument("--name", help="name of the run (default: the name of its folder)")
    add.add_argument(
        "--replace",
        action="store_true",
        help="replace runs of the study that have these names",
    )
    add.set_defaults(run=_add)
    restore = commands.add_parser(
        "restore", help="write the files of runs into a new folder"
    )
    restore.add_argument("study", metavar="STUDY")
    restore.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="name of the run, see record list; default: all",
    )
    restore.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="a new folder"
    )
    restore.set_defaults(run=_restore)
    for name, run, summary in (
        ("list", _list, "list studies, or the runs of some studies with their scores"),
        ("check", _check, "verify every value of the studies against its checksum"),
    ):
        command = commands.add_parser(name, help=summary)
        command.add_argument(
            "studies", nargs="*", metavar="STUDY", help="default: all studies"
        )
        command.set_defaults(run=run)
    bench = commands.add_parser("bench", help="add measurements to experiments/speed")
    bench.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="files of benchmarks (--json)",
    )
    bench.set_defaults(run=_bench)
    return parser
