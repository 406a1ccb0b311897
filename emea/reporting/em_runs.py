"""EM runs: what sets one apart from others, and Hit@1 before and after it."""

from collections.abc import Iterable
from typing import NamedTuple

from emea.reporting.cells import NO_RECORD, select
from emea.reporting.records import RecordedRun

PAIR = "dbp15k_zh"
"""The pair on which models, training modes and rules are compared."""

USUAL = {"em.iterations": (10, "{} iterations"), "em.num_candidates": (10, "K = {}")}
"""What a run is told to have been where it was something else."""


class Setting(NamedTuple):
    """What runs of one row share."""

    data: str
    model: str
    training: str
    rule: str
    protocol: str


def em_runs(runs: Iterable[RecordedRun]) -> list[RecordedRun]:
    """The EM runs on one split of one pair, so that rows compare."""
    return select(runs, method="emea", data=PAIR, split_seed=0)


def setting(run: RecordedRun) -> Setting:
    """The row a run belongs to."""
    keys = ("data", "model", "rule", "protocol")
    return Setting(training=training(run), **{key: str(run.metrics[key]) for key in keys})


def training(run: RecordedRun) -> str:
    """The training mode; semi-supervised ones differ by the length of their turns."""
    steps = steps_per_turn(run)
    return str(run.metrics["training"]) + (f", {steps} steps a turn" if steps else "")


def steps_per_turn(run: RecordedRun) -> int | None:
    """Steps after each addition of self-mined pairs; ``None`` where there is none."""
    if run.metrics["training"] != "semi":
        return None
    return int(run.header["params"]["training.epochs_per_turn"])


def row(runs: Iterable[RecordedRun], wanted: Setting, ratios: Iterable[float]) -> list[str]:
    """A setting's runs, one cell per ratio."""
    found = {run.metrics["ratio"]: run for run in runs if setting(run) == wanted}
    return [*wanted, *(before_and_after(found.get(ratio)) for ratio in ratios)]


def before_and_after(run: RecordedRun | None) -> str:
    """Hit@1 of the model alone and after EM, and what was unusual about it."""
    if run is None:
        return NO_RECORD
    before, after = (run.metrics[key]["hit@1"] for key in ("initial", "final"))
    remarks = [] if after > before else ["**no lift**"]
    remarks += _unusual(run)
    return f"{before:.3f} → {after:.3f}" + (f" ({', '.join(remarks)})" if remarks else "")


def _unusual(run: RecordedRun) -> list[str]:
    params = run.header["params"]
    return [
        form.format(params[key]) for key, (usual, form) in USUAL.items() if params[key] != usual
    ]
