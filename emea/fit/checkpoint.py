"""Checkpoints of a run, in a format that is safe to load from untrusted sources."""

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import torch
from torch import Tensor

from emea.em.em_callback import EMCallback
from emea.errors import DataError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.step_block import LabelDataModule
from emea.fit.tensor_file import checkpoint_errors, copied, read_tensors, serialised
from emea.fit.training_state import (
    TURN_FILE,
    TurnState,
    below,
    labels_and_generators,
    prefixed,
    restore_generators,
    restore_labels,
)
from emea.matching.beliefs import Matching
from emea.record.atomic import write_atomic
from emea.record.background_writer import BackgroundWriter
from emea.record.run_folder import CHECKPOINT_FILE

logger = logging.getLogger(__name__)

PREVIOUS_FILE = f"previous-{CHECKPOINT_FILE}"


class Progress(NamedTuple):
    """Holds the progress of a run.

    Args:
        num_stages: Number of finished stages; each encoder of an ensemble has its own.
        plain: The observer's measurements that are plain values.
        arrays: The observer's measurements that are arrays.
    """

    num_stages: int
    plain: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]

    @property
    def num_points(self) -> int:
        """Number of recorded points: one for the first training and for each EM iteration."""
        return len(self.plain["history"])


def save_checkpoint(
    path: Path,
    module: AlignmentModule,
    data: LabelDataModule,
    em: EMCallback,
    progress: Progress | None = None,
    writer: BackgroundWriter | None = None,
) -> None:
    """Write weights, labels, EM state and random generators, atomically.

    The previous checkpoint is kept in the same folder. If a run is killed after its last fit but
    before its records are written, it repeats that fit.

    Args:
        path: The file.
        module: The module whose weights are saved.
        data: The data module whose labels are saved.
        em: The callback whose state is saved.
        progress: The progress of the run; ``None`` after its last fit.
        writer: Writes a copy of the state while the run continues; ``None``: write it now.
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
    write = partial(_write_checkpoint, path, copied(tensors), json.dumps(plain))
    if writer is None:
        write()
    else:
        writer.write(write)


def _write_checkpoint(path: Path, tensors: dict[str, Tensor], state: str) -> None:
    content = serialised(tensors, state)  # if this fails, no file has changed
    if path.exists():
        path.replace(path.with_name(PREVIOUS_FILE))
    write_atomic(path, content)
    path.with_name(TURN_FILE).unlink(missing_ok=True)


def save_turn(path: Path, stage: int, state: TurnState) -> None:
    """Write the state of a stage's training, atomically."""
    plain = json.dumps(state.plain | {"stage": stage})
    write_atomic(path, serialised(copied(state.tensors), plain))


def load_turn(path: Path, stage: int) -> TurnState | None:
    """Return the saved state of this stage's training; ``None`` if there is none.

    A damaged file is removed with a warning, so that the training starts from the last checkpoint.
    """
    if not path.exists():
        return None
    try:
        tensors, plain = read_tensors(path)
    except DataError as error:
        logger.warning("%s. Resuming from the checkpoint before it instead.", error)
        path.unlink()
        return None
    # if the run was killed right after a stage ended, the file belongs to that stage
    return TurnState(tensors, plain) if plain.get("stage") == stage else None


def resumable(folder: Path) -> Path | None:
    """Return the latest checkpoint in a run's folder that another fit can follow.

    If the latest checkpoint is damaged, it is removed and the previous one is used.

    Raises:
        DataError: If the only checkpoint is damaged.
    """
    latest, previous = folder / CHECKPOINT_FILE, folder / PREVIOUS_FILE
    try:
        if latest.exists() and load_progress(latest) is not None:
            return latest
    except DataError as error:
        if not previous.exists() or load_progress(previous) is None:
            raise DataError(f"{error}. Remove it to start the run from its beginning.") from error
        logger.warning("%s. Resuming from the previous checkpoint instead.", error)
        latest.unlink()  # the next checkpoint would replace the previous one by it
        latest.with_name(TURN_FILE).unlink(missing_ok=True)
    return previous if previous.exists() and load_progress(previous) is not None else None


def load_progress(path: Path) -> Progress | None:
    """Return the progress in a checkpoint; ``None`` if the run had finished its last fit."""
    tensors, plain = read_tensors(path)
    saved = plain.get("progress")
    if saved is None:
        return None
    with checkpoint_errors(path):
        arrays = {name: value.numpy() for name, value in below(tensors, "observer.").items()}
        progress = Progress(saved["num_stages"], saved["observer"], arrays)
        if not isinstance(progress.num_stages, int) or progress.num_stages < 1:
            raise ValueError(f"{progress.num_stages} stages cannot be done")
        if not isinstance(progress.plain["history"], list):
            raise ValueError("its history is not a list")
    return progress


def save_matching(path: Path, matching: Matching, module: AlignmentModule | None) -> None:
    """Write a baseline's matching, and the weights of its encoder if it has one."""
    tensors = {"pairs": matching.pairs(), "probs": matching.probs[matching.sources]}
    if module is not None:
        tensors |= prefixed("module.", module.state_dict())
    write_atomic(path, serialised(copied(tensors), "{}"))


def read_module(path: Path) -> dict[str, Tensor]:
    """Return the parameters and buffers of the encoder in a checkpoint.

    Raises:
        DataError: If the file is damaged.
    """
    tensors, _ = read_tensors(path)
    return below(tensors, "module.")


def load_checkpoint(
    path: Path, module: AlignmentModule, data: LabelDataModule, em: EMCallback
) -> None:
    """Restore the state of a run from a checkpoint.

    Raises:
        DataError: If the file is damaged, or belongs to another model or pair of graphs.
    """
    tensors, plain = read_tensors(path)
    with checkpoint_errors(path):
        _restore_module(module, tensors, plain, generators=True)
        module.restore_losses(plain.get("losses", ()))
        restore_labels(tensors, data)
        em.load_state_dict({**plain["em"], **below(tensors, "em.")})


def load_weights(path: Path, module: AlignmentModule, data: LabelDataModule) -> None:
    """Load the weights of another run's first training, to start a run from them.

    The other run must have trained on the same links. Otherwise its links, such as those of a
    different split or pseudo-labels of EM, would affect this run. If the seed is the same, the
    states of the random generators are loaded as well.

    Raises:
        DataError: If the file is damaged, or belongs to another model or training.
    """
    tensors, plain = read_tensors(path)
    with checkpoint_errors(path):
        if not torch.equal(tensors["links"], data.links):
            raise DataError(
                f"{path} was trained on other links (another split, or after EM). A run can only "
                "start from a first training (em=none) on its own training links."
            )
        same_seed = plain["seed"] == torch.initial_seed()
        _restore_module(module, tensors, plain, generators=same_seed)


def _restore_module(
    module: AlignmentModule, tensors: dict[str, Tensor], plain: dict[str, Any], generators: bool
) -> None:
    try:
        module.load_state_dict(below(tensors, "module."))
    except RuntimeError as error:
        raise DataError("the checkpoint belongs to another model or pair of graphs") from error
    module.num_steps_done = int(plain["num_steps_done"])
    if generators:
        restore_generators(tensors)
