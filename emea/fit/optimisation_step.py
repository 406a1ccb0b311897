"""One optimisation step of an encoder or of several, run eagerly or replayed as a CUDA graph."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from emea.runtime.paused_collection import paused_collection

KEPT_SHARE = 0.125
"""Share of the device's memory that may stay reserved between fits."""


class OptimisationStep:
    """Runs the forward pass, the backward pass and the update of the parameters.

    Args:
        loss: Returns the loss of one step.
        optimizer: Updates the parameters; ``None`` if there are none. A step then only computes
            the loss.
    """

    def __init__(
        self, loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer | None
    ) -> None:
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


class MemberSteps:
    """Runs one step of each of several members of an ensemble.

    On a GPU, small steps do not fill the device. With streams, the steps of the members overlap,
    so members must not write to common memory.

    Args:
        steps: The step of each member.
        streams: A CUDA stream for each member; empty: the steps run on the current stream, or on
            a CPU.
    """

    def __init__(
        self,
        steps: Sequence[OptimisationStep],
        streams: Sequence[torch.cuda.Stream] = (),
    ) -> None:
        self.steps = steps
        self.streams = streams

    def __call__(self) -> Tensor:
        """Run one step of each member and return the detached losses, ``[num_members]``."""
        if not self.streams:
            return _joined([step() for step in self.steps])
        current = torch.cuda.current_stream()
        for stream in self.streams:
            stream.wait_stream(current)
        losses = []
        try:
            for step, stream in zip(self.steps, self.streams, strict=True):
                with torch.cuda.stream(stream):
                    losses.append(step())
        finally:
            # a capture cannot end before all its streams have joined the first one
            for stream in self.streams:
                current.wait_stream(stream)
        return _joined(losses)


def _joined(losses: Sequence[Tensor]) -> Tensor:
    # a loss may have the shape [1] instead of []
    return torch.stack([loss.reshape(()) for loss in losses])


class GraphMemory:
    """Captures CUDA graphs one after the other in the same device memory.

    A new graph takes the memory of the last one, which must not be replayed any more. Otherwise
    torch could use the memory of former graphs again only after its cache was emptied, which takes
    longer than a capture. All graphs use the same streams, because torch caches memory by stream.
    """

    def __init__(self) -> None:
        self._last: torch.cuda.CUDAGraph | None = None
        self._stream: torch.cuda.Stream | None = None
        self._member_streams: list[torch.cuda.Stream] = []

    @property
    def stream(self) -> torch.cuda.Stream:
        """The stream of captures and of the steps before them."""
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        return self._stream

    def member_streams(self, num_members: int) -> list[torch.cuda.Stream]:
        """Return one stream for each member of an ensemble, the same ones in every fit."""
        while len(self._member_streams) < num_members:
            self._member_streams.append(torch.cuda.Stream())  # type: ignore[no-untyped-call]
        return self._member_streams[:num_members]

    def capture(
        self, step: Callable[[], Tensor]
    ) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """Return a graph of a step and the tensor that holds its loss after each replay."""
        graph = torch.cuda.CUDAGraph()
        pool = () if self._last is None else (self._last.pool(),)
        torch.cuda.synchronize()
        free, _ = torch.cuda.mem_get_info()
        if free < torch.cuda.max_memory_allocated():
            torch.cuda.empty_cache()  # torch cannot do it during a capture
        # collecting garbage could free device memory, which would end the capture
        with torch.cuda.stream(self.stream), paused_collection():
            graph.capture_begin(*pool)
            try:
                loss = step()
            finally:
                graph.capture_end()
        self._last = graph
        return graph, loss

    def release(self) -> None:
        """Release the memory; the last graph must not be replayed any more."""
        self._last = None

    def release_if_large(self) -> None:
        """Release the memory if it is a large share of the device's, which others may need."""
        if self._last is None:
            return
        _, total = torch.cuda.mem_get_info()
        if torch.cuda.memory_reserved() > KEPT_SHARE * total:
            self.release()
            torch.cuda.empty_cache()


class GraphedStep:
    """Replays the same step as one CUDA graph, so that no kernel waits for Python.

    A full-batch step has some hundred small kernels. Launching them one by one takes longer than
    running them. The first step runs eagerly, which compiles kernels and creates the state of the
    optimiser. It counts like all others.

    Args:
        step: The step of one encoder, or those of several members of an ensemble.
        optimizers: The optimiser of each encoder.
        memory: The memory of earlier graphs, which the new one replaces.
    """

    def __init__(
        self,
        step: OptimisationStep | MemberSteps,
        optimizers: Sequence[torch.optim.Optimizer],
        memory: GraphMemory,
    ) -> None:
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                if "capturable" in group:
                    group["capturable"] = True
        self._step = step
        self._memory = memory
        self._is_first = True
        self._graph: torch.cuda.CUDAGraph | None = None
        self._loss = torch.zeros(())

    def __call__(self) -> Tensor:
        """Run one step and return its detached loss, or the losses of the members."""
        if self._is_first:
            self._is_first = False
            return self._on_side_stream()
        if self._graph is None:
            self._graph, self._loss = self._memory.capture(self._step)
        self._graph.replay()
        return self._loss

    def _on_side_stream(self) -> Tensor:
        # capture requires warm-up steps on a stream other than the default one
        stream = self._memory.stream
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            loss = self._step()
        torch.cuda.current_stream().wait_stream(stream)
        return loss
