"""Settings as objects choose the same as their text on the command line."""

from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from omegaconf import OmegaConf

import emea
from emea import (
    AliNetModelSettings,
    BothRules,
    ComposedRuleSettings,
    DualSettings,
    HungarianSettings,
    LightEASettings,
    OneToOneSettings,
    ParisRuleSettings,
    RREAModelSettings,
    SemiSettings,
    SimilarLiteralsSettings,
    StoppingSettings,
    TwoWaySettings,
)
from emea.config.composition import composed
from emea.config.groups import GROUPS
from emea.config.typed_choices import choice
from emea.errors import ConfigError

TYPED = ("model", "em", "rule", "literals", "training", "decoding")
"""Groups whose settings the Python API takes as objects."""


def composed_choice(group: str, given: object) -> Any:
    option, values = choice(group, given)
    found = composed([f"{group}={option}", "data=files", *values])[group]
    return OmegaConf.to_container(found, resolve=True)


@pytest.mark.parametrize("group", TYPED)
def test_defaults_of_an_object_are_those_of_its_option(group: str) -> None:
    for name, schema in GROUPS[group].schemas.items():
        assert composed_choice(group, schema()) == composed_choice(group, name)


@pytest.mark.parametrize(
    ("group", "given", "overrides"),
    [
        ("model", LightEASettings(dim=7), ["model=lightea", "model.encoder.dim=7"]),
        (
            "model",
            RREAModelSettings(early_stopping=StoppingSettings(every=5, held_out=0.2)),
            [
                "model=rrea",
                "model.early_stopping={every: 5, patience: 2, start: 0, held_out: 0.2}",
            ],
        ),
        (
            "model",
            AliNetModelSettings(early_stopping=None),
            ["model=alinet", "model.early_stopping=null"],
        ),
        ("em", OneToOneSettings(iterations=3), ["em=one_to_one", "em.iterations=3"]),
        (
            "em",
            DualSettings(two_way=TwoWaySettings(sweeps=1, features=("noisy_or",))),
            ["em=dual", "em.two_way.sweeps=1", "em.two_way.features=[noisy_or]"],
        ),
        (
            "rule",
            ComposedRuleSettings(BothRules(paris=ParisRuleSettings(True))),
            ["rule=paris_avoid_conflict", "rule.rules.paris.markov_blanket=true"],
        ),
        ("training", SemiSettings(turns=2), ["training=semi", "training.turns=2"]),
        (
            "decoding",
            HungarianSettings(unmatched_prob=0.2),
            ["decoding=hungarian", "decoding.unmatched_prob=0.2"],
        ),
    ],
)
def test_an_object_means_its_overrides(
    group: str, given: object, overrides: list[str]
) -> None:
    expected = composed([*overrides, "data=files"])[group]
    assert composed_choice(group, given) == OmegaConf.to_container(
        expected, resolve=True
    )


@pytest.mark.parametrize(
    "text", ["plain", "it's", "a\\'b", "end\\", "{x, y}: [z]", "a=b", '"', "null", "3"]
)
def test_texts_arrive_unchanged(text: str) -> None:
    found = composed_choice("literals", SimilarLiteralsSettings(dictionary=text))
    assert found["dictionary"] == text


@pytest.mark.parametrize("given", [None, 3, DualSettings(), LightEASettings])
def test_other_objects_are_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="model must be the name of an option or its"):
        choice("model", given)


def test_every_class_of_these_settings_is_public() -> None:
    found = [schema for group in TYPED for schema in GROUPS[group].schemas.values()]
    for schema in found:
        assert getattr(emea, schema.__name__) is schema
        found += [
            type(one.default)
            for one in fields(schema)
            if is_dataclass(one.default) and type(one.default) not in found
        ]
    assert len(found) > 25
