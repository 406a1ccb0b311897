"""State as tensors with names: what checkpoints of a stage and of the midst of one share."""

from collections.abc import Mapping

import torch
from torch import Tensor

from emea.encoders.step_block import LabelDataModule

LINKS, LINK_WEIGHTS, RANDOM_CPU, RANDOM_CUDA = "links", "link_weights", "random.cpu", "random.cuda"


def labels_and_generators(data: LabelDataModule) -> dict[str, Tensor]:
    """The current labels, and where the random generators stand."""
    tensors = {LINKS: data.links, RANDOM_CPU: torch.get_rng_state()}
    if data.weights is not None:
        tensors[LINK_WEIGHTS] = data.weights
    if torch.cuda.is_available():
        tensors[RANDOM_CUDA] = torch.cuda.get_rng_state()
    return tensors


def restore_labels(tensors: Mapping[str, Tensor], data: LabelDataModule) -> None:
    """Go on with the labels of an earlier time."""
    data.restore(tensors[LINKS], tensors.get(LINK_WEIGHTS))


def restore_generators(tensors: Mapping[str, Tensor]) -> None:
    """Let the random generators go on from there."""
    torch.set_rng_state(tensors[RANDOM_CPU])
    if RANDOM_CUDA in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors[RANDOM_CUDA])


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same under names that begin so."""
    return {f"{prefix}{name}": value for name, value in tensors.items()}


def below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin so, under the rest of them."""
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
