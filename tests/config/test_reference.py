"""The page of all settings, and the one home of their defaults."""

import runpy
from pathlib import Path

import pytest

from emea.config.composition import option_names, required_groups

DOCS = Path(__file__).resolve().parents[2] / "docs"
GENERATOR = runpy.run_path(str(DOCS / "configuration_page.py"))
options_page, read_option = GENERATOR["options_page"], GENERATOR["read_option"]


def test_the_page_is_current() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert text == options_page(), (
        "python docs/configuration_page.py > docs/configuration.md"
    )


OPTIONS = [
    (group, option) for group in required_groups() for option in option_names(group)
]


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_an_option_sets_only_what_differs(group: str, option: str) -> None:
    found = read_option(group, option)
    for key, value in found.values.items():
        if key in found.settings:
            assert value != found.settings[key].default, key
