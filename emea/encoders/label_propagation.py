"""The objective of encoders that derive their embeddings from the labels without training."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from emea.encoders.objective import Objective
from emea.errors import ConfigError


@runtime_checkable
class Propagating(Protocol):
    """An encoder whose embeddings follow from labels."""

    def propagate(self, links: Tensor) -> None:
        """Derive the embeddings from links in joint entity ids."""


class LabelPropagation(Objective):
    """Hands the links to the encoder; there is nothing to minimise."""

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Propagate the labels once; the loss is zero and has no gradient."""
        if not isinstance(encoder, Propagating):
            raise ConfigError(f"{type(encoder).__name__} is trained, it cannot propagate labels")
        encoder.propagate(links)
        return links.new_zeros((), dtype=torch.float32)
