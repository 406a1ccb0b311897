"""The page of all settings, and the one home of their defaults."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf

from emea.config.files import option_names, required_groups
from emea.config.option_table import options_page
from emea.config.overrides import composed
from emea.config.schema import register_schema

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == options_page(), "python -m emea.config.option_table > docs/configuration.md"


@pytest.mark.parametrize(
    "row",
    [
        "| `em.ridge` | `0.01` | a number above 0 | ours: keeps weights finite where",
        "| `em.sampling` | `argmax` | argmax, sample | paper section 4.5",
        "| `model.encoder.dims` | `[500, 400, 300]` |  | OpenEA: input and two layers |",
        "weights are taken |",
    ],
)
def test_a_row_has_default_range_and_meaning(row: str) -> None:
    assert row in options_page()


OTHER_DEFAULTS = {
    *(("data", "name"), ("data", "download")),  # each data set has its own
    *(("optimizer", "alpha"), ("optimizer", "eps")),  # a class of torch's, with torch's defaults
    *(("encoder", "depth"), ("encoder", "self_weight"), ("encoder", "whitening")),  # as released
    ("training", "turns"),  # 0 is supervised, which the class is without settings
}
"""Arguments whose default in code is not that of each option, and why."""


def defined(node: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
    """Every node of a config that names a class of ours, with its last key."""
    if not isinstance(node, dict):
        return []
    found = [(place, node)] if str(node.get("_target_")).startswith("emea.") else []
    return found + [one for key, value in node.items() for one in defined(value, str(key))]


@pytest.mark.parametrize("group", required_groups())
def test_a_default_in_code_does_not_contradict_its_file(group: str) -> None:
    register_schema()
    for option in option_names(group):
        config = composed([f"{group}={option}"])
        settings = OmegaConf.to_container(config[group], resolve=False)
        for place, node in defined(settings, group):
            signature = inspect.signature(get_object(node["_target_"]))
            for name, argument in signature.parameters.items():
                value, default = node.get(name), argument.default
                if name not in node or default is argument.empty or "${" in str(value):
                    continue
                if (place, name) not in OTHER_DEFAULTS:
                    given = list(default) if isinstance(default, tuple) else default
                    assert value == given, (option, place, name)
