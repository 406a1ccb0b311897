"""Finished runs of every kind, each made once for all tests."""

from collections.abc import Callable
from pathlib import Path

from emea.config.composition import composed
from emea.run.finished_run import FinishedRun, load_run
from emea.run.job import run_job

from .small_runs import TINY

FAST = (
    "model=lightea",
    "em.iterations=1",
    "model.encoder.dim=64",
    "model.encoder.output_dim=64",
)
KINDS = {
    "paper": FAST,
    "released": (*FAST, "protocol=released"),
    "both_rules": (*FAST, "rule=paris_avoid_conflict"),
    "avoid_conflict": (*FAST, "rule=avoid_conflict"),
    "dual": (*FAST, "em=dual"),
    "dual_all_triples": (*FAST, "em=dual", "em.two_way.matched_inclusions=false"),
    "one_to_one": (*FAST, "em=one_to_one"),
    "none": ("model=lightea", "em=none", "rule=none"),
    "paris": ("method=paris",),
    "prase": ("method=prase", "model=lightea"),
    "blanket": (*FAST, "rule.markov_blanket=true"),
    "mutual": (*FAST, "decoding=mutual"),
}

Finished = Callable[[str], FinishedRun]


def finished_in(folder: Path) -> Finished:
    """Makes the run of a kind, the first time it is asked for."""
    made: dict[str, FinishedRun] = {}

    def make(kind: str) -> FinishedRun:
        if kind not in made:
            unused = () if "model=lightea" not in KINDS[kind] else TINY[3:5]
            settings = [one for one in TINY if one not in unused]
            run_job(composed([*settings, *KINDS[kind]]), folder / kind)
            made[kind] = load_run(folder / kind)
        return made[kind]

    return make
