"""Ratios to floors, and when they count as worse."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import floors
from benchmarks.floors import (
    IMPORT,
    PRODUCT,
    RECORD,
    Cell,
    described,
    measured,
    read_record,
    slower,
    write_names,
)
from emea.errors import UserError


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Floors that take two seconds, and one time longer."""
    times = itertools.cycle([2.0, 2.0, 9.0])
    monkeypatch.setattr(
        floors, "all_floors", lambda names: dict.fromkeys(names, lambda: next(times))
    )
    yield


def test_a_ratio_is_that_of_the_medians(seconds: None) -> None:
    times = iter([3.0, 50.0, 3.0])
    found = measured({"one": Cell(lambda: next(times), PRODUCT)})
    assert found == {"one": 1.5}


def test_nothing_is_measured_after_the_end(seconds: None) -> None:
    assert measured({"one": Cell(lambda: 3.0, PRODUCT)}, end=0.0) == {}


def test_what_is_much_slower_than_recorded_counts_as_worse() -> None:
    recorded = {"one": 2.0, "two": 2.0}
    ratios = {"one": 2.59, "two": 2.61, "not recorded": 100.0}
    assert slower(ratios, recorded) == ["two"]
    assert described("two / floor", 3.0, 2.0).endswith("recorded     2.00: 1.50 times")


@pytest.mark.parametrize("later", [1.0, 4.0])
def test_check_fails_if_a_second_measurement_is_slow_too(
    seconds: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, later: float
) -> None:
    times = itertools.chain([4.0] * floors.ROUNDS, itertools.repeat(later))
    cells = {"work": Cell(lambda: next(times), IMPORT)}
    monkeypatch.setattr(floors, "commands_in", lambda folder: cells)
    monkeypatch.setattr(floors, "parts_of_runs", dict)
    monkeypatch.setattr(floors, "read_record", lambda: {"work": 1.0})
    written = tmp_path / "numbers.json"
    if later == 1.0:
        floors.main(["--check", "--json", str(written)])
        assert json.loads(written.read_text())["ratios"] == {"work": 0.5}
    else:
        with pytest.raises(UserError, match=r"work: more than 1\.3 times"):
            floors.main(["--check"])


def test_the_recorded_ratios_name_what_is_measured(tmp_path: Path) -> None:
    recorded = read_record(RECORD)
    assert recorded.keys() >= floors.commands_in(tmp_path).keys()
    assert all(ratio > 0 for ratio in recorded.values())


def test_the_graphs_share_two_thirds_of_their_names(tmp_path: Path) -> None:
    texts = [write_names(tmp_path / f"{num}.nt", num).read_text() for num in (30, 60)]
    names = [
        {line.split('"')[1] for line in text.splitlines() if "/name>" in line}
        for text in texts
    ]
    assert len(names[0] & names[1]) == 20
