"""One optimisation step, run eagerly or replayed as a CUDA graph."""

from collections.abc import Callable

import torch
from torch import Tensor

WARM_UP_STEPS = 3
"""Eager steps before a capture, which compile kernels and create optimiser state."""


class OptimisationStep:
    """Runs the forward pass, the backward pass and the update of the parameters.

    Args:
        loss: Returns the loss of one step.
        optimizer: Updates the parameters; ``None`` if there are none. A step then only computes
            the loss.
    """

    def __init__(self, loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer | None) -> None:
        self.loss = loss
        self.optimizer = optimizer

    def __call__(self) -> Tensor:
        """Run one step and return its detached loss."""
        if self.optimizer is None:
            return self.loss().detach()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        torch.autograd.backward(loss)
        self.optimizer.step()
        return loss.detach()


class GraphedStep(OptimisationStep):
    """Replays the same step as one CUDA graph, so that no kernel waits for Python.

    A full-batch step has some hundred small kernels. Launching them one by one takes longer than
    running them. The first steps run eagerly and count like all others.
    """

    def __init__(self, loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> None:
        super().__init__(loss, optimizer)
        for group in optimizer.param_groups:
            if "capturable" in group:
                group["capturable"] = True
        self._num_eager = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._loss = torch.zeros(())

    def __call__(self) -> Tensor:
        """Run one step and return its detached loss."""
        if self._num_eager < WARM_UP_STEPS:
            self._num_eager += 1
            return self._on_side_stream()
        if self._graph is None:
            self._capture()
        assert self._graph is not None
        self._graph.replay()
        return self._loss

    def _on_side_stream(self) -> Tensor:
        # capture requires warm-up steps on a stream other than the default one
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            loss = super().__call__()
        torch.cuda.current_stream().wait_stream(stream)
        return loss

    def _capture(self) -> None:
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._loss = super().__call__()
