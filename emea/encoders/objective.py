"""What an encoder is trained for."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Objective(nn.Module, ABC):
    """Loss of an encoder on links; one call is one optimisation step.

    On CUDA a step is replayed as a graph, so the loss itself runs the same kernels on the same
    memory each time. What changes more slowly (negatives searched anew, rows shared by links)
    is written into buffers by ``before_step``, outside the graph.

    Attributes:
        link_weights: ``[num_links]`` how much each link of the turn counts against the others;
            ``None``: all alike. An objective that draws links draws them by weight, one that
            takes all of them at once takes them all alike.
    """

    link_weights: Tensor | None = None

    @abstractmethod
    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Loss of one step.

        Args:
            encoder: called without arguments, gives the embeddings of all entities.
            links: ``[num_links, 2]`` entity ids in the joint id space.
        """

    def weigh(self, link_weights: Tensor | None) -> None:
        """Told before a turn's first step how much its links count."""
        self.link_weights = link_weights

    def steps_per_epoch(self, num_links: int) -> int:
        """Steps that make one epoch; a full-batch objective needs one."""
        return 1

    def attach(self, encoder: nn.Module) -> None:
        """Told once, before anything else, which encoder it will train."""
        return None

    def before_step(self, encoder: nn.Module, links: Tensor, step: int) -> None:
        """Called before each step, outside the graph.

        Args:
            encoder: the one in training.
            links: those of the fit.
            step: of this fit; at 0 the links may be others than before, and tensors may be
                replaced. Later they may only be written to.
        """
        return None
