"""``emea record``: adds finished runs to a study, restores, lists and checks them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from emea.errors import DataError, writing

DESCRIPTION = """Keeps finished runs in a study: a folder with two files, runs.jsonl (one line per
run) and details.zip (histories, series and ranks of test links).

STUDY is a folder, or the name of a folder in experiments/."""


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand that the arguments name, and return the exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _add(options: argparse.Namespace) -> int:
    from emea.record.packing import packed_runs
    from emea.record.provenance import is_of_committed_code
    from emea.record.study import add_runs, study_folder
    from emea.record.study_files import PackedRun

    places = [run for place in options.runs for run in _runs_in(place)]
    if options.name and len(places) > 1:
        raise DataError("--name needs exactly one run. Add the runs one by one.")
    packed: dict[str, PackedRun] = {}
    for place in places:
        found = packed_runs(place, options.name)
        for name in found.keys() & packed.keys():
            raise DataError(f"Two of the runs are named {name}. Add them one by one with --name.")
        packed |= found
    folder = study_folder(options.study)
    with writing(folder):
        added = add_runs(folder, packed, options.replace)
    for name in added:
        tags = packed[name].entry["tags"]
        is_reported = is_of_committed_code({"commit": "unknown", "dirty": "unknown", **tags})
        remark = "" if is_reported else " (not in reports: it was made by uncommitted code)"
        print(f"added {name}{remark}")
    print(f"{folder}: {len(added)} added, {len(packed) - len(added)} already recorded")
    return 0


def _runs_in(place: Path) -> list[Path]:
    """Return the run folders in the folder of a sweep; any other place is returned itself."""
    from emea.record.run_record import RUN_FILE, is_run_folder
    from emea.record.study import is_study

    if is_study(place) or is_run_folder(place):
        return [place]
    return sorted(file.parent for file in place.glob(f"*/{RUN_FILE}")) or [place]


def _restore(options: argparse.Namespace) -> int:
    from emea.record.packing import restore_run
    from emea.record.study import find_run, study_folder

    run = find_run(study_folder(options.study), options.name)
    with writing(options.out):
        restore_run(run, options.out)
    print(f"restored {options.name} in {options.out}")
    return 0


def _list(options: argparse.Namespace) -> int:
    from emea.record.study import read_study

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
    from emea.record.study import check_study

    for folder in _studies(options.studies):
        print(f"{folder.name}: {check_study(folder)} runs, all checksums match")
    return 0


def _bench(options: argparse.Namespace) -> int:
    from emea.record.measurements import add_measurements
    from emea.record.study import experiments_folder

    folder = experiments_folder() / "speed"
    print(f"{folder}: added {', '.join(add_measurements(folder, options.files))}")
    return 0


def _studies(names: Sequence[str]) -> list[Path]:
    from emea.record.study import experiments_folder, find_studies, study_folder

    found = [study_folder(name) for name in names] or find_studies([experiments_folder()])
    if not found:
        raise DataError(
            f"{experiments_folder()} has no recorded runs. Add runs with emea record add."
        )
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emea record",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("add", help="add finished runs: emea record add STUDY RUN ...")
    add.add_argument("study", metavar="STUDY", help="the study, created if it is missing")
    add.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="folders of runs, sweeps or studies"
    )
    add.add_argument("--name", help="name of the run (default: the name of its folder)")
    add.add_argument(
        "--replace", action="store_true", help="replace runs of the study that have these names"
    )
    add.set_defaults(run=_add)
    restore = commands.add_parser("restore", help="write the files of a run into a new folder")
    restore.add_argument("study", metavar="STUDY")
    restore.add_argument("name", metavar="NAME", help="name of the run, see emea record list")
    restore.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    restore.set_defaults(run=_restore)
    for name, run, summary in (
        ("list", _list, "list studies, or the runs of some studies with their scores"),
        ("check", _check, "verify every value of the studies against its checksum"),
    ):
        command = commands.add_parser(name, help=summary)
        command.add_argument("studies", nargs="*", metavar="STUDY", help="default: all studies")
        command.set_defaults(run=run)
    bench = commands.add_parser("bench", help="add measurements to experiments/speed")
    bench.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="files that emea bench --json wrote"
    )
    bench.set_defaults(run=_bench)
    return parser
