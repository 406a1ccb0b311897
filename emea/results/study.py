"""A study: the specification of one report, and the report that recorded runs make of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from emea.results.charts import Chart, Spec
from emea.results.table import Entry, Table, TableSpec

RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3)
DBP15K = ("dbp15k_zh", "dbp15k_fr", "dbp15k_ja")
DWY100K = ("dwy100k_dbp_wd", "dwy100k_dbp_yg")
DATASETS = (*DBP15K, *DWY100K)

Places = Sequence[tuple[str, float]]
CELLS: Places = tuple(product(DATASETS, RATIOS))
"""Pairs and ratios of the paper."""

DBP15K_CELLS: Places = tuple(product(DBP15K, RATIOS))


@dataclass(frozen=True)
class Section:
    """A part of a report: a heading, a note and a table.

    Args:
        title: The heading; empty if the part belongs to the section before it.
        note: Text above the table, in Markdown.
        table: The table.
        optional: Leave the part out as long as it has no run.
    """

    title: str
    note: str
    table: TableSpec
    optional: bool = False


@dataclass(frozen=True)
class StudySpec:
    """The specification of a report.

    Args:
        name: The name of its folder and of the experiment that makes its runs.
        title: The title.
        note: What it shows, in Markdown.
        sections: Its tables.
        charts: Its charts, which show its tables.
        numbers: Published numbers, relative to the folder of studies.
        prefers: The study whose runs are preferred; by default this one.
        violins: Whether to draw the distributions of Figure 8, too.
    """

    name: str
    title: str
    note: str
    sections: tuple[Section, ...]
    charts: tuple[Chart, ...] = ()
    numbers: str = ""
    prefers: str = ""
    violins: bool = False


@dataclass(frozen=True)
class Part:
    """A filled section of a report.

    Args:
        title: The heading; empty if it has none.
        note: Text above the table, in Markdown.
        table: The table, if it has one.
        entries: The cells that go to the CSV file.
    """

    title: str
    note: str
    table: Table | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Report:
    """A report, ready to be rendered.

    Args:
        name: The name of its folder and of its files.
        title: The title.
        note: What it shows, in Markdown.
        parts: Its tables.
        provenance: A sentence about the code and the machines of the runs.
        chart: Its charts as one Vega-Lite specification; ``None`` if it has none.
        is_experiment: Whether ``emea run -m experiment=NAME`` makes its runs.
    """

    name: str
    title: str
    note: str
    parts: tuple[Part, ...]
    provenance: str = ""
    chart: Spec | None = None
    is_experiment: bool = True

    def with_runs_only(self) -> "Report | None":
        """Return the report without tables that have no run; ``None`` if no table is left."""
        kept = []
        for part in self.parts:
            table = part.table.reduced() if part.table else None
            if table and table.rows:
                ours = tuple(entry for entry in part.entries if entry.cell is not None)
                kept.append(replace(part, table=table, entries=ours))
        return replace(self, parts=tuple(kept)) if kept else None
