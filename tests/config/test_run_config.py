"""The configuration of a run: complete as typed settings, and checked once."""

import logging
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from emea.config import checks
from emea.config.checks import check_config
from emea.config.composition import composed
from emea.config.instantiate import Option
from emea.config.run_config import RunConfig
from emea.config.unknown_settings import unknown_keys, without_unknown
from emea.errors import ConfigError
from emea.rules.avoid_conflict import AvoidConflict

WITH_STOPPING = ["model.early_stopping={every: 10, patience: 2}"]


def changed(overrides: list[str], key: str) -> DictConfig:
    config = composed(overrides)
    OmegaConf.update(config, key, 1, force_add=True)
    return config


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ([], "sed"),
        ([], "export.treshold"),
        ([], "em.iteration"),
        (["em=dual"], "em.iteration"),
        ([], "model.epochs"),
        (WITH_STOPPING, "model.early_stopping.patince"),
        (["ensemble=models", "em=dual"], "ensemble.models.lightea.epochs"),
        ([], "split.foo"),
        ([], "ratio.valeu"),
        ([], "method.labels"),
        ([], "training.trns"),
        ([], "ensemble.member"),
    ],
)
def test_keys_that_nothing_reads_are_refused(overrides: list[str], key: str) -> None:
    check_config(composed(overrides))
    with pytest.raises(ConfigError, match=rf"^{key} is unknown: nothing reads it"):
        check_config(changed(overrides, key))
    with pytest.raises(ConfigError, match=rf"^{key} is unknown: nothing reads it"):
        RunConfig.of(changed(overrides, key))


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(ConfigError, match=r"\(nearest: split\.num_validation\b"):
        check_config(changed([], "split.num_validatoin"))


def test_a_class_of_the_user_checks_its_own_settings() -> None:
    config = changed([], "split.own_share")
    config.split._target_ = "my_module.my_split"
    assert unknown_keys(config) == []


def test_options_of_the_user_may_have_further_keys() -> None:
    config = changed([], "model.own_width")
    config.model.name = "my_encoder"
    assert unknown_keys(config) == []


def test_unknown_keys_of_earlier_runs_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = changed([], "export.gone")
    OmegaConf.update(config, "older", 2, force_add=True)
    with caplog.at_level(logging.WARNING):
        known = without_unknown(config, Path("run/config.yaml"))
    (message,) = caplog.messages
    assert message.endswith("they are ignored: older, export.gone.")
    assert "older" in config and unknown_keys(known) == []
    assert OmegaConf.to_container(known) == OmegaConf.to_container(composed([]))
    assert without_unknown(known, Path("run/config.yaml")) is known


def test_a_run_config_has_plain_values_only() -> None:
    settings = RunConfig.of(composed(["rule=avoid_conflict", "em=dual", "seed=3"]))
    assert settings.own.seed == 3 and settings.uses("em")
    assert settings.uses_two_way and settings.answers_jointly
    assert settings.name("rule") == "avoid_conflict"
    assert settings.setting("rule", "num_neighbours") == 5
    assert settings.setting("rule", "absent") is None
    options = [*settings.options.values(), settings.models[0].encoder]
    assert not any(isinstance(one.values, DictConfig) for one in options)
    with pytest.raises(ConfigError, match="no schedules"):
        settings.option("schedules")


def test_an_option_makes_the_object_of_its_class() -> None:
    values = {"name": "mine", "_target_": "emea.rules.avoid_conflict.AvoidConflict"}
    option = Option.of({**values, "mappings": "best"})
    assert option.factory().args[0] is AvoidConflict
    with pytest.raises(ConfigError, match="is not a group of settings: 3"):
        Option.of(3)
    with pytest.raises(ConfigError, match="names no class"):
        Option.of({"name": "mine"})()
    with pytest.raises(ConfigError, match=r"names os\.system"):
        Option.of({"_target_": "os.system"}, trust=["my_module"])()


def test_a_command_checks_its_configuration_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from emea.config import command_line
    from emea.record.run_header import Launch
    from emea.run import job

    number = []
    monkeypatch.setattr(command_line, "check_config", number.append)
    monkeypatch.setattr(job, "check_config", number.append)
    config = command_line.check_overrides(["em=none", "data.num_entities=200"])
    job.prepare(config, tmp_path, None, resumes=False, is_checked=True)
    assert len(number) == 1
    assert checks.check_config is check_config and not Launch().is_checked
