"""Lightning as a run uses it: counted steps, logged losses, callbacks and loggers of others."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from omegaconf import DictConfig, OmegaConf, open_dict

from emea.config.checks import check_config
from emea.config.instantiate import untrusted_targets
from emea.config.run_config import RunConfig
from emea.config.trainer_settings import PASSED_ON, lightning_options
from emea.errors import ConfigError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_trainer import ResidentStrategy
from emea.fit.step_block import LabelDataModule
from emea.record.fingerprint import fingerprint
from emea.record.pair_file import load_pair
from emea.run.building import build_lightning
from emea.run.job import run_job

from .small_fits import fit_by, plain_trainer, small_rrea

Configs = Callable[..., DictConfig]
SHORT = (
    "data.num_entities=100",
    "model.initial_epochs=7",
    "model.epochs_per_iteration=3",
)
ENDLESS = (
    *("data.num_entities=100", "model.initial_epochs=100000"),
    "model.epochs_per_iteration=100000",
)
BLOCKS = ("trainer.block_size=2", "em.iterations=1")
LOGGERS = "pytorch_lightning.loggers"


class Watcher(pl.Callback):
    """Records what Lightning says after each block."""

    seen: list[tuple[int, float]] = []  # noqa: RUF012
    fits: list[int] = []  # noqa: RUF012

    def on_train_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule
    ) -> None:
        self.fits.append(trainer.global_step)

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        self.seen.append((trainer.global_step, float(trainer.callback_metrics["loss"])))


@pytest.fixture
def watcher() -> type[Watcher]:
    Watcher.seen, Watcher.fits = [], []
    return Watcher


def added(config: DictConfig, **settings: Any) -> DictConfig:
    with open_dict(config):
        config.trainer.update(settings)
    return config


def watched(config: DictConfig) -> DictConfig:
    config.trust = [__name__]
    return added(config, callbacks=[{"_target_": f"{__name__}.Watcher"}])


def test_global_step_counts_the_steps_of_the_run_and_losses_are_logged(
    tiny_config: Configs, tmp_path: Path, watcher: type[Watcher]
) -> None:
    metrics = run_job(watched(tiny_config(*SHORT, *BLOCKS)), tmp_path).metrics
    steps, losses = zip(*watcher.seen, strict=True)
    assert steps == (2, 4, 6, 7, 9, 10)  # 7 epochs of one step, then 3
    assert watcher.fits == [0, 7]
    assert all(loss > 0 for loss in losses)
    assert metrics["history"][-1]["iteration"] == 1


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ((), {"loss": [2, 4, 6, 7, 9, 10]}),
        (
            ("ensemble=seeds", "ensemble.num_members=2"),
            # both encoders have taken a block when their losses are logged
            {f"loss/encoder_{number}": [4, 8, 12, 14, 18, 20] for number in (1, 2)},
        ),
    ],
)
def test_a_logger_gets_the_losses_of_all_fits(
    overrides: tuple[str, ...],
    expected: dict[str, list[int]],
    tiny_config: Configs,
    tmp_path: Path,
) -> None:
    config = tiny_config(*SHORT, *BLOCKS, *overrides)
    config.trust = [LOGGERS]
    logger = {
        "_target_": f"{LOGGERS}.CSVLogger",
        "save_dir": str(tmp_path),
        "name": "csv",
    }
    run_job(added(config, logger=[logger]), tmp_path / "run")
    with (tmp_path / "csv" / "version_0" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    logged = {
        name: [int(row["step"]) for row in rows if row[name]]
        for name in rows[0]
        if name.startswith("loss")
    }
    assert logged == expected


def test_a_time_limit_ends_each_fit_and_em_still_acts(
    tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(*ENDLESS, *BLOCKS)
    metrics = run_job(added(config, max_time="00:00:00:01"), tmp_path).metrics
    assert [entry["iteration"] for entry in metrics["history"]] == [0, 1]


@pytest.mark.slow
def test_a_callback_may_end_the_run(
    tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tiny_config(*ENDLESS, *BLOCKS)
    timer = {"_target_": "pytorch_lightning.callbacks.Timer", "duration": "00:00:00:01"}
    metrics = run_job(added(config, callbacks=[timer]), tmp_path).metrics
    assert [entry["iteration"] for entry in metrics["history"]] == [0]
    assert "stopped the run before EM iteration 1" in caplog.text
    assert (tmp_path / "alignment.tsv").exists()


class Refuses(pl.Callback):
    """Stops before anything starts."""

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        trainer.should_stop = True


@pytest.mark.parametrize(
    ("overrides", "stopped"),
    [
        ((), "first training"),
        # LightEA has its own fits, so EM waits for the second one
        (
            ("ensemble=seeds", "ensemble.num_members=2", "model=lightea"),
            "first training, encoder 2",
        ),
    ],
)
def test_a_callback_that_stops_the_first_training_is_named(
    overrides: tuple[str, ...], stopped: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(*SHORT, *overrides)
    config.trust = [__name__]
    with pytest.raises(
        ConfigError, match=f"stopped the {stopped} before its first step"
    ):
        run_job(
            added(config, callbacks=[{"_target_": f"{__name__}.Refuses"}]), tmp_path
        )


@pytest.mark.parametrize(
    "name", ["gradient_clip_val", "max_epochs", "devices", "precision", "colour"]
)
def test_settings_without_an_effect_are_refused(
    name: str, tiny_config: Configs
) -> None:
    with pytest.raises(
        ConfigError, match=f"trainer.{name} has no effect: .*docs/lightning.md"
    ):
        check_config(added(tiny_config(), **{name: 1}))


def test_settings_with_an_effect_are_arguments_of_lightning(
    tiny_config: Configs,
) -> None:
    given = {"max_time": "00:01:00:00", "log_every_n_steps": 3, "detect_anomaly": True}
    config = added(tiny_config(), **given, limit_train_batches=4)
    check_config(config)
    assert set(lightning_options(config.trainer)) == set(PASSED_ON)
    trainer = build_lightning(RunConfig.of(config).lightning).trainer(
        [], accelerator="cpu"
    )
    assert (trainer.log_every_n_steps, trainer.limit_train_batches) == (3, 4)
    assert any(
        isinstance(callback, pl.callbacks.Timer) for callback in trainer.callbacks
    )


def test_a_value_that_lightning_refuses_is_one_sentence(tiny_config: Configs) -> None:
    config = added(tiny_config(), max_time="soon")
    with pytest.raises(
        ConfigError, match=r"Lightning does not accept trainer.max_time"
    ):
        build_lightning(RunConfig.of(config).lightning).trainer([], accelerator="cpu")


@pytest.mark.parametrize("value", [3, "Timer", ["Timer"]])
def test_callbacks_are_a_list_of_classes(value: Any, tiny_config: Configs) -> None:
    config = tiny_config()
    config.trainer.callbacks = value
    with pytest.raises(
        ConfigError, match=r"trainer\.callbacks must be a list of classes"
    ):
        check_config(config)


def test_what_is_not_a_callback_is_refused(tiny_config: Configs) -> None:
    optimizer = {"_target_": "emea.matching.search.ExactSearch"}
    config = added(tiny_config(), callbacks=[optimizer])
    with pytest.raises(ConfigError, match="ExactSearch, which is not a Callback"):
        build_lightning(RunConfig.of(config).lightning)


@pytest.mark.parametrize(
    ("target", "is_trusted"),
    [
        ("pytorch_lightning.callbacks.Timer", True),
        ("pytorch_lightning.callbacks.DeviceStatsMonitor", True),
        ("pytorch_lightning.callbacks.ModelCheckpoint", False),
        ("pytorch_lightning.callbacks.Timer.load_state_dict", False),
        (f"{LOGGERS}.CSVLogger", False),
        (f"{__name__}.Watcher", False),
    ],
)
def test_what_may_write_files_needs_trust(
    target: str, is_trusted: bool, tiny_config: Configs
) -> None:
    config = added(tiny_config(), callbacks=[{"_target_": target}])
    assert (not list(untrusted_targets(config))) is is_trusted


def test_what_may_change_numbers_changes_the_fingerprint(tiny_config: Configs) -> None:
    pair = load_pair(tiny_config())
    usual = fingerprint(tiny_config(), pair)
    timer = {"_target_": "pytorch_lightning.callbacks.Timer"}
    assert fingerprint(added(tiny_config(), logger=[timer]), pair) == usual
    assert fingerprint(added(tiny_config(), callbacks=[timer]), pair) != usual
    assert fingerprint(added(tiny_config(), max_time="00:01:00:00"), pair) != usual
    older = tiny_config()
    OmegaConf.set_struct(older, False)
    del older.trainer.callbacks, older.trainer.logger
    assert fingerprint(older, pair) == usual


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_replayed_steps_are_counted(
    tiny_config: Configs, tmp_path: Path, watcher: type[Watcher]
) -> None:
    run_job(watched(tiny_config("trainer=gpu", *SHORT, *BLOCKS)), tmp_path)
    assert [step for step, _ in watcher.seen] == [2, 4, 6, 7, 9, 10]


LINKS = np.array([[0, 0], [1, 1], [2, 2]])


@pytest.fixture
def make_module(make_pair: Any) -> Callable[[], AlignmentModule]:
    return lambda: small_rrea(make_pair())


class Reader(pl.Callback):
    """Reads what the documentation promises of the Lightning module."""

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        source, target = pl_module.embeddings()
        self.found = (
            len(source),
            len(target),
            pl_module.num_steps_done,
            pl_module.encoder,
        )


def test_callbacks_see_the_encoder_and_its_embeddings(
    make_module: Callable[[], AlignmentModule],
) -> None:
    module, reader = make_module(), Reader()
    fit_on(module, reader)
    assert reader.found == (9, 10, 7, module.encoder)


class Watched(pl.Callback):
    """Keeps the optimiser of the last fit."""

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.optimizer = trainer.optimizers[0]
        assert self.optimizer.state


def fit_on(module: AlignmentModule, watched: pl.Callback, **chosen: Any) -> None:
    data = LabelDataModule(LINKS, num_source=9, block_size=3)
    data.num_steps = 7
    fit_by(plain_trainer(devices=1, callbacks=[watched], **chosen), module, data)


def test_fits_are_those_of_lightnings_strategy(
    make_module: Callable[[], AlignmentModule],
) -> None:
    results, watched = [], Watched()
    for resident in (False, True):
        module = make_module()
        for _ in range(2):
            strategy = ResidentStrategy(torch.device("cpu")) if resident else "auto"
            fit_on(module, watched, strategy=strategy)
        results.append(module.encoder.state_dict())
    assert not watched.optimizer.state
    for name, weights in results[0].items():
        assert torch.equal(weights, results[1][name]), name
