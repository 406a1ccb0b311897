"""Figure 6: sets of rules, over supervised and semi-supervised RREA."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from emea.reporting.cells import num_splits, shown, signed
from emea.reporting.comparison import NOT_RUN, PROTOCOLS
from emea.reporting.curves import LABELLED, Curve, draw, panels
from emea.reporting.methods import Found, Method, Source, means, runs_by_ratio, runs_in
from emea.reporting.records import RecordedRun, provenance_line, run_links
from emea.reporting.study import RATIOS, Study, protocol_tables

DATA = "dbp15k_zh"
RULES = {
    "paris": "PARIS",
    "avoid_conflict": "AvoidConf",
    "paris_avoid_conflict": "both",
}
TRAININGS = {"sup": "supervised", "semi": "semi-supervised"}
COLUMNS = ("training", "rules", "ratio", "alone", "EMEA", "lift", "runs")
REMARK = (
    "Hit@1 among test targets on DBP15K zh, `protocol=strict`, before and after EM with each set "
    "of rules over RREA. *both* composes PARIS and AvoidConf, with a weight for each of their "
    "three rules; the paper has no such run, and it stays behind PARIS alone, far with few "
    "labels."
)


def study(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """A panel per training mode; the folder holds nothing the paper printed."""
    by_protocol = {
        protocol: {place: with_rule(runs, *place, protocol) for place in product(TRAININGS, RULES)}
        for protocol in PROTOCOLS
    }
    used = [run for found in by_protocol.values() for run in runs_in(found)]
    found = by_protocol["strict"]
    figure, axes = panels(
        [f"({x}) {name}" for x, name in zip("ab", TRAININGS.values(), strict=True)],
        f"{DATA}, protocol=strict",
    )
    names = [f"{ratio:.0%}" for ratio in RATIOS]
    for axis, training in zip(axes, TRAININGS, strict=True):
        of_rules = {rule: found[training, rule] for rule in RULES}
        curves = [Curve("RREA alone", means(of_rules["avoid_conflict"], stage="initial"))]
        curves += [Curve(RULES[rule], means(cells)) for rule, cells in of_rules.items()]
        draw(axis, curves, RATIOS, names)
        axis.set_xlabel(LABELLED)
        axis.set_ylabel("Hit@1")
    rows = {protocol: _rows(cells, num_splits(used)) for protocol, cells in by_protocol.items()}
    parts = (provenance_line(used), REMARK, *protocol_tables(COLUMNS, rows, num_left=3))
    return Study("figure6", "Figure 6: sets of rules", parts, figure=figure)


def with_rule(
    runs: Sequence[RecordedRun], training: str, rule: str, protocol: str = "strict"
) -> dict[float, list[Found]]:
    """Runs of one set of rules by ratio."""
    where = {"method": "emea", "em": "paper", "model": "rrea", "training": training, "rule": rule}
    method = Method(rule, "", (Source(where),))
    return runs_by_ratio(runs, method, DATA, RATIOS, protocol)


def _rows(found: dict[tuple[str, str], dict[float, list[Found]]], splits: int) -> list[list[str]]:
    rows = []
    for (training, rule), cells in found.items():
        before, after = means(cells, stage="initial"), means(cells)
        for ratio in RATIOS:
            place = [TRAININGS[training], RULES[rule], f"{ratio:.0%}"]
            first, last = before.get(ratio), after.get(ratio)
            values = [shown(cell, splits) if cell else NOT_RUN for cell in (first, last)]
            lift = signed(last.mean, first.mean) if first and last else ""
            rows.append([*place, *values, lift, run_links(one.run for one in cells[ratio])])
    return rows
