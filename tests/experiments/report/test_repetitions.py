"""Standard deviations over repetitions and over splits."""

from statistics import stdev

import pytest

from experiments.report.repetitions import repetitions_report
from experiments.report.run_table import run_table

from .fabricated import made, scores


def test_only_runs_that_differ_in_nothing_are_repetitions() -> None:
    hits = [(0, 0.50), (0, 0.52), (1, 0.60), (1, 0.61), (1, 0.65), (2, 0.9)]
    runs = [
        made(f"r{number}", f"study{number}", split_seed=split, final=scores(hit))
        for number, (split, hit) in enumerate(hits)
    ]
    started = {"initial_from": "weights", "trainer.block_size": 9}
    others = [
        {"params": {"em.iterations": 3}},
        {"tags": {"commit": "e" * 40}},
        {"ratio": 0.05},
    ]
    others += [
        {"tags": {"data_checksum": "f" * 64}},
        {"protocol": "released"},
        {"em": "dual"},
    ]
    runs += [
        made(f"o{n}", final=scores(0.1), **change) for n, change in enumerate(others)
    ]
    runs.append(made("more", split_seed=0, final=scores(0.54), params=started))
    (part,) = repetitions_report(run_table(runs)).parts
    assert part.table is not None
    ((labels, entries),) = part.table.rows
    assert labels == ("rrea paper paris", "strict", "dbp15k_zh", "c" * 10)
    ratio, within, num_runs, between, num_splits = (entry.text for entry in entries)
    assert (ratio, num_runs, num_splits) == ("1%", "6", "2")
    groups = [0.50, 0.52, 0.54], [0.60, 0.61, 0.65]
    expected = (sum(stdev(group) ** 2 for group in groups) / 2) ** 0.5
    assert float(within) == pytest.approx(expected, abs=5e-5)
    assert float(between) == pytest.approx(stdev([0.52, 0.62]), abs=5e-5)
