"""Which tests run when: variants that run by default, and the few that CI leaves out."""

import re
from pathlib import Path

import pytest

from .conftest import NIGHTLY, VARIANTS

FILES = list(Path(__file__).parent.rglob("test_*.py"))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_limit_on_variants_is_that_of_a_test(name: str) -> None:
    file, _, function = name.partition("::")
    texts = [path.read_text(encoding="utf-8") for path in FILES if path.name == file]
    assert any(re.search(rf"^def {function}\(", text, re.MULTILINE) for text in texts)


MOST_NIGHTLY = 10


def test_ci_leaves_few_tests_out(request: pytest.FixtureRequest) -> None:
    """With all files collected, this counts every test that only runs before a release."""
    nightly = request.config.stash[NIGHTLY]
    assert len(nightly) <= MOST_NIGHTLY, nightly
