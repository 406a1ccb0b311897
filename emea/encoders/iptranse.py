"""IPTransE (Zhu et al., IJCAI 2017): TransE on both graphs, extended by relation paths.

Contains the encoder and its objective.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from emea.data.arrays import IntArray
from emea.data.sorting import places_in_runs
from emea.encoders.joint_graph import JointGraph, counterparts
from emea.encoders.objective import Objective
from emea.encoders.settings import IPTransEObjectiveSettings, IPTransESettings
from emea.matching.candidates import mutual_best, top_candidates
from emea.matching.similarity import Cosine


def equal_pairs(values: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return all index pairs ``(i, j)`` with ``values[i] == keys[j]``, ascending."""
    order = np.argsort(keys, kind="stable")
    starts, ends = (
        np.searchsorted(keys[order], values, side) for side in ("left", "right")
    )
    first = np.repeat(np.arange(len(values)), ends - starts)
    return first, order[starts[first] + places_in_runs(ends - starts)]


def consecutive_triples(triples: IntArray) -> tuple[IntArray, IntArray]:
    """Return index pairs ``(i, j)`` of triples where the tail of ``i`` is the head of ``j``."""
    return equal_pairs(triples[:, 2], triples[:, 0])


def two_hop_pairs(triples: IntArray, num_common: int) -> IntArray:
    """Return the ends of two-triple paths that no triple joins: AliNet's distant neighbours.

    Paths of the graph's ``num_common`` most frequent relation pairs do not count. If two pairs are
    equally frequent, the one with smaller relation ids counts as more frequent.

    Returns:
        ``[num_pairs, 2]`` distinct (head, end), ascending.
    """
    if not len(triples):
        return np.zeros((0, 2), dtype=np.int64)
    first, second = consecutive_triples(triples)
    width = int(triples[:, [0, 2]].max()) + 1
    ends = triples[first, 0] * width + triples[second, 2]
    far = ~np.isin(ends, triples[:, 0] * width + triples[:, 2])
    first = first[far]
    second = second[far]
    ends = ends[far]
    patterns = triples[first, 1] * (int(triples[:, 1].max()) + 1) + triples[second, 1]
    _, pattern, counts = np.unique(patterns, return_inverse=True, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:num_common]
    kept = np.unique(ends[~np.isin(pattern, common)])
    return np.stack([kept // width, kept % width], axis=1)


def composed_relations(triples: IntArray, max_ends: int) -> tuple[IntArray, IntArray]:
    """Return paths ``(r1, r2)`` parallel to a direct relation ``r``: PTransE's ``r1 + r2 = r``.

    Every occurrence of a path ``h -r1-> m -r2-> t`` with a triple ``(h, r, t)`` counts, unless its
    number of ends is too large: the tails of ``(h, r1)`` times the tails of ``(m, r2)``.

    Returns:
        ``[num_paths, 3]`` paths (r1, r2, r), and ``[num_paths]`` their numbers of ends.
    """
    head, relation, tail = triples.T
    num_relations = relation.max(initial=0) + 1
    width = tail.max(initial=0) + 1
    _, group, sizes = np.unique(
        head * num_relations + relation, return_inverse=True, return_counts=True
    )
    num_tails = sizes[group]
    first, second = consecutive_triples(triples)
    num_ends = num_tails[first] * num_tails[second]
    near = num_ends <= max_ends
    first = first[near]
    second = second[near]
    num_ends = num_ends[near]
    path, direct = equal_pairs(head[first] * width + tail[second], head * width + tail)
    steps = first[path], second[path], direct
    return np.stack([relation[step] for step in steps], axis=1), num_ends[path]


class IPTransE(nn.Module):
    """Encodes entities and relations as unit vectors; linked entities share one vector.

    Args:
        graph: The joint graph of both graphs.
        dim: Width of the embeddings.
        max_ends: Paths that lead to more ends than this are not evidence for a relation.

    Shapes:
        output: ``[num_entities, dim]`` unit rows, source entities first.

    Example:
        >>> from emea.data.sources.synthetic import synthetic_pair
        >>> from emea.encoders.joint_graph import join_graphs
        >>> graph = join_graphs(synthetic_pair(num_entities=20))
        >>> encoder = IPTransE(graph, dim=4)
        >>> encoder().shape == (graph.num_entities, 4)
        True
    """

    row_of: Tensor
    triples: Tensor
    paths: Tensor
    path_ends: Tensor

    def __init__(
        self,
        graph: JointGraph,
        dim: int = IPTransESettings.dim,
        max_ends: int = IPTransESettings.max_ends,
    ) -> None:
        super().__init__()
        self.num_source = graph.num_source
        self.entities = truncated_normal(graph.num_entities, dim)
        self.relations = truncated_normal(graph.num_relations, dim)
        # saved with the weights, because they assign the rows to entities
        self.register_buffer("row_of", torch.arange(graph.num_entities))
        triples = graph.triples()
        paths, num_ends = composed_relations(triples, max_ends)
        for name, values in (
            ("triples", triples),
            ("paths", paths),
            ("path_ends", num_ends),
        ):
            tensor = torch.from_numpy(np.ascontiguousarray(values))
            self.register_buffer(name, tensor, persistent=False)

    def share(self, links: Tensor) -> None:
        """Let linked entities share the source entity's row; all others keep their own.

        If several source entities are linked to one target entity, the first one shares its row.
        """
        partner = counterparts(links.cpu().numpy(), len(self.entities))
        rows = np.arange(len(partner))
        target = rows[self.num_source :]
        linked = target[partner[target] >= 0]
        linked = linked[partner[partner[linked]] == linked]
        rows[linked] = partner[linked]
        self.row_of.copy_(torch.from_numpy(rows))

    def forward(self) -> Tensor:
        """Return the embeddings of all entities."""
        return self.entity_rows(slice(None))

    def entity_rows(self, entities: Tensor | slice) -> Tensor:
        """Return the embeddings of these entities."""
        return normalize(self.entities).index_select(0, self.row_of[entities])


def truncated_normal(size: int, dim: int) -> nn.Parameter:
    """Return normal values of variance ``1 / dim``, truncated at two standard deviations."""
    scale = dim**-0.5
    rows = torch.empty(size, dim)
    return nn.Parameter(
        nn.init.trunc_normal_(rows, std=scale, a=-2 * scale, b=2 * scale)
    )


class IPTransEObjective(Objective):
    """Ranks triples, paths and softly aligned triples above corrupted ones by a margin.

    - A triple has the loss ``max(0, margin + |h + r - t|^2 - |h' + r - t'|^2)``, with one
      end replaced by an entity of the same graph.
    - A path r1, r2 parallel to a relation r has the same loss for ``|r1 + r2 - r|^2`` against a
      random relation, divided by the number of ends of the path.
    - If an end of a triple is softly aligned to e, the triple has the same loss with e in place of
      that end, times the similarity of both. Soft alignments are mutual nearest neighbours above a
      threshold among entities without a link. They are searched at intervals.

    Args:
        margin: Margin of all three losses.
        path_weight: Weight of the loss of paths.
        batch_size: Number of triples per step, sampled with replacement. The steps of an epoch
            sample as many triples as the graphs have.
        threshold: Least cosine of a soft alignment.
    """

    bootstrap_every = 100  # OpenEA
    """Number of epochs between searches for soft alignments."""

    soft_partner: Tensor
    soft_weight: Tensor

    def __init__(
        self,
        margin: float = IPTransEObjectiveSettings.margin,
        path_weight: float = IPTransEObjectiveSettings.path_weight,
        batch_size: int = IPTransEObjectiveSettings.batch_size,
        threshold: float = IPTransEObjectiveSettings.threshold,
    ) -> None:
        super().__init__()
        self.margin = margin
        self.path_weight = path_weight
        self.batch_size = batch_size
        self.threshold = threshold
        self.num_triples = 0

    def attach(self, encoder: nn.Module) -> None:
        """Store the number of triples of an epoch, and allocate the soft alignments."""
        assert isinstance(encoder, IPTransE)
        self.num_triples = len(encoder.triples)
        # an entity without a soft alignment is its own partner with weight 0: a common partner
        # for all of them would make atomic additions wait for each other on a GPU
        size = len(encoder.entities)
        self.register_buffer("soft_partner", torch.arange(size), persistent=False)
        self.register_buffer("soft_weight", torch.zeros(size), persistent=False)

    def steps_per_epoch(self, num_links: int) -> int:
        """Return the number of batches of triples; the number of links has no effect."""
        return max(1, -(-self.num_triples // self.batch_size))

    def before_step(self, encoder: nn.Module, links: Tensor, step: int) -> None:
        """Share rows between linked entities, and search for soft alignments at intervals."""
        assert isinstance(encoder, IPTransE)
        if step == 0:
            encoder.share(links)
            self.soft_weight.zero_()
        elif step % (self.bootstrap_every * self.steps_per_epoch(len(links))) == 0:
            self._bootstrap(encoder, links)

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Return the loss of one step."""
        assert isinstance(encoder, IPTransE)
        relations = normalize(encoder.relations)
        loss = relations.sum() * 0
        if len(encoder.triples):
            loss = loss + self._triple_loss(encoder, relations)
        if len(encoder.paths):
            loss = loss + self.path_weight * self._path_loss(encoder, relations)
        return loss

    def _triple_loss(self, encoder: IPTransE, relations: Tensor) -> Tensor:
        triples = encoder.triples
        size = min(self.batch_size, len(triples))
        picked = torch.randint(len(triples), (size,), device=triples.device)
        head, relation, tail = triples.index_select(0, picked).unbind(1)
        false = random_neighbour(head, encoder.num_source, len(encoder.entities))
        at_head = torch.rand(size, device=triples.device) < 0.5
        # the triple, then with its head and with its tail replaced by a soft counterpart
        heads = torch.cat([head, self.soft_partner[head], head])
        tails = torch.cat([tail, tail, self.soft_partner[tail]])
        weights = torch.cat(
            [torch.ones_like(head), self.soft_weight[head], self.soft_weight[tail]]
        )
        false = false.repeat(3)
        at_head = at_head.repeat(3)
        false_heads = torch.where(at_head, false, heads)
        false_tails = torch.where(at_head, tails, false)
        ends = encoder.entity_rows(torch.cat([heads, false_heads, tails, false_tails]))
        from_head, to_tail = ends.view(2, 2, 3 * size, -1)
        translation = relations.index_select(0, relation).repeat(3, 1)
        near, far = (from_head + translation - to_tail).square().sum(2)
        return (weights * torch.relu(self.margin + near - far)).sum()

    def _path_loss(self, encoder: IPTransE, relations: Tensor) -> Tensor:
        num_paths = len(encoder.paths)
        device = relations.device
        size = max(1, num_paths // self.steps_per_epoch(0))
        picked = torch.randint(num_paths, (size,), device=device)
        first, second, direct = encoder.paths.index_select(0, picked).unbind(1)
        false = torch.randint(len(relations), (size,), device=device)
        chosen = relations.index_select(0, torch.cat([first, second, direct, false]))
        one, two, true, wrong = chosen.view(4, size, -1)
        near = (one + two - true).square().sum(1)
        far = (one + two - wrong).square().sum(1)
        ends = encoder.path_ends.index_select(0, picked)
        return (torch.relu(self.margin + near - far) / ends).sum()

    @torch.no_grad()
    def _bootstrap(self, encoder: IPTransE, links: Tensor) -> None:
        """Write the soft alignments of entities without a link into the buffers."""
        rows = encoder()
        free = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        free[links.flatten()] = False
        ids = free.nonzero().squeeze(1)
        source = ids[ids < encoder.num_source]
        target = ids[ids >= encoder.num_source]
        self.soft_weight.zero_()
        if not len(source) or not len(target):
            return
        similarity = Cosine()(rows[source], rows[target])
        found = top_candidates(similarity, 1)
        best = found.targets[:, 0]
        cosines = found.scores[:, 0]
        taken = mutual_best(best, similarity) & (cosines > self.threshold)
        if self.rejected is not None:
            taken &= ~self.rejected(source, target[best] - encoder.num_source)
        source = source[taken]
        target = target[best[taken]]
        scores = cosines[taken].to(self.soft_weight.dtype)
        for one, other in ((source, target), (target, source)):
            self.soft_partner[one] = other
            self.soft_weight[one] = scores


def random_neighbour(entities: Tensor, num_source: int, num_entities: int) -> Tensor:
    """Return a random entity of the same graph for each entity."""
    of_target = (entities >= num_source).long()
    low = of_target * num_source
    size = num_source + of_target * (num_entities - 2 * num_source)
    return low + torch.randint(2**62, entities.shape, device=entities.device) % size
