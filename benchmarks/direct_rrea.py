"""RREA's layer in its usual form, which materialises the vectors of every edge."""

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.rrea import RREA


class DirectRREA(nn.Module):
    """Computes the same as ``RREA``, with its weights, but with tensors of edges x dimension.

    Args:
        graph: The joint graph of both graphs.
        model: The model that shares its weights.
    """

    edge_rows: Tensor
    edge_cols: Tensor
    edge_sets: Tensor

    def __init__(self, graph: JointGraph, model: RREA) -> None:
        super().__init__()
        self.model = model
        ids = {
            name: getattr(graph, name)
            for name in ("edge_rows", "edge_cols", "edge_sets")
        }
        ids["around_rows"], ids["around_cols"] = graph.closed_neighbourhoods()
        ids["incident_rows"], ids["incident_cols"] = graph.incident_relations()
        ids["member_rows"], ids["member_cols"] = graph.set_rows, graph.set_relations
        for name, values in ids.items():
            self.register_buffer(
                name, torch.from_numpy(values.copy()), persistent=False
            )
        self.num_entities, self.num_sets = graph.num_entities, graph.num_sets

    def forward(self) -> Tensor:
        """Return the embeddings of all entities."""
        model = self.model
        summed = self._gathered_sum(model.relations, "member", self.num_sets)
        reflectors = nn.functional.normalize(summed)[self.edge_sets]
        outputs = []
        for table, name in ((model.entities, "around"), (model.relations, "incident")):
            rows: Tensor = getattr(self, f"{name}_rows")
            counts = (
                torch.bincount(rows, minlength=self.num_entities)
                .clamp(min=1)
                .unsqueeze(1)
            )
            features = torch.relu(
                self._gathered_sum(table, name, self.num_entities) / counts
            )
            outputs.append(features)
            for layer in range(len(model.neighbour_attention)):
                features = torch.relu(self._layer(features, reflectors, layer))
                outputs.append(features)
        dropped: Tensor = model.layers.attention.dropout(torch.cat(outputs, dim=1))
        return dropped

    def _layer(self, features: Tensor, reflectors: Tensor, layer: int) -> Tensor:
        neighbours = features[self.edge_cols]
        along = (neighbours * reflectors).sum(1, keepdim=True)
        messages = neighbours - 2 * along * reflectors
        logits = messages @ self.model.neighbour_attention[layer]
        logits = logits + reflectors @ self.model.relation_attention[layer]
        weights = torch.exp(logits - logits.detach().max())
        totals = weights.new_zeros(self.num_entities).index_add(
            0, self.edge_rows, weights
        )
        attention = weights / totals[self.edge_rows]
        out = torch.zeros_like(features)
        return out.index_add(0, self.edge_rows, attention.unsqueeze(1) * messages)

    def _gathered_sum(self, table: Tensor, name: str, size: int) -> Tensor:
        rows, cols = getattr(self, f"{name}_rows"), getattr(self, f"{name}_cols")
        return table.new_zeros(size, table.shape[1]).index_add(0, rows, table[cols])
