"""The table of variants that run by default names tests that exist."""

import re
from pathlib import Path

import pytest

from .conftest import VARIANTS

FILES = list(Path(__file__).parent.rglob("test_*.py"))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_limit_on_variants_is_that_of_a_test(name: str) -> None:
    file, _, function = name.partition("::")
    texts = [path.read_text(encoding="utf-8") for path in FILES if path.name == file]
    assert any(re.search(rf"^def {function}\(", text, re.MULTILINE) for text in texts)
