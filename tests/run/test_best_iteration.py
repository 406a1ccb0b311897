"""``em.keep`` and ``em.patience``: which iteration a run answers with, and when EM ends."""

from collections.abc import Callable, Mapping
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import DictConfig

from emea.config.checks import check_config
from emea.em.best_iteration import BestIteration
from emea.errors import ConfigError
from emea.fit import training_loop
from emea.record.checked_files import read_checked_arrays
from emea.record.run_folder import answered_entry, read_metrics, sweep_objective
from emea.run.job import run_job

Configs = Callable[..., DictConfig]
QUICK = (
    "data.num_entities=100",
    "model.initial_epochs=3",
    "model.epochs_per_iteration=1",
)
TO_ONE = (*QUICK, "em.iterations=1")
TO_THREE = (*QUICK, "em.iterations=3", "em.keep=best")


class KilledError(Exception):
    """Raised to simulate a killed process."""


@pytest.fixture
def one_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let iteration 1 have the best MRR."""
    follow = BestIteration.follow

    def rigged(
        best: BestIteration, iteration: int, mrr: float, state: Mapping[str, Any]
    ) -> None:
        follow(best, iteration, 1.0 if iteration == 1 else 0.5, state)

    monkeypatch.setattr(BestIteration, "follow", rigged)


def test_the_best_iteration_is_followed() -> None:
    best = BestIteration(keeps=True, patience=2)
    for iteration, mrr in enumerate([0.2, 0.4, 0.4, nan]):
        best.follow(iteration, mrr, {"from": iteration})
    assert (best.iteration, best.mrr, best.state) == (1, 0.4, {"from": 1})
    assert not best.has_stopped_rising  # an MRR that is missing is not a lower one
    best.follow(4, 0.3, {"from": 4})
    assert best.has_stopped_rising
    other = BestIteration(keeps=True, patience=2)
    other.load_state_dict(best.state_dict())
    assert (other.iteration, other.num_idle, other.state) == (1, 2, {"from": 1})
    assert BestIteration().state_dict() == {}


SLOW = [pytest.param(em, marks=pytest.mark.slow) for em in ("paper", "one_to_one")]


@pytest.mark.parametrize("em", ["dual", *SLOW])
def test_a_run_answers_as_if_it_had_ended_with_its_best_iteration(
    em: str, one_is_best: None, tiny_config: Configs, tmp_path: Path
) -> None:
    short, whole = tmp_path / "short", tmp_path / "whole"
    run_job(tiny_config(*TO_ONE, f"em={em}"), short)
    run_job(tiny_config(*TO_THREE, f"em={em}"), whole)
    expected, found = read_metrics(short), read_metrics(whole)
    assert found["kept_iteration"] == 1 and len(found["history"]) == 4
    assert answered_entry(found)["iteration"] == 1
    for key in ("final", "final_reverse", "mapping", "answer", "calibration"):
        assert found[key] == expected[key]
    assert (whole / "alignment.tsv").read_bytes() == (
        short / "alignment.tsv"
    ).read_bytes()
    for name in ("beliefs.npz", "ranks.npz"):
        arrays, others = (read_checked_arrays(run / name) for run in (whole, short))
        assert set(arrays) == set(others)
        assert all(np.array_equal(arrays[key], others[key]) for key in arrays)


def test_a_killed_run_still_knows_its_best_iteration(
    one_is_best: None,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(*TO_THREE)
    run_job(config, tmp_path / "whole")
    save = training_loop.save_checkpoint

    def save_and_die(*arguments: Any) -> None:
        save(*arguments)
        progress = arguments[2]
        if progress is not None and progress.num_stages == 3:
            raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(training_loop, "save_checkpoint", save_and_die)
        run_job(config, tmp_path / "half")
    run_job(config, tmp_path / "half")
    found, expected = (read_metrics(tmp_path / name) for name in ("half", "whole"))
    assert found["kept_iteration"] == expected["kept_iteration"] == 1
    assert found["final"] == expected["final"]
    half, whole = (tmp_path / name / "alignment.tsv" for name in ("half", "whole"))
    assert half.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_the_best_iteration_is_that_of_the_best_validation_score(
    tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(*QUICK, "em=dual", "em.iterations=2", "em.keep=best")
    metrics = run_job(config, tmp_path).metrics
    scores = [one["validation_answer"]["mrr"] for one in metrics["history"]]
    assert metrics["kept_iteration"] == int(np.argmax(scores))
    assert sweep_objective(metrics) == max(scores)


def test_em_stops_when_the_score_does_not_rise(
    one_is_best: None,
    tiny_config: Configs,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    config = tiny_config(*QUICK, "em.iterations=9", "em.patience=2")
    metrics = run_job(config, tmp_path).metrics
    assert [entry["iteration"] for entry in metrics["history"]] == [0, 1, 2, 3]
    assert "kept_iteration" not in metrics  # em.keep=last
    assert "EM stops: the MRR on the validation links stopped rising." in caplog.text


@pytest.mark.parametrize(("tolerance", "num_iterations"), [(0.99, 2), (0, 4)])
def test_em_stops_when_few_labels_change(
    tolerance: float,
    num_iterations: int,
    tiny_config: Configs,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    config = tiny_config(
        "model=lightea", "em=dual", "em.iterations=3", f"em.tolerance={tolerance}"
    )
    history = run_job(config, tmp_path).metrics["history"]
    assert [entry["iteration"] for entry in history] == list(range(num_iterations))
    assert history[0]["label_change"] == 1.0  # there were no labels before
    changes = [entry["label_change"] for entry in history[1:]]
    assert all(0 <= change <= 0.99 for change in changes)
    stopped = (
        f"EM stops: the last iteration changed {changes[0]:.1%} of the pseudo-labels"
    )
    assert (stopped in caplog.text) == (num_iterations == 2)


@pytest.mark.parametrize("setting", ["em.patience=2", "em.keep=best"])
def test_validation_links_are_needed(setting: str, tiny_config: Configs) -> None:
    config = tiny_config(setting, "split.num_validation=0")
    with pytest.raises(ConfigError, match=f"{setting} needs validation links"):
        check_config(config)


def test_min_max_scaling_is_chosen_by_a_setting(
    tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(*TO_ONE, "em.normaliser=minmax")
    metrics = run_job(config, tmp_path).metrics
    assert [entry["normaliser"] for entry in metrics["history"]] == [{}, {}]
    probs = read_checked_arrays(tmp_path / "beliefs.npz")["neural_probs"]
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-5)
    with pytest.raises(ConfigError, match=r"em\.normaliser=minmax has no effect"):
        check_config(tiny_config("em=dual", "em.normaliser=minmax"))
