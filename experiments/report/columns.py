"""Kinds of columns: measured quantities, the paper's numbers, differences, verdicts and more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from experiments.report.methods import Method
from experiments.report.report import NOT_RUN, Cell, Entry
from experiments.report.run_table import SplitRun, cell_of, on_splits, values_at
from experiments.report.significance import p_of_splits, p_over_splits, shown_p
from experiments.report.study_spec import Column, Row, Scope

NOT_APPLICABLE = "n/a"
TITLES = {"hit@1": "Hit@1", "mrr": "MRR", "mr": "MR"}
FORMATS = {"hit@1": "{:.3f}", "mrr": "{:.3f}", "mr": "{:.1f}"}
TOLERANCE = 0.02
"""A mean Hit@1 or MRR within this distance of the paper's number counts as reproduced."""

MR_TOLERANCE = 0.2
"""The same for mean ranks, relative to the paper's number, because few entities dominate them."""


@dataclass(frozen=True)
class Measured:
    """A column with a quantity of recorded runs: mean ± standard deviation over splits.

    Args:
        title: The heading.
        metric: A metric of a ranking. With ``path``: the name of the quantity in CSV files.
        method: The method, or its name in the row's ``fill``; by default the row's method.
        protocol: The protocol; by default the row's, if the method has it.
        stage: The ranking, ``initial`` or ``final``; by default the one that counts.
        pool: Rank among ``test`` targets or among ``all`` targets.
        path: A column of the table of runs to show instead of a metric.
        form: How to print a number.
        spread: Whether to print the standard deviation.
        ratio: A ratio to show instead of the row's.
        split: Only show this split.
        same_splits_as: Only use splits on which this method was run, too.
        largest: Show the maximum over runs instead of the mean.
        own_first: Ignore the runs of other studies if there are runs of this study.
        own_only: Ignore the runs of other studies, which may be of other versions.
        empty: The text if there is no run.
        counts: Whether a row with a value in this column is shown even if it has no other.
        in_csv: Whether the cells go to the study's ``results.csv``.
    """

    is_text: ClassVar[bool] = False
    title: str
    metric: str = "hit@1"
    method: Method | str | None = None
    protocol: str | None = None
    stage: str | None = None
    pool: str = "test"
    path: str = ""
    form: str = ""
    spread: bool = True
    ratio: float | None = None
    split: int | None = None
    same_splits_as: Method | None = None
    largest: bool = False
    own_first: bool = False
    own_only: bool = False
    empty: str = NOT_RUN
    counts: bool = True
    in_csv: bool = True

    def entry(self, scope: Scope) -> Entry:
        """Fill the cell from the runs of the method."""
        row = scope.row
        method = row.fill[self.method] if isinstance(self.method, str) else self.method
        protocol = self.protocol or (
            method.usable(row.protocol) if method else row.protocol
        )
        method = method or row.method
        assert method is not None
        if protocol not in method.protocols:
            return Entry()
        found = self.runs(scope, method, protocol)
        cell = cell_of(found, self._path(row))
        if cell and self.largest and cell.mean is not None:
            cell = cell._replace(
                mean=max(v for v in values_at(found, self._path(row)) if v)
            )
        ratio = self.ratio or row.ratio
        is_printed = self.pool == "test" and not self.path and self.stage is None
        printed = (
            scope.paper.get((row.data, ratio or 0.0, method.paper), {})
            if is_printed
            else {}
        )
        metric = self.metric if self.stage is None else f"{self.stage}.{self.metric}"
        line = {
            "metric": self._path(row) if self.path else metric,
            "pool": self.pool,
            "data": row.data,
            "ratio": ratio,
            "method": method.label,
            "protocol": protocol,
            "cell": cell,
            "paper": printed.get(self.metric),
        }
        mean = cell.mean if cell else None
        shown = self._text(cell, scope.splits)
        is_ours = self.counts and cell is not None
        return Entry(shown, cell, line if self.in_csv else None, mean, is_ours)

    def runs(self, scope: Scope, method: Method, protocol: str) -> list[SplitRun]:
        """Return the runs that the cell is about."""
        row = scope.row
        place = (row.data, self.ratio or row.ratio)
        found = scope.runs.of(method, protocol, *place)
        if self.same_splits_as is not None:
            other = self.same_splits_as
            seeds = {
                run.split_seed
                for run in scope.runs.of(other, other.usable(protocol), *place)
            }
            found = on_splits(found, seeds)
        if scope.kept is not None:
            found = on_splits(found, scope.kept)
        if self.split is not None:
            found = on_splits(found, {self.split})
        own = [run for run in found if run.row["is_own"]]
        return own if self.own_only or (self.own_first and own) else found

    def _path(self, row: Row) -> str:
        if self.path:
            return self.path.format(**row.fill, stage="{stage}")
        pool = "all_targets." if self.pool == "all" else ""
        return f"{self.stage or '{stage}'}.{pool}{self.metric}"

    def _text(self, cell: Cell | None, splits: int) -> str:
        if cell is None:
            return self.empty
        if cell.mean is None:
            return NOT_APPLICABLE
        form = self.form or FORMATS.get(self.metric, "{:.3f}")
        spread = (
            f" ± {form.format(cell.spread)}"
            if cell.num_runs > 1 and self.spread
            else ""
        )
        return f"{form.format(cell.mean)}{spread}{fewer_splits(cell, splits)}"


def fewer_splits(cell: Cell, splits: int) -> str:
    """Return a remark if a cell has fewer splits than the table's other cells."""
    if splits == 0 or cell.num_runs >= splits:
        return ""
    return " (1 split)" if cell.num_runs == 1 else f" ({cell.num_runs} splits)"


@dataclass(frozen=True)
class Printed:
    """A column with the paper's number for a method.

    Args:
        title: The heading.
        metric: The metric, or the name of a column of ``paper.csv``.
        method: The method's key in ``paper.csv``; by default that of the row's method.
        data: The pair for which to look; by default the row's.
        unit: A factor, for instance 60 where the paper prints minutes.
        spread: The column of ``paper.csv`` with the standard deviation, if any.
    """

    is_text: ClassVar[bool] = False
    title: str
    metric: str = "hit@1"
    method: str = ""
    data: str = ""
    unit: float = 1
    spread: str = ""
    form: str = ""

    def entry(self, scope: Scope) -> Entry:
        """Look the number up."""
        row = scope.row
        key = self.method or (row.method.paper if row.method else "")
        printed = scope.paper.get((self.data or row.data, row.ratio or 0.0, key), {})
        number = printed.get(self.metric)
        if number is None:
            return Entry()
        form = self.form or FORMATS.get(self.metric, "{:.3f}")
        text = form.format(self.unit * number)
        if self.spread in printed:
            text += f" ± {form.format(self.unit * printed[self.spread])}"
        return Entry(text, number=self.unit * number)


@dataclass(frozen=True)
class Best:
    """A column with the best published number and the method that reached it.

    Args:
        title: The heading.
        incomplete: Places (data, ratio) for which papers have numbers that were not available to
            us. Their cells are marked with an asterisk.
    """

    is_text: ClassVar[bool] = False
    title: str
    incomplete: frozenset[tuple[str, float]] = frozenset()

    def entry(self, scope: Scope) -> Entry:
        """Take the largest Hit@1 of the row's pair and ratio."""
        place = (scope.row.data, scope.row.ratio)
        found = [
            (numbers["hit@1"], method)
            for (data, ratio, method), numbers in scope.paper.items()
            if (data, ratio) == place
        ]
        if not found:
            return Entry("not available to us" if place in self.incomplete else "")
        number, method = max(found)
        mark = " *" if place in self.incomplete else ""
        return Entry(f"{number:.3f} {method}{mark}", number=number)


@dataclass(frozen=True)
class Difference:
    """A column with the difference between two columns.

    Args:
        title: The heading.
        of: The first column, or its title.
        minus: The second column, or its title.
        form: How to print a number.
        relative: Show the difference as a share of the second column.
    """

    is_text: ClassVar[bool] = False
    title: str
    of: str | Column
    minus: str | Column
    form: str = "{:+.3f}"
    relative: bool = False

    def entry(self, scope: Scope) -> Entry:
        """Subtract the second column; the cell is empty if one of the two has no number."""
        first, second = (
            (
                scope.done[column] if isinstance(column, str) else column.entry(scope)
            ).number
            for column in (self.of, self.minus)
        )
        if first is None or second is None:
            return Entry()
        difference = (first - second) / second if self.relative else first - second
        return Entry(self.form.format(difference), number=difference)


@dataclass(frozen=True)
class Verdict:
    """A column that says whether our mean is within the tolerance of the paper's number."""

    is_text: ClassVar[bool] = True
    title: str
    of: str

    def entry(self, scope: Scope) -> Entry:
        """Judge the measured column; see :func:`verdict`."""
        line = scope.done[self.of].line
        if line is None or line["cell"] is None:
            return Entry()
        if line["cell"].mean is None:
            return Entry(NOT_APPLICABLE if line["paper"] is not None else "")
        return Entry(verdict(line))


def verdict(line: Mapping[str, Any]) -> str:
    """Compare a CSV line's mean with the paper's number; empty if there is none."""
    cell, paper = line["cell"], line["paper"]
    if cell is None:
        return NOT_RUN
    if paper is None or cell.mean is None:
        return ""
    allowed = MR_TOLERANCE * paper if line["metric"] == "mr" else TOLERANCE
    if (
        round(abs(cell.mean - paper) - allowed, 9) <= 0
    ):  # 0.52 - 0.5 exceeds 0.02 by rounding
        return "within"
    return "above" if cell.mean > paper else "below"


@dataclass(frozen=True)
class PValue:
    """A column with the largest p of a paired t-test between two methods over all splits."""

    is_text: ClassVar[bool] = False
    title: str
    first: tuple[Method, str]
    second: tuple[Method, str]
    metric: str

    def entry(self, scope: Scope) -> Entry:
        """Test on the splits that both methods were run on."""
        place = (scope.row.data, scope.row.ratio)
        found = [scope.runs.of(*one, *place) for one in (self.first, self.second)]
        text = shown_p(p_of_splits(found[0], found[1], self.metric))
        return Entry(text, is_ours=bool(text))


@dataclass(frozen=True)
class SplitPValue:
    """A column with p of a paired t-test between two methods over their common splits."""

    is_text: ClassVar[bool] = False
    title: str
    first: tuple[Method, str]
    second: tuple[Method, str]
    path: str = "{stage}.hit@1"

    def entry(self, scope: Scope) -> Entry:
        """Test the means of the splits that both methods were run on."""
        place = (scope.row.data, scope.row.ratio)
        first, second = (
            scope.runs.of(*one, *place) for one in (self.first, self.second)
        )
        p = p_over_splits(first, second, self.path)
        return Entry(shown_p([] if p is None else [p]), number=p)


@dataclass(frozen=True)
class Listed:
    """A column with the distinct values of a column of the table of runs, such as machines."""

    is_text: ClassVar[bool] = True
    title: str
    path: str
    own_first: bool = False

    def entry(self, scope: Scope) -> Entry:
        """List the values of the runs of the row's method."""
        method = scope.row.method
        assert method is not None
        measured = Measured(self.title, own_first=self.own_first)
        found = measured.runs(scope, method, scope.row.protocol)
        values = sorted({run.row[self.path] for run in found})
        return Entry(", ".join(map(str, values)))


@dataclass(frozen=True)
class Count:
    """A column with the number of splits behind other columns; one number if all agree."""

    is_text: ClassVar[bool] = False
    title: str
    of: tuple[str, ...]

    def entry(self, scope: Scope) -> Entry:
        """Count the runs of the named columns."""
        cells = [scope.done[title].cell for title in self.of]
        numbers = [cell.num_runs if cell else 0 for cell in cells]
        return Entry(
            ", ".join(map(str, numbers if len(set(numbers)) > 1 else numbers[:1]))
        )
