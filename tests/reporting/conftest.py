"""The recorded runs of this repository: thousands of files, read once for all tests."""

import pytest

from emea.reporting.records import RecordedRun, load_studies
from emea.reporting.studies import EXPERIMENTS


@pytest.fixture(scope="session")
def committed_runs() -> list[RecordedRun]:
    """The runs of all studies, to be read only."""
    return load_studies(EXPERIMENTS)
