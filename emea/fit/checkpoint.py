"""Checkpoints of a run, in a format that is safe to load from untrusted sources."""

import json
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import torch
from torch import Tensor

from emea.errors import DataError
from emea.fit.alignment_module import AlignmentModule, Loss
from emea.fit.step_block import LabelDataModule, Labels
from emea.fit.tensor_file import checkpoint_errors, copied, read_tensors, serialised
from emea.fit.training_parts import TrainingParts
from emea.matching.beliefs import Matching
from emea.matching.many_matching import ManyMatching
from emea.record.checked_files import BackgroundWriter, write_atomic
from emea.record.file_names import CHECKPOINT_FILE

logger = logging.getLogger(__name__)

PREVIOUS_FILE = f"previous-{CHECKPOINT_FILE}"
LINKS, LINK_WEIGHTS, RANDOM_CPU, RANDOM_CUDA = (
    "links",
    "link_weights",
    "random.cpu",
    "random.cuda",
)
MEMBER_LINKS, MEMBER_WEIGHTS = "member_links.", "member_link_weights."


class Progress(NamedTuple):
    """Holds the progress of a run.

    Args:
        num_stages: Number of finished stages; each encoder of an ensemble has its own.
        plain: The observer's measurements that are plain values. Their history has an entry for
            the first training and for each EM iteration.
        arrays: The observer's measurements that are arrays.
    """

    num_stages: int
    plain: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def save_checkpoint(
    path: Path,
    parts: TrainingParts,
    progress: Progress | None = None,
    writer: BackgroundWriter | None = None,
) -> None:
    """Write weights, labels, EM state and random generators, atomically.

    The previous checkpoint is kept in the same folder. If a run is killed after its last fit but
    before its records are written, it repeats that fit.

    Args:
        path: The file.
        parts: The module, the labels and the callback whose state is saved.
        progress: The progress of the run; ``None`` after its last fit.
        writer: Writes a copy of the state while the run continues; ``None``: write it now.
    """
    module = parts.module
    tensors = {LINKS: parts.data.links, RANDOM_CPU: torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors[RANDOM_CUDA] = torch.cuda.get_rng_state()
    tensors |= _label_tensors(parts.data) | prefixed("module.", module.state_dict())
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
    for name, value in parts.em.state_dict().items():
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


def resumable(folder: Path) -> Path | None:
    """Return the latest checkpoint in a run's folder that another fit can follow.

    If the latest checkpoint is damaged, it is removed and the previous one is used.

    Raises:
        DataError: If the only checkpoint is damaged.
    """
    latest = folder / CHECKPOINT_FILE
    previous = folder / PREVIOUS_FILE
    try:
        if latest.exists() and load_progress(latest) is not None:
            return latest
    except DataError as error:
        if not previous.exists() or load_progress(previous) is None:
            raise DataError(
                f"{error}. Remove it to start the run from its beginning."
            ) from error
        logger.warning("%s. Resuming from the previous checkpoint instead.", error)
        latest.unlink()  # the next checkpoint would replace the previous one by it
    return (
        previous if previous.exists() and load_progress(previous) is not None else None
    )


def load_progress(path: Path) -> Progress | None:
    """Return the progress in a checkpoint; ``None`` if the run had finished its last fit."""
    tensors, plain = read_tensors(path)
    saved = plain.get("progress")
    if saved is None:
        return None
    with checkpoint_errors(path):
        arrays = {
            name: value.numpy() for name, value in below(tensors, "observer.").items()
        }
        progress = Progress(saved["num_stages"], saved["observer"], arrays)
        if not isinstance(progress.num_stages, int) or progress.num_stages < 1:
            raise ValueError(f"{progress.num_stages} stages cannot be done")
        if not isinstance(progress.plain["history"], list):
            raise ValueError("its history is not a list")
    return progress


def save_matching(
    path: Path, matching: Matching | ManyMatching, module: AlignmentModule | None
) -> None:
    """Write a baseline's matching, and the weights of its encoder if it has one."""
    tensors = {"pairs": matching.pairs(), "probs": matching.pair_probs()}
    if module is not None:
        tensors |= prefixed("module.", module.state_dict())
    write_atomic(path, serialised(copied(tensors), "{}"))


def load_checkpoint(path: Path, parts: TrainingParts) -> None:
    """Restore the state of a run from a checkpoint.

    Raises:
        DataError: If the file is damaged, or belongs to another model or pair of graphs.
    """
    tensors, plain = read_tensors(path)
    with checkpoint_errors(path):
        _restore_module(parts.module, tensors, plain, generators=True)
        parts.module.losses = [
            Loss(int(step), float(value), str(metric))
            for step, value, metric in plain.get("losses", ())
        ]
        _restore_labels(tensors, parts.data)
        parts.em.load_state_dict({**plain["em"], **below(tensors, "em.")})


def load_weights(path: Path, parts: TrainingParts) -> None:
    """Load the weights of another run's first training, to start a run from them.

    The other run must have trained on the same links. Otherwise its links, such as those of a
    different split or pseudo-labels of EM, would affect this run. If the seed is the same, the
    states of the random generators are loaded as well.

    Raises:
        DataError: If the file is damaged, or belongs to another model or training.
    """
    tensors, plain = read_tensors(path)
    with checkpoint_errors(path):
        if not torch.equal(tensors["links"], parts.data.links):
            raise DataError(
                f"{path} was trained on other links (another split, or after EM). A run can only "
                "start from a first training (em=none) on its own training links."
            )
        same_seed = plain["seed"] == torch.initial_seed()
        _restore_module(parts.module, tensors, plain, generators=same_seed)


def _restore_module(
    module: AlignmentModule,
    tensors: dict[str, Tensor],
    plain: dict[str, Any],
    generators: bool,
) -> None:
    try:
        module.load_state_dict(below(tensors, "module."))
    except RuntimeError as error:
        raise DataError(
            "the checkpoint belongs to another model or pair of graphs"
        ) from error
    module.num_steps_done = int(plain["num_steps_done"])
    if generators:
        torch.set_rng_state(tensors[RANDOM_CPU])
        if RANDOM_CUDA in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors[RANDOM_CUDA])


def _label_tensors(data: LabelDataModule) -> dict[str, Tensor]:
    """Return the weights of shared labels, or the labels of each member."""
    if len(data.member_labels) == 1:
        return {} if data.weights is None else {LINK_WEIGHTS: data.weights}
    tensors = {}
    for member, (links, weights) in enumerate(data.member_labels):
        tensors[f"{MEMBER_LINKS}{member}"] = links
        if weights is not None:
            tensors[f"{MEMBER_WEIGHTS}{member}"] = weights
    return tensors


def _restore_labels(tensors: Mapping[str, Tensor], data: LabelDataModule) -> None:
    num_members = sum(name.startswith(MEMBER_LINKS) for name in tensors)
    labels = [
        Labels(
            tensors[f"{MEMBER_LINKS}{member}"], tensors.get(f"{MEMBER_WEIGHTS}{member}")
        )
        for member in range(num_members)
    ]
    data.restore(labels or [Labels(tensors[LINKS], tensors.get(LINK_WEIGHTS))])


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Add a prefix to the names of tensors."""
    return {f"{prefix}{name}": value for name, value in tensors.items()}


def below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Select the tensors whose names have a prefix, and remove the prefix."""
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
