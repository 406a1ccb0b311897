"""The state of an unfinished training, saved so that it can be resumed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from emea.errors import DataError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.early_stopping import EarlyStopping
from emea.fit.step_block import LabelDataModule, Labels
from emea.runtime.block_memory import is_out_of_memory

LINKS, LINK_WEIGHTS, RANDOM_CPU, RANDOM_CUDA = "links", "link_weights", "random.cpu", "random.cuda"
MEMBER_LINKS, MEMBER_WEIGHTS = "member_links.", "member_link_weights."


def labels_and_generators(data: LabelDataModule) -> dict[str, Tensor]:
    """Return the current labels and the states of the random generators."""
    tensors = {LINKS: data.links, RANDOM_CPU: torch.get_rng_state()}
    if data.weights is not None:
        tensors[LINK_WEIGHTS] = data.weights
    for member, (links, weights) in enumerate(data.member_labels):
        tensors[f"{MEMBER_LINKS}{member}"] = links
        if weights is not None:
            tensors[f"{MEMBER_WEIGHTS}{member}"] = weights
    if torch.cuda.is_available():
        tensors[RANDOM_CUDA] = torch.cuda.get_rng_state()
    return tensors


def restore_labels(tensors: Mapping[str, Tensor], data: LabelDataModule) -> None:
    """Restore saved labels."""
    members = range(sum(name.startswith(MEMBER_LINKS) for name in tensors))
    data.restore_members(
        [
            (tensors[f"{MEMBER_LINKS}{member}"], tensors.get(f"{MEMBER_WEIGHTS}{member}"))
            for member in members
        ]
    )
    data.restore(tensors[LINKS], tensors.get(LINK_WEIGHTS))


def restore_generators(tensors: Mapping[str, Tensor]) -> None:
    """Restore the states of the random generators."""
    torch.set_rng_state(tensors[RANDOM_CPU])
    if RANDOM_CUDA in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors[RANDOM_CUDA])


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


TURN_FILE = "training-checkpoint.safetensors"
WEIGHTS, BUFFERS, OPTIMISER, BEST = "weights.", "objective.", "optimiser.", "best."


@dataclass(frozen=True, eq=False)
class TurnState:
    """Holds the state of a turn after some blocks.

    Args:
        tensors: Weights, states of optimisers, objectives and early stopping, labels and random
            generators.
        plain: Counters and other values that JSON can store.
    """

    tensors: dict[str, Tensor]
    plain: dict[str, Any]

    @classmethod
    def of(
        cls,
        module: AlignmentModule,
        data: LabelDataModule,
        stopping: EarlyStopping | None,
        turn: int,
        num_blocks: int,
        num_epochs: float,
    ) -> "TurnState":
        """Collect the state of a module after ``num_blocks`` blocks of a turn.

        Turns are counted from 0; ``num_epochs`` counts the epochs since the last checkpoint of the
        run, which may include fits of other members of an ensemble.
        """
        tensors = labels_and_generators(data) | prefixed(WEIGHTS, module.state_dict())
        for index, (objective, _) in enumerate(module.trained()):
            # Buffers that an objective derives from the labels are not in its state_dict.
            weights = objective.state_dict()
            buffers = {key: held for key, held in objective.named_buffers() if key not in weights}
            tensors |= prefixed(f"{BUFFERS}{index}.", buffers)
        plain: dict[str, Any] = {
            "members": list(module.active_members),
            "turn": turn,
            "num_blocks": num_blocks,
            "block_size": data.block_size,
            "num_steps": data.num_steps,
            "steps_per_epoch": data.steps_per_epoch,
            "num_steps_done": module.num_steps_done,
            "num_steps_of_turn": module.num_steps_of_turn,
            "num_epochs_since_checkpoint": num_epochs,
            "losses": module.losses,
        }
        states = [optimizer.state_dict() for optimizer in module.current_optimizers()]
        plain["param_groups"] = [state["param_groups"] for state in states]
        for index, state in enumerate(states):
            for parameter, held in state["state"].items():
                tensors |= prefixed(f"{OPTIMISER}{index}.{parameter}.", _as_tensors(held))
        if stopping is not None:
            state = stopping.state_dict()
            tensors |= prefixed(BEST, state.pop("best_weights"))
            plain["stopping"] = state
        return cls(tensors, plain)

    def copied(self) -> "TurnState":
        """Copy the state to host memory, so that further training does not change it."""
        tensors = {name: held.detach().to("cpu", copy=True) for name, held in self.tensors.items()}
        return TurnState(tensors, deepcopy(self.plain))

    @property
    def turn(self) -> int:
        """Index of the turn within its fit, from 0."""
        return self._number("turn")

    @property
    def num_blocks(self) -> int:
        """Number of finished blocks of the turn."""
        return self._number("num_blocks")

    @property
    def num_steps_done(self) -> int:
        """Number of optimisation steps of the whole run so far."""
        return self._number("num_steps_done")

    def fits(self, data: LabelDataModule, members: Sequence[int]) -> bool:
        """Return whether the block size and the members of the ensemble in training are these."""
        saved = self.plain.get("block_size"), self.plain.get("members")
        return saved == (data.block_size, list(members))

    def plan(self, data: LabelDataModule) -> None:
        """Set up the next turn as the rest of this one."""
        with _content_errors():
            restore_labels(self.tensors, data)
            data.num_steps = self._number("num_steps")
            data.steps_per_epoch = self._number("steps_per_epoch")
            data.num_blocks_done = self.num_blocks

    def restore(self, module: AlignmentModule, labels: Sequence[Labels], stopping: Any) -> None:
        """Restore the state after the turn has started.

        Args:
            module: The module in training.
            labels: Labels of each encoder in training, on the training device.
            stopping: Early stopping of the fit, or ``None``.

        Raises:
            DataError: If the state does not fit the module.
        """
        # As in the first step of a turn: create what depends on the labels, then overwrite it.
        for (objective, encoder), (links, weights) in zip(module.trained(), labels, strict=True):
            objective.weigh(weights)
            objective.before_step(encoder, links, 0)
        with _content_errors():
            self._overwrite(module, stopping)

    def _overwrite(self, module: AlignmentModule, stopping: Any) -> None:
        module.load_state_dict(below(self.tensors, WEIGHTS))
        for index, (objective, _) in enumerate(module.trained()):
            buffers = dict(objective.named_buffers())
            for name, value in below(self.tensors, f"{BUFFERS}{index}.").items():
                buffers[name].copy_(value)
        all_groups = self.plain["param_groups"]
        optimizers = zip(module.current_optimizers(), all_groups, strict=True)
        for index, (optimizer, groups) in enumerate(optimizers):
            tensors = below(self.tensors, f"{OPTIMISER}{index}.")
            _restore_optimizer(optimizer, tensors, groups, module.replays_graphs)
        module.num_steps_done = self.num_steps_done
        module.num_steps_of_turn = self._number("num_steps_of_turn")
        module.restore_losses(self.plain["losses"])
        module.num_epochs_done += self.plain["num_epochs_since_checkpoint"]
        if stopping is not None:
            state = self.plain["stopping"] | {"best_weights": below(self.tensors, BEST)}
            stopping.load_state_dict(state)
        restore_generators(self.tensors)

    def _number(self, name: str) -> int:
        with _content_errors():
            return int(self.plain[name])


def _restore_optimizer(
    optimizer: torch.optim.Optimizer,
    tensors: Mapping[str, Tensor],
    groups: Sequence[Mapping[str, Any]],
    replays_graphs: bool,
) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        parameter, _, key = name.partition(".")
        state.setdefault(int(parameter), {})[key] = value
    restored = [dict(group) for group in groups]
    for group in restored:
        # "capturable" depends on whether steps are replayed as CUDA graphs.
        if "capturable" in group:
            group["capturable"] = replays_graphs
    optimizer.load_state_dict({"state": state, "param_groups": restored})


@contextmanager
def _content_errors() -> Iterator[None]:
    """Report missing or malformed content of a checkpoint as a ``DataError``."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        if is_out_of_memory(e):
            raise
        raise DataError(
            f"The training checkpoint is damaged or belongs to another model ({e}). "
            f"Delete {TURN_FILE} to repeat this training from its start."
        ) from e


def _as_tensors(values: dict[str, Any]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(value) for name, value in values.items() if value is not None}
