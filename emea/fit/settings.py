"""Settings of the first training, of early stopping and of the trainer."""

from dataclasses import dataclass
from typing import Any

from emea.setting import EPOCHS, SHARE_BELOW_ONE, Range, setting, up_to


@dataclass(frozen=True)
class StoppingSettings:
    """Early stopping of a training on the validation links."""

    every: int = setting(
        10, "epochs between evaluations on the validation links", EPOCHS
    )
    patience: int = setting(
        2, "evaluations without a new best before training stops", EPOCHS
    )
    start: int = setting(
        0, "epochs before the first evaluation", up_to(1_000_000, least=0)
    )
    held_out: float = setting(
        0.0,
        "share of the training links that the encoder is not trained on and that stop it; 0: the "
        "validation links stop it",
        SHARE_BELOW_ONE,
        source="ours; 0.2 in the released runners of AliNet and IPTransE",
    )


TURNS = up_to(10_000, least=0)

EPOCHS_PER_TURN = 100
"""Epochs after each addition of mined pairs, for models without a number of their own."""


@dataclass(frozen=True)
class SupervisedSettings:
    """A first training on the labelled links only."""

    turns: int = setting(0, "additions of mined pairs in the first training", TURNS)


@dataclass(frozen=True)
class SemiSettings:
    """A first training that also learns from its own mutual nearest pairs."""

    turns: int = setting(
        4,
        "additions of mined pairs in the first training; all pairs are kept",
        TURNS,
        source="released EMEA",
    )
    epochs_per_turn: int = setting(
        f"${{oc.select:model.epochs_per_turn,{EPOCHS_PER_TURN}}}",
        "epochs after each addition; by default the model's own number",
        EPOCHS,
        source="released EMEA: 100",
    )


@dataclass(frozen=True)
class TrainerSettings:
    """The device and Lightning's settings (docs/lightning.md)."""

    accelerator: str = setting(
        "auto", "device; auto takes a GPU if there is one", ("auto", "cpu", "gpu")
    )
    block_size: int = setting(
        50,
        "optimisation steps of a Lightning batch, which costs overhead once",
        up_to(1_000_000),
    )
    cuda_graph: bool = setting(
        True, "replay the step as one CUDA graph (only on a GPU)"
    )
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
        True,
        "refuse a run whose estimated memory does not fit; false: only warn (docs/scale.md)",
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
