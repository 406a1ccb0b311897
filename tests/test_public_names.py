"""What the API page documents can be imported from the package, and its examples run."""

import ast
import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import emea

ROOT = Path(__file__).resolve().parents[1]

MODULES_WITH_EXAMPLES = (
    *("emea.data.sources.library_inputs", "emea.data.protocol", "emea.encoders.rrea"),
    *("emea.rules.paris", "emea.em.normaliser", "emea.evaluation.ranks"),
    *("emea.answer.decoding", "emea.matching.beliefs"),
    *("emea.encoders.alinet", "emea.encoders.dual_amn", "emea.encoders.iptranse"),
    *("emea.encoders.light_ea", "emea.rules.avoid_conflict", "emea.matching.csls"),
    *("emea.data.formats.graph_file", "emea.data.formats.link_file"),
    "emea.data.formats.own_formats",
)


def documented() -> list[str]:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    return re.findall(r"^::: (\S+)$", page, re.MULTILINE)


def test_the_api_page_shows_public_names() -> None:
    others = {"emea.testing.check_encoder", "emea.testing.check_rule"}
    assert set(documented()) == {f"emea.{name}" for name in emea.__all__} | others


def test_public_names_are_loaded_from_their_modules() -> None:
    for name in emea.__all__:
        value = getattr(emea, name)
        assert value is getattr(import_module(emea._HOMES[name]), name)
        assert value.__module__ == emea._HOMES[name] and value.__name__ == name
    assert set(emea._HOMES) == set(emea.__all__) <= set(dir(emea))
    with pytest.raises(AttributeError, match="has no attribute 'Alinger'"):
        _ = emea.Alinger  # type: ignore[attr-defined]


def test_type_checkers_see_the_public_names() -> None:
    tree = ast.parse((ROOT / "emea" / "__init__.py").read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == emea._HOMES


@pytest.mark.parametrize("name", MODULES_WITH_EXAMPLES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted and not result.failed
