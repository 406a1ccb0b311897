"""The comparison of suggested and random labels."""

import json
from pathlib import Path

import pytest

from emea.bench.suggested_labels import Measured, main, summary


def test_only_links_that_no_arm_was_given_are_measured() -> None:
    ranks = {"a": 1.0, "b": 2.0, "c": 1.0, "d": 1.0}
    later = {"a": 1.0, "b": 1.0, "c": 3.0}
    found = summary(
        [
            Measured("start", 0, frozenset(), ranks, 1.0),
            Measured("suggested", 2, frozenset("d"), later, 1.0),
            Measured("random", 1, frozenset("c"), {"a": 1.0, "b": 1.0, "d": 1.0}, 1.0),
        ]
    )
    assert [one["hit@1"] for one in found] == [0.5, 1.0, 1.0]
    assert all(one["num_test"] == 2 for one in found)


@pytest.mark.slow
def test_all_arms_are_measured(tmp_path: Path) -> None:
    settings = ["data.num_entities=150", "split.num_validation=20", "model.encoder.dim=64"]
    arguments = ["--data", "synthetic", "--ratio", "0.1", "--split-seeds", "3"]
    arguments += ["--counts", "5", "10", "--arms", "suggested", "random", "control"]
    main([*settings, *arguments, "--json", str(tmp_path / "numbers.jsonl")])
    rows = [json.loads(line) for line in (tmp_path / "numbers.jsonl").read_text().splitlines()]
    assert [(row["arm"], row["num_asked"]) for row in rows] == [
        ("start", 0),
        *(("suggested", count) for count in (5, 10)),
        *(("random", count) for count in (5, 10)),
        *(("control", count) for count in (5, 10)),
    ]
    assert [row["num_links"] for row in rows[3:]] == [5, 10, 0, 0]
    assert all(row["num_links"] <= row["num_asked"] for row in rows)
    assert len({row["num_test"] for row in rows}) == 1
