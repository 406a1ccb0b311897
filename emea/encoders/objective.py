"""What an encoder is trained for."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Objective(nn.Module, ABC):
    """Loss of an encoder on links; one call is one optimisation step."""

    @abstractmethod
    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Loss of one step.

        Args:
            encoder: called without arguments, gives the embeddings of all entities.
            links: ``[num_links, 2]`` entity ids in the joint id space.
        """

    def steps_per_epoch(self, num_links: int) -> int:
        """Steps that make one epoch; a full-batch objective needs one."""
        return 1
