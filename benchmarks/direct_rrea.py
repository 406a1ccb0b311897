"""RREA's layer as it is usually written: every edge's vectors side by side."""

import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import JointGraph
from emea.encoders.rrea import RREA


class DirectRREA(nn.Module):
    """The same model as ``RREA`` with the same weights, materialising edges x dimension.

    Args:
        graph: both graphs as one.
        model: whose weights to share.
    """

    def __init__(self, graph: JointGraph, model: RREA) -> None:
        super().__init__()
        self.model = model
        for name in ("edge_rows", "edge_cols", "edge_sets"):
            self.register_buffer(name, torch.from_numpy(getattr(graph, name).copy()))
        rows, cols = graph.closed_neighbourhoods()
        self.around = torch.from_numpy(rows), torch.from_numpy(cols)
        rows, cols = graph.incident_relations()
        self.incident = torch.from_numpy(rows), torch.from_numpy(cols)
        self.members = torch.from_numpy(graph.set_rows), torch.from_numpy(graph.set_relations)
        self.num_entities, self.num_sets = graph.num_entities, graph.num_sets

    def forward(self) -> Tensor:
        """Embeddings of all entities."""
        model = self.model
        summed = _gathered_sum(model.relations, *self.members, self.num_sets)
        reflectors = nn.functional.normalize(summed)[self.edge_sets]
        outputs = []
        for table, (rows, cols) in (
            (model.entities, self.around),
            (model.relations, self.incident),
        ):
            counts = torch.bincount(rows, minlength=self.num_entities).clamp(min=1).unsqueeze(1)
            features = torch.relu(_gathered_sum(table, rows, cols, self.num_entities) / counts)
            outputs.append(features)
            for layer in range(len(model.neighbour_attention)):
                features = torch.relu(self._layer(features, reflectors, layer))
                outputs.append(features)
        return model.layers.side_by_side.dropout(torch.cat(outputs, dim=1))

    def _layer(self, features: Tensor, reflectors: Tensor, layer: int) -> Tensor:
        neighbours = features[self.edge_cols]
        along = (neighbours * reflectors).sum(1, keepdim=True)
        messages = neighbours - 2 * along * reflectors
        logits = messages @ self.model.neighbour_attention[layer]
        logits = logits + reflectors @ self.model.relation_attention[layer]
        weights = torch.exp(logits - logits.detach().max())
        totals = torch.zeros(self.num_entities).index_add(0, self.edge_rows, weights)
        attention = weights / totals[self.edge_rows]
        out = torch.zeros_like(features)
        return out.index_add(0, self.edge_rows, attention.unsqueeze(1) * messages)


def _gathered_sum(table: Tensor, rows: Tensor, cols: Tensor, size: int) -> Tensor:
    return torch.zeros(size, table.shape[1]).index_add(0, rows, table[cols])
