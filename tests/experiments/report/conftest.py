"""The recorded runs of this repository, read once for all tests."""

import pytest

from emea.results.recorded_run import RecordedRun
from experiments.archive.study import EXPERIMENTS
from experiments.report.records import load_studies


@pytest.fixture(scope="session")
def committed_runs() -> list[RecordedRun]:
    """The runs of all studies; tests must not change them."""
    return load_studies(EXPERIMENTS)
