"""Settings that belong to no group, of the trainer and of the tracker."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from omegaconf import DictConfig, OmegaConf

from emea.config.settings.cardinality import Cardinality
from emea.config.settings.setting import (
    SEED,
    SHARE,
    SHARE_ABOVE_ZERO,
    Range,
    setting,
    up_to,
)

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
    kernels: str = setting(
        "auto",
        "auto: compiled kernels (numba, Triton) where they are installed; torch: only torch's "
        "operations, which shows whether a problem comes from a compiled kernel; several times "
        "slower, without CUDA graphs",
        ("auto", "torch"),
    )
    block_memory: float = setting(
        1.0,
        "size of the blocks in which similarities and evidence are computed, relative to the "
        "usual; a run halves it when it is out of memory",
        Range(0, 1000, above=True),
    )
    memory_check: bool = setting(
        True, "refuse a run whose estimated memory does not fit; false: only warn (docs/scale.md)"
    )
    deterministic: bool = setting(
        False,
        "the same seed gives the same bits on a GPU, too; slower there, and all runs of the "
        "process must set it, because cuBLAS reads its settings once",
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


VECTORS = "vectors"
"""An additional format, which only a run of an encoder can write: its embeddings."""

EXPORT_FORMATS = ("tsv", "nt", "sssom", "jsonl", "alignment")
"""File formats of an alignment."""

VOCABULARIES = ("owl", "skos")


@dataclass(frozen=True)
class ExportSettings:
    """The answer of a run and the files that hold it (docs/exports.md)."""

    formats: tuple[str, ...] = setting(
        ("tsv",),
        "file formats of the alignment; tsv is always written. vectors: the embeddings",
        (*EXPORT_FORMATS, VECTORS),
    )
    top_k: int = setting(1, "candidates of each source entity in alignment.jsonl", up_to(100_000))
    threshold: float | None = setting(
        None, "lowest probability of an answer; other source entities stay unmatched", SHARE
    )
    target_precision: float | None = setting(
        None,
        "chooses the lowest threshold at which this precision is expected over all matches",
        SHARE,
    )
    vocabulary: str = setting(
        "owl",
        "predicates of matches in N-Triples and SSSOM: owl:sameAs, owl:equivalentClass and "
        "owl:equivalentProperty, or skos:exactMatch",
        VOCABULARIES,
    )
    close_below: float | None = setting(
        None, "matches below this probability are stated as skos:closeMatch", SHARE
    )
    least_inclusion: float = setting(
        0.5,
        "lowest probability of an inclusion of relations or classes that is stated",
        SHARE_ABOVE_ZERO,
        source="ours",
    )


@dataclass(frozen=True)
class RunSettings:
    """The settings at the top level of the configuration."""

    seed: int = setting(0, "seed of weights, negatives and dropout", SEED)
    split_seed: int = setting(0, "seed of the split into train, validation and test links", SEED)
    initial_from: str | None = setting(
        None, "checkpoint of another run; its weights replace the first training"
    )
    skip_recorded: bool = setting(
        False, "skip a run that is already recorded with the same settings, data and code"
    )
    cardinality: str = setting(
        "one_to_one",
        "how many targets a source entity may have, and the reverse, in links and in the answer",
        tuple(Cardinality),
    )
    trust: tuple[str, ...] = setting(
        (), "your own modules that a configuration may name", example="[my_module]"
    )
    study: str = setting("emea", "MLflow experiment of the run")
    export: ExportSettings = ExportSettings()


CPU_SETTINGS = ("model=lightea", "em=one_to_one", "em.iterations=3")
"""LightEA needs no training: it takes minutes for 15,000 entities on two cores."""

GPU_SETTINGS = ("model=rrea", "em=one_to_one")
"""Like the settings for a CPU, the model comes first."""

INDEPENDENT = "ensemble=independent"
"""Several encoders, whose agreement makes probabilities reliable (docs/exports.md); used if neither
model nor EM is chosen."""

ON_CPU = (INDEPENDENT, "em.iterations=2", "ensemble.shared_fits=1", "ensemble.folds=true")
"""Fewer iterations, so that three LightEA take about twice as long as one; they only differ by
random numbers, so each is trained on other links."""

OF_ONE_ENCODER = {"method", "model", "em", "training", "ensemble", "initial_from"}
"""Settings that choose a method, which need not be able to use several encoders."""

LITERALS = "literals=similar"
"""Used if there are few links or none (docs/literals.md)."""

AUTO = "auto"
"""Name of the choice that fits the device, for ``model`` and ``em``."""


def fitting_settings(model: str, em: str, has_gpu: bool) -> list[str]:
    """Return overrides for a model and an EM; ``auto`` chooses them by the device.

    Further settings of the device's EM are only used if the EM is ``auto``, and several encoders
    only if both are.
    """
    own_model, *own_em = GPU_SETTINGS if has_gpu else CPU_SETTINGS
    chosen = own_model if model == AUTO else f"model={model}"
    several = ([INDEPENDENT] if has_gpu else ON_CPU) if model == em == AUTO else []
    return [chosen, *(own_em if em == AUTO else [f"em={em}"]), *several]


def with_own(usual: Sequence[str], own: Sequence[str]) -> list[str]:
    """Return the usual settings before those of the user; one encoder if these choose a method."""
    keys = {setting.lstrip("+~").partition("=")[0] for setting in own}
    several = keys.isdisjoint(OF_ONE_ENCODER) and "em.iterations=0" not in own
    return [*(usual if several else of_one_encoder(usual)), *own]


def of_one_encoder(settings: Iterable[str]) -> list[str]:
    """Return the settings without those of several encoders."""
    return [setting for setting in settings if setting not in ON_CPU]


OWN = ("name", *(one.name for one in fields(TrainerSettings)))
"""Settings that the run itself reads."""

PASSED_ON = ("max_time", "log_every_n_steps", "limit_train_batches", "detect_anomaly")
"""Arguments of ``pl.Trainer`` that have an effect here."""


def lightning_options(trainer: DictConfig) -> dict[str, Any]:
    """Return the arguments of ``pl.Trainer`` that the config sets."""
    values: Any = OmegaConf.to_container(trainer, resolve=True)
    return {key: values[key] for key in PASSED_ON if values.get(key) is not None}


def trainer_problems(config: DictConfig) -> Iterator[str]:
    """Yield a sentence for each setting under ``trainer`` that would have no effect."""
    for key in config.trainer:
        if key not in OWN and key not in PASSED_ON:
            yield (
                f"trainer.{key} has no effect: the run sets Lightning's arguments itself, except "
                f"for {', '.join(PASSED_ON)} (docs/lightning.md)"
            )
