"""The contract of docs/add_encoder.md: what an encoder may return, and what is refused."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig

from emea.errors import UserError
from emea.fit import training_loop
from emea.fit.alignment_module import AlignmentModule
from emea.run.finished_run import load_run
from emea.run.job import run_job
from emea.run.resuming import config_to_resume

from .test_resuming import essence, killed_after

Configs = Callable[..., DictConfig]
Make = Callable[..., DictConfig]

EM = {
    "none": ("em=none", "rule=none"),
    "paper": ("em.iterations=2",),
    "dual": ("em=dual", "em.iterations=1"),
}
RIGHT = [
    *(("Plain", em) for em in EM),
    *((encoder, "dual") for encoder in ("Tied", "View", "Double", "Half")),
]
SHORT = (
    "data.num_entities=100",
    "model.initial_epochs=3",
    "model.epochs_per_iteration=2",
)


@pytest.fixture
def make(tiny_config: Configs, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A short run with one of our own encoders."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))

    def config(encoder: str, *overrides: str) -> DictConfig:
        made = tiny_config(*SHORT, "trust=[own_encoders]", *overrides)
        made.model.encoder = {"_target_": f"own_encoders.{encoder}"}
        return made

    return config


@pytest.mark.parametrize(("encoder", "em"), RIGHT)
def test_what_an_encoder_may_return(
    encoder: str, em: str, make: Make, tmp_path: Path
) -> None:
    run_job(make(encoder, *EM[em]), tmp_path)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert math.isfinite(metrics["final"]["mrr"])
    assert len(load_run(tmp_path, ["own_encoders"]).labels)


def test_a_parameter_is_mined(make: Make, tmp_path: Path) -> None:
    semi = ("training=semi", "training.epochs_per_turn=1", *EM["none"])
    metrics = run_job(make("Plain", *semi), tmp_path).metrics
    assert metrics["history"][0]["epochs"] > 3


@pytest.mark.parametrize(
    "encoder", ["Plain", pytest.param("Tied", marks=pytest.mark.slow)]
)
def test_a_run_with_a_parameter_is_resumed(
    encoder: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make(encoder, *EM["paper"])
    whole = run_job(config, tmp_path / "whole").metrics
    killed_after(2, config, tmp_path / "half", monkeypatch)
    again = config_to_resume(tmp_path / "half")
    again.trust = ["own_encoders"]
    assert essence(run_job(again, tmp_path / "half", resumes=True).metrics) == essence(
        whole
    )


def test_embeddings_do_not_change_when_training_continues(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    embeddings = AlignmentModule.embeddings

    def keep(module: AlignmentModule) -> tuple[torch.Tensor, torch.Tensor]:
        source, target = embeddings(module)
        kept.append((source, source.clone()))
        return source, target

    monkeypatch.setattr(AlignmentModule, "embeddings", keep)
    run_job(make("Plain", "em.iterations=2"), tmp_path)
    assert len(kept) > 1
    assert not torch.equal(kept[0][0], kept[1][0])
    assert all(torch.equal(now, then) and not now.requires_grad for now, then in kept)


RETURNS = r"\.forward\(\) must return a floating-point tensor .*, here \[200, width\], "
WRONG = {
    "TooFew": f"{RETURNS}but it returned a tensor of shape \\[199, 8\\]",
    "TooMany": f"{RETURNS}but it returned a tensor of shape \\[400, 8\\]",
    "Flat": f"{RETURNS}but it returned a tensor of shape \\[200\\]",
    "Cube": f"{RETURNS}but it returned a tensor of shape \\[200, 1, 8\\]",
    "Empty": f"{RETURNS}but it returned a tensor of shape \\[200, 0\\]",
    "Pair": f"{RETURNS}but it returned a value of type tuple",
    "Array": f"{RETURNS}but it returned a value of type ndarray",
    "Nothing": f"{RETURNS}but it returned a value of type NoneType",
    "Whole": f"{RETURNS}but it returned a tensor of type torch.int64",
    "Sparse": f"{RETURNS}but it returned a sparse tensor of type torch.float32",
    "Detached": r"\.forward\(\) returned embeddings without a gradient",
    "NaN": r"\.forward\(\) returned NaN or infinite embeddings after step 0",
    "Infinite": r"\.forward\(\) returned NaN or infinite embeddings after step 0",
    "Asking": r"\.forward\(\) must accept a call without arguments: missing .* 'entities'",
}


@pytest.mark.parametrize("encoder", WRONG)
def test_what_an_encoder_may_not_return(
    encoder: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[object] = []
    monkeypatch.setattr(
        training_loop, "save_checkpoint", lambda *args, **named: saved.append(args)
    )
    with pytest.raises(UserError, match=f"^{encoder}{WRONG[encoder]}"):
        run_job(make(encoder, "em=none", "rule=none"), tmp_path)
    assert not saved
    assert not (tmp_path / "metrics.json").exists()


def test_an_encoder_must_be_a_module(make: Make, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"^model\.encoder must be a torch\.nn\.Module, got Bare"
    ):
        run_job(make("Bare", "em=none", "rule=none"), tmp_path)
    assert not (tmp_path / "metrics.json").exists()
