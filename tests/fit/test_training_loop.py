"""Stages of a run: what each trains on, from which weights, for how long."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig
from safetensors.torch import load_file

from emea.config.run_config import RunConfig
from emea.record.pair_file import load_pair
from emea.run.building import draw_split
from emea.run.em_run import stages
from emea.run.job import run_job

from ..small_runs import make_parts

Configs = Callable[..., DictConfig]

EPOCHS = ("model.initial_epochs=12", "model.epochs_per_iteration=4")
STOPPING = "model.early_stopping={every:2,patience:1}"


def history(folder: Path) -> list[dict]:
    entries: list[dict] = json.loads((folder / "metrics.json").read_text())["history"]
    return entries


def links(folder: Path) -> torch.Tensor:
    return load_file(folder / "checkpoint.safetensors")["links"]


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ((), [(12, 0, False), (4, 0, False), (4, 0, False)]),
        (("model.restart=true",), [(12, 0, False), (12, 0, True), (12, 0, True)]),
        (("training=semi",), [(12, 4, False), (4, 0, False), (4, 0, False)]),
        (("initial_from=file",), [(0, 0, False), (4, 0, False), (4, 0, False)]),
        (("em=none",), [(12, 0, False)]),
    ],
)
def test_stages(
    overrides: tuple[str, ...],
    expected: list[tuple[int, int, bool]],
    tiny_config: Configs,
) -> None:
    iterations = () if "em=none" in overrides else ("em.iterations=2",)
    plan = stages(RunConfig.of(tiny_config(*EPOCHS, *iterations, *overrides)))
    assert [
        (stage.num_epochs, stage.num_turns, stage.restart) for stage in plan
    ] == expected


def test_a_restart_draws_new_weights_from_the_seed(tiny_config: Configs) -> None:
    drawn = []
    for seed in (0, 0, 1):
        parts = make_parts(tiny_config(f"seed={seed}"))
        weights = [parts.module.encoder.entities.detach().clone()]
        for _ in range(2):
            before = parts.module.encoder
            parts.restart()
            assert parts.module.encoder is not before
            assert parts.module.encoder.training
            weights.append(parts.module.encoder.entities.detach().clone())
        drawn.append(weights)
    assert all(torch.equal(*pair) for pair in zip(drawn[0], drawn[1], strict=True))
    assert not torch.equal(drawn[0][2], drawn[2][2])
    for one, other in ((0, 1), (1, 2), (0, 2)):
        assert not torch.equal(drawn[0][one], drawn[0][other])


@pytest.mark.slow
def test_iterations_train_again(tiny_config: Configs, tmp_path: Path) -> None:
    options = (
        "em.iterations=2",
        "model.initial_epochs=8",
        "model.epochs_per_iteration=8",
    )
    results = []
    for name, restart in (("on", "false"), ("anew", "true"), ("again", "true")):
        run_job(tiny_config(*options, f"model.restart={restart}"), tmp_path / name)
        results.append((tmp_path / name / "checkpoint.safetensors").read_bytes())
        assert [entry["epochs"] for entry in history(tmp_path / name)] == [8, 8, 8]
    assert results[1] != results[0]
    assert results[1] == results[2]


def test_semi_supervised_training_adds_labels(
    tiny_config: Configs, tmp_path: Path
) -> None:
    options = ("em=none", "training.turns=2", "training.epochs_per_turn=5")
    options += ("model.initial_epochs=30",)
    run_job(tiny_config("training=semi", *options), tmp_path)
    (entry,) = history(tmp_path)
    assert entry["epochs"] == 40
    num_train = json.loads((tmp_path / "metrics.json").read_text())["num_links"][
        "train"
    ]
    mined = links(tmp_path)[num_train:]
    assert len(mined) > 10
    assert len(mined.unique()) == mined.numel()


def test_em_replaces_mined_labels(tiny_config: Configs, tmp_path: Path) -> None:
    options = (
        *EPOCHS,
        "em.iterations=1",
        "training=semi",
        "training.epochs_per_turn=2",
    )
    run_job(tiny_config(*options), tmp_path)
    entries = history(tmp_path)
    assert [entry["epochs"] for entry in entries] == [20, 4]
    # every unlabelled source entity has one label, by q*
    sources = links(tmp_path)[:, 0]
    assert sorted(sources.tolist()) == list(range(150))


def test_early_stopping_ends_fits_and_keeps_the_best(
    tiny_config: Configs, tmp_path: Path
) -> None:
    options = ("em.iterations=1", "model.initial_epochs=300", "model.restart=true")
    run_job(tiny_config(*options, STOPPING), tmp_path)
    entries = history(tmp_path)
    assert all(entry["epochs"] < 300 and entry["epochs"] % 2 == 0 for entry in entries)
    # the same epochs without a look: patience went by after the best
    best = entries[0]["epochs"] - 2
    run_job(tiny_config("em=none", f"model.initial_epochs={best}"), tmp_path / "best")
    assert history(tmp_path / "best")[0]["neural"] == entries[0]["neural"]


@pytest.mark.slow
def test_held_out_links_stop_the_encoder(tiny_config: Configs, tmp_path: Path) -> None:
    stopping = "model.early_stopping={every:2,patience:1,held_out:0.2}"
    options = (
        "em=none",
        "model.initial_epochs=300",
        "training=semi",
        "training.turns=1",
    )
    run_job(tiny_config(*options, stopping, "split.num_validation=0"), tmp_path)
    (entry,) = history(tmp_path)
    assert entry["epochs"] < 300
    config = tiny_config("split.num_validation=0")
    train = torch.from_numpy(
        draw_split(RunConfig.of(config), load_pair(config)).supervision.train.copy()
    )
    num_trained = int(torch.isin(links(tmp_path)[:, 0], train[:, 0]).sum())
    assert (
        num_trained == len(train) - len(train) // 5
    )  # the others are neither trained nor mined


@pytest.mark.slow
def test_early_stopping_and_turns_work_together(
    tiny_config: Configs, tmp_path: Path
) -> None:
    options = ("em=none", "model.initial_epochs=300", "training=semi", STOPPING)
    run_job(tiny_config(*options), tmp_path)
    (entry,) = history(tmp_path)
    assert 10 <= entry["epochs"] < 300
    assert len(links(tmp_path)) > 40
