"""The page of all settings, and the one home of their defaults."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf

from emea.config.composition import composed, option_names, required_groups
from emea.config.reference import options_page, read_option

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == options_page(), "python -m emea.config.reference > docs/configuration.md"


@pytest.mark.parametrize(
    "row",
    [
        "| `em.ridge` | `0.01` | a number above 0 and at most 1,000,000 | strength of the prior",
        "| `em.sampling` | `argmax` | one of argmax, sample | argmax: take the most",
        "| `model.encoder.dims` | `[500,400,300]` | a list of whole numbers from 1 to 16,384 |",
        "| `trainer.accelerator` | `gpu` | one of auto, cpu, gpu | device",
        "| `data.folder` | `dbp15k/zh_en` | text | folder",
        "| `em.patience` | `null` | a whole number from 1 to 10,000 or null | stop after",
    ],
)
def test_a_row_has_default_range_and_meaning(row: str) -> None:
    assert row in options_page()


OPTIONS = [(group, option) for group in required_groups() for option in option_names(group)]


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_an_option_sets_only_what_differs(group: str, option: str) -> None:
    found = read_option(group, option)
    for key, value in found.values.items():
        if key in found.settings:
            assert value != found.settings[key].default, key


def nodes(config: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
    """Every node of a config that names a class of ours, with its key."""
    if not isinstance(config, dict):
        return []
    found = [(place, config)] if str(config.get("_target_")).startswith("emea.") else []
    return found + [one for key, value in config.items() for one in nodes(value, f"{place}.{key}")]


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_a_default_in_code_is_that_of_the_schema(group: str, option: str) -> None:
    settings = read_option(group, option).settings
    for place, node in nodes(OmegaConf.to_container(composed([f"{group}={option}"])[group]), group):
        for name, argument in inspect.signature(get_object(node["_target_"])).parameters.items():
            one = settings.get(f"{place}.{name}")
            if one is None or argument.default is argument.empty or "${" in str(one.default):
                continue
            default = argument.default
            assert one.default == (list(default) if isinstance(default, tuple) else default), (
                one.key
            )
