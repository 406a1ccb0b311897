"""All state of a turn between two of its blocks, so that training can go on from there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule
from emea.errors import DataError
from emea.matching.block_memory import is_out_of_memory
from emea.training.early_stopping import EarlyStopping

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
    ) -> "TurnState":
        """The state after so many blocks of a turn (the first is 0)."""
        tensors = _prefixed(WEIGHTS, module.state_dict())
        # what an objective derives from the labels is no part of its weights, but of its state
        weights = module.objective.state_dict()
        buffers = dict(module.objective.named_buffers()).items()
        tensors |= _prefixed(BUFFERS, {key: held for key, held in buffers if key not in weights})
        tensors |= {"links": data.links, "random.cpu": torch.get_rng_state()}
        if data.weights is not None:
            tensors["link_weights"] = data.weights
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        plain: dict[str, Any] = {
            "turn": turn,
            "num_blocks": num_blocks,
            "block_size": data.block_size,
            "num_steps": data.num_steps,
            "steps_per_epoch": data.steps_per_epoch,
            "num_steps_done": module.num_steps_done,
            "num_steps_of_turn": module.num_steps_of_turn,
            "losses": module.losses,
        }
        optimizer = module.current_optimizer()
        if optimizer is not None:
            state = optimizer.state_dict()
            plain["param_groups"] = state["param_groups"]
            for index, held in state["state"].items():
                tensors |= _prefixed(f"{OPTIMISER}{index}.", _as_tensors(held))
        if stopping is not None:
            state = stopping.state_dict()
            tensors |= _prefixed(BEST, state.pop("best_weights"))
            plain["stopping"] = state
        return cls(tensors, plain)

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
            data.restore(self.tensors["links"], self.tensors.get("link_weights"))
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
        module.load_state_dict(self._below(WEIGHTS))
        buffers = dict(module.objective.named_buffers())
        for name, value in self._below(BUFFERS).items():
            buffers[name].copy_(value)
        self._restore_optimizer(module)
        module.num_steps_done = self.num_steps_done
        module.num_steps_of_turn = self._number("num_steps_of_turn")
        module.losses = [(int(step), float(loss)) for step, loss in self.plain["losses"]]
        # fractions of the turn; those of earlier turns were whole
        module.num_epochs_done += self.plain["num_epochs_of_stage"]
        if stopping is not None:
            state = self.plain["stopping"] | {"best_weights": self._below(BEST)}
            stopping.load_state_dict(state)
        torch.set_rng_state(self.tensors["random.cpu"])
        if "random.cuda" in self.tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(self.tensors["random.cuda"])

    def _restore_optimizer(self, module: AlignmentModule) -> None:
        optimizer = module.current_optimizer()
        if optimizer is None:
            return
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in self._below(OPTIMISER).items():
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

    def _below(self, prefix: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(prefix): value
            for name, value in self.tensors.items()
            if name.startswith(prefix)
        }


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
            "remove training-checkpoint.safetensors to train that stage anew"
        ) from e


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": value for name, value in tensors.items()}


def _as_tensors(values: dict[str, Any]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(value) for name, value in values.items() if value is not None}
