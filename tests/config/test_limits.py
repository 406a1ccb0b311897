"""The table of what settings may be."""

from math import inf, nan

import pytest
from omegaconf import DictConfig, OmegaConf

from emea.config.files import option_names, required_groups
from emea.config.overrides import composed
from emea.config.ranges import CHOICES, LIMITS, Limit, outside_limits
from emea.config.schema import register_schema


@pytest.mark.parametrize(
    ("limit", "inside", "outside"),
    [
        (Limit(1, whole=True), [1, 7, 10**30], [0, -1, 1.0, 1.5, True, "1", None, [1]]),
        (Limit(0, above=True), [1e-9, 3], [0, -1, inf, nan, "x", None]),
        (Limit(0, 1), [0, 0.5, 1], [-1e-9, 1.0001, nan]),
        (Limit(0, 1, below=True), [0, 0.999], [1, 1.0, -0.1]),
        (Limit(0, 1, above=True, below=True), [0.5], [0, 1]),
    ],
    ids=str,
)
def test_what_a_limit_holds(limit: Limit, inside: list[object], outside: list[object]) -> None:
    assert [value for value in inside if not limit.holds(value)] == []
    assert [value for value in outside if limit.holds(value)] == []


@pytest.fixture(scope="module")
def options() -> list[DictConfig]:
    """Configs of which each option of each group is in one."""
    register_schema()
    groups = {group: option_names(group) for group in required_groups()}
    rounds = range(max(map(len, groups.values())))
    return [
        composed([f"{group}={names[i % len(names)]}" for group, names in groups.items()])
        for i in rounds
    ]


def test_every_limit_belongs_to_a_setting(options: list[DictConfig]) -> None:
    missing = object()
    unknown = {
        key
        for key in (*LIMITS, *CHOICES)
        if all(OmegaConf.select(config, key, default=missing) is missing for config in options)
    }
    # part of what may be set in the place of null
    assert unknown <= {"em.patience"} | {
        f"model.early_stopping.{name}" for name in ("every", "patience", "start")
    }


def test_every_option_is_within_the_limits(options: list[DictConfig]) -> None:
    assert [problem for config in options for problem in outside_limits(config)] == []


def test_what_lies_outside_is_named_with_what_is_allowed(options: list[DictConfig]) -> None:
    config = options[0].copy()
    config.em.num_candidates = -5
    config.em.sampling = "dice"
    assert list(outside_limits(config)) == [
        "em.num_candidates must be a whole number of at least 1, got -5",
        "em.sampling must be one of argmax, sample, got dice",
    ]
