"""What the paper's text claims, checked on the recorded runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from emea.reporting import figure4, figure5, figure6, figure7
from emea.reporting.cells import Cell, over_splits
from emea.reporting.comparison import NOT_RUN, PROTOCOLS
from emea.reporting.markdown import markdown_table
from emea.reporting.methods import (
    EMEA,
    EMEA_SEMI,
    PARIS,
    PRASE,
    RREA,
    RREA_SEMI,
    Method,
    means,
    runs_of,
)
from emea.reporting.records import RecordedRun
from emea.reporting.significance import largest_p
from emea.reporting.study import DBP15K, RATIOS

UPHELD, NOT_UPHELD = "upheld", "not upheld"
STABLE = 0.02
"""Hit@1 that differs by less over K is called stable."""

SLIGHT = 0.01
"""A lift of less is called none or slight."""

Case = tuple[str, bool | None]
"""Where a claim is looked at, and whether it holds there; ``None``: no runs to tell."""


Check = Callable[[Sequence[RecordedRun], str], Iterator[Case]]
"""The cases of a claim in the runs of one protocol."""

CELLS = tuple(product(DBP15K, RATIOS))
STAGES = ("initial", "final")


class Finding(NamedTuple):
    """A claim, where it stands in the paper, and how it is checked."""

    claim: str
    place: str
    cases: Check


def findings_table(runs: Sequence[RecordedRun]) -> str:
    """A row per claim, a verdict per protocol, and where it fails or is not known."""
    titles = ["claim", "paper", *PROTOCOLS, "cells not run", "where it does not hold"]
    rows = []
    for finding in FINDINGS:
        by_protocol = {protocol: list(finding.cases(runs, protocol)) for protocol in PROTOCOLS}
        verdicts = [verdict(cases) for cases in by_protocol.values()]
        told = _told(by_protocol)
        failed = [name for name, holds in told if holds is False]
        missing = [name for name, holds in told if holds is None]
        rest = [str(len(missing) or ""), _some(failed)]
        rows.append([finding.claim, finding.place, *verdicts, *rest])
    return markdown_table(titles, rows, num_left=2, text=[*PROTOCOLS, titles[-1]])


def _told(by_protocol: dict[str, list[Case]]) -> list[Case]:
    """Cases of all protocols, which their names tell."""
    return [
        (f"{name} ({protocol})", holds)
        for protocol, cases in by_protocol.items()
        for name, holds in cases
    ]


def verdict(cases: Sequence[Case]) -> str:
    """Upheld where it holds in every case that was run."""
    known = [holds for _, holds in cases if holds is not None]
    if not known:
        return NOT_RUN
    share = f"{sum(known)} of {len(known)}"
    return f"{UPHELD} ({share})" if all(known) else f"{NOT_UPHELD} ({share})"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more


def _hit(
    runs: Sequence[RecordedRun], method: Method, protocol: str, data: str, ratio: float
) -> float | None:
    usable = protocol if protocol in method.protocols else method.protocols[0]
    cell = over_splits(
        [one.value("hit@1") for one in runs_of(runs, method, usable, data, ratio).values()]
    )
    return cell.mean if cell else None


def _name(data: str, ratio: float) -> str:
    return f"{data.removeprefix('dbp15k_')} {ratio:.0%}"


def _better(first: Method, second: Method) -> Check:
    """The first method's mean Hit@1 is above the second's in every cell."""

    def cases(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
        for data, ratio in CELLS:
            values = (_hit(runs, method, protocol, data, ratio) for method in (first, second))
            yield _name(data, ratio), _above(*values)

    return cases


def _above(first: float | None, second: float | None) -> bool | None:
    return None if first is None or second is None else first > second


def _five_like_twenty(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for data in DBP15K:
        emea, rrea = _hit(runs, EMEA, protocol, data, 0.05), _hit(runs, RREA, protocol, data, 0.2)
        holds = None if rrea is None else _above(emea, rrea - STABLE)
        yield data.removeprefix("dbp15k_"), holds


def _prase_below_rrea_somewhere(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    below = [holds for _, holds in _better(RREA, PRASE)(runs, protocol)]
    # one cell is enough, whatever was not run
    yield "some cell", True if any(below) else None if None in below else False


def _semi_better(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for data, ratio in CELLS:
        semi, sup = (_hit(runs, method, protocol, data, ratio) for method in (EMEA_SEMI, EMEA))
        better = _above(semi, sup)
        yield _name(data, ratio), None if better is None else better == (ratio > 0.01)


def _joint_early_and_late(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for ratio in (0.01, 0.05):
        found = [one.run for one in runs_of(runs, EMEA, protocol, figure5.DATA, ratio).values()]
        neural, joint = (figure5.convergence(found, part) for part in ("neural", "joint"))
        name = _name(figure5.DATA, ratio)
        if not neural or not joint:
            yield name, None
            continue
        last = max(joint)
        early = _above(_mean(joint, 0), _mean(neural, 0))
        late = _above(_mean(neural, last), _mean(joint, last))
        yield name, bool(early and late)


def _models_lifted(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for model, ratio in product(figure4.MODELS if protocol == "strict" else (), RATIOS):
        found = [one.run for one in figure4.found_runs(runs, model)[ratio]]
        stages = ([run.value("hit@1", stage=stage) for run in found] for stage in STAGES)
        lifts = [_above(after, before) for before, after in zip(*stages, strict=True)]
        yield f"{figure4.MODELS[model]} {ratio:.0%}", all(lifts) if lifts else None


def _paris_above_avoid_conflict(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for training in figure6.TRAININGS if protocol == "strict" else ():
        rules = [figure6.with_rule(runs, training, rule) for rule in ("paris", "avoid_conflict")]
        paris, avoid = (means(cells) for cells in rules)
        for ratio in RATIOS:
            yield f"{training} {ratio:.0%}", _above(_mean(paris, ratio), _mean(avoid, ratio))


def _avoid_conflict_no_gain_for_semi(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    cells = figure6.with_rule(runs, "semi", "avoid_conflict")
    before, after = (means(cells, stage=stage) for stage in STAGES)
    for ratio in (0.2, 0.3) if protocol == "strict" else ():
        first = _mean(before, ratio)
        gains = None if first is None else _above(_mean(after, ratio), first + SLIGHT)
        yield f"{ratio:.0%}", None if gains is None else not gains


def _stable_above_ten(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for ratio in figure7.RATIOS if protocol == "strict" else ():
        cells = means(figure7.sensitivity(runs, figure7.PARAMETERS[0], ratio))
        known = [mean for k in (10, 20, 50) if (mean := _mean(cells, k)) is not None]
        yield f"{ratio:.0%}", max(known) - min(known) < STABLE if len(known) == 3 else None


def _mean(cells: Mapping[Any, Cell], place: float) -> float | None:
    return cells[place].mean if place in cells else None


def _significant(first: Method, second: Method, bound: float) -> Check:
    """Hit@1 of the two methods differs in every cell."""

    def cases(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
        for data, ratio in CELLS:
            of_second = protocol if protocol in second.protocols else "strict"
            found = [
                runs_of(runs, method, of, data, ratio)
                for method, of in ((first, protocol), (second, of_second))
            ]
            p = largest_p(found[0], found[1], "hit@1")
            yield _name(data, ratio), None if p is None else p < bound

    return cases


FINDINGS = (
    Finding("EMEA at 5% ≈ RREA at 20%", "Results (1)", _five_like_twenty),
    Finding("EMEA beats RREA in every cell", "Results (1)", _better(EMEA, RREA)),
    Finding("EMEA beats PARIS in every cell", "Results (2)", _better(EMEA, PARIS)),
    Finding("RREA beats PARIS in every cell", "Results (3)", _better(RREA, PARIS)),
    Finding("EMEA beats PRASE in every cell", "Results (4)", _better(EMEA, PRASE)),
    Finding("PRASE beats PARIS in every cell", "Results (4)", _better(PRASE, PARIS)),
    Finding("PRASE is below RREA in some cell", "Results (4)", _prase_below_rrea_somewhere),
    Finding("EMEA differs from RREA, p < 0.01", "Table 1", _significant(EMEA, RREA, 0.01)),
    Finding("EMEA lifts every model in every cell", "Fig. 4", _models_lifted),
    Finding("EMEA lifts semi-supervised RREA", "Table 2", _better(EMEA_SEMI, RREA_SEMI)),
    Finding("semi better than sup after EMEA, not at 1%", "Training modes", _semi_better),
    Finding(
        "EMEA differs from RREA (semi), p < 0.05",
        "Table 2",
        _significant(EMEA_SEMI, RREA_SEMI, 0.05),
    ),
    Finding("joint better early, worse late", "Fig. 5", _joint_early_and_late),
    Finding("the PARIS rule is stronger than AvoidConf", "Fig. 6", _paris_above_avoid_conflict),
    Finding("AvoidConf: no gain for semi above 10%", "Fig. 6", _avoid_conflict_no_gain_for_semi),
    Finding("stable in K above 10", "Fig. 7", _stable_above_ten),
)
