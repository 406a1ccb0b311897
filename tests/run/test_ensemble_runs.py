"""Runs with an ensemble: stages, restarts, checkpoints and answers."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from omegaconf import DictConfig
from safetensors.torch import load_file
from torch import Tensor

from emea.config.checks import check_config
from emea.config.composition import composed
from emea.config.run_config import RunConfig, member_nodes
from emea.data.arrays import IntArray
from emea.errors import ConfigError
from emea.fit import training_loop
from emea.fit.step_block import LabelDataModule
from emea.fit.training_loop import Stage, fit_stage, fits
from emea.record.run_record import read_series
from emea.run import job
from emea.run.em_run import stages
from emea.run.job import run_job

from ..small_runs import make_parts
from .test_resuming import KilledError, essence

Configs = Callable[..., DictConfig]
EPOCHS = ("model.initial_epochs=12", "model.epochs_per_iteration=4")
SMALL = (*EPOCHS, "em=dual", "em.iterations=2", "data.num_entities=100")


def test_each_iteration_trains_every_member(tiny_config: Configs) -> None:
    plan = stages(
        RunConfig.of(
            tiny_config(
                *EPOCHS, "em.iterations=1", "ensemble=seeds", "ensemble.num_members=2"
            )
        )
    )
    assert [(stage.members, stage.num_epochs, stage.is_last) for stage in plan] == [
        ((0,), 12, False),
        ((1,), 12, True),
        ((0,), 4, False),
        ((1,), 4, True),
    ]


def test_models_keep_their_own_schedules(tiny_config: Configs) -> None:
    plan = stages(
        RunConfig.of(tiny_config(*EPOCHS, "em.iterations=1", "ensemble=models"))
    )
    assert [stage.num_epochs for stage in plan] == [12, 20, 1, 4, 20, 1]
    without = stages(
        RunConfig.of(
            tiny_config(
                *EPOCHS,
                "em.iterations=0",
                "ensemble=models",
                "ensemble.models.lightea=null",
            )
        )
    )
    assert [stage.members for stage in without] == [(0,), (1,)]


def test_a_run_with_several_encoders(tiny_config: Configs, tmp_path: Path) -> None:
    config = tiny_config(*SMALL, "ensemble=seeds", "ensemble.num_members=2")
    metrics = run_job(config, tmp_path).metrics
    assert [entry["epochs"] for entry in metrics["history"]] == [24, 8, 8]
    weights = load_file(tmp_path / "checkpoint.safetensors")
    members = [
        weights[f"module.encoder.members.{number}.entities"] for number in (0, 1)
    ]
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
    relabel, seen = LabelDataModule.relabel, []

    def watched(
        data: LabelDataModule, labels: Sequence[tuple[IntArray, Tensor | None]]
    ) -> None:
        if len(labels) > 1:  # the labels of the first fit are shared
            seen.append(
                [{tuple(link) for link in links.tolist()} for links, _ in labels]
            )
        relabel(data, labels)

    monkeypatch.setattr(LabelDataModule, "relabel", watched)
    members = ("ensemble=independent", "ensemble.num_members=2", "em.iterations=2")
    config = tiny_config(*SMALL, *members, f"ensemble.shared_fits={shared_fits}")
    metrics = run_job(config, tmp_path).metrics
    # the labels of fits 1 and 2, and those that a third fit would have
    assert [first != second for first, second, _ in seen] == [
        n < are_own for n in range(3)
    ]
    weights = load_file(tmp_path / "checkpoint.safetensors")
    links = [weights[f"member_links.{number}"] for number in (0, 1)]
    assert torch.equal(*links) == bool(shared_fits)
    assert metrics["final"]["hit@1"] > 0.5
    assert metrics["history"][-1]["joint"]["hit@1"] == metrics["final"]["hit@1"]


QUICK = ("model.initial_epochs=8", "model.epochs_per_iteration=4", "em.iterations=1")
QUICK += ("trainer.block_size=2",)


def loss_curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The recorded losses by the names of their curves."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for point in read_series(folder):
        for name, value in point.metrics.items():
            if name.startswith("loss"):
                curves.setdefault(name, []).append((point.step, value))
    return curves


@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        (
            ("ensemble=seeds",),
            {
                "loss/encoder_1": [3, 10, 14],
                "loss/encoder_2": [6, 11, 16],
                "loss/encoder_3": [9, 12, 18],
            },
        ),
        (("ensemble=seeds", "ensemble.num_members=1"), {"loss": [3, 4, 6]}),
        ((), {"loss": [3, 4, 6]}),
        # the encoders have their own fits
        (
            ("ensemble=models", "ensemble.models.dual_amn=null"),
            {"loss/encoder_1": [3, 4, 7], "loss/encoder_2": [5, 8]},
        ),
    ],
)
def test_each_encoder_has_its_own_loss_curve(
    overrides: tuple[str, ...],
    steps: dict[str, list[int]],
    tiny_config: Configs,
    tmp_path: Path,
) -> None:
    short = (
        "model.initial_epochs=4",
        "model.epochs_per_iteration=2",
        "em.iterations=1",
    )
    run_job(tiny_config(*SMALL, *short, "trainer.block_size=3", *overrides), tmp_path)
    curves = loss_curves(tmp_path)
    assert {
        name: [step for step, _ in curve] for name, curve in curves.items()
    } == steps


def assert_same_results(one: Path, other: Path) -> None:
    metrics = [
        json.loads((folder / "metrics.json").read_text()) for folder in (one, other)
    ]
    assert essence(metrics[0]) == essence(metrics[1])
    assert (one / "alignment.tsv").read_bytes() == (
        other / "alignment.tsv"
    ).read_bytes()
    left, right = (
        load_file(folder / "checkpoint.safetensors") for folder in (one, other)
    )
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert loss_curves(one) == loss_curves(other)


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param(("ensemble=independent",), marks=pytest.mark.slow),
        ("ensemble=seeds", "model.restart=true"),
    ],
)
def test_a_run_killed_in_an_iteration_ends_as_if_never_stopped(
    overrides: tuple[str, ...],
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(*SMALL, *QUICK, *overrides)
    run_job(config, tmp_path / "whole")
    train = training_loop.fit_stage

    def train_and_die(stage: Stage, *arguments: Any) -> None:
        train(stage, *arguments)
        if stage.name == "EM iteration 1":
            raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(training_loop, "fit_stage", train_and_die)
        run_job(config, tmp_path / "half")
    run_job(config, tmp_path / "half")
    assert_same_results(tmp_path / "half", tmp_path / "whole")


@pytest.mark.parametrize("ensemble", ["none", "seeds"])
def test_a_run_killed_at_its_end_records_each_point_once(
    ensemble: str, tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(*SMALL, *QUICK, f"ensemble={ensemble}", "em.iterations=2")
    run_job(config, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(job.RunResult, "write_answer", Mock(side_effect=KilledError))
        run_job(config, tmp_path / "half")
    run_job(config, tmp_path / "half")
    whole, half = (
        [(point.step, sorted(point.metrics)) for point in read_series(tmp_path / name)]
        for name in ("whole", "half")
    )
    assert half == whole
    assert_same_results(tmp_path / "half", tmp_path / "whole")


def test_all_members_of_a_joint_fit_restart(tiny_config: Configs) -> None:
    config = tiny_config(*SMALL, *QUICK, "ensemble=seeds", "model.restart=true")
    parts = make_parts(config)
    members = list(parts.module.encoder.members)
    ((_, stage),) = fits(stages(RunConfig.of(config)), 3, parts)
    fit_stage(stage, parts, torch.device("cpu"), [])
    assert all(
        old is not new
        for old, new in zip(members, parts.module.encoder.members, strict=True)
    )
    assert parts.module.num_steps_done == 3 * 8
    assert parts.em.iteration == 1  # EM runs once


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["ensemble=seeds", "training=semi"], "training=sup"),
        (["ensemble=seeds", "model=alinet"], "model.early_stopping=null"),
        (["ensemble=seeds", "initial_from=some.safetensors"], "initial_from"),
        (["ensemble=seeds", "method=paris"], "ensemble=none"),
        (["ensemble=independent", "em=paper"], "em=one_to_one"),
        (
            ["ensemble=independent", "em=dual", "em.iterations=0"],
            "em.iterations above 0",
        ),
        (
            ["ensemble=independent", "em=dual", "em.two_way.fused_answer=false"],
            "fused_answer=true",
        ),
    ],
)
def test_what_an_ensemble_cannot_do_is_said(overrides: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_config(composed(overrides))
    check_config(composed(["ensemble=independent", "em=one_to_one"]))


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ([], ["rrea", "rrea", "rrea", "lightea"]),
        (["ensemble.models.lightea=null"], ["rrea"] * 3),
        (["ensemble.models=null", "ensemble.num_members=2"], ["rrea"] * 2),
        (["model=lightea"], ["lightea"] * 3),  # no fourth one
    ],
)
def test_independent_encoders_have_a_second_model(
    overrides: list[str], names: list[str]
) -> None:
    config = composed(["ensemble=independent", "em=one_to_one", *overrides])
    check_config(config)
    assert [node.name for node in member_nodes(config)] == names


def test_settings_of_other_models_are_checked() -> None:
    with pytest.raises(
        ConfigError, match=r"ensemble\.models\.lightea\.encoder\.depth must be"
    ):
        check_config(
            composed(["ensemble=models", "ensemble.models.lightea.encoder.depth=0"])
        )
