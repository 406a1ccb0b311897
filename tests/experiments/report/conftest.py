"""The recorded runs of this repository, read once for all tests."""

import pandas as pd
import pytest

from emea.results.recorded_run import RecordedRun
from experiments.archive.study import EXPERIMENTS
from experiments.report.records import load_studies
from experiments.report.run_table import run_table


@pytest.fixture(scope="session")
def committed_runs() -> list[RecordedRun]:
    """The runs of all studies; tests must not change them."""
    return load_studies(EXPERIMENTS)


@pytest.fixture(scope="session")
def committed_table(committed_runs: list[RecordedRun]) -> pd.DataFrame:
    """The table of these runs; tests must not change it."""
    return run_table(committed_runs)
