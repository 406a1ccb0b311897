"""The report of a user's own runs: a table of all runs, and the best of each setting."""

from collections.abc import Sequence

import pandas as pd

from emea.results.study import Part, Report
from emea.results.table import text_table

COLUMNS = {
    "Hit@1 before": ("initial.hit@1", "{:.4f}"),
    "Hit@1": ("final.hit@1", "{:.4f}"),
    "MRR": ("final.mrr", "{:.4f}"),
    "MR": ("final.mr", "{:.1f}"),
    "seconds": ("seconds.total", "{:.0f}"),
}
IDENTITY = {"pair": "data", "model": "model", "rule": "rule", "em": "em", "protocol": "protocol"}
NOTE = (
    "Hit@1, MRR and MR are among test targets, before and after EM. They are empty if a run had no "
    "test links. Tables and figures of the paper follow if some of these runs belong to them: "
    "such runs have the pair, ratio, protocol, model, rule, seed, decoding and EM settings "
    "of the paper. Other settings of the model are not compared."
)
BEST_NOTE = (
    "The run with the highest Hit@1 on test links for each pair, ratio and protocol. Choose "
    "settings on validation links, not with this table."
)


def runs_report(table: pd.DataFrame) -> Report:
    """Return a report with a row per run, in the order in which they started."""
    rows = [_row(run) for _, run in table.sort_values("started", kind="stable").iterrows()]
    everything = text_table(["run"], [*IDENTITY, *COLUMNS], rows, IDENTITY)
    best = _best(table)
    num_measured = sum(int(row[-1]) for row in best)
    parts = [Part("All runs", NOTE, everything)]
    if best:
        titles = ["ratio", "protocol", "best run", "Hit@1", "runs"]
        shown = text_table(["pair"], titles, best, titles[:3])
        parts.insert(0, Part("Best runs", BEST_NOTE, shown))
    note = f"{len(table)} finished runs, {num_measured} of them with test links."
    return Report("runs", "Your runs", note, tuple(parts), is_experiment=False)


def _row(run: "pd.Series[object]") -> list[str]:
    identity = [str(run[key] or "") for key in IDENTITY.values()]
    return [str(run["name"]), *identity, *(_shown(run, title) for title in COLUMNS)]


def _shown(run: "pd.Series[object]", title: str) -> str:
    path, form = COLUMNS[title]
    values: dict[str, float] = run["values"]
    value = values.get(path)
    return "" if value is None else form.format(value)


def _best(table: pd.DataFrame) -> Sequence[list[str]]:
    groups: dict[tuple[str, str, str], list[pd.Series[object]]] = {}
    for _, run in table.iterrows():
        if _shown(run, "Hit@1"):
            split = run["values"].get("split", "")
            share = f"{run['ratio']:.4g}" if pd.notna(run["ratio"]) else str(split)
            groups.setdefault((str(run["data"]), share, str(run["protocol"])), []).append(run)
    rows = []
    for place, runs in sorted(groups.items()):
        best = max(runs, key=lambda run: run["values"]["final.hit@1"])
        rows.append([*place, str(best["name"]), _shown(best, "Hit@1"), str(len(runs))])
    return rows
