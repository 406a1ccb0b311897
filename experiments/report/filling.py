"""Fills studies with recorded runs and the paper's numbers."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from experiments.archive.study import EXPERIMENTS
from experiments.origins import short_commit
from experiments.report.line_charts import lines, points, stacked
from experiments.report.records import PaperNumbers, load_paper_numbers
from experiments.report.report import Entry, Part, Report, Table
from experiments.report.run_table import Runs
from experiments.report.studies import STUDIES
from experiments.report.study_spec import Row, Scope, Section, StudySpec, TableSpec


def fill(spec: TableSpec, runs: Runs, paper: PaperNumbers) -> Table:
    """Fill a table from the recorded runs and the paper's numbers."""
    rows = spec.rows(runs) if callable(spec.rows) else spec.rows
    kept = _common_splits(spec, runs, rows)
    cells = [
        _filled(spec, Scope(runs, paper, spec.splits or 0, row, kept.get(row)))
        for row in rows
    ]
    if spec.splits is None:
        most = max((e.cell.num_runs for row in cells for e in row if e.cell), default=0)
        for place, row in enumerate(rows):  # cells with fewer splits than others say so
            if any(e.cell.num_runs < most for e in cells[place] if e.cell):
                cells[place] = _filled(
                    spec, Scope(runs, paper, most, row, kept.get(row))
                )
    filled = tuple((row.labels, found) for row, found in zip(rows, cells, strict=True))
    if spec.known_only:
        filled = tuple(row for row in filled if any(map(is_known, row[1])))
    text = frozenset(c.title for c in spec.columns if c.is_text)
    titles = tuple(column.title for column in spec.columns)
    return Table(spec.keys, titles, text, filled, spec.known_only)


def is_known(entry: Entry) -> bool:
    """Return whether a cell was run or printed in the paper."""
    return bool(entry.line and (entry.line["cell"] or entry.line["paper"] is not None))


def _filled(spec: TableSpec, scope: Scope) -> tuple[Entry, ...]:
    entries = []
    for column in spec.columns:
        scope.done[column.title] = column.entry(scope)
        entries.append(scope.done[column.title])
    return tuple(entries)


def _common_splits(
    spec: TableSpec, runs: Runs, rows: Sequence[Row]
) -> dict[Row, frozenset[int]]:
    """By row, the splits that it shares with the rows of its group, if they share any."""
    places = [spec.keys.index(title) for title in spec.common]
    if not places:
        return {}
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.labels[place] for place in places), []).append(row)
    kept: dict[Row, frozenset[int]] = {}
    for group in groups.values():
        asked = [
            (row.method, row.protocol, row.data, row.ratio)
            for row in group
            if row.method is not None and row.ratio is not None
        ]
        shared = frozenset(runs.shared_splits(asked))
        if shared:
            kept |= dict.fromkeys(group, shared)
    return kept


def made_report(
    spec: StudySpec, table: pd.DataFrame, published: Path = EXPERIMENTS
) -> Report:
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
    for spec_chart in spec.charts:
        values = points(spec_chart, tables[spec_chart.table].reduced())
        charts += [lines(spec_chart, values)] if values else []
    used = {run_id for table in tables for run_id in _run_ids(table)}
    charts += [picture(runs) for picture in spec.pictures if used]
    chart = stacked(charts) if charts else None
    origin = provenance(runs.table, used)
    kept = tuple(
        part
        for part, section in zip(parts, spec.sections, strict=True)
        if not section.optional or (part.table and part.table.reduced().rows)
    )
    return Report(spec.name, spec.title, spec.note, kept, origin, chart)


def _part(section: Section, runs: Runs, paper: PaperNumbers) -> Part:
    spec = section.table
    table = fill(spec, runs, paper)
    cells = [
        entry for _, row in table.rows for entry in row if spec.in_csv and entry.line
    ]
    if spec.known_only:
        cells = [entry for entry in cells if is_known(entry)]
    versions = versions_of(table, runs.table)
    return Part(section.title, section.note, table, tuple(cells), versions)


def versions_of(table: Table, runs: pd.DataFrame) -> str:
    """Say from which commits the runs of a table are, by column if columns differ."""
    shown = table.shown()
    ids: dict[str, set[str]] = {title: set() for title in shown.titles}
    for _, cells in shown.rows:
        for title, entry in zip(shown.titles, cells, strict=True):
            if entry.cell is not None:
                ids[title].update(entry.cell.run_ids)
    commits = {title: _commits(runs, used) for title, used in ids.items() if used}
    if not commits:
        return ""
    if len(set(commits.values())) == 1:
        return f"Commit of all runs: {next(iter(commits.values()))}."
    columns: dict[str, list[str]] = {}
    for title, found in commits.items():
        columns.setdefault(found, []).append(title)
    parts = [f"{', '.join(titles)}: {found}" for found, titles in columns.items()]
    return f"Commits of the runs: {'; '.join(parts)}."


def _commits(runs: pd.DataFrame, used: set[str]) -> str:
    tags = runs[runs["run_id"].isin(used)]["tags"]
    return ", ".join(sorted({short_commit(tag)[:8] for tag in tags}))


def made_reports(table: pd.DataFrame, published: Path = EXPERIMENTS) -> list[Report]:
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
