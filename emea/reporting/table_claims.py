"""What the paper claims of its tables."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from emea.reporting.cells import over_splits
from emea.reporting.claim import (
    STABLE,
    Case,
    Check,
    Finding,
    above,
    cell_name,
    every,
    pair_name,
    with_difference,
)
from emea.reporting.methods import (
    EMEA,
    EMEA_SEMI,
    PARIS,
    PRASE,
    RREA,
    RREA_SEMI,
    Found,
    Method,
    runs_of,
)
from emea.reporting.records import RecordedRun
from emea.reporting.significance import p_of_splits
from emea.reporting.study import CELLS, DATASETS, DBP15K_CELLS, RATIOS, Cells


def _runs(
    runs: Sequence[RecordedRun], method: Method, protocol: str, data: str, ratio: float
) -> dict[int, Found]:
    """Runs of a cell by split; a method that sees no test links anyway has them of one protocol."""
    usable = protocol if protocol in method.protocols else method.protocols[0]
    return runs_of(runs, method, usable, data, ratio)


def _hit(
    runs: Sequence[RecordedRun],
    method: Method,
    protocol: str,
    data: str,
    ratio: float,
    pool: str = "test",
) -> float | None:
    found = _runs(runs, method, protocol, data, ratio).values()
    cell = over_splits([one.value("hit@1", pool) for one in found])
    return cell.mean if cell else None


def _better(first: Method, second: Method, pool: str = "test", cells: Cells = CELLS) -> Check:
    """The first method's mean Hit@1 is above the second's in every cell."""

    def cases(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
        for data, ratio in cells:
            values = [_hit(runs, method, protocol, data, ratio, pool) for method in (first, second)]
            yield with_difference(cell_name(data, ratio), *values), above(*values)

    return cases


def _five_like_twenty(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for data in DATASETS:
        values = _hit(runs, EMEA, protocol, data, 0.05), _hit(runs, RREA, protocol, data, 0.2)
        yield with_difference(pair_name(data), *values), above(*values, by=-STABLE)


def _fewer_labels_larger_lift(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for data in DATASETS:
        lifts = [_lift(runs, protocol, data, ratio) for ratio in RATIOS]
        yield pair_name(data), every([above(few, many) for few, many in pairwise(lifts)])


def _lift(runs: Sequence[RecordedRun], protocol: str, data: str, ratio: float) -> float | None:
    emea, rrea = (_hit(runs, method, protocol, data, ratio) for method in (EMEA, RREA))
    return None if emea is None or rrea is None else emea - rrea


def _prase_below_rrea_somewhere(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    below = [holds for _, holds in _better(RREA, PRASE, cells=DBP15K_CELLS)(runs, protocol)]
    # one cell is enough, whatever was not run
    yield "some cell", True if any(below) else None if None in below else False


def _semi_better(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for data, ratio in DBP15K_CELLS:
        semi, sup = (_hit(runs, method, protocol, data, ratio) for method in (EMEA_SEMI, EMEA))
        better = above(semi, sup)
        yield cell_name(data, ratio), None if better is None else better == (ratio > 0.01)


def _significant(first: Method, second: Method, bound: float, cells: Cells = CELLS) -> Check:
    """Hit@1 of the two methods differs on every split of every cell."""

    def cases(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
        for data, ratio in cells:
            found = [_runs(runs, method, protocol, data, ratio) for method in (first, second)]
            ps = p_of_splits(found[0], found[1], "hit@1")
            below = [None if p is None else p < bound for p in ps]
            yield cell_name(data, ratio), False if False in below else every(below)

    return cases


OF_TABLES = (
    Finding("EMEA at 5% ≈ RREA at 20%", "Results (1)", _five_like_twenty),
    Finding("EMEA beats RREA in every cell", "Results (1)", _better(EMEA, RREA)),
    Finding("fewer labels, larger lift", "Results (1)", _fewer_labels_larger_lift),
    Finding("EMEA beats PARIS in every cell", "Results (2)", _better(EMEA, PARIS)),
    Finding("EMEA beats PARIS, among all targets", "Results (2)", _better(EMEA, PARIS, "all")),
    Finding("RREA beats PARIS in every cell", "Results (3)", _better(RREA, PARIS)),
    Finding("RREA beats PARIS, among all targets", "Results (3)", _better(RREA, PARIS, "all")),
    Finding("EMEA beats PRASE in every cell", "Results (4)", _better(EMEA, PRASE)),
    Finding("EMEA beats PRASE, among all targets", "Results (4)", _better(EMEA, PRASE, "all")),
    Finding("PRASE beats PARIS in every cell", "Results (4)", _better(PRASE, PARIS)),
    Finding("PRASE is below RREA in some cell", "Results (4)", _prase_below_rrea_somewhere),
    Finding(
        "EMEA differs from RREA, p < 0.01 on every split", "Table 1", _significant(EMEA, RREA, 0.01)
    ),
    Finding(
        "RREA differs from PARIS, p < 0.01 on every split",
        "Table 1",
        _significant(RREA, PARIS, 0.01),
    ),
    Finding(
        "RREA differs from PRASE, p < 0.01 on every split",
        "Table 1",
        _significant(RREA, PRASE, 0.01),
    ),
    Finding(
        "EMEA lifts semi-supervised RREA",
        "Table 2",
        _better(EMEA_SEMI, RREA_SEMI, cells=DBP15K_CELLS),
    ),
    Finding("semi better than sup after EMEA, not at 1%", "Training modes", _semi_better),
    Finding(
        "EMEA differs from RREA (semi), p < 0.05 on every split",
        "Table 2",
        _significant(EMEA_SEMI, RREA_SEMI, 0.05, DBP15K_CELLS),
    ),
)
