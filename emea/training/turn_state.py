"""All state of a turn between two of its blocks, so that training can go on from there."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule
from emea.errors import DataError
from emea.matching.block_memory import is_out_of_memory
from emea.training.early_stopping import EarlyStopping
from emea.training.named_tensors import (
    below,
    labels_and_generators,
    prefixed,
    restore_generators,
    restore_labels,
)

TURN_FILE = "training-checkpoint.safetensors"
WEIGHTS, BUFFERS, OPTIMISER, BEST = "weights.", "objective.", "optimiser.", "best."


@dataclass(frozen=True, eq=False)
class TurnState:
    """Where a turn stands.

    Args:
        tensors: weights, what optimiser, objective and early stopping hold, labels, generators.
        plain: counters, as JSON can tell them.
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
        """The state after so many blocks of a turn (the first is 0) and epochs of its fit."""
        tensors = labels_and_generators(data) | prefixed(WEIGHTS, module.state_dict())
        # what an objective derives from the labels is no part of its weights, but of its state
        weights = module.objective.state_dict()
        buffers = dict(module.objective.named_buffers()).items()
        tensors |= prefixed(BUFFERS, {key: held for key, held in buffers if key not in weights})
        plain: dict[str, Any] = {
            "turn": turn,
            "num_blocks": num_blocks,
            "block_size": data.block_size,
            "num_steps": data.num_steps,
            "steps_per_epoch": data.steps_per_epoch,
            "num_steps_done": module.num_steps_done,
            "num_steps_of_turn": module.num_steps_of_turn,
            "num_epochs_of_fit": num_epochs,
            "losses": module.losses,
        }
        optimizer = module.current_optimizer()
        if optimizer is not None:
            state = optimizer.state_dict()
            plain["param_groups"] = state["param_groups"]
            for index, held in state["state"].items():
                tensors |= prefixed(f"{OPTIMISER}{index}.", _as_tensors(held))
        if stopping is not None:
            state = stopping.state_dict()
            tensors |= prefixed(BEST, state.pop("best_weights"))
            plain["stopping"] = state
        return cls(tensors, plain)

    def copied(self) -> "TurnState":
        """A copy in host memory, which further training does not change."""
        tensors = {name: held.detach().to("cpu", copy=True) for name, held in self.tensors.items()}
        return TurnState(tensors, deepcopy(self.plain))

    @property
    def turn(self) -> int:
        """Which turn of its fit it is; the first is 0."""
        return self._number("turn")

    @property
    def num_blocks(self) -> int:
        """Blocks of the turn that are done."""
        return self._number("num_blocks")

    @property
    def num_steps_done(self) -> int:
        """Steps of the whole run until then."""
        return self._number("num_steps_done")

    def fits(self, data: LabelDataModule) -> bool:
        """Whether the blocks that are left are still cut as those that are done."""
        return bool(self.plain.get("block_size") == data.block_size)

    def plan(self, data: LabelDataModule) -> None:
        """Let the next turn be what is left of this one."""
        with _content_errors():
            restore_labels(self.tensors, data)
            data.num_steps = self._number("num_steps")
            data.steps_per_epoch = self._number("steps_per_epoch")
            data.num_blocks_done = self.num_blocks

    def restore(
        self, module: AlignmentModule, links: Tensor, weights: Tensor | None, stopping: Any
    ) -> None:
        """Put everything back, once the turn has begun.

        Args:
            module: in training.
            links: of the turn, where training has them.
            weights: theirs.
            stopping: the early stopping of the fit; ``None``: it has none.

        Raises:
            DataError: it is no state of such a module.
        """
        # as in the turn's first step: what depends on the labels is made, then overwritten
        module.objective.weigh(weights)
        module.objective.before_step(module.encoder, links, 0)
        with _content_errors():
            self._overwrite(module, stopping)

    def _overwrite(self, module: AlignmentModule, stopping: Any) -> None:
        module.load_state_dict(below(self.tensors, WEIGHTS))
        buffers = dict(module.objective.named_buffers())
        for name, value in below(self.tensors, BUFFERS).items():
            buffers[name].copy_(value)
        self._restore_optimizer(module)
        module.num_steps_done = self.num_steps_done
        module.num_steps_of_turn = self._number("num_steps_of_turn")
        module.losses = [(int(step), float(loss)) for step, loss in self.plain["losses"]]
        module.num_epochs_done += self.plain["num_epochs_of_fit"]
        if stopping is not None:
            state = self.plain["stopping"] | {"best_weights": below(self.tensors, BEST)}
            stopping.load_state_dict(state)
        restore_generators(self.tensors)

    def _restore_optimizer(self, module: AlignmentModule) -> None:
        optimizer = module.current_optimizer()
        if optimizer is None:
            return
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in below(self.tensors, OPTIMISER).items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
        groups = [dict(group) for group in self.plain["param_groups"]]
        for group in groups:
            # says where step counts lie, which differs between steps that are graphs and others
            if "capturable" in group:
                group["capturable"] = module.replays_graphs
        optimizer.load_state_dict({"state": state, "param_groups": groups})

    def _number(self, name: str) -> int:
        with _content_errors():
            return int(self.plain[name])


@contextmanager
def _content_errors() -> Iterator[None]:
    """A file that lacks something, or has it in another form, is no state of a turn."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        if is_out_of_memory(e):
            raise
        raise DataError(
            f"the checkpoint in the midst of a training is damaged or of another model ({e}): "
            f"remove {TURN_FILE} to train that stage anew"
        ) from e


def _as_tensors(values: dict[str, Any]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(value) for name, value in values.items() if value is not None}
