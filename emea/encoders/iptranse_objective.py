"""The translational losses that IPTransE trains with."""

import torch
from torch import Tensor, nn

from emea.encoders.iptranse import IPTransE
from emea.encoders.objective import Objective
from emea.matching.candidates import mutual_best, top_candidates
from emea.matching.similarity import Cosine


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
        bootstrap_every: Number of epochs between searches for soft alignments; ``None`` switches
            them off.
        threshold: Least cosine of a soft alignment.
    """

    soft_partner: Tensor
    soft_weight: Tensor

    def __init__(
        self,
        margin: float = 1.5,
        path_weight: float = 0.1,
        batch_size: int = 5000,
        bootstrap_every: int | None = 100,
        threshold: float = 0.7,
    ) -> None:
        super().__init__()
        self.margin = margin
        self.path_weight = path_weight
        self.batch_size = batch_size
        self.bootstrap_every = bootstrap_every
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
        elif self.bootstrap_every is not None:
            interval = self.bootstrap_every * self.steps_per_epoch(len(links))
            if step % interval == 0:
                self._bootstrap(encoder, links)

    def forward(self, encoder: nn.Module, links: Tensor) -> Tensor:
        """Return the loss of one step."""
        assert isinstance(encoder, IPTransE)
        relations = encoder.relation_rows()
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
        weights = torch.cat([torch.ones_like(head), self.soft_weight[head], self.soft_weight[tail]])
        false, at_head = false.repeat(3), at_head.repeat(3)
        false_heads = torch.where(at_head, false, heads)
        false_tails = torch.where(at_head, tails, false)
        ends = encoder.entity_rows(torch.cat([heads, false_heads, tails, false_tails]))
        from_head, to_tail = ends.view(2, 2, 3 * size, -1)
        translation = relations.index_select(0, relation).repeat(3, 1)
        near, far = (from_head + translation - to_tail).square().sum(2)
        return (weights * torch.relu(self.margin + near - far)).sum()

    def _path_loss(self, encoder: IPTransE, relations: Tensor) -> Tensor:
        num_paths, device = len(encoder.paths), relations.device
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
        source, target = ids[ids < encoder.num_source], ids[ids >= encoder.num_source]
        self.soft_weight.zero_()
        if not len(source) or not len(target):
            return
        similarity = Cosine()(rows[source], rows[target])
        forward = top_candidates(similarity, 1)
        backward = top_candidates(similarity.reversed(), 1)
        taken = mutual_best(forward, backward) & (forward.scores[:, 0] > self.threshold)
        source, target = source[taken], target[forward.targets[taken, 0]]
        scores = forward.scores[taken, 0].to(self.soft_weight.dtype)
        for one, other in ((source, target), (target, source)):
            self.soft_partner[one] = other
            self.soft_weight[one] = scores


def random_neighbour(entities: Tensor, num_source: int, num_entities: int) -> Tensor:
    """Return a random entity of the same graph for each entity."""
    of_target = (entities >= num_source).long()
    low = of_target * num_source
    size = num_source + of_target * (num_entities - 2 * num_source)
    return low + torch.randint(2**62, entities.shape, device=entities.device) % size
