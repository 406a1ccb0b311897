"""One layer of AliNet."""

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from emea.encoders.normalised_adjacency import NormalisedAdjacency

SLOPE = 0.2
"""Of the leaky rectifier below zero, as in the released code."""


class AliNetLayer(nn.Module):
    """Direct neighbours by convolution, distant ones by attention, a gate between both.

    With ``A`` and ``B`` the normalised adjacencies of direct and distant neighbours:

    - one hop: ``y_i = tanh(sum_j A_ij W x_j + b)``,
    - two hops: ``z_i = tanh(sum_j a_ij V x_j)``, ``a`` the softmax over j of
      ``leaky_relu(B_ij (tanh(x_i.M x_i) + tanh(x_j.N x_j)))``,
    - gate: ``g = relu(tanh(G z))``, output ``tanh(g z + (1 - g) y)``.

    The attention and the gate are those of the released code, which the printed numbers come
    from; the paper writes ``(M x_i).(N x_j)`` and a sigmoid.

    Args:
        inputs: width of the input.
        outputs: width of the output.
        distant: whether distant neighbours count; without them the output is ``y``.
    """

    def __init__(self, inputs: int, outputs: int, distant: bool) -> None:
        super().__init__()
        self.distant = distant
        self.direct_kernel = glorot(inputs, outputs)
        self.bias = nn.Parameter(torch.zeros(outputs))
        if distant:
            self.distant_kernel = glorot(inputs, outputs)
            self.receiver = glorot(inputs, inputs)
            self.sender = glorot(inputs, inputs)
            self.gate = glorot(outputs, outputs)

    def forward(self, rows: Tensor, near: NormalisedAdjacency, far: NormalisedAdjacency) -> Tensor:
        """Output of the layer for all entities."""
        weights = near.weights.to(rows.dtype)
        one_hop = torch.tanh(near.weighted_sum(weights, rows @ self.direct_kernel) + self.bias)
        if not self.distant:
            return one_hop
        attention = far.row_softmax(self._logits(rows, far))
        two_hop = torch.tanh(far.weighted_sum(attention, rows @ self.distant_kernel))
        gate = torch.relu(torch.tanh(two_hop @ self.gate))
        return torch.tanh(torch.lerp(one_hop, two_hop, gate))

    def _logits(self, rows: Tensor, far: NormalisedAdjacency) -> Tensor:
        receiver = torch.tanh((rows @ self.receiver * rows).sum(1)).index_select(0, far.rows)
        sender = torch.tanh((rows @ self.sender * rows).sum(1)).index_select(0, far.cols)
        return leaky_relu(far.weights.to(rows.dtype) * (receiver + sender), SLOPE)


def glorot(inputs: int, outputs: int) -> nn.Parameter:
    """A parameter of Glorot's uniform initialisation."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(inputs, outputs)))
