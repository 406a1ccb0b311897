"""AliNet (Sun et al., AAAI 2020): gated one-hop and two-hop aggregation, and its objective."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, normalize

from emea.data.arrays import NO_MATCH, IntArray
from emea.encoders.iptranse import two_hop_pairs
from emea.encoders.joint_graph import JointGraph, counterparts
from emea.encoders.memory import FLOAT, EncoderMemory, RunSizes
from emea.encoders.objective import Objective, drawn_links
from emea.encoders.settings import AliNetObjectiveSettings, AliNetSettings
from emea.kernels.sparse_pattern import NormalisedAdjacency, SparsePattern
from emea.matching.candidates import top_candidates
from emea.matching.similarity import Cosine

SLOPE = 0.2
"""Slope of the leaky rectifier below zero, as in the released code."""


class AliNetLayer(nn.Module):
    """Combines direct neighbours (convolution) and distant ones (attention) with a gate.

    ``A`` and ``B`` are the normalised adjacency matrices of direct and distant neighbours:

    - one hop: ``y_i = tanh(sum_j A_ij W x_j + b)``,
    - two hops: ``z_i = tanh(sum_j a_ij V x_j)``, where ``a`` is the softmax over j of
      ``leaky_relu(B_ij (tanh(x_i.M x_i) + tanh(x_j.N x_j)))``,
    - gate: ``g = relu(tanh(G z))``, output ``tanh(g z + (1 - g) y)``.

    The attention and the gate follow the released code, which produced the published numbers. The
    paper has ``(M x_i).(N x_j)`` and a sigmoid instead.

    Args:
        inputs: Width of the input.
        outputs: Width of the output.
        distant: Whether the layer uses distant neighbours; without them the output is ``y``.
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

    def forward(
        self, rows: Tensor, near: NormalisedAdjacency, far: NormalisedAdjacency
    ) -> Tensor:
        """Return the output of the layer for all entities."""
        weights = near.weights.to(rows.dtype)
        one_hop = torch.tanh(
            near.weighted_sum(weights, rows @ self.direct_kernel) + self.bias
        )
        if not self.distant:
            return one_hop
        attention = far.row_softmax(self._logits(rows, far))
        two_hop = torch.tanh(far.weighted_sum(attention, rows @ self.distant_kernel))
        gate = torch.relu(torch.tanh(two_hop @ self.gate))
        return torch.tanh(torch.lerp(one_hop, two_hop, gate))

    def _logits(self, rows: Tensor, far: NormalisedAdjacency) -> Tensor:
        receiver = torch.tanh((rows @ self.receiver * rows).sum(1)).index_select(
            0, far.rows
        )
        sender = torch.tanh((rows @ self.sender * rows).sum(1)).index_select(
            0, far.cols
        )
        return leaky_relu(far.weights.to(rows.dtype) * (receiver + sender), SLOPE)


def glorot(inputs: int, outputs: int) -> nn.Parameter:
    """Return a parameter with Glorot's uniform initialisation."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(inputs, outputs)))


class RelationConsistency(nn.Module):
    """Computes how far ``h - t`` is from the direction of its relation.

    Let m be the mean of ``h - t`` over a relation's triples and r = m / |m|. The loss is the mean
    of ``|h - t - r|^2`` over the relation's triples, summed over relations. It is evaluated as
    ``mean |h - t|^2 - 2 m.r + r.r``, which needs no tensor of size triples x dimension.

    Args:
        triples: ``[num_triples, 3]`` head, relation, tail.
        num_entities: Number of entities.
        num_relations: Number of relations.
    """

    end_signs: Tensor
    pair_shares: Tensor
    entity_shares: Tensor

    def __init__(
        self, triples: IntArray, num_entities: int, num_relations: int
    ) -> None:
        super().__init__()
        head, relation, tail = triples[np.argsort(triples[:, 1], kind="stable")].T
        share = (1 / np.bincount(relation, minlength=num_relations).clip(1))[relation]
        ends = np.stack([head, tail], axis=1).ravel()
        signs = np.stack([share, -share], axis=1).ravel()
        self.ends = SparsePattern(
            np.repeat(relation, 2), ends, (num_relations, num_entities)
        )
        order = np.argsort(head, kind="stable")
        self.pairs = SparsePattern(
            head[order], tail[order], (num_entities, num_entities)
        )
        shares = np.bincount(ends, np.abs(signs), minlength=num_entities)
        for name, values in (
            ("end_signs", signs),
            ("pair_shares", share[order]),
            ("entity_shares", shares),
        ):
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the loss of these embeddings."""
        dtype = rows.dtype
        means = self.ends.weighted_sum(self.end_signs.to(dtype), rows)
        directions = nn.functional.normalize(means)
        tails = self.pairs.weighted_sum(self.pair_shares.to(dtype), rows)
        squares = (
            self.entity_shares.to(dtype) @ rows.square().sum(1)
            - 2 * (rows * tails).sum()
        )
        return squares + (directions * (directions - 2 * means)).sum()


class AliNet(nn.Module):
    """Encodes entities with layers over direct and distant neighbours.

    The last layer uses direct neighbours only. The links of a fit also add edges: if a triple joins
    two entities but not their counterparts, ``augment`` joins the counterparts, too.

    Args:
        graph: The joint graph of both graphs.
        dims: Width of the input embeddings and of each layer's output.
        num_common_patterns: Number of the most frequent relation pairs of each graph. Paths of
            these pairs do not define distant neighbours.

    Shapes:
        output: ``[num_entities, sum(dims)]`` unit rows, source entities first. A row contains the
        layers' outputs and then the input, each scaled to the same length.

    Example:
        >>> from emea.data.sources.synthetic import synthetic_pair
        >>> from emea.encoders.joint_graph import join_graphs
        >>> graph = join_graphs(synthetic_pair(num_entities=20))
        >>> encoder = AliNet(graph, dims=(8, 4, 4))
        >>> encoder().shape == (graph.num_entities, 8 + 4 + 4)
        True
    """

    partners: Tensor

    def __init__(
        self,
        graph: JointGraph,
        dims: Sequence[int] = AliNetSettings.dims,
        num_common_patterns: int = AliNetSettings.num_common_patterns,
    ) -> None:
        super().__init__()
        if len(dims) < 2:
            raise ValueError(
                f"dims must be the widths of the input and of each layer, got {dims}"
            )
        self.num_source = graph.num_source
        self.num_relations = graph.num_relations
        self.features = glorot(graph.num_entities, dims[0])
        last = len(dims) - 2
        self.layers = nn.ModuleList(
            AliNetLayer(inputs, outputs, distant=index < last)
            for index, (inputs, outputs) in enumerate(pairwise(dims))
        )
        self.triples = graph.triples()
        of_source = self.triples[:, 0] < graph.num_source
        sides = (self.triples[of_source], self.triples[~of_source])
        distant = np.concatenate(
            [two_hop_pairs(side, num_common_patterns) for side in sides]
        )
        self.far = NormalisedAdjacency(distant, graph.num_entities)
        # saved with the weights, which are of little use without the edges they were trained on
        nobody = torch.full((graph.num_entities,), NO_MATCH)
        self.register_buffer("partners", nobody)
        self.register_load_state_dict_post_hook(_rebuild)  # type: ignore[no-untyped-call]
        self._build()

    def augment(self, links: Tensor) -> None:
        """Replace the edges added for earlier links by those of these links."""
        partners = counterparts(links.cpu().numpy(), len(self.features))
        self.partners.copy_(torch.from_numpy(partners))
        self._build()

    def forward(self) -> Tensor:
        """Return the embeddings of all entities."""
        parts = [*self.layer_outputs(), self.features]
        return normalize(torch.cat([normalize(part) for part in parts], dim=1))

    def layer_outputs(self) -> list[Tensor]:
        """Return the outputs of the layers, first to last."""
        outputs: list[Tensor] = [self.features]
        for layer in self.layers:
            outputs.append(layer(outputs[-1], self.near, self.far))
        return outputs[1:]

    def _build(self) -> None:
        added = transferred_triples(self.triples, self.partners.cpu().numpy())
        triples = np.concatenate([self.triples, added])
        device = self.features.device
        size = len(self.features)
        self.near = NormalisedAdjacency(triples[:, [0, 2]], size).to(device)
        self.consistency = RelationConsistency(triples, size, self.num_relations).to(
            device
        )

    @staticmethod
    def estimated_memory(
        encoder: Mapping[str, Any], objective: Mapping[str, Any], sizes: RunSizes
    ) -> EncoderMemory:
        """Return the memory of a run with these settings of the encoder and its objective."""
        width = sum(encoder["dims"])
        per_column = FLOAT * sizes.num_entities
        kept = 4 * per_column * encoder["dims"][0]
        return EncoderMemory(width, 14.5 * per_column * width, kept)


def transferred_triples(triples: IntArray, partners: IntArray) -> IntArray:
    """Return the triples that are missing between the counterparts of joined entities."""
    size = len(partners)
    moved = triples.copy()
    moved[:, [0, 2]] = partners[triples[:, [0, 2]]]
    moved = np.unique(moved[(moved != NO_MATCH).all(1)], axis=0)
    known = np.isin(
        moved[:, 0] * size + moved[:, 2],
        triples[:, 0] * size + triples[:, 2],
        kind="sort",
    )
    return moved[~known]


def _rebuild(encoder: nn.Module, _: Any) -> None:
    assert isinstance(encoder, AliNet)
    encoder._build()


class AliNetObjective(Objective):
    """Pulls linked entities together and pushes similar, unlinked ones apart by a margin.

    For links (s, t) of a batch and negative pairs (a, b) the loss is
    ``sum |s - t|^2 + balance sum max(0, margin - |a - b|^2)`` plus the relation loss. The negative
    pairs of a link combine each of its ends with entities that are sampled from that end's nearest
    neighbours on the other side (truncated sampling). The neighbours are searched at intervals;
    before the first search, the entities are sampled uniformly.

    Args:
        margin: Squared distance at which the loss of a negative pair becomes zero.
        balance: Weight of the negative pairs.
        batch_size: Number of links per step, at most that of all links. They are sampled with
            replacement, in proportion to their weights if they have weights.
        num_negatives: Number of negative pairs per end of a link.
        relation_weight: Weight of the relation loss.
    """

    epsilon = 0.98  # OpenEA
    """Share of the other side's entities that are too far away to be sampled."""

    refresh_every = 10  # OpenEA
    """Number of epochs between searches for the nearest neighbours."""

    relation_window = 50  # OpenEA (min_rel_win)
    """Additional factor of the relation loss if a batch has fewer than two triples per relation.

    Otherwise that number is the factor. The released code samples this many triples of each
    relation per step. This class uses all triples and gives them the same total weight.
    """

    near_targets: Tensor
    near_sources: Tensor

    def __init__(
        self,
        margin: float = AliNetObjectiveSettings.margin,
        balance: float = AliNetObjectiveSettings.balance,
        batch_size: int = AliNetObjectiveSettings.batch_size,
        num_negatives: int = AliNetObjectiveSettings.num_negatives,
        relation_weight: float = AliNetObjectiveSettings.relation_weight,
    ) -> None:
        super().__init__()
        self.margin = margin
        self.balance = balance
        self.batch_size = batch_size
        self.num_negatives = num_negatives
        self.relation_weight = relation_weight

    def steps_per_epoch(self, num_links: int) -> int:
        """Return the number of whole batches of links, at least one."""
        return max(1, num_links // self.batch_size)

    def before_step(self, encoder: nn.Module, links: Tensor, step: int) -> None:
        """Use the links of the fit, and search for negatives at intervals."""
        assert isinstance(encoder, AliNet)
        if step == 0:
            encoder.augment(links)
            self._start(encoder, links)
        elif step % (self.refresh_every * self.steps_per_epoch(len(links))) == 0:
            self._search(encoder, links)

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Return the loss of one step."""
        assert isinstance(encoder, AliNet)
        rows: Tensor = encoder()
        picked = self._draw_links(links)
        source, target = links.index_select(0, picked).unbind(1)
        apart = rows.index_select(0, source) - rows.index_select(0, target)
        false_targets = self._draw_near(self.near_targets, picked)
        false_sources = self._draw_near(self.near_sources, picked)
        # the nearest neighbours of a link's end may include its counterpart
        unlinked = false_targets != encoder.partners[source].unsqueeze(1)
        hinges = (self._hinge(rows, source, false_targets) * unlinked).sum()
        unlinked = encoder.partners[false_sources] != target.unsqueeze(1)
        hinges = hinges + (self._hinge(rows, target, false_sources) * unlinked).sum()
        share = self.batch_size // max(1, encoder.num_relations)
        relational: Tensor = (
            share if share > 1 else self.relation_window
        ) * encoder.consistency(rows)
        contrastive = apart.square().sum() + self.balance * hinges
        return contrastive + self.relation_weight * relational

    def _hinge(self, rows: Tensor, ends: Tensor, false: Tensor) -> Tensor:
        """Return the loss of each negative pair of these ends."""
        near = rows.index_select(0, false.flatten()).view(*false.shape, -1)
        products = (near @ rows.index_select(0, ends).unsqueeze(2)).squeeze(2)
        return torch.relu(
            self.margin - 2 + 2 * products
        )  # for unit rows, |a - b|^2 = 2 - 2 a.b

    def _draw_links(self, links: Tensor) -> Tensor:
        size = min(self.batch_size, len(links))
        if self.link_weights is None:
            return torch.randint(len(links), (size,), device=links.device)
        return drawn_links(links, size, self.link_weights)

    def _draw_near(self, near: Tensor, picked: Tensor) -> Tensor:
        shape = len(picked), self.num_negatives
        columns = torch.randint(near.shape[1], shape, device=near.device)
        return near[picked.unsqueeze(1), columns].long()

    def _start(self, encoder: AliNet, links: Tensor) -> None:
        size = len(encoder.features)
        num_source = encoder.num_source
        device = links.device
        for name, low, high in (
            ("near_targets", num_source, size),
            ("near_sources", 0, num_source),
        ):
            num_near = max(1, int((1 - self.epsilon) * (high - low)))
            drawn = torch.randint(
                low, high, (len(links), num_near), device=device, dtype=torch.int32
            )
            self.register_buffer(name, drawn, persistent=False)

    @torch.no_grad()
    def _search(self, encoder: AliNet, links: Tensor) -> None:
        """Write the nearest neighbours of each link's ends into the buffers."""
        rows = encoder.layer_outputs()[-1]
        source = rows[: encoder.num_source]
        target = rows[encoder.num_source :]
        nearest = Cosine()(rows[links[:, 0]], target)
        found = top_candidates(nearest, self.near_targets.shape[1]).targets
        self.near_targets.copy_(found + encoder.num_source)
        nearest = Cosine()(rows[links[:, 1]], source)
        self.near_sources.copy_(
            top_candidates(nearest, self.near_sources.shape[1]).targets
        )
