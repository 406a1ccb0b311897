"""Runs whose entities are suggested."""

import pytest

from ..finished_runs import Finished, finished_in


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Makes the run of a kind, once."""
    return finished_in(tmp_path_factory.mktemp("suggested"))
