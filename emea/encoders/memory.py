"""What an encoder estimates about its memory before a run starts.

An encoder class may have a static method ``estimated_memory(encoder, objective, sizes)``. Without
it, a run with this encoder is not checked before it starts.
"""

from typing import NamedTuple

FLOAT = 4

BYTES_PER_EDGE = 160
"""Scalars that the layers of an encoder hold for each edge."""


class RunSizes(NamedTuple):
    """The sizes of a run.

    Args:
        num_entities: Number of entities of both graphs.
        num_triples: Number of triples of both graphs.
        is_cpu: Whether the encoder is trained on a CPU.
    """

    num_entities: int
    num_triples: int
    is_cpu: bool


class EncoderMemory(NamedTuple):
    """The memory of one encoder in bytes.

    Args:
        width: Width of its embeddings.
        training: Peak of its training.
        kept: Weights and states that stay in memory after the training.
    """

    width: int
    training: float
    kept: float


def reflection_memory(
    dim: int, depth: int, sizes: RunSizes, num_copies: float
) -> EncoderMemory:
    """Return the memory of reflection layers with two channels.

    Args:
        dim: Width of a layer.
        depth: Number of layers.
        sizes: The sizes of the run.
        num_copies: Tensors of the size of the embeddings that exist at the peak.
    """
    width = 2 * (depth + 1) * dim
    activations = num_copies * FLOAT * sizes.num_entities * width
    edges = 2 * BYTES_PER_EDGE * sizes.num_triples
    kept = 3 * FLOAT * sizes.num_entities * dim
    return EncoderMemory(width, activations + edges, kept)
