"""Declarations of settings and the values that they allow."""

import re
from dataclasses import dataclass, is_dataclass
from math import inf, nan
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from emea.config.checks import value_problems
from emea.config.composition import composed, group_names, option_names, required_groups
from emea.config.groups import GROUPS, declared
from emea.run.settings import RunSettings
from emea.setting import Range, plain, setting, settings_of, typed


@dataclass(frozen=True)
class Inner:
    share: float = setting(0.5, "a share", Range(0, 1))


@dataclass(frozen=True)
class Example:
    count: int = setting(3, "a count", Range(1))
    size: float = setting(0.1, "a size", Range(0, above=True))
    part: float | None = setting(None, "a part", Range(0, 1, above=True, below=True))
    most: float = setting(0.5, "below one", Range(0, 1, below=True))
    limited: int = setting(2, "a limited count", Range(1, 1000))
    on: bool = setting(False, "a switch")
    word: str = setting("red", "a colour", ("red", "blue"))
    name: str = setting("x", "free text")
    widths: tuple[int, ...] = setting((1, 2), "widths", Range(1))
    words: tuple[str, ...] = setting(("red",), "colours", ("red", "blue"))
    inner: Inner = Inner()
    other: Inner | None = setting(None, "a group", example="{share: 0.1}")


BY_KEY = {one.key: one for one in settings_of(Example, "a.")}


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("count", [1, 7, 10**30], [0, -1, 1.0, 1.5, True, "1", None, [1]]),
        ("size", [1e-9, 3], [0, -1, inf, nan, "x", None, True]),
        ("part", [0.5, None], [0, 1, 1.0, "0.5"]),
        ("most", [0, 0.999], [1, 1.0, -0.1, nan]),
        ("limited", [1, 1000], [0, 1001, 2.0]),
        ("on", [True, False], [0, 1, "true", None]),
        ("word", ["red", "blue"], ["green", 3, None, ["red"]]),
        ("name", ["", "any"], [3, None, ["x"]]),
        ("widths", [[], [1], [3, 4]], [3, [0], [1.5], ["x"], None, [[1]]]),
        ("words", [[], ["blue", "red"]], ["red", ["green"], [3], None]),
        ("inner", [{}, {"share": 1}], [None, 3, []]),
        ("inner.share", [0, 1], [2, None]),
        ("other", [None, {}], [3, "x"]),
        ("other.share", [0, 1], [2, None]),
    ],
)
def test_what_a_setting_allows(
    name: str, inside: list[Any], outside: list[Any]
) -> None:
    one = BY_KEY[f"a.{name}"]
    assert [value for value in inside if one.problem(value)] == []
    assert [value for value in outside if not one.problem(value)] == []


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "count",
            "x",
            "a.count must be a whole number of at least 1 (such as 3), got x",
        ),
        (
            "limited",
            10**6,
            "a.limited must be a whole number from 1 to 1,000, got 1000000",
        ),
        ("part", 1, "a.part must be a number above 0 and below 1, got 1"),
        ("word", "green", "a.word must be one of red, blue, got green"),
        (
            "widths",
            3,
            "a.widths must be a list of whole numbers of at least 1 (such as [1,2]), got 3",
        ),
        (
            "other",
            3,
            "a.other must be null or a group of settings (such as {share: 0.1}), got 3",
        ),
    ],
)
def test_the_sentence_names_key_and_allowed_values(
    name: str, value: Any, sentence: str
) -> None:
    assert BY_KEY[f"a.{name}"].problem(value) == sentence


def test_defaults_are_plain_containers() -> None:
    expected = {
        "count": 3,
        "size": 0.1,
        "part": None,
        "most": 0.5,
        "limited": 2,
        "on": False,
    }
    expected |= {"word": "red", "name": "x", "widths": [1, 2], "words": ["red"]}
    assert plain(Example()) == expected | {"inner": {"share": 0.5}, "other": None}
    assert typed(plain(Example())["widths"]) == "[1,2]"


SCHEMAS = [
    RunSettings,
    *(schema for group in GROUPS.values() for schema in group.schemas.values()),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.__name__)
def test_a_declaration_is_complete(schema: type) -> None:
    for one in settings_of(schema):
        assert one.kind in (int, float, bool, str, list, dict), one.key
        assert one.help or (
            one.kind is dict and is_dataclass(dict_of(schema, one.key))
        ), one.key
        if one.kind in (int, float) or one.item in (int, float):
            assert isinstance(one.allowed, Range), one.key
            assert one.allowed.most < inf, one.key
        problem = one.problem(one.default)
        assert problem is None or "${" in str(one.default) or one.default == "???", (
            problem
        )


def dict_of(schema: type, key: str) -> Any:
    """The default of a group of settings within a schema."""
    value: Any = schema()
    for name in key.split("."):
        value = getattr(value, name)
    return value


def test_counts_have_an_upper_limit() -> None:
    """A mistyped count is refused before it fills the memory."""
    unlimited = {
        one.key
        for schema in SCHEMAS
        for one in settings_of(schema)
        if one.kind is int
        and isinstance(one.allowed, Range)
        and one.allowed.most == inf
    }
    assert unlimited == set()


def test_groups_are_those_of_the_configuration() -> None:
    assert sorted(GROUPS) == group_names()


def test_a_key_has_one_declaration_for_each_option_of_that_name() -> None:
    (ratio,) = declared("ratio", "0.05")
    assert [one.key for one in ratio] == ["ratio.value"]
    by_rrea = {one.key for variants in declared("model", "rrea") for one in variants}
    assert "model.objective.scale" not in by_rrea
    of_all = {one.key for variants in declared("model", "my_model") for one in variants}
    assert {"model.objective.scale", "model.encoder.dims"} | by_rrea <= of_all


@pytest.fixture(scope="module")
def options() -> list[DictConfig]:
    """Configs of which each option of each group is in one."""
    groups = {group: option_names(group) for group in required_groups()}
    rounds = range(max(map(len, groups.values())))
    return [
        composed(
            [f"{group}={names[i % len(names)]}" for group, names in groups.items()]
        )
        for i in rounds
    ]


def leaves(node: Any, prefix: str) -> set[str]:
    if not isinstance(node, dict):
        return {prefix.removesuffix(".")}
    own = {f"{prefix}name"} if not prefix.startswith("data.") else set()
    found = {
        key for name, value in node.items() for key in leaves(value, f"{prefix}{name}.")
    }
    return {key for key in found if not key.endswith(("._target_", "._partial_"))} - own


def test_every_value_of_an_option_is_declared(options: list[DictConfig]) -> None:
    """A setting in a YAML file needs a field in the settings.py of its package."""
    for config in options:
        values = OmegaConf.to_container(config, resolve=False)
        assert isinstance(values, dict)
        known = {one.key for one in settings_of(RunSettings)}
        for group in GROUPS:
            known |= {one.key for two in declared(group, None) for one in two}
        found = {
            key
            for key in leaves(values, "")
            if not key.endswith(".name") or "data" in key
        }
        # the models of an ensemble have the settings of the group model
        found = {re.sub(r"^ensemble\.models\.\w+\.", "model.", key) for key in found}
        assert found - known == set()


def test_every_declaration_belongs_to_an_option(options: list[DictConfig]) -> None:
    missing = object()
    unknown = {
        variants[0].key
        for group in GROUPS
        for variants in declared(group, None)
        if all(
            OmegaConf.select(one, variants[0].key, default=missing) is missing
            for one in options
        )
    }
    assert unknown == set()


def test_every_option_has_allowed_values(options: list[DictConfig]) -> None:
    assert [problem for config in options for problem in value_problems(config)] == []
