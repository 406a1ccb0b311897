"""PARIS and PRASE in the report."""

from pathlib import Path
from typing import Any

from emea.reporting.reasoning import mapping_table, other_pairs, summary
from emea.reporting.records import load_records

from .fabricated import scores, write_run

PAIRS = ("dbp15k_zh", "dbp15k_fr")
CORES = {"gpu": "", "cpu_count": "2", "machine": "x86_64"}


def write_answers(study: Path, name: str, hit: float, **changes: Any) -> None:
    found = {"precision": hit + 0.1, "recall": hit, "f1": hit + 0.05}
    kept = {"method": "paris", "final": scores(hit, others=False), "mapping": {"all": found}}
    kept |= {"seconds": {"total": 10 * hit}, "peak_memory_mb": 1000 * hit}
    write_run(study, name, **(kept | changes))


def test_two_rows_per_method_and_pair(tmp_path: Path) -> None:
    write_answers(tmp_path, "a", 0.4)
    write_answers(tmp_path, "b", 0.5, split_seed=1)
    write_answers(tmp_path, "c", 0.6, method="prase", ratio=0.05)
    write_run(tmp_path, "em")
    paper = {("dbp15k_zh", 0.01, "paris"): {"hit@1": 0.01}}
    table, origin = summary(load_records(tmp_path), paper, PAIRS[:1])
    assert table.splitlines()[2:] == [
        "| PARIS | dbp15k_zh | paper | 0.010 |  |",
        "| PARIS | dbp15k_zh | here | 0.450 ± 0.071 | no record |",
        "| PRASE | dbp15k_zh | paper |  |  |",
        "| PRASE | dbp15k_zh | here | no record | 0.600 (1 split) |",
    ]
    assert origin.startswith("3 recorded runs")


def test_of_several_runs_of_a_split_the_latest_counts(tmp_path: Path) -> None:
    for name, hit, started in (("a", 0.4, 2), ("b", 0.9, 1)):
        write_answers(tmp_path, name, hit, started=started)
    runs = load_records(tmp_path)
    table, origin = summary(runs, {}, PAIRS[:1])
    assert "| PARIS | dbp15k_zh | here | 0.400 (1 split) |" in table
    assert origin.startswith("1 recorded runs")
    assert (
        mapping_table(runs, PAIRS).splitlines()[2].endswith("| 0.500 (1 split) | 0.450 (1 split) |")
    )


def test_a_split_that_is_no_share_of_the_links_has_no_cell(tmp_path: Path) -> None:
    write_answers(tmp_path, "own", 0.4, data="mine-yours", ratio=None)
    write_answers(tmp_path, "official", 0.4, ratio=None)
    write_answers(tmp_path, "other", 0.4, data="mine-yours", ratio=0.3)
    runs = load_records(tmp_path)
    assert summary(runs, {}, PAIRS) == []
    assert mapping_table(runs, PAIRS).count("PARIS") == 0
    assert other_pairs(runs, PAIRS).count("| PARIS | mine-yours | 30% |") == 1


def test_without_such_runs_there_is_no_table(tmp_path: Path) -> None:
    write_run(tmp_path, "em")
    assert summary(load_records(tmp_path), {}, PAIRS) == []


def test_precision_and_f1_of_the_answers(tmp_path: Path) -> None:
    write_answers(tmp_path, "a", 0.4)
    write_answers(tmp_path, "elsewhere", 0.4, data="other")
    rows = mapping_table(load_records(tmp_path), PAIRS).splitlines()
    assert rows[2:] == [
        "| PARIS | dbp15k_zh | 1% | 0.500 (1 split) | 0.450 (1 split) |",
        "| PRASE | dbp15k_zh | 1% | no record | no record |",
    ]


def test_other_pairs_tell_time_memory_and_machine(tmp_path: Path) -> None:
    write_answers(tmp_path, "a", 0.4, data="other", tags=CORES)
    write_answers(tmp_path, "b", 0.5, data="other", split_seed=1, tags=CORES)
    write_answers(tmp_path, "c", 0.5)
    rows = other_pairs(load_records(tmp_path), PAIRS).splitlines()
    assert rows[2:] == [
        "| PARIS | other | 1% | 2 x86_64 cores | 0.450 ± 0.071 | 0.550 ± 0.071 | 0.500 ± 0.071 "
        "| 4.5 | 500 |",
        "| PRASE | other | 1% |  | no record |  |  |  |  |",
    ]
