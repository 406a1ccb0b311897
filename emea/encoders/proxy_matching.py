"""Proxy matching attention: what an entity shares with both graphs, and what sets it apart."""

import torch
from torch import Tensor, nn


class ProxyMatching(nn.Module):
    """Compares each entity with a few learnt proxies that stand for all entities of both graphs.

    With rows h, proxies q, attention ``a = softmax(cos(h, q))`` and ``c = a q``, the difference
    ``h - c`` is what a match across the graphs has to explain. A gate
    ``g = sigmoid((h - c) W + b)`` mixes it with the row: ``g h + (1 - g) (h - c)``.

    Args:
        dim: width of the rows.
        num_proxies: proxies that are learnt.
    """

    def __init__(self, dim: int, num_proxies: int) -> None:
        super().__init__()
        self.proxies = nn.Parameter(nn.init.xavier_uniform_(torch.empty(num_proxies, dim)))
        self.gate = nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, dim)))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, rows: Tensor) -> Tensor:
        """``[num_entities, dim]`` rows in and out."""
        directions = nn.functional.normalize(self.proxies, eps=1e-6)
        # the scores are scaled, not the rows: no second copy of those
        lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1e-6)
        attention = torch.softmax(rows @ directions.t() / lengths, dim=1)
        common = attention @ self.proxies
        apart = rows - common
        gate = torch.sigmoid(torch.addmm(self.bias, apart, self.gate))
        return torch.addcmul(apart, gate, common)
