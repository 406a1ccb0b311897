"""Figure 7: sensitivity to K, the candidates of an entity, and to N, AvoidConf's neighbours."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from emea.reporting.cells import Cell, num_splits, shown
from emea.reporting.comparison import FORMATS, NOT_RUN, PROTOCOLS, TITLES
from emea.reporting.curves import LABELLED, Curve, draw, panels
from emea.reporting.figure6 import RULES
from emea.reporting.methods import SUP, USUAL, Found, Method, Source, means, runs_in, runs_of
from emea.reporting.records import RecordedRun, provenance_line, run_links
from emea.reporting.study import Study, protocol_tables

DATA = "dbp15k_zh"
RATIOS = (0.01, 0.05, 0.1)
METRICS = ("hit@1", "mr")


class Parameter(NamedTuple):
    """What is varied, over which rule."""

    symbol: str
    key: str
    rule: str
    values: tuple[int, ...]

    @property
    def title(self) -> str:
        """With the rule."""
        return f"{self.symbol}, {RULES[self.rule]}"


PARAMETERS = (
    Parameter("K", "em.num_candidates", "paris", (5, 10, 20, 50)),
    Parameter("N", "rule.num_neighbours", "avoid_conflict", (5, 10, 15, 20)),
)
COLUMNS = ("parameter", "value", "ratio", "Hit@1", "MR", "runs")
REMARK = (
    "EMEA over RREA on DBP15K zh, `protocol=strict`, among test targets: K candidates of each "
    "entity with the PARIS rule, N neighbours with AvoidConf; at a ratio, all values have the same "
    "splits. Lower MR is better. Training varies, too: where two values started from two first "
    "trainings, or are of two commits (experiments/README.md), differences of some thousandths "
    "mean nothing."
)


def study(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """A panel per parameter and metric; the folder holds nothing the paper printed."""
    titles = [f"{p.title}: {TITLES[metric]}" for p in PARAMETERS for metric in METRICS]
    figure, axes = panels(titles, f"{DATA}, protocol=strict, {LABELLED} of 1, 5 and 10%")
    by_place = {
        place: sensitivity(runs, *place) for place in product(PARAMETERS, RATIOS, PROTOCOLS)
    }
    used = runs_in(by_place)
    rows: dict[str, list[list[str]]] = {protocol: [] for protocol in PROTOCOLS}
    for protocol, parameter, ratio in product(PROTOCOLS, PARAMETERS, RATIOS):
        cells = by_place[parameter, ratio, protocol]
        rows[protocol] += _rows(parameter, ratio, cells, num_splits(used))
    for number, parameter in enumerate(PARAMETERS):
        found = {ratio: by_place[parameter, ratio, "strict"] for ratio in RATIOS}
        for axis, metric in zip(axes[2 * number :], METRICS, strict=False):
            curves = [Curve(f"{ratio:.0%}", means(found[ratio], metric)) for ratio in RATIOS]
            draw(axis, curves, parameter.values, [str(value) for value in parameter.values])
            axis.set_xlabel(parameter.symbol)
            axis.set_ylabel(f"{TITLES[metric]} (lower is better)" if metric == "mr" else "Hit@1")
    parts = (provenance_line(used), REMARK, *protocol_tables(COLUMNS, rows, num_left=3))
    return Study("figure7", "Figure 7: sensitivity to K and N", parts, figure=figure)


def sensitivity(
    runs: Sequence[RecordedRun], parameter: Parameter, ratio: float, protocol: str = "strict"
) -> dict[int, list[Found]]:
    """Runs by the parameter's value, all else as usual.

    Splits differ by more than values do, so all values have the same ones, if they share any.
    """
    found = {}
    where = {"method": "emea", "em": "paper", "rule": parameter.rule, **SUP}
    for value in parameter.values:
        method = Method("", "", (Source(where),), usual=USUAL | {parameter.key: value})
        found[value] = runs_of(runs, method, protocol, DATA, ratio)
    splits = [set(by_split) for by_split in found.values() if by_split] or [set()]
    kept = set.intersection(*splits) or set.union(*splits)
    return {
        value: [one for split, one in by_split.items() if split in kept]
        for value, by_split in found.items()
    }


def _rows(
    parameter: Parameter, ratio: float, cells: dict[int, list[Found]], splits: int
) -> list[list[str]]:
    rows = []
    by_metric = {metric: means(cells, metric) for metric in METRICS}
    for value in parameter.values:
        shown_cells = [_shown(by_metric[m].get(value), m, splits) for m in METRICS]
        linked = run_links(one.run for one in cells[value])
        rows.append([parameter.symbol, str(value), f"{ratio:.0%}", *shown_cells, linked])
    return rows


def _shown(cell: Cell | None, metric: str, splits: int) -> str:
    return shown(cell, splits, FORMATS[metric]) if cell else NOT_RUN
