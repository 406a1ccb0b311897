"""Rows of tables: which runs stand for a method, and what of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from emea.config.earlier import current_params
from emea.reporting.cells import Cell, over_splits
from emea.reporting.records import RecordedRun
from emea.settings.em import FEATURES

Place = TypeVar("Place")

USUAL = {
    "em.iterations": 10,
    "em.num_candidates": 10,
    "em.m_step": "links",
    "em.sampling": "argmax",
    "em.ridge": 0.01,
    "em.patience": None,
    "em.two_way.tolerance": 0.002,
    "em.two_way.max_candidates": 30,
    "em.two_way.ridge": 0.01,
    "rule.markov_blanket": False,
    "rule.subsumption_from": "best",
    "rule.rules.paris.markov_blanket": False,
    "rule.rules.paris.subsumption_from": "best",
    "rule.num_neighbours": 5,
    "rule.rules.avoid_conflict.num_neighbours": 5,
}
"""What the paper ran with; runs that vary it stand for themselves alone."""

COMMON = {
    "seed": 0,
    "split.num_validation": 100,
    "split.validation_from": "rest",
    "similarity.name": "csls",
    "decoding.name": "greedy",
    "search.name": "exact",
}
"""What every run of a table has, with EM or without."""


MODEL_NAMES = {
    "iptranse": "IPTransE",
    "gcn_align": "GCN-Align",
    "mugnn": "MuGNN",
    "rsn": "RSN",
    "alinet": "AliNet",
    "mraea": "MRAEA",
    "psr": "PSR",
    "rrea": "RREA",
    "dual_amn": "Dual-AMN",
    "bootea": "BootEA",
    "lightea": "LightEA",
}
"""What tables call the neural models, ours and others."""


@dataclass(frozen=True)
class Source:
    """Runs by what their metrics say, and the part of the metrics that counts."""

    where: Mapping[str, Any]
    stage: str = "final"


@dataclass(frozen=True)
class Method:
    """A row.

    Args:
        label: what tables call it.
        paper: what the paper's numbers call it; empty where it has none.
        sources: where its numbers come from, the first that has a run of the split.
        protocols: under which it was run; one that sees no test links anyway has one.
        usual: settings that its runs must have; nothing is asked of runs without the key.
    """

    label: str
    paper: str
    sources: tuple[Source, ...]
    protocols: tuple[str, ...] = ("strict",)
    usual: Mapping[str, Any] = field(default_factory=lambda: USUAL)


class Found(NamedTuple):
    """A run that stands for a method on one split, and the part of it that does."""

    run: RecordedRun
    stage: str

    def value(self, metric: str, pool: str = "test") -> float | None:
        """A metric of that part."""
        return self.run.value(metric, pool, self.stage)


def runs_of(
    runs: Iterable[RecordedRun], method: Method, protocol: str, data: str, ratio: float
) -> dict[int, Found]:
    """What stands for a method in a cell, by split seed.

    Of several runs a study's own counts, then the latest.
    """
    here = [run for run in runs if _key(run) == (data, ratio) and is_usual(run, method.usual)]
    here.sort(key=lambda run: run.precedence)
    found: dict[int, Found] = {}
    for source in reversed(method.sources):
        for run in here:
            if _stands_for(run, source.where, protocol):
                found[run.metrics["split_seed"]] = Found(run, source.stage)
    return dict(sorted(found.items()))


def runs_by_ratio(
    runs: Iterable[RecordedRun],
    method: Method,
    data: str,
    ratios: Iterable[float],
    protocol: str = "strict",
) -> dict[float, list[Found]]:
    """What stands for a method on a pair, by ratio."""
    runs = list(runs)
    found = {ratio: runs_of(runs, method, protocol, data, ratio) for ratio in ratios}
    return {ratio: list(by_split.values()) for ratio, by_split in found.items()}


def means(
    cells: Mapping[Place, Iterable[Found]],
    metric: str = "hit@1",
    stage: str | None = None,
    pool: str = "test",
) -> dict[Place, Cell]:
    """A metric over splits at each place that has runs.

    Args:
        cells: runs by place, such as a ratio.
        metric: which.
        stage: part of the metrics; ``None``: the one that each run was found for.
        pool: the targets that are ranked, ``test`` or ``all``.
    """
    found = {
        place: over_splits([one.run.value(metric, pool, stage or one.stage) for one in ones])
        for place, ones in cells.items()
    }
    return {place: cell for place, cell in found.items() if cell}


def runs_in(found: Mapping[Any, Mapping[Any, Iterable[Found]]]) -> list[RecordedRun]:
    """The runs of all rows and places."""
    return [one.run for cells in found.values() for ones in cells.values() for one in ones]


def is_usual(run: RecordedRun, usual: Mapping[str, Any]) -> bool:
    """Whether a run has the usual settings, or none of that name."""
    params = dict(current_params(run.header["params"]))
    if params.get("search.name") == "auto":  # exact for graphs of the tables' sizes
        params["search.name"] = "exact"
    neural = run.metrics["method"] == "neural"  # has no EM, whatever its settings say
    asked = COMMON if neural else {**COMMON, **usual}
    return all(params.get(key, value) == value for key, value in asked.items())


def _key(run: RecordedRun) -> tuple[str, float]:
    return run.metrics["data"], run.metrics["ratio"]


def _stands_for(run: RecordedRun, where: Mapping[str, Any], protocol: str) -> bool:
    metrics = run.metrics
    # a model without EM sees what any protocol shows it: nothing of the test links
    agrees = metrics["method"] == "neural" or metrics["protocol"] == protocol
    return agrees and all(metrics.get(key) == value for key, value in where.items())


PARIS = Method("PARIS", "paris", (Source({"method": "paris"}),))
PRASE = Method("PRASE", "prase", (Source({"method": "prase"}),))

SUP = {"model": "rrea", "training": "sup"}
SEMI = {"model": "rrea", "training": "semi"}
PAPER = {"method": "emea", "em": "paper", "rule": "paris"}
DUAL_PARTS = {
    "em.two_way.both_directions": True,
    "em.two_way.sweeps": 2,
    "em.two_way.propagation": 5,
    "em.two_way.features": str(list(FEATURES)),
    "em.two_way.unmatched": True,
    "em.two_way.matched_inclusions": True,
    "em.two_way.memory": 0.0,
    "em.two_way.mutual_labels": True,
    "em.two_way.weighted_labels": True,
    "em.two_way.fused_answer": True,
    "em.two_way.one_to_one": False,
}
"""The whole of ``em=dual``: ablations have another value of one."""

RREA = Method(
    "RREA", "rrea", (Source({"method": "neural", **SUP}), Source({**PAPER, **SUP}, "initial"))
)
EMEA = Method("EMEA", "emea", (Source({**PAPER, **SUP}),), ("released", "strict"))
DUAL = Method(
    "em=dual", "", (Source({"method": "emea", "em": "dual", **SUP}),), usual=USUAL | DUAL_PARTS
)
RREA_SEMI = Method(
    "RREA (semi)",
    "rrea_semi",
    (Source({**PAPER, **SEMI}, "initial"), Source({"method": "neural", **SEMI})),
    ("released", "strict"),
)
EMEA_SEMI = Method("EMEA (semi)", "emea_semi", (Source({**PAPER, **SEMI}),), ("released", "strict"))
