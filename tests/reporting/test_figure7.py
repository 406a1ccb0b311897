"""Figure 7 from fabricated runs."""

from pathlib import Path

from emea.reporting.figure7 import PARAMETERS, Parameter, sensitivity, study
from emea.reporting.records import RecordedRun

from .fabricated import line_of, made, rows_of, scores


def with_k(value: int, hit: float, **changes: float) -> RecordedRun:
    return made(f"k{value}", params={"em.num_candidates": value}, final=scores(hit), **changes)


def with_n(value: int, hit: float, **changes: float) -> RecordedRun:
    params = {"rule.num_neighbours": value}
    return made(f"n{value}", rule="avoid_conflict", params=params, final=scores(hit), **changes)


def names(runs: list[RecordedRun], parameter: Parameter) -> dict[int, list[str]]:
    found = sensitivity(runs, parameter, 0.01)
    return {value: [one.run.folder.name for one in ones] for value, ones in found.items()}


def test_a_value_has_the_runs_with_it_and_all_else_as_usual() -> None:
    k, n = PARAMETERS
    runs = [with_k(10, 0.5), with_k(20, 0.6), with_n(5, 0.4), with_n(20, 0.3)]
    runs += [made("few", params={"em.num_candidates": 50, "em.iterations": 1})]
    assert names(runs, k) == {5: [], 10: ["k10"], 20: ["k20"], 50: []}
    assert names(runs, n) == {5: ["n5"], 10: [], 15: [], 20: ["n20"]}


def test_values_are_compared_on_splits_that_all_of_them_have() -> None:
    k, _ = PARAMETERS
    runs = [with_k(10, 0.5, split_seed=seed) for seed in (0, 1, 2)]
    runs += [with_k(20, 0.6, split_seed=seed) for seed in (1, 2)] + [with_k(50, 0.6, split_seed=2)]
    found = sensitivity(runs, k, 0.01)
    seeds = {
        value: [one.run.metrics["split_seed"] for one in ones] for value, ones in found.items()
    }
    assert seeds == {5: [], 10: [2], 20: [2], 50: [2]}
    # two values without a split in common are shown as they are
    assert names([runs[0], with_k(20, 0.6, split_seed=1)], k)[20] == ["k20"]


def test_rows_tell_both_metrics(tmp_path: Path) -> None:
    rows = rows_of(study([with_k(20, 0.6), with_n(15, 0.3, ratio=0.1)], tmp_path).parts[-1])
    assert len(rows) == 2 * 4 * 3
    told = {tuple(row[:3]): row[3:] for row in rows}
    link = f"[1](../study/runs.jsonl#L{line_of('k20')})"
    assert told["K", "20", "1%"] == ["0.600 (1 split)", "6.0 (1 split)", link]
    assert told["N", "15", "10%"][:2] == ["0.300 (1 split)", "3.0 (1 split)"]
    assert told["K", "50", "1%"] == ["not run", "not run", ""]


def test_a_panel_per_parameter_and_metric(tmp_path: Path) -> None:
    figure = study([with_k(10, 0.5), with_k(50, 0.6)], tmp_path).figure
    assert figure is not None
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["K, PARIS: Hit@1", "K, PARIS: MR", "N, AvoidConf: Hit@1", "N, AvoidConf: MR"]
    hit, mr, none, _ = figure.axes
    assert (mr.get_xlabel(), mr.get_ylabel()) == ("K", "MR (lower is better)")
    assert [text.get_text() for text in hit.get_xticklabels()] == ["5", "10", "20", "50"]
    assert hit.containers[0][0].get_xydata().tolist() == [[1, 0.5], [3, 0.6]]
    assert mr.containers[0][0].get_xydata().tolist() == [[1, 5.0], [3, 6.0]]
    assert [text.get_text() for text in none.texts] == ["not run"]
