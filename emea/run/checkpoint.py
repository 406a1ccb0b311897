"""Checkpoints: all state of a run, in a format that is safe to load from strangers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from emea.em.em_callback import EMCallback
from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule
from emea.errors import DataError
from emea.matching.matching import Matching
from emea.record.atomic import json_object, write_atomic
from emea.record.run_folder import CHECKPOINT_FILE
from emea.training.training_state import (
    TURN_FILE,
    TurnState,
    below,
    labels_and_generators,
    prefixed,
    restore_generators,
    restore_labels,
)

PREVIOUS_FILE = f"previous-{CHECKPOINT_FILE}"

CONTENT_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
)
"""Errors that missing or malformed content of a file can raise."""


class Progress(NamedTuple):
    """How far a run has come.

    Args:
        num_stages: Fits that are done.
        plain: What its observer has seen, as plain values.
        arrays: The same as arrays.
    """

    num_stages: int
    plain: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def save_checkpoint(
    path: Path,
    module: AlignmentModule,
    data: LabelDataModule,
    em: EMCallback,
    progress: Progress | None = None,
) -> None:
    """Write weights, labels, EM state and random generators, atomically.

    The previous checkpoint is kept next to it: a run that is killed after its last fit, before its
    records are written, does that fit again.

    Args:
        path: The file.
        module: Whose weights.
        data: Whose labels.
        em: Whose state.
        progress: How far the run has come; ``None`` after its last fit.
    """
    tensors = labels_and_generators(data) | prefixed("module.", module.state_dict())
    plain: dict[str, Any] = {
        "num_steps_done": module.num_steps_done,
        "seed": torch.initial_seed(),
        "losses": module.losses,
        "em": {},
    }
    if progress is not None:
        plain["progress"] = {
            "num_stages": progress.num_stages,
            "observer": progress.plain,
        }
        for name, array in progress.arrays.items():
            tensors[f"observer.{name}"] = torch.from_numpy(array)
    for name, value in em.state_dict().items():
        if isinstance(value, Tensor):
            tensors[f"em.{name}"] = value
        else:
            plain["em"][name] = value
    content = _serialised(tensors, plain)
    if path.exists():
        path.replace(path.with_name(PREVIOUS_FILE))
    write_atomic(path, content)
    path.with_name(TURN_FILE).unlink(missing_ok=True)


def save_turn(path: Path, stage: int, state: TurnState) -> None:
    """Write how far a stage's training has come, atomically."""
    write_atomic(path, _serialised(state.tensors, state.plain | {"stage": stage}))


def load_turn(path: Path, stage: int) -> TurnState | None:
    """How far the training of this stage had come; ``None``: that is not known."""
    if not path.exists():
        return None
    tensors, plain = _read(path)
    # a kill between the end of a stage and the next checkpoint leaves one of the stage before
    return TurnState(tensors, plain) if plain.get("stage") == stage else None


def resumable(folder: Path) -> Path | None:
    """The latest checkpoint of a run's folder after which a fit was to come."""
    for path in (folder / CHECKPOINT_FILE, folder / PREVIOUS_FILE):
        if path.exists() and load_progress(path) is not None:
            return path
    return None


def load_progress(path: Path) -> Progress | None:
    """How far the run of a checkpoint had come; ``None``: to the end of its last fit."""
    tensors, plain = _read(path)
    saved = plain.get("progress")
    if saved is None:
        return None
    with checkpoint_errors(path):
        arrays = {name: value.numpy() for name, value in below(tensors, "observer.").items()}
        progress = Progress(saved["num_stages"], saved["observer"], arrays)
        if not isinstance(progress.num_stages, int) or progress.num_stages < 1:
            raise ValueError(f"{progress.num_stages} stages cannot be done")
    return progress


def save_matching(path: Path, matching: Matching, module: AlignmentModule | None) -> None:
    """Write a baseline's matching, and the weights of its encoder where it has one."""
    tensors = {"pairs": matching.pairs(), "probs": matching.probs[matching.sources]}
    if module is not None:
        tensors |= prefixed("module.", module.state_dict())
    write_atomic(path, _serialised(tensors, {}))


def load_checkpoint(
    path: Path, module: AlignmentModule, data: LabelDataModule, em: EMCallback
) -> None:
    """Put a run back where the checkpoint left it.

    Raises:
        DataError: If the file is damaged, or of another model or pair of graphs.
    """
    tensors, plain = _read(path)
    with checkpoint_errors(path):
        _restore_module(module, tensors, plain, generators=True)
        module.losses = [(int(step), float(loss)) for step, loss in plain.get("losses", ())]
        restore_labels(tensors, data)
        em.load_state_dict({**plain["em"], **below(tensors, "em.")})


def load_weights(path: Path, module: AlignmentModule, data: LabelDataModule) -> None:
    """Take over the weights of a first training, to start another run from them.

    Only of a training on the same links: other links, a different split's or an EM's labels,
    would reach into this run unseen. The random generators come along if the seed is the same.

    Raises:
        DataError: If the file is damaged, or of another model or training.
    """
    tensors, plain = _read(path)
    with checkpoint_errors(path):
        if not torch.equal(tensors["links"], data.links):
            raise DataError(
                f"{path} was trained on other links (another split, or after EM): a run can only "
                "start from a first training (em=none) on its own training links"
            )
        same_seed = plain["seed"] == torch.initial_seed()
        _restore_module(module, tensors, plain, generators=same_seed)


@contextmanager
def checkpoint_errors(path: Path) -> Iterator[None]:
    """Report missing or malformed content of a checkpoint as one error.

    Raises:
        DataError: If the content of the file is damaged or belongs to another program.
    """
    try:
        yield
    except CONTENT_ERRORS as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise DataError(f"{path} is not a checkpoint of this program ({problem})") from error


def _serialised(tensors: dict[str, Tensor], plain: dict[str, Any]) -> bytes:
    separate: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        value = tensor.detach().cpu().contiguous()
        # safetensors refuses tensors that share memory, such as one parameter with two names
        is_shared = value.untyped_storage().data_ptr() in storages
        separate[name] = value.clone() if is_shared else value
        storages.add(separate[name].untyped_storage().data_ptr())
    return save(separate, metadata={"state": json.dumps(plain)})


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with checkpoint_errors(path), safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata() or {}
        return tensors, json_object(metadata["state"].encode())


def _restore_module(
    module: AlignmentModule, tensors: dict[str, Tensor], plain: dict[str, Any], generators: bool
) -> None:
    try:
        module.load_state_dict(below(tensors, "module."))
    except RuntimeError as error:
        raise DataError("the checkpoint is of another model or pair of graphs") from error
    module.num_steps_done = int(plain["num_steps_done"])
    if generators:
        restore_generators(tensors)
