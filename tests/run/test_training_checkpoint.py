"""A training that is stopped in the middle resumes there, with the same bits in the end."""

import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import DictConfig
from safetensors import safe_open
from torch import Tensor

from emea.em.em_callback import EMCallback
from emea.encoders.rrea import MarginObjective
from emea.errors import DataError
from emea.fit import training_checkpoint, training_loop
from emea.fit.alignment_module import AlignmentModule
from emea.fit.optimisation_step import OptimisationStep
from emea.fit.training_state import TURN_FILE, TurnState
from emea.run.job import run_job

from .test_resuming import KilledError, essence

Configs = Callable[..., DictConfig]
QUICK = ("data.num_entities=100", "trainer.checkpoint_minutes=0", "trainer.block_size=3")
QUICK += ("model.initial_epochs=18", "model.epochs_per_iteration=8")
EARLY = ("model.early_stopping={every:2,patience:3}", "model.initial_epochs=12")
# soft alignments and near entities of the midst of a turn, which its links alone do not tell
SOFT = ("model.objective.bootstrap_every=4", "model.objective.threshold=-1")
NEAR = ("model.encoder.dims=[8,6]", "model.objective.refresh_every=3")
# its fourth look is the best, and the kill comes two looks later
WORSE = ("model.optimizer.lr=0.05", "model.early_stopping={every:1,patience:4}")


def killed_in(
    stage: int, number: int, config: DictConfig, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> TurnState:
    """Die when this stage has written so many checkpoints; what the last one held."""
    save = training_loop.save_turn
    written: list[TurnState] = []

    def save_and_die(path: Path, of_stage: int, state: TurnState) -> None:
        save(path, of_stage, state)
        if of_stage == stage:
            written.append(state)
        if len(written) == number:
            raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(training_loop, "save_turn", save_and_die)
        run_job(config, folder)
    assert (folder / TURN_FILE).exists()
    return written[-1]


@pytest.mark.parametrize(
    ("overrides", "stage", "number", "turn"),
    [
        (["em=dual", "em.iterations=1"], 1, 2, 0),
        *(
            pytest.param(*values, marks=pytest.mark.slow)
            for values in (
                (["em.iterations=1"], 1, 1, 0),
                (
                    ["em=none", "training=semi", "training.turns=2", "training.epochs_per_turn=8"],
                    *(0, 6, 1),
                ),
                (["em.iterations=1"], 0, 2, 0),
                (["model=dual_amn", "em=none", "model.objective.batch_size=7"], 0, 5, 0),
                (["model=alinet", "em.iterations=1", *EARLY, *NEAR], 1, 2, 0),
                (["model=iptranse", "em=none", *EARLY, *SOFT], 0, 3, 0),
                (["em=none", *WORSE], 0, 6, 0),
            )
        ),
    ],
)
def test_it_ends_as_if_never_stopped(
    overrides: list[str],
    stage: int,
    number: int,
    turn: int,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(*QUICK, *overrides)
    whole = run_job(config, tmp_path / "whole").metrics.as_dict()
    state = killed_in(stage, number, config, tmp_path / "half", monkeypatch)
    assert state.turn == turn
    steps: list[int] = []
    done = AlignmentModule.training_step

    def counted(module: Any, block: Any, index: int) -> None:
        done(module, block, index)
        steps.append(module.num_steps_done)

    monkeypatch.setattr(AlignmentModule, "training_step", counted)
    resumed = run_job(config, tmp_path / "half").metrics.as_dict()
    assert 0 < steps[0] - state.num_steps_done <= 3  # nothing is done twice
    assert essence(resumed) == essence(whole)
    for name in ("alignment.tsv", "ranks.npz", "beliefs.npz"):
        one, other = ((tmp_path / run / name).read_bytes() for run in ("half", "whole"))
        assert one == other, name
    one, other = (tmp_path / run / "checkpoint.safetensors" for run in ("half", "whole"))
    assert same_tensors(one, other)
    assert not (tmp_path / "half" / TURN_FILE).exists()


@pytest.mark.parametrize("place", ["in a block", "in the search"])
@pytest.mark.parametrize(
    "overrides",
    [
        ["em.iterations=1"],
        pytest.param(["model=alinet", "em.iterations=1", *EARLY, *NEAR], marks=pytest.mark.slow),
    ],
)
def test_an_interruption_saves_the_training(
    place: str,
    overrides: list[str],
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training_checkpoint, "COPY_SECONDS", 0.0)
    monkeypatch.setattr(training_checkpoint, "COPY_SHARE", math.inf)
    config = tiny_config(*QUICK, *overrides, "trainer.checkpoint_minutes=5")
    whole = run_job(config, tmp_path / "whole").metrics.as_dict()
    on_interrupt = signal.getsignal(signal.SIGINT)
    steps: list[int] = []
    one_step, one_block = OptimisationStep.__call__, AlignmentModule.training_step

    def step(self: OptimisationStep) -> Tensor:
        steps.append(1)
        if place == "in a block" and len(steps) == 11:  # the second step of the fourth block
            raise KeyboardInterrupt
        return one_step(self)

    def search(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(OptimisationStep, "__call__", step)
        if place == "in the search":
            patch.setattr(EMCallback, "between_fits", search)
        run_job(config, tmp_path / "half")
    assert signal.getsignal(signal.SIGINT) is on_interrupt
    assert (tmp_path / "half" / TURN_FILE).exists()

    blocks: list[int] = []

    def block(module: Any, batch: Any, index: int) -> None:
        blocks.append(module.num_steps_done)
        one_block(module, batch, index)

    monkeypatch.setattr(AlignmentModule, "training_step", block)
    resumed = run_job(config, tmp_path / "half", resumes=True).metrics.as_dict()
    # only the block that was interrupted, or the last one of the training, runs again
    assert 0 < len(steps) - blocks[0] <= 3
    assert essence(resumed) == essence(whole)
    for name in ("alignment.tsv", "ranks.npz", "beliefs.npz"):
        one, other = ((tmp_path / run / name).read_bytes() for run in ("half", "whole"))
        assert one == other, name
    assert not (tmp_path / "half" / TURN_FILE).exists()


def same_tensors(one: Path, other: Path) -> bool:
    with safe_open(one, "np") as left, safe_open(other, "np") as right:
        names = list(left.keys())
        same = names == list(right.keys())
        return same and all(
            left.get_tensor(name).tobytes() == right.get_tensor(name).tobytes() for name in names
        )


@pytest.mark.slow
def test_other_blocks_or_another_run_restart_the_stage(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(*QUICK, "em=none")
    whole = run_job(config, tmp_path / "whole").metrics.as_dict()
    killed_in(0, 2, config, tmp_path / "half", monkeypatch)
    config.trainer.block_size = 4  # changes no number, but what a block is
    assert essence(run_job(config, tmp_path / "half").metrics.as_dict()) == essence(whole)
    killed_in(0, 2, config, tmp_path / "other", monkeypatch)
    config.seed = 1
    run_job(config, tmp_path / "other")
    assert not (tmp_path / "other" / TURN_FILE).exists()


@pytest.mark.slow
def test_an_objective_may_keep_something_with_the_weights(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = MarginObjective.__init__

    def with_buffer(self: MarginObjective, **settings: Any) -> None:
        begin(self, **settings)
        self.register_buffer("kept", torch.ones(3))

    monkeypatch.setattr(MarginObjective, "__init__", with_buffer)
    config = tiny_config(*QUICK, "em=none")
    whole = run_job(config, tmp_path / "whole").metrics.as_dict()
    killed_in(0, 2, config, tmp_path / "half", monkeypatch)
    assert essence(run_job(config, tmp_path / "half").metrics.as_dict()) == essence(whole)


def test_short_trainings_write_none(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("written")

    monkeypatch.setattr(training_loop, "save_turn", refused)
    run_job(tiny_config("data.num_entities=100", "em=none"), tmp_path)


@pytest.mark.parametrize("damage", ["other links", "other weights", "no state"])
def test_a_damaged_one_is_reported_in_a_sentence(
    damage: str, tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(*QUICK, "em=none")
    state = killed_in(0, 2, config, tmp_path, monkeypatch)
    tensors, plain = dict(state.tensors), dict(state.plain)
    if damage == "other links":
        tensors["links"] = tensors["links"] + 10_000
    elif damage == "other weights":
        tensors = {name: value[:1].clone() for name, value in tensors.items() if value.dim()}
        tensors["links"] = state.tensors["links"]
    elif damage == "no state":
        del plain["num_steps"]
    training_loop.save_turn(tmp_path / TURN_FILE, 0, TurnState(tensors, plain))
    with pytest.raises(DataError, match=f"Delete {TURN_FILE}"):
        run_job(config, tmp_path)


@pytest.mark.parametrize("damage", ["other bytes", "one bit"])
def test_a_damaged_one_is_named_and_not_used(
    damage: str,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = tiny_config(*QUICK, "em=none")
    whole = run_job(config, tmp_path / "whole").metrics.as_dict()
    killed_in(0, 2, config, tmp_path / "half", monkeypatch)
    path = tmp_path / "half" / TURN_FILE
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(b"nothing of ours" if damage == "other bytes" else bytes(content))
    resumed = run_job(config, tmp_path / "half", resumes=True).metrics.as_dict()
    assert f"{TURN_FILE} is not a valid checkpoint of emea" in caplog.text
    assert "Resuming from the checkpoint before it instead." in caplog.text
    assert essence(resumed) == essence(whole)
