"""Dual-AMN (Mao et al., WWW 2021): the layers of RREA, followed by proxy matching.

The objective is normalised hard sample mining: every entity is a negative, and the hardest ones
weigh most.
"""

import math
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.memory import FLOAT, EncoderMemory, RunSizes, reflection_memory
from emea.encoders.objective import Objective, drawn_links
from emea.encoders.reflection_layers import NeighbourhoodMeans, ReflectionLayers
from emea.encoders.settings import DualAMNSettings, HardSampleSettings
from emea.kernels.dropout import ByteDropout

NUM_CHANNELS = 2
"""The entity channel and the relation channel."""

VALUES_PER_BLOCK = 2**25
"""Distances in memory at a time: 128 MB in single precision for graphs of any size."""

NEXT_TO_NOTHING = 1e-25
"""Share of an entity in a loss, relative to the hardest one, below which it is set to 0."""


class ProxyMatching(nn.Module):
    """Compares each entity with a few learned proxies that represent all entities.

    With rows h, proxies q, attention ``a = softmax(cos(h, q))`` and ``c = a q``, the difference
    ``h - c`` contains what the proxies do not explain. A gate ``g = sigmoid((h - c) W + b)`` mixes
    it with the row: ``g h + (1 - g) (h - c)``.

    Args:
        dim: Width of the rows.
        num_proxies: Number of learned proxies.
    """

    def __init__(self, dim: int, num_proxies: int) -> None:
        super().__init__()
        self.proxies = nn.Parameter(
            nn.init.xavier_uniform_(torch.empty(num_proxies, dim))
        )
        self.gate = nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, dim)))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the mixed rows, ``[num_entities, dim]`` like the input."""
        directions = nn.functional.normalize(self.proxies, eps=1e-6)
        # scale the scores instead of the rows, which avoids a copy of the rows
        lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1e-6)
        attention = torch.softmax(rows @ directions.t() / lengths, dim=1)
        common = attention @ self.proxies
        apart = rows - common
        gate = torch.sigmoid(torch.addmm(self.bias, apart, self.gate))
        return torch.addcmul(apart, gate, common)


class DualAMN(nn.Module):
    """Encodes entities by relational attention in each graph and proxy attention across both.

    Two channels start from the mean of neighbouring entity embeddings and from the mean of
    incident relation embeddings. In the graphs, the edge's relations reflect the neighbours as in
    RREA, but the attention depends on the relations only, with separate kernels for each channel
    and layer. The concatenated depths of a channel then pass through its ``ProxyMatching``.

    Args:
        graph: The joint graph of both graphs.
        dim: Width of entity and relation embeddings.
        depth: Number of attention layers.
        num_proxies: Number of proxies of each channel.
        dropout: Share of the output that is dropped in training.

    Shapes:
        output: ``[num_entities, 2 * (depth + 1) * dim]``, source entities first.

    Example:
        >>> from emea.data.sources.synthetic import synthetic_pair
        >>> from emea.encoders.joint_graph import join_graphs
        >>> graph = join_graphs(synthetic_pair(num_entities=20))
        >>> encoder = DualAMN(graph, dim=4, depth=2, num_proxies=3)
        >>> encoder().shape == (graph.num_entities, 2 * 3 * 4)
        True
    """

    no_attention: Tensor

    def __init__(
        self,
        graph: JointGraph,
        dim: int = DualAMNSettings.dim,
        depth: int = DualAMNSettings.depth,
        num_proxies: int = DualAMNSettings.num_proxies,
        dropout: float = DualAMNSettings.dropout,
    ) -> None:
        super().__init__()
        self.entities = nn.Parameter(
            torch.empty(graph.num_entities, dim).uniform_(-0.05, 0.05)
        )
        relations = torch.empty(2 * graph.num_relations, dim).uniform_(-0.05, 0.05)
        self.relations = nn.Parameter(relations)
        bound = (6.0 / (dim + 1)) ** 0.5  # Glorot: dim inputs, 1 output
        kernels = torch.empty(NUM_CHANNELS, depth, dim).uniform_(-bound, bound)
        self.relation_attention = nn.Parameter(kernels)
        width = (depth + 1) * dim
        self.matching = nn.ModuleList(
            ProxyMatching(width, num_proxies) for _ in range(NUM_CHANNELS)
        )
        self.means = NeighbourhoodMeans(graph)
        self.layers = ReflectionLayers(graph, torch.tanh, dropout=0.0)
        self.dropout = ByteDropout(dropout)
        self.register_buffer(
            "no_attention", torch.zeros_like(kernels), persistent=False
        )

    def forward(self) -> Tensor:
        """Return the embeddings of all entities."""
        starts = self.means(self.entities, self.relations)
        inner = self.layers(
            starts, self.relations, self.no_attention, self.relation_attention
        )
        channels = zip(self.matching, inner.chunk(NUM_CHANNELS, dim=1), strict=True)
        matched = torch.cat(
            [matching(channel) for matching, channel in channels], dim=1
        )
        rows: Tensor = self.dropout(matched)
        return rows

    @staticmethod
    def estimated_memory(
        encoder: Mapping[str, Any], objective: Mapping[str, Any], sizes: RunSizes
    ) -> EncoderMemory:
        """Return the memory of a run with these settings of the encoder and its objective."""
        num_copies = 11.0 if sizes.is_cpu else 10.0
        layers = reflection_memory(encoder["dim"], encoder["depth"], sizes, num_copies)
        batch = objective.get("batch_size", 1024)
        values = min(VALUES_PER_BLOCK, 2 * batch * sizes.num_entities)
        return layers._replace(training=layers.training + 2 * FLOAT * values)


class HardSampleObjective(Objective):
    """Makes linked entities more similar than all other pairs; the nearest negatives weigh most.

    For a link (s, t) every entity x violates the margin by ``v_x = |s - t|^2 - |s - x|^2 +
    margin``; the violation is 0 for the link's own two entities. The loss is
    ``log sum_x exp(scale * (v_x - mean) / deviation + shift)`` plus the same term from the side of
    t. The mean and the deviation of v over all entities of both graphs are constants for the
    gradient.

    Args:
        margin: The margin (gamma in the paper).
        scale: The scale (lambda in the paper). With a larger scale, fewer entities share the
            gradient.
        shift: The shift (tau in the paper).
        batch_size: Largest number of links per step.
    """

    def __init__(
        self,
        margin: float = HardSampleSettings.margin,
        scale: float = HardSampleSettings.scale,
        shift: float = HardSampleSettings.shift,
        batch_size: int = HardSampleSettings.batch_size,
    ) -> None:
        super().__init__()
        self.margin = margin
        self.scale = scale
        self.shift = shift
        self.batch_size = batch_size

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Return the loss of one step, averaged over its links."""
        rows = encoder()
        # all batches of an epoch have the same size, so that the last one is not small
        size = -(-len(links) // self.steps_per_epoch(len(links)))
        picked = links[drawn_links(links, size, self.link_weights)]
        anchors = picked.T.flatten()
        partners = picked.flip(1).T.flatten()
        losses = hard_sample_losses(rows, anchors, partners, self.margin, self.scale)
        return losses / size + 2 * self.shift

    def steps_per_epoch(self, num_links: int) -> int:
        """Return the number of batches that contain each link once."""
        return max(1, -(-num_links // self.batch_size))


def hard_sample_losses(
    rows: Tensor, anchors: Tensor, partners: Tensor, margin: float, scale: float
) -> Tensor:
    """Return the sum of ``log sum_x exp(scale * (v_x - mean) / deviation)`` over the anchors.

    The result is differentiable in ``rows``. The gradient is computed together with the value,
    block by block. In addition to the gradient, memory contains one block of at most
    ``VALUES_PER_BLOCK`` distances, and no distance is computed twice.
    """
    total = _HardSampleLosses.apply(rows, anchors, partners, margin, scale)  # type: ignore[no-untyped-call]
    return cast(Tensor, total)


class _HardSampleLosses(torch.autograd.Function):
    """Computes value and gradient in one pass over the blocks.

    Let u_ix be the gradient of the loss with respect to anchor i's violation by x. The weights W
    contain u_ix, and ``-sum_x u_ix`` for i's partner, because the distance to the partner is part
    of every violation. The weights of each anchor therefore sum to zero. The gradient is
    ``2 W X`` for the anchors A and ``2 (W^T A - c X)`` for all rows X, where c contains the column
    sums of W.
    """

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        anchors: Tensor,
        partners: Tensor,
        margin: float,
        scale: float,
    ) -> Tensor:
        squares = rows.square().sum(1)
        grad = torch.zeros_like(rows)
        sums = torch.zeros_like(squares)
        total = rows.new_zeros(())
        pairs = torch.stack([anchors, partners], dim=1)
        for block in torch.split(pairs, max(1, VALUES_PER_BLOCK // len(rows))):
            weights = _violations(rows, squares, block, margin)
            total += _turn_into_weights(weights, block, scale)
            sums += weights.sum(0)
            grad.addmm_(weights.t(), rows.index_select(0, block[:, 0]))
            grad.index_add_(0, block[:, 0], weights @ rows)
        ctx.save_for_backward(grad.addcmul_(sums[:, None], rows, value=-1).mul_(2))
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        (grad,) = ctx.saved_tensors
        return grad * grads[0], None, None, None, None


def _violations(rows: Tensor, squares: Tensor, pairs: Tensor, margin: float) -> Tensor:
    """Return the violations, ``[num_pairs, num_entities]``, 0 for the pair's own entities."""
    anchors = rows.index_select(0, pairs[:, 0])
    near = (anchors - rows.index_select(0, pairs[:, 1])).square_().sum(1)
    values = torch.addmm(squares, anchors, rows.t(), beta=-1, alpha=2)
    values += (near - squares.index_select(0, pairs[:, 0]) + margin)[:, None]
    return values.scatter_(1, pairs, 0)


def _turn_into_weights(values: Tensor, pairs: Tensor, scale: float) -> Tensor:
    """Return the sum of the pairs' losses, and turn the violations into W in place."""
    values -= values.mean(1, keepdim=True)
    deviation = torch.linalg.vector_norm(values, dim=1) / math.sqrt(values.shape[1])
    steepness = scale / deviation.clamp_min(torch.finfo(values.dtype).eps)
    values *= steepness[:, None]
    top = values.amax(1, keepdim=True)
    values.sub_(top).exp_()
    if (
        not values.is_cuda
    ):  # a CPU is about a hundred times slower with denormal numbers
        torch.threshold_(values, NEXT_TO_NOTHING, 0.0)
    sums = values.sum(1)
    values *= (steepness / sums)[:, None]
    values.scatter_(1, pairs, 0)
    values.scatter_(1, pairs[:, 1:], -values.sum(1, keepdim=True))
    return (top.squeeze(1) + sums.log()).sum()
