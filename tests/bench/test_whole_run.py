"""The benchmarks of whole runs measure what they say."""

import pytest

from emea.bench import overhead, whole_run
from emea.config.schema import register_schema

QUICK = ["data.num_entities=150", "split.num_validation=10", "model.initial_epochs=4"]
QUICK += ["model.epochs_per_iteration=2", "em.iterations=1", "trainer=cpu"]
QUICK += ["model.encoder.dim=16"]


@pytest.fixture(autouse=True)
def schema() -> None:
    register_schema()


@pytest.mark.slow
def test_a_whole_run_is_timed_and_described() -> None:
    numbers = whole_run.measure([*QUICK, "tracking=none"])
    assert numbers["epochs"] == "4 + 1 x 2"
    assert 0 < numbers["neural_s"] < numbers["total_s"]
    assert numbers["joint_cpu_s"] > 0 and numbers["joint_estimate_s"] > 0
    assert 0 <= numbers["final"]["hit@1"] <= 1


@pytest.mark.slow
def test_the_shares_add_up() -> None:
    numbers = overhead.shares(QUICK)
    parts = [value for name, value in numbers.items() if name.endswith("_s") and name != "total_s"]
    assert sum(parts) == pytest.approx(numbers["total_s"])
    assert all(value > 0 for value in parts)
    assert 0 < numbers["share_of_overhead"] < 1
