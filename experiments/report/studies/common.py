"""Pieces that several studies share: notes, rows and kinds of tables."""

from collections.abc import Sequence
from dataclasses import replace

from experiments.report.columns import (
    FORMATS,
    MR_TOLERANCE,
    TITLES,
    TOLERANCE,
    Difference,
    Measured,
    Printed,
    PValue,
    Verdict,
)
from experiments.report.methods import BOTH, Method, on_data
from experiments.report.study_spec import (
    DBP15K_CELLS,
    Column,
    Places,
    Row,
    Section,
    TableSpec,
)

ZH = "dbp15k_zh"
VERDICTS = (
    f"The verdict compares our mean with the paper's number: *within* {TOLERANCE} (mean ranks: "
    f"within {MR_TOLERANCE:.0%}), *above* or *below*. The paper used the `released` protocol, "
    "in which test links influence training. The `strict` protocol never shows test links to the "
    "method."
)
ONE_ANSWER = (
    "PARIS and PRASE give one answer or none, one to one and among all targets. Their Hit@1 is the "
    "recall of these answers in both pools, and they have no rank metrics (n/a). Precision counts "
    "all answers for unlabelled source entities, so an answer for an entity without counterpart is "
    "wrong."
)


def percent(ratio: float) -> str:
    """Return a ratio as text, for instance ``5%``."""
    return f"{100 * ratio:.4g}%"


def at(places: Places) -> tuple[Row, ...]:
    """Return one row per pair and ratio."""
    return tuple(Row((data, percent(ratio)), data, ratio) for data, ratio in places)


def compared(
    methods: Sequence[Method],
    places: Places,
    metric: str,
    pool: str = "test",
    known_only: bool = False,
) -> TableSpec:
    """Return a table that compares methods with the paper under both protocols."""
    rows = tuple(
        Row((data, percent(ratio), method.label), data, ratio, on_data(method, data))
        for data, ratio in places
        for method in methods
    )
    columns: list[Column] = [Printed("paper", metric)] if pool == "test" else []
    form = FORMATS[metric].replace(":", ":+")
    for protocol in BOTH:
        columns.append(Measured(protocol, metric, protocol=protocol, pool=pool))
        if pool == "test":
            columns.append(Difference(f"{protocol} - paper", protocol, "paper", form))
            columns.append(Verdict(f"verdict, {protocol}", protocol))
    keys = ("pair", "ratio", "method")
    return TableSpec(keys, rows, tuple(columns), known_only=known_only)


def tested(pairs: Sequence[tuple[Method, str, Method, str]]) -> TableSpec:
    """Return a table of p-values, one column per pair of methods and metric."""
    columns = [
        PValue(
            f"{a.label} {protocol} / {b.label}: {TITLES[metric]}",
            (a, protocol),
            (b, other),
            metric,
        )
        for a, protocol, b, other in pairs
        for metric in ("hit@1", "mrr")
    ]
    return TableSpec(("pair", "ratio"), at(DBP15K_CELLS), tuple(columns))


def plain(
    title: str,
    path: str = "{stage}.hit@1",
    form: str = "{:.3f}",
    method: Method | None = None,
) -> Measured:
    """Return a column with a mean only, which does not go to ``results.csv``."""
    return Measured(
        title, method=method, path=path, form=form, spread=False, empty="", in_csv=False
    )


def by_metric(methods: Sequence[Method], places: Places) -> tuple[Section, ...]:
    """Return one comparison per metric."""
    return tuple(
        Section(f"{title} among test targets", "", compared(methods, places, metric))
        for metric, title in TITLES.items()
    )


def under_both(title: str, table: TableSpec) -> tuple[Section, ...]:
    """Return a table of strict runs, then the same table of released runs."""
    rows = table.rows
    assert not callable(rows)

    def under(protocol: str) -> TableSpec:
        same = tuple(replace(row, protocol=protocol) for row in rows)
        return replace(table, rows=same)

    return tuple(
        Section(f"{title}, protocol `{protocol}`", "", under(protocol))
        for protocol in ("strict", "released")
    )
