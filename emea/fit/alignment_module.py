"""The module that trains any encoder, in blocks of optimisation steps."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from emea.encoders.objective import Ensemble, Objective
from emea.errors import ConfigError
from emea.fit.optimisation_step import (
    GraphedStep,
    GraphMemory,
    MemberSteps,
    OptimisationStep,
)
from emea.fit.step_block import Labels, StepBlock
from emea.fit.training_checks import (
    check_encoder,
    check_gradient,
    check_rows,
    loss_error,
)
from emea.kernels.choice import can_capture

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class Loss(NamedTuple):
    """Holds the last loss of an encoder's block, which is one point of a curve.

    Args:
        step: Number of optimisation steps of the run so far.
        value: The loss.
        metric: The name of the curve; each encoder of an ensemble has its own.
    """

    step: int
    value: float
    metric: str


class AlignmentModule(nn.Module):
    """Trains an encoder on links between its two graphs.

    A fit runs blocks of optimisation steps. A turn of a fit has one set of labels; they may change
    between turns, while weights and optimiser are kept. `emea.fit.lightning_trainer` lets Lightning
    run the blocks, and `emea.fit.direct_fit` runs them itself if there is nothing to optimise.

    A fit trains one encoder or several members of an ensemble. The members take each step side by
    side: on a CPU in turn, and on a GPU in one CUDA graph in which their kernels overlap. Steps,
    epochs and losses are counted as if the members ran each block one after the other.

    The output of the encoder is checked at its first call, which is part of the first step, and
    at every call of ``embeddings``.

    Args:
        encoder: Called without arguments, returns ``[num_source + num_target, width]``
            floating-point embeddings of all entities, source entities first. It may return a
            parameter.
        objective: ``objective(encoder, links)`` returns the loss of a step. The constructor calls
            its ``attach`` with the encoder, and each step of a fit calls its ``before_step``. An
            ensemble has a list with one for each member.
        optimizer: Creates the optimiser from the parameters; ``None`` for an encoder without
            parameters. An ensemble has one for each member.
        num_source: Number of entities of the source graph.
        num_target: Number of entities of the target graph.
        cuda_graph: Whether steps are replayed as a CUDA graph on a CUDA device, if all kernels can
            be captured.

    Attributes:
        active_members: The members of the ensemble that a fit trains; ``(0,)`` for one encoder. If
            there are several, each must have an optimiser.
        graph_memory: The device memory of CUDA graphs, which is released after the last fit.
        turn_is_over: Whether the remaining blocks of the turn are skipped; hooks may set it.
    """

    def __init__(
        self,
        encoder: nn.Module,
        objective: Objective | nn.ModuleList,
        optimizer: OptimizerFactory | Sequence[OptimizerFactory | None] | None,
        *,
        num_source: int,
        num_target: int,
        cuda_graph: bool = True,
    ) -> None:
        super().__init__()
        makers = optimizer if isinstance(optimizer, Sequence) else [optimizer]
        for member, make_optimizer in zip(_members(encoder), makers, strict=True):
            check_encoder(member)
            if make_optimizer is None and any(True for _ in member.parameters()):
                name = type(member).__name__
                raise ConfigError(
                    f"{name} has weights to train, so it needs a model.optimizer."
                )
        self.num_source = num_source
        self.num_target = num_target
        self._optimizer_makers = makers
        self.active_members: tuple[int, ...] = (0,)
        self._cuda_graph = cuda_graph and can_capture()
        self._step: Callable[[], Tensor] | None = None
        self.graph_memory = GraphMemory()
        self.num_steps_of_turn = 0
        self.turn_is_over = False
        self.num_steps_done = 0
        self.num_epochs_done = 0.0
        self.losses: list[Loss] = []
        self.encoder, self.objective = encoder, objective
        for one, member in zip(_objectives(objective), _members(encoder), strict=True):
            self._attach(one, member)

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """Return a new optimiser for each active member that has parameters to train."""
        optimizers = []
        for member, (objective, encoder) in zip(
            self.active_members, self.trained(), strict=True
        ):
            make_optimizer = self._optimizer_makers[member]
            if make_optimizer is not None:
                # an objective may have parameters, too
                both = nn.ModuleList([encoder, objective])
                optimizers.append(make_optimizer(both.parameters()))
        return optimizers

    @property
    def num_members(self) -> int:
        """Number of encoders; more than one in an ensemble."""
        return len(self._optimizer_makers)

    @property
    def is_last_member(self) -> bool:
        """Whether the current fit trains the last member, after which EM follows."""
        return self.active_members[-1] == self.num_members - 1

    def trained(self) -> list[tuple[Objective, nn.Module]]:
        """Return the objective and the encoder of each active member."""
        objectives = _objectives(self.objective)
        encoders = _members(self.encoder)
        return [
            (objectives[member], encoders[member]) for member in self.active_members
        ]

    def has_optimizer(self, member: int) -> bool:
        """Return whether a member has parameters to train."""
        return self._optimizer_makers[member] is not None

    def renew_member(
        self, member: int, encoder: nn.Module, objective: Objective
    ) -> None:
        """Start the next fit of one member with another encoder of the same type."""
        if isinstance(self.encoder, Ensemble):
            assert isinstance(self.objective, nn.ModuleList)
            self.encoder.members[member] = encoder
            self.objective[member] = objective
        else:
            self.encoder, self.objective = encoder, objective
        self._attach(objective, encoder)

    def _attach(self, objective: Objective, encoder: nn.Module) -> None:
        """Connect an objective and an encoder, and check the encoder's first output."""
        objective.attach(encoder)

        def check_first(encoder: nn.Module, _: Any, rows: Any) -> None:
            handle.remove()
            check_rows(
                rows, encoder, self.num_source + self.num_target, self.num_steps_done
            )
            check_gradient(rows, encoder)

        # a wrong number of rows would cause an index error inside the objective
        handle = encoder.register_forward_hook(check_first)

    def start_turn(self) -> None:
        """Drop the step of the last turn, because it refers to that turn's links and optimiser."""
        self._step = None
        self.num_steps_of_turn = 0
        self.turn_is_over = False

    def end_fit(self) -> None:
        """Drop the step and the gradients; the next fit uses the memory of their CUDA graph."""
        self._step = None
        self.zero_grad(set_to_none=True)
        self.graph_memory.release_if_large()

    def run_block(
        self, block: StepBlock, optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        """Run a block of steps on the links of the block.

        Args:
            block: The labels of each active member, and the number of steps.
            optimizers: Those of `configure_optimizers` for this fit.
        """
        trained = list(zip(self.trained(), block.labels, strict=True))
        if self._step is None:
            for (objective, _), labels in trained:
                objective.weigh(labels.weights)
            self._step = self.new_step(block.labels, optimizers)
        like = block.labels[0].links
        losses = like.new_empty(block.num_steps, len(trained), dtype=torch.float32)
        for step in range(block.num_steps):
            for (objective, encoder), labels in trained:
                objective.before_step(encoder, labels.links, self.num_steps_of_turn)
            losses[step] = self._step()
            self.num_steps_of_turn += 1
        for member, of_member in zip(
            self.active_members, losses.T.tolist(), strict=True
        ):
            self._record(of_member, member)
            self.num_steps_done += block.num_steps
        self.num_epochs_done += block.total_steps / block.steps_per_epoch

    def new_step(
        self, labels: Sequence[Labels], optimizers: Sequence[torch.optim.Optimizer]
    ) -> Callable[[], Tensor]:
        """Return the step of the active members, as a CUDA graph if possible.

        Args:
            labels: The labels of each active member.
            optimizers: The optimiser of each active member, unless it lacks parameters.
        """
        given: Sequence[torch.optim.Optimizer | None] = optimizers or [None]
        steps = [
            OptimisationStep(partial(objective, encoder, links), optimizer)
            for (objective, encoder), (links, _), optimizer in zip(
                self.trained(), labels, given, strict=True
            )
        ]
        is_graph = bool(optimizers) and self._cuda_graph and labels[0].links.is_cuda
        step: OptimisationStep | MemberSteps = steps[0]
        if len(steps) > 1:
            streams = self.graph_memory.member_streams(len(steps)) if is_graph else ()
            step = MemberSteps(steps, streams)
        return GraphedStep(step, optimizers, self.graph_memory) if is_graph else step

    def steps_per_epoch(self, num_links: int, member: int | None = None) -> int:
        """Return the steps of one epoch of a member; ``None`` means the first active one."""
        member = self.active_members[0] if member is None else member
        return _objectives(self.objective)[member].steps_per_epoch(num_links)

    def member_rows(self) -> list[Tensor]:
        """Return the unit vectors of all entities by each member, without gradient or dropout."""
        assert isinstance(self.encoder, Ensemble)
        with self._evaluating():
            return list(self.encoder.member_rows())

    def weigh_members(self, weights: Tensor) -> None:
        """Set the weights of an ensemble's members, which sum to 1."""
        assert isinstance(self.encoder, Ensemble)
        self.encoder.weights.copy_(weights)

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """Return the embeddings of source and target entities, without gradient or dropout.

        They are copies: an encoder may return a parameter, which the next step changes in place.
        """
        with self._evaluating():
            rows = self.encoder()
        check_rows(
            rows, self.encoder, self.num_source + self.num_target, self.num_steps_done
        )
        # half precision is only for training: search and reasoning need single precision
        kind = torch.promote_types(rows.dtype, torch.float32)
        rows = rows.detach().to(kind, copy=True)
        return rows[: self.num_source], rows[self.num_source :]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Switch gradient and dropout off."""
        training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            yield
        self.encoder.train(training)

    def _record(self, losses: list[float], member: int) -> None:
        """Keep the last loss of a member's block, and check that all losses are finite."""
        metric = "loss" if self.num_members == 1 else f"loss/encoder_{member + 1}"
        bad = next(
            (step for step, loss in enumerate(losses) if not math.isfinite(loss)), None
        )
        if bad is not None:
            earlier = [
                loss.value for loss in self.losses if loss.metric == metric
            ] + losses[:bad]
            step = self.num_steps_done + bad + 1
            which = None if self.num_members == 1 else member
            raise loss_error(losses[bad], step, earlier, which)
        self.losses.append(Loss(self.num_steps_done + len(losses), losses[-1], metric))


def _members(encoder: nn.Module) -> list[nn.Module]:
    """Return the members of an ensemble, or the encoder itself."""
    return list(encoder.members) if isinstance(encoder, Ensemble) else [encoder]


def _objectives(objective: Objective | nn.ModuleList) -> list[Objective]:
    """Return the objectives of an ensemble's members, or the objective itself."""
    if isinstance(objective, nn.ModuleList):
        return cast(list[Objective], list(objective))
    return [objective]
