"""``emea report`` writes tables and figures of recorded runs."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from emea.record.store_uri import DEFAULT_URI, STORE_VARIABLE

DESCRIPTION = """Writes tables and figures of recorded runs, as Markdown, CSV and one HTML page.

Without options, in a checkout of the project: the reports of its own experiments, and the README's
tables. Elsewhere, or with --store: a report of the runs in your MLflow store."""


def main(arguments: Sequence[str]) -> int:
    """Write the requested reports and return the exit status."""
    options = _parser().parse_args(arguments)
    if options.calibration is not None:
        from emea.reporting.reliability import draw

        print(*draw(options.calibration, options.out), sep="\n")
        return 0
    # matplotlib is imported here, so that --help answers at once
    from emea.reporting.records import load_studies
    from emea.reporting.store_runs import load_store
    from emea.reporting.studies import EXPERIMENTS, made_studies, own_studies, write_reports

    store = options.store
    if store is None and not EXPERIMENTS.is_dir():  # an installed copy has no experiments
        store = os.environ.get(STORE_VARIABLE, DEFAULT_URI)
    runs = load_store(store) if store else load_studies(EXPERIMENTS)
    out = options.out or (Path("report") if store else EXPERIMENTS)
    studies = own_studies(runs) if store else made_studies(runs)
    write_reports(studies, runs, out)
    print(f"{len(runs)} runs: wrote {', '.join(study.name for study in studies)} in {out}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emea report",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--store", metavar="URI", help=f"an MLflow store, such as {DEFAULT_URI}")
    source.add_argument(
        "--calibration",
        type=Path,
        metavar="RUN",
        help="draw how often a run's answers are correct, by the probability it gave them",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="folder for the reports (of a store: report), or name of the calibration drawing",
    )
    return parser
