"""Runs with an ensemble: stages, restarts, checkpoints and answers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import DictConfig
from safetensors.torch import load_file
from torch import Tensor

from emea.config.checks import check_config
from emea.config.overrides import composed
from emea.data.arrays import IntArray
from emea.encoders.step_block import LabelDataModule
from emea.errors import ConfigError
from emea.run import training_loop
from emea.run.job import run_job
from emea.run.stages import stages
from emea.training.training_state import TURN_FILE

Configs = Callable[..., DictConfig]
EPOCHS = ("model.initial_epochs=12", "model.epochs_per_iteration=4")
SMALL = (*EPOCHS, "em=dual", "em.iterations=2", "data.num_entities=100")


def test_each_iteration_trains_every_member(tiny_config: Configs) -> None:
    plan = stages(
        tiny_config(*EPOCHS, "em.iterations=1", "ensemble=seeds", "ensemble.num_members=2")
    )
    assert [(stage.member, stage.num_epochs, stage.is_last) for stage in plan] == [
        (0, 12, False),
        (1, 12, True),
        (0, 4, False),
        (1, 4, True),
    ]


def test_models_keep_their_own_schedules(tiny_config: Configs) -> None:
    plan = stages(tiny_config(*EPOCHS, "em.iterations=1", "ensemble=models"))
    assert [stage.num_epochs for stage in plan] == [12, 20, 1, 4, 20, 1]
    without = stages(
        tiny_config(*EPOCHS, "em.iterations=0", "ensemble=models", "ensemble.models.lightea=null")
    )
    assert [stage.member for stage in without] == [0, 1]


@pytest.mark.parametrize(
    ("overrides", "restarted"),
    [
        (("em.restart_every=2",), {(2, 0), (4, 0)}),
        (("em.restart_every=1", "ensemble=seeds"), {(1, 0), (2, 1), (3, 2), (4, 0)}),
        (("em.restart_every=2", "ensemble=seeds"), {(2, 0), (4, 1)}),
        ((), set()),
    ],
)
def test_members_restart_in_turn(
    overrides: tuple[str, ...], restarted: set[tuple[int, int]], tiny_config: Configs
) -> None:
    plan = stages(tiny_config(*EPOCHS, "em.iterations=4", *overrides))
    num_members = 1 + max(stage.member for stage in plan)
    found = {
        (number // num_members, stage.member) for number, stage in enumerate(plan) if stage.restart
    }
    assert found == restarted
    assert all(stage.num_epochs == (12 if stage.restart else 4) for stage in plan[num_members:])


def test_a_run_with_several_encoders(tiny_config: Configs, tmp_path: Path) -> None:
    config = tiny_config(*SMALL, "ensemble=seeds", "ensemble.num_members=2", "em.restart_every=1")
    metrics = run_job(config, tmp_path).metrics.as_dict()
    assert [entry["epochs"] for entry in metrics["history"]] == [24, 16, 16]
    weights = load_file(tmp_path / "checkpoint.safetensors")
    members = [weights[f"module.encoder.members.{number}.entities"] for number in (0, 1)]
    assert members[0].shape == members[1].shape and not members[0].equal(members[1])
    assert float(weights["module.encoder.weights"].sum()) == pytest.approx(1)
    assert metrics["final"]["hit@1"] > 0.5


@pytest.mark.parametrize(
    ("shared_fits", "are_own"), [pytest.param(0, 3, marks=pytest.mark.slow), (1, 1)]
)
def test_independent_members_have_their_own_labels_but_in_shared_fits(
    shared_fits: int,
    are_own: int,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    relabel, seen = LabelDataModule.relabel_members, []

    def watched(data: LabelDataModule, labels: Sequence[tuple[IntArray, Tensor | None]]) -> None:
        seen.append([{tuple(link) for link in links.tolist()} for links, _ in labels])
        relabel(data, labels)

    monkeypatch.setattr(LabelDataModule, "relabel_members", watched)
    members = ("ensemble=independent", "ensemble.num_members=2", "em.iterations=2")
    config = tiny_config(*SMALL, *members, f"ensemble.shared_fits={shared_fits}")
    metrics = run_job(config, tmp_path).metrics.as_dict()
    # the labels of fits 1 and 2, and those that a third fit would have
    assert [first != second for first, second in seen] == [n < are_own for n in range(3)]
    weights = load_file(tmp_path / "checkpoint.safetensors")
    links = [weights[f"member_links.{number}"] for number in (0, 1)]
    assert torch.equal(*links) == bool(shared_fits)
    assert metrics["final"]["hit@1"] > 0.5
    assert metrics["history"][-1]["joint"]["hit@1"] == metrics["final"]["hit@1"]


class KilledError(Exception):
    """Raised in place of a kill signal."""


@pytest.mark.parametrize("ensemble", ["independent", "seeds"])
def test_a_run_killed_in_a_later_member_ends_as_if_never_stopped(
    ensemble: str, tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = (*SMALL, f"ensemble={ensemble}", "ensemble.num_members=2", "em.iterations=1")
    overrides += ("model.initial_epochs=4", "model.epochs_per_iteration=4")
    config = tiny_config(*overrides, "trainer.checkpoint_minutes=0", "trainer.block_size=2")
    whole = run_job(config, tmp_path / "whole").metrics.as_dict()
    save, saved = training_loop.save_turn, []

    def save_and_die(path: Path, stage: int, state: Any) -> None:
        save(path, stage, state)
        saved.append(stage)
        if stage == 3:  # the second member of the first iteration
            raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(training_loop, "save_turn", save_and_die)
        run_job(config, tmp_path / "half")
    assert (tmp_path / "half" / TURN_FILE).exists() and saved[-1] == 3
    resumed = run_job(config, tmp_path / "half").metrics.as_dict()
    assert resumed["final"] == whole["final"]
    assert (tmp_path / "half" / "alignment.tsv").read_bytes() == (
        tmp_path / "whole" / "alignment.tsv"
    ).read_bytes()


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["training=semi"], "training=sup"),
        (["model=alinet"], "model.early_stopping=null"),
        (["initial_from=some.safetensors"], "initial_from"),
        (["method=paris"], "ensemble=none"),
    ],
)
def test_what_an_ensemble_cannot_do_is_said(overrides: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_config(composed(["ensemble=seeds", *overrides]))


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["em=paper"], "em=one_to_one"),
        (["em=dual", "em.iterations=0"], "em.iterations above 0"),
        (["em=dual", "em.two_way.fused_answer=false"], "fused_answer=true"),
        (["em=dual", "em.two_way.memory=0.5"], "memory=0"),
    ],
)
def test_what_independent_encoders_cannot_do_is_said(overrides: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_config(composed(["ensemble=independent", *overrides]))
    check_config(composed(["ensemble=independent", "em=one_to_one"]))


def test_settings_of_other_models_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"ensemble\.models\.lightea\.encoder\.depth must be"):
        check_config(composed(["ensemble=models", "ensemble.models.lightea.encoder.depth=0"]))
