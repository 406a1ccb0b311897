"""LightEA (Mao et al., EMNLP 2022): label propagation without training."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.memory import FLOAT, EncoderMemory, RunSizes
from emea.encoders.objective import Objective
from emea.encoders.settings import LabelPropagationSettings, LightEASettings
from emea.errors import ConfigError
from emea.kernels.sparse_pattern import (
    SparsePattern,
    matmul,
    transposed_matmul,
)

TINY = 1e-12

EDGES_PER_BLOCK = 8192
"""Edges whose messages are in memory at a time."""

ROWS_PER_BLOCK = 8192
"""Rows whose squares are in memory at a time."""

SMALLEST_SHARE = 1e-3
"""Least share of the strongest direction's mass that whitening scales by."""


class LightEA(nn.Module):
    """Propagates random vectors of the labelled entities over both graphs without training.

    Each target entity has a random unit vector, which is nearly orthogonal to all others and is
    generated from a stored seed whenever it is needed. A link assigns this vector to both of its
    entities. Pseudo-labels may contradict each other. If n source entities claim the same target,
    each gets its vector divided by n, because at most one of them is correct. A source entity with
    several links gets the sum of their vectors, scaled down to length 1 if it is longer.

    Each of the ``depth`` rounds of propagation scales every sum to unit length:

    - a relation becomes the sum of its distinct heads,
    - an entity becomes the sum of its neighbours (once per triple), of itself (``self_weight``
      times its degree) and of the relations of which it is a tail.

    Let f be the concatenated features of all depths. The embedding of entity h is the sum, over its
    neighbours t, of the outer product of ``f_t`` and the features of the relations from h to t. The
    outer product is approximated by a sketch of ``output_dim`` numbers: random projections of both
    factors are multiplied element by element. The expected dot products of the sketches equal those
    of the outer products.

    Args:
        graph: The joint graph of both graphs.
        dim: Width of the target entities' random vectors.
        depth: Number of propagation rounds.
        output_dim: Width of the embeddings.
        self_weight: Weight of an entity's own features in a round.
        whitening: Strength of the whitening. With 0 the sketch is unchanged; with 1 all its
            directions get the same mass.

    Shapes:
        output: ``[num_entities, output_dim]``, source entities first.

    Example:
        >>> from emea.data.sources.synthetic import synthetic_pair
        >>> from emea.encoders.joint_graph import join_graphs
        >>> graph = join_graphs(synthetic_pair(num_entities=20))
        >>> encoder = LightEA(graph, dim=8, output_dim=16)
        >>> encoder.propagate(torch.tensor([[0, graph.num_source], [1, graph.num_source + 1]]))
        >>> encoder().shape == (graph.num_entities, 16)
        True
    """

    embedding: Tensor
    draw_seeds: Tensor
    multiplicity: Tensor
    degrees: Tensor
    edge_sets: Tensor

    def __init__(
        self,
        graph: JointGraph,
        dim: int = LightEASettings.dim,
        depth: int = LightEASettings.depth,
        output_dim: int = LightEASettings.output_dim,
        *,
        self_weight: float = LightEASettings.self_weight,
        whitening: float = LightEASettings.whitening,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.depth = depth
        self.self_weight = self_weight
        self.whitening = whitening
        self.num_source = graph.num_source
        self.num_target = graph.num_target
        self.num_relations = graph.num_relations
        self.register_buffer("embedding", torch.zeros(graph.num_entities, output_dim))
        self.register_buffer("draw_seeds", torch.randint(2**62, (2,)))
        self._build_patterns(graph)

    def _build_patterns(self, graph: JointGraph) -> None:
        size = graph.num_entities
        sets = graph.num_sets
        relations = 2 * graph.num_relations
        self.edges = SparsePattern(graph.edge_rows, graph.edge_cols, (size, size))
        self.incident = SparsePattern(
            *graph.incident_relations(), shape=(size, relations)
        )
        self.members = SparsePattern(
            graph.set_rows, graph.set_relations, (sets, relations)
        )
        multiplicity = np.bincount(graph.set_rows, minlength=sets)[graph.edge_sets]
        degrees = np.bincount(graph.edge_rows, weights=multiplicity, minlength=size)
        for name, values in (
            ("multiplicity", multiplicity.astype(float)),
            ("degrees", degrees),
        ):
            self.register_buffer(
                name, torch.from_numpy(values).float(), persistent=False
            )
        self.register_buffer(
            "edge_sets", torch.from_numpy(graph.edge_sets), persistent=False
        )

    def forward(self) -> Tensor:
        """Return the embeddings for the links propagated last; zeros before the first call."""
        return self.embedding

    @torch.no_grad()
    def propagate(self, links: Tensor, weights: Tensor | None = None) -> None:
        """Derive the embeddings from labels.

        Args:
            links: ``[num_links, 2]`` in joint ids.
            weights: ``[num_links]`` lengths of the vectors that the links assign, from 0 to 1;
                ``None`` means 1.
        """
        entities = self.label_features(links, weights)
        relations = entities.new_zeros(2 * self.num_relations, self.dim)
        by_entity, by_relation = self.projections()
        # a layer is projected at once and then replaced by the next one: all layers would not fit
        of_entities = Projection(entities, by_entity)
        of_relations = Projection(relations, by_relation)
        of_entities.add(entities)
        for _ in range(self.depth):  # relations have no features before the first round
            entities, relations = self._round(entities, relations)
            of_entities.add(entities)
            of_relations.add(relations)
        del entities, relations
        rows = normalize_(self._joined(of_entities.rows(), of_relations.rows()))
        self.embedding.copy_(whitened(rows, self.whitening) if self.whitening else rows)

    def seed_vectors(self) -> Tensor:
        """Return ``[num_target, dim]`` unit vectors, one per target entity."""
        return normalize_(self._random(0, self.num_target, self.dim))

    def projections(self) -> tuple[Tensor, Tensor]:
        """Return ``[layers, dim, output_dim]`` random matrices for entity and relation features."""
        matrices = self._random(
            1, 2 * self.depth + 1, self.dim, self.embedding.shape[1]
        )
        return matrices[: self.depth + 1], matrices[self.depth + 1 :]

    def label_features(self, links: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return ``[num_entities, dim]`` features before propagation, zero without a label.

        An entity with several links has the weight of the strongest one.
        """
        source, target = links.T
        labels = self.seed_vectors().index_select(0, target - self.num_source)
        features = labels.new_zeros(len(self.embedding), self.dim)
        num_claims = torch.bincount(target, minlength=len(features)).to(labels)
        strength = 1 / num_claims.index_select(0, target).unsqueeze(1)
        features.index_add_(0, source, labels * strength)
        features[target] = labels
        length = torch.linalg.vector_norm(features, dim=1, keepdim=True)
        features.div_(length.clamp(min=1))
        if weights is None:
            return features
        strongest = features.new_zeros(len(features), 1)
        for side in (source, target):
            strongest[:, 0].scatter_reduce_(0, side, weights.to(features), "amax")
        return features.mul_(strongest)

    def _random(self, stream: int, *shape: int) -> Tensor:
        # generated on the CPU in single precision, so that it is the same on every device
        generator = torch.Generator().manual_seed(int(self.draw_seeds[stream]))
        return torch.randn(*shape, generator=generator).to(self.embedding)

    def _round(self, features: Tensor, relations: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next features of entities and relations; overwrites those of the entities."""
        ones = features.new_ones(self.incident.num_nonzeros)
        of_heads = transposed_matmul(self.incident, ones, features)
        around = matmul(self.edges, self.multiplicity, features)
        around += features.mul_((self.self_weight * self.degrees).unsqueeze(1))
        # an entity is a tail of a relation if it is a head of the inverse relation
        backwards = relations.roll(self.num_relations, dims=0)
        around += matmul(self.incident, ones, backwards)
        return normalize_(around), normalize_(of_heads)

    def _joined(self, entities: Tensor, relations: Tensor) -> Tensor:
        """Return the sum over edges of neighbour times relation features, element by element."""
        ones = relations.new_ones(self.members.num_nonzeros)
        sets = matmul(self.members, ones, relations)
        out = torch.zeros_like(entities)
        for start in range(0, self.edges.num_nonzeros, EDGES_PER_BLOCK):
            part = slice(start, start + EDGES_PER_BLOCK)
            messages = entities.index_select(0, self.edges.cols[part])
            messages *= sets.index_select(0, self.edge_sets[part])
            out.index_add_(0, self.edges.rows[part], messages)
        return out

    @staticmethod
    def estimated_memory(
        encoder: Mapping[str, Any], objective: Mapping[str, Any], sizes: RunSizes
    ) -> EncoderMemory:
        """Return the memory of a run with these settings of the encoder and its objective."""
        dim = encoder["dim"]
        depth = encoder["depth"]
        width = encoder["output_dim"]
        per_column = FLOAT * sizes.num_entities
        layers = per_column * ((depth + 5) * dim + 4 * width)
        projections = FLOAT * (2 * depth + 1) * dim * width
        return EncoderMemory(width, layers + 2 * projections, per_column * width)


class Projection:
    """Computes a random projection of the concatenated layers, scaled to unit length.

    Args:
        like: A layer, ``[num_rows, dim]``.
        matrices: ``[num_layers, dim, output_dim]`` one random matrix per layer.
    """

    def __init__(self, like: Tensor, matrices: Tensor) -> None:
        self._matrices = iter(matrices)
        self._sums = like.new_zeros(len(like), matrices.shape[2])
        self._mass = like.new_zeros(len(like))

    def add(self, layer: Tensor) -> None:
        """Add the next layer."""
        self._sums.addmm_(layer, next(self._matrices))
        for start in range(0, len(layer), ROWS_PER_BLOCK):
            part = slice(start, start + ROWS_PER_BLOCK)
            self._mass[part] += layer[part].square().sum(1)

    def rows(self) -> Tensor:
        """Return the projection of all layers; no layer can be added afterwards."""
        return self._sums.div_(self._mass.clamp(min=TINY).sqrt().unsqueeze(1))


def normalize_(rows: Tensor) -> Tensor:
    """Scale each row to unit length, in place; rows of zeros do not change."""
    return rows.div_(
        torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_(min=TINY)
    )


def whitened(rows: Tensor, strength: float) -> Tensor:
    """Return ``rows`` times their second-moment matrix to the power ``-strength / 2``.

    Directions that many entities share have the most mass; whitening reduces it.
    """
    moment = rows.T @ rows / max(1, len(rows))
    mass, directions = torch.linalg.eigh(moment.double())
    scale = mass.clamp(min=SMALLEST_SHARE * mass[-1].clamp(min=TINY)) ** (-strength / 2)
    return normalize_(rows @ (directions * scale @ directions.T).to(rows))


class LabelPropagation(Objective):
    """Passes the links to an encoder that needs no training; there is no loss to minimise.

    The encoder has a method ``propagate`` like that of ``LightEA``.

    Args:
        weighted: Whether the encoder gets the weights of the links, such as the beliefs of
            pseudo-labels.
    """

    def __init__(self, weighted: bool = LabelPropagationSettings.weighted) -> None:
        super().__init__()
        self.weighted = weighted

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Propagate the labels once; the loss is zero and has no gradient."""
        propagate = getattr(encoder, "propagate", None)
        if propagate is None:
            raise ConfigError(
                f"{type(encoder).__name__} cannot propagate labels. Use another model.objective."
            )
        if self.weighted:
            propagate(links, self.link_weights)
        else:
            propagate(links)
        return links.new_zeros((), dtype=torch.float32)
