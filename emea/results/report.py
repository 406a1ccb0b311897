"""Reports: the studies filled with recorded runs."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from emea.results.charts import lines, points, stacked
from emea.results.records import PaperNumbers, load_paper_numbers, short_commit
from emea.results.run_table import Runs
from emea.results.studies import STUDIES
from emea.results.study import Part, Report, Section, StudySpec
from emea.results.table import Table, fill, is_known
from emea.results.violins import violins

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"
SHIPPED = Path(__file__).resolve().parents[1] / "experiments"
PUBLISHED = SHIPPED if SHIPPED.is_dir() else EXPERIMENTS
"""The folder with published numbers. An installed package contains it."""


def made_report(spec: StudySpec, table: pd.DataFrame, published: Path = PUBLISHED) -> Report:
    """Fill a study with recorded runs.

    Args:
        spec: The specification.
        table: The table of runs.
        published: The folder of studies with the files of published numbers.
    """
    runs = Runs(table, spec.prefers or spec.name)
    paper = load_paper_numbers(published / spec.numbers) if spec.numbers else {}
    parts = tuple(_part(section, runs, paper) for section in spec.sections)
    tables = [part.table for part in parts if part.table is not None]
    charts = []
    for chart in spec.charts:
        values = points(chart, tables[chart.table].reduced())
        charts += [lines(chart, values)] if values else []
    if charts and spec.violins:
        charts.append(violins(runs))
    picture = stacked(charts) if charts else None
    used = {run_id for table in tables for run_id in _run_ids(table)}
    origin = provenance(runs.table, used)
    kept = tuple(
        part
        for part, section in zip(parts, spec.sections, strict=True)
        if not section.optional or (part.table and part.table.reduced().rows)
    )
    return Report(spec.name, spec.title, spec.note, kept, origin, picture)


def _part(section: Section, runs: Runs, paper: PaperNumbers) -> Part:
    spec = section.table
    table = fill(spec, runs, paper)
    cells = [entry for _, row in table.rows for entry in row if spec.in_csv and entry.line]
    if spec.known_only:
        cells = [entry for entry in cells if is_known(entry)]
    return Part(section.title, section.note, table, tuple(cells))


def made_reports(table: pd.DataFrame, published: Path = PUBLISHED) -> list[Report]:
    """Fill every study."""
    return [made_report(spec, table, published) for spec in STUDIES.values()]


def _run_ids(table: Table) -> Iterable[str]:
    for _, cells in table.rows:
        for entry in cells:
            if entry.cell is not None:
                yield from entry.cell.run_ids


def provenance(table: pd.DataFrame, run_ids: Iterable[str]) -> str:
    """Say which code made the runs, on which machines, and over which splits means are."""
    used = table[table["run_id"].isin(set(run_ids))] if not table.empty else table
    if used.empty:
        return "No run is recorded yet."

    def all_of(values: Iterable[object]) -> str:
        return ", ".join(sorted({str(value) for value in values}))

    tags, settings = used["tags"], used["settings"]
    commits = all_of(short_commit(tag) for tag in tags)
    torch = all_of(tag.get("torch", "unknown") for tag in tags)
    dirty = any(tag.get("dirty") != "false" for tag in tags)
    return (
        f"{len(used)} recorded runs. Means ± standard deviations are over split seeds "
        f"{all_of(used['split_seed'])}, unless a cell says otherwise; "
        f"seed {all_of(s.get('seed', 0) for s in settings)}, "
        f"{all_of(s.get('split.num_validation', 100) for s in settings)} validation links in "
        f"addition to the labelled links. Machine: {all_of(used['machine'])}; torch {torch}; "
        f"commit {commits}{' (some with uncommitted changes)' if dirty else ''}."
    )
