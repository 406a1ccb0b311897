"""Fixtures of the matching tests."""

import pytest

from emea.matching import similarity


@pytest.fixture(params=[1, 100, 2**26], ids=["row by row", "few rows", "all rows"])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Memory of a block, from one row of scores at a time to all at once."""
    monkeypatch.setitem(similarity.BLOCK_BYTES, "cpu", request.param)
    return int(request.param)
