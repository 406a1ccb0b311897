"""From config nodes to objects."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from emea.config.checks import check_config
from emea.config.instantiate import factory
from emea.errors import ConfigError
from emea.record.pair_file import load_pair
from emea.rules.rule import Composed, Rule

Configs = Callable[..., DictConfig]


def node(**values: Any) -> DictConfig:
    config = {"trust": ["builtins"], "part": {"_target_": "builtins.dict", **values}}
    part = OmegaConf.create(config).part
    assert isinstance(part, DictConfig)
    return part


def test_an_options_name_is_no_argument_unless_it_is_kept() -> None:
    assert factory(node(name="option", a=1))() == {"a": 1}
    assert factory(node(name="option", a=1), keep_name=True)() == {
        "a": 1,
        "name": "option",
    }


def test_names_of_options_composed_into_an_option_are_no_arguments_either() -> None:
    inner = {"_target_": "builtins.dict", "name": "inner", "b": 2}
    made = factory(node(name="outer", parts={"first": inner}, other={"name": "kept"}))()
    assert made == {"parts": {"first": {"b": 2}}, "other": {"name": "kept"}}


def test_classes_get_plain_values() -> None:
    made = factory(node(a=[1, 2], b={"c": [3]}))()
    assert type(made["a"]) is list
    assert type(made["b"]) is dict


def test_a_class_that_cannot_be_found_is_the_users_to_mend() -> None:
    with pytest.raises(ConfigError, match=r"builtins\.nothing cannot be used: "):
        factory(node(_target_="builtins.nothing"))


def test_the_reason_why_an_own_module_does_not_load_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_written.py").write_text("class Thing:\n    def\n")
    monkeypatch.syspath_prepend(tmp_path)
    for target, reason in (
        ("half_written.Thing", r"half_written\.py, line 2: invalid syntax"),
        ("not_there_at_all.Thing", "there is no module not_there_at_all .*PYTHONPATH"),
    ):
        config = OmegaConf.create(
            {"part": {"_target_": target}, "trust": [target.split(".")[0]]}
        )
        with pytest.raises(ConfigError, match=reason):
            factory(config.part)


def test_a_settings_name_is_no_number() -> None:
    with pytest.raises(
        ConfigError, match=r"builtins\.dict has a setting whose name is not text"
    ):
        factory(OmegaConf.create({"_target_": "builtins.dict", 0: "a.nt"}))


@pytest.mark.parametrize("part", [{"a": 1}, [1], None])
def test_a_part_must_name_a_class(part: Any) -> None:
    with pytest.raises(ConfigError, match="A part of the configuration"):
        factory(OmegaConf.create({"part": part}).part)


def test_what_is_made_must_be_what_is_needed(tiny_config: Configs) -> None:
    config = tiny_config("data._target_=emea.answer.decoding.BestAnswer")
    config.data = {"_target_": "emea.answer.decoding.BestAnswer"}
    with pytest.raises(ConfigError, match=r"BestAnswer does not give a pair of graphs"):
        load_pair(config)


def composed_rule(config: DictConfig) -> Rule:
    rule: Rule = factory(config.rule)(pair=load_pair(config), device="cpu")
    return rule


def test_a_composition_takes_the_settings_of_its_parts(tiny_config: Configs) -> None:
    changes = (
        "rule.rules.avoid_conflict.num_neighbours=3",
        "rule.rules.paris.markov_blanket=true",
    )
    rule = composed_rule(tiny_config("rule=paris_avoid_conflict", *changes))
    assert isinstance(rule, Composed)
    paris, avoid_conflict = (vars(part) for part in rule.parts)
    assert paris["markov_blanket"] is True
    assert avoid_conflict["num_neighbours"] == 3


def test_a_parts_wrong_setting_is_the_users_to_mend(tiny_config: Configs) -> None:
    config = tiny_config(
        "rule=paris_avoid_conflict", "rule.rules.avoid_conflict.mappings=all"
    )
    with pytest.raises(ConfigError, match="must be one of best, expected"):
        check_config(config)
