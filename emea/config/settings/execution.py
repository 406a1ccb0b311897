"""Settings of the trainer and of the tracker: how to run and where to record it."""

from dataclasses import dataclass
from typing import Any

from emea.config.settings.setting import NOT_NEGATIVE, Range, setting, up_to

DEFAULT_STORE = "sqlite:///mlflow.db"
DEFAULT_ARTIFACT_ROOT = "mlruns"


@dataclass(frozen=True)
class TrainerSettings:
    """The device and Lightning's settings (docs/lightning.md)."""

    accelerator: str = setting(
        "auto", "device; auto takes a GPU if there is one", ("auto", "cpu", "gpu")
    )
    block_size: int = setting(
        50, "optimisation steps of a Lightning batch, which costs overhead once", up_to(1_000_000)
    )
    cuda_graph: bool = setting(True, "replay the step as one CUDA graph (only on a GPU)")
    half_precision: bool = setting(
        False,
        "let the edges of RREA and Dual-AMN read features and gradients in half precision in "
        "training (only on a GPU); steps are a little shorter; its effect on accuracy is not "
        "recorded",
    )
    block_memory: float = setting(
        1.0,
        "size of the blocks in which similarities and evidence are computed, relative to the "
        "usual; a run halves it when it is out of memory",
        Range(0, 1000, above=True),
    )
    memory_check: bool = setting(
        True,
        "refuse a run whose estimated memory does not fit; false: only warn (docs/scale.md)",
    )
    deterministic: bool = setting(
        False,
        "the same seed gives the same bits on a GPU, too; slower there, and all runs of the "
        "process must set it, because cuBLAS reads its settings once",
    )
    checkpoint_minutes: float = setting(
        5.0, "minutes between checkpoints of a training; each fit ends with one", NOT_NEGATIVE
    )
    callbacks: tuple[dict[str, Any], ...] | None = setting(
        (), "further Lightning callbacks", example="[{_target_:my_module.MyCallback}]"
    )
    logger: tuple[dict[str, Any], ...] | None = setting(
        (), "Lightning loggers", example="[{_target_:my_module.MyLogger}]"
    )


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
    max_artifact_mb: float = setting(
        200,
        "larger files stay in the run folder only",
        NOT_NEGATIVE,
        source="ours: keeps the store small",
    )
    flush_seconds: float = setting(
        5,
        "seconds between batches of metrics",
        NOT_NEGATIVE,
        source="ours: one call costs 7 ms, a batch hardly more",
    )
    patience_seconds: float = setting(
        60,
        "seconds in total that a run waits for MLflow; later records stay in the run folder",
        NOT_NEGATIVE,
        source="ours",
    )
