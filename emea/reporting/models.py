"""Models, training modes and rules: what each reaches alone, and what EMEA makes of it."""

from collections.abc import Iterable
from pathlib import Path

from emea.reporting import em_tables, neural_alone, table2
from emea.reporting.paper_numbers import load_paper_numbers
from emea.reporting.records import RecordedRun, load_committed, provenance_line

ALONE = (
    "Hit@1 among test targets (CSLS). Reported: what the models' authors and the surveys printed "
    "(`reported.csv`). Dual-AMN's authors rank from English, which is target → source here."
)
EM = (
    "Hit@1 among test targets before → after EM, one split; 10 iterations and K = 10 candidates "
    "where a cell does not say otherwise. Supervised RREA with the PARIS rule is from "
    "[table1](../table1/results.md)."
)
TURNS = (
    "RREA is the model after its own semi-supervised training, EMEA what EM makes of it. The "
    "released code trains 100 steps after each addition of self-mined pairs; 1200 were chosen by "
    "comparing Hit@1 with this very table (zh, 20%, before EM), so that agreement before EM is by "
    "choice. The paper's numbers are of the released protocol."
)


def report(folder: Path, others: Iterable[Path] = ()) -> str:
    """The study as Markdown.

    Args:
        folder: of the study, with ``records``, ``paper.csv`` and ``reported.csv``.
        others: studies whose runs are shown beside them.
    """
    runs = _load(folder, others)
    paper = load_paper_numbers(folder / "paper.csv")
    reported = load_paper_numbers(folder / "reported.csv")
    models = {model for _, _, model in reported}
    parts = ["# Models, training modes and rules"]
    parts += [provenance_line(load_committed(folder / "records"))]
    parts += ["## Neural models alone", ALONE, neural_alone.table(runs, reported)]
    parts += ["## EM over each model (Fig. 4)", EM, em_tables.over_models(runs, models)]
    parts += ["## Semi-supervised RREA (Table 2)", TURNS]
    parts += ["Hit@1 among test targets:", table2.table(runs, paper)]
    parts += ["MRR among test targets:", table2.table(runs, paper, "mrr")]
    parts += ["## Sets of rules (Fig. 6)", EM, em_tables.over_rules(runs)]
    return "\n\n".join(parts) + "\n"


def summary(folder: Path, others: Iterable[Path] = ()) -> str:
    """The table of the README: every setting of EM that was run, and the paper's Table 2."""
    runs = _load(folder, others)
    paper = load_paper_numbers(folder / "paper.csv")
    printed = table2.paper_row(paper, em_tables.ratios_of(runs))
    return em_tables.all_settings(runs, [printed])


def _load(folder: Path, others: Iterable[Path]) -> list[RecordedRun]:
    runs = load_committed(folder / "records")
    for other in others:
        runs += load_committed(other / "records")
    return runs
