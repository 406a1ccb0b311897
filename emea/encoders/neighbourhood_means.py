"""Where the channels of reflection encoders start: means over an entity's neighbourhood."""

from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.sparse_pattern import SparsePattern


class NeighbourhoodMeans(nn.Module):
    """Mean of an entity's and its neighbours' embeddings, and of its incident relations'.

    Args:
        graph: both graphs as one.
    """

    around_mean: Tensor
    incident_mean: Tensor

    def __init__(self, graph: JointGraph) -> None:
        super().__init__()
        size, relations = graph.num_entities, 2 * graph.num_relations
        self.around = SparsePattern(*graph.closed_neighbourhoods(), shape=(size, size))
        self.incident = SparsePattern(*graph.incident_relations(), shape=(size, relations))
        self.register_buffer("around_mean", self.around.mean_values(), persistent=False)
        self.register_buffer("incident_mean", self.incident.mean_values(), persistent=False)

    def forward(self, entities: Tensor, relations: Tensor) -> list[Tensor]:
        """``[num_entities, dim]`` for the entity and for the relation channel.

        Args:
            entities: ``[num_entities, dim]`` embeddings.
            relations: ``[2 * num_relations, dim]`` embeddings of the directed relations.
        """
        dtype = entities.dtype
        return [
            self.around.weighted_sum(self.around_mean.to(dtype), entities),
            self.incident.weighted_sum(self.incident_mean.to(dtype), relations),
        ]
