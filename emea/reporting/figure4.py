"""Figure 4: EMEA over other neural models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emea.reporting.cells import num_splits, over_splits, shown
from emea.reporting.comparison import NOT_RUN, PROTOCOLS
from emea.reporting.curves import LABELLED, Curve, draw, panels
from emea.reporting.methods import (
    MODEL_NAMES,
    PAPER,
    PARIS,
    USUAL,
    Found,
    Method,
    Source,
    means,
    runs_by_ratio,
    runs_in,
)
from emea.reporting.records import RecordedRun, provenance_line, run_links
from emea.reporting.study import RATIOS, Study, protocol_tables

DATA = "dbp15k_zh"
OF_PAPER = ("rrea", "dual_amn", "alinet", "iptranse")
MODELS = {key: MODEL_NAMES[key] for key in (*OF_PAPER, "lightea")}
COLUMNS = ("model", "ratio", "iterations", "alone", "EMEA", "lift", "runs")
REMARK = (
    "Hit@1 among test targets on DBP15K zh, `protocol=strict`, before and after EM; beside it "
    "PARIS alone, which answers among all targets. LightEA is not in the paper. Ten iterations and "
    "K = 10; AliNet and IPTransE train anew in every iteration: they had as few as the table says, "
    "with K = 50."
)


def study(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """Curves per model and a table of them; the folder holds nothing the paper printed."""
    by_protocol = {
        protocol: {model: found_runs(runs, model, protocol) for model in MODELS}
        for protocol in PROTOCOLS
    }
    used = [run for found in by_protocol.values() for run in runs_in(found)]
    found = by_protocol["strict"]
    titles = [f"({letter}) {name}" for letter, name in zip("abcde", MODELS.values(), strict=True)]
    figure, axes = panels([*titles, "(f) after EM"], f"{DATA}, protocol=strict", columns=3)
    names = [f"{ratio:.0%}" for ratio in RATIOS]
    of_paris = paris_runs(runs)
    paris = Curve("PARIS", means(of_paris))
    used += [one.run for ones in of_paris.values() for one in ones]
    finals = []
    for axis, (model, cells) in zip(axes, found.items(), strict=False):
        before, after = (means(cells, stage=stage) for stage in ("initial", "final"))
        draw(axis, [Curve("alone", before), Curve("EMEA", after), paris], RATIOS, names)
        finals.append(Curve(MODELS[model], after))
    draw(axes[-1], finals, RATIOS, names)
    for axis in axes:
        axis.set_xlabel(LABELLED)
        axis.set_ylabel("Hit@1")
        axis.set_ylim(0, 1)
    rows = {protocol: _rows(cells, num_splits(used)) for protocol, cells in by_protocol.items()}
    parts = (provenance_line(used), REMARK, *protocol_tables(COLUMNS, rows, num_left=2))
    return Study("figure4", "Figure 4: EMEA over other models", parts, figure=figure)


def found_runs(
    runs: Sequence[RecordedRun], model: str, protocol: str = "strict"
) -> dict[float, list[Found]]:
    """EM runs over a model by ratio."""
    where = {**PAPER, "model": model, "training": "sup"}
    usual: dict[str, Any] = dict(USUAL)
    if model in ("alinet", "iptranse"):
        usual["em.num_candidates"] = 50
        usual.pop("em.iterations")  # the table tells
    method = Method(model, "", (Source(where),), usual=usual)
    return runs_by_ratio(runs, method, DATA, RATIOS, protocol)


def paris_runs(runs: Sequence[RecordedRun]) -> dict[float, list[Found]]:
    """Runs of PARIS alone by ratio."""
    return runs_by_ratio(runs, PARIS, DATA, RATIOS)


def _rows(found: dict[str, dict[float, list[Found]]], splits: int) -> list[list[str]]:
    rows = []
    for model, cells in found.items():
        for ratio, ones in cells.items():
            rows.append([MODELS[model], f"{ratio:.0%}", *_row(ones, splits)])
    return rows


def _row(found: list[Found], splits: int) -> list[str]:
    if not found:
        return ["", NOT_RUN, NOT_RUN, "", ""]
    before, after = (
        over_splits([one.run.value("hit@1", stage=stage) for one in found])
        for stage in ("initial", "final")
    )
    assert before and after and before.mean is not None and after.mean is not None
    iterations = sorted({len(one.run.metrics["history"]) - 1 for one in found})
    lift = after.mean - before.mean
    told = f"{lift:+.3f}" if lift > 0 else f"{lift:+.3f} (**no lift**)"
    cells = [shown(cell, splits) for cell in (before, after)]
    return [", ".join(map(str, iterations)), *cells, told, run_links(one.run for one in found)]
