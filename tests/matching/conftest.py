"""Fixtures of the matching tests."""

import pytest
from hypothesis import settings

from emea.matching import similarity

# a deadline per example measures how busy the machine is
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(params=[1, 100, 2**26], ids=["row by row", "few rows", "all rows"])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Memory of a block, from one row of scores at a time to all at once."""
    monkeypatch.setitem(similarity.BLOCK_BYTES, "cpu", request.param)
    return int(request.param)
