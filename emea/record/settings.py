"""Settings of the tracker."""

from dataclasses import dataclass

from emea.setting import NOT_NEGATIVE, setting

DEFAULT_STORE = "sqlite:///mlflow.db"

DEFAULT_ARTIFACT_ROOT = "mlruns"


@dataclass(frozen=True)
class MlflowSettings:
    """Recording in the run folder and in MLflow."""

    uri: str = setting(
        f'${{oc.env:MLFLOW_TRACKING_URI,"{DEFAULT_STORE}"}}',
        "address of the MLflow store; a relative path starts at the current folder",
    )
    artifact_root: str = setting(
        DEFAULT_ARTIFACT_ROOT,
        "folder for the files of new experiments; MLflow fixes it on creation",
    )
    patience_seconds: float = setting(
        60.0,
        "total time that a run waits for the store when it starts and ends (docs/mlflow.md)",
        NOT_NEGATIVE,
        source="ours",
    )
