"""Lets the GPU tests run on a machine that lacks packages which they do not need.

A machine with a GPU is often bare: it has torch, Lightning, scipy and pytest, but neither Hydra nor
MLflow. ``python -m pytest -m gpu`` tests the kernels, encoders and fits there, and skips whole
runs.
"""

import importlib.util
from collections.abc import Generator

import pytest

REQUIRED = (
    "anyascii",
    "hydra",
    "hypothesis",
    "mlflow",
    "numba",
    "omegaconf",
    "pandas",
    "pyoxigraph",
    "rich",
    "safetensors",
    "sklearn",
    "yaml",
)
"""Packages that emea requires and such a machine may lack."""


def missing_packages() -> list[str]:
    """Return the required packages that are not installed."""
    return [name for name in REQUIRED if importlib.util.find_spec(name) is None]


class SkippedFiles:
    """With ``-m gpu``, skips the files that cannot be imported because a package is missing.

    Other tests need all packages: for them, a missing one is an error.

    It is a plugin, because pytest does not ask a ``conftest.py`` about folders below whose own
    ``conftest.py`` fails.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if not report.failed:
            return report
        error = report.call.excinfo.value  # type: ignore[attr-defined]
        # pytest keeps the error of a conftest.py in an attribute, and that of a file as the cause
        cause = getattr(error, "cause", None) or error.__cause__
        if isinstance(cause, ImportError):
            reason = f"Skipped: {', '.join(missing_packages())} not installed"
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 1, reason)
            del report.call  # type: ignore[attr-defined]
        return report


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr == "gpu" and missing_packages():
        config.pluginmanager.register(SkippedFiles())
