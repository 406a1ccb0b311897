"""The contrastive and relation loss that AliNet trains with."""

import torch
from torch import Tensor, nn

from emea.encoders.alinet import AliNet
from emea.encoders.joint_graph import counterparts
from emea.encoders.objective import Objective, drawn_links
from emea.matching.candidates import top_candidates
from emea.matching.similarity import Cosine


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
        epsilon: Share of the other side's entities that are too far away to be sampled.
        refresh_every: Number of epochs between searches for the nearest neighbours.
        relation_weight: Weight of the relation loss.
        relation_window: Additional factor of the relation loss if a batch has fewer than two
            triples per relation; otherwise that number is the factor. The released code samples
            this many triples of each relation per step. This class uses all triples and gives them
            the same total weight.
    """

    near_targets: Tensor
    near_sources: Tensor
    partners: Tensor

    def __init__(
        self,
        margin: float = 1.5,
        balance: float = 0.1,
        batch_size: int = 3000,
        num_negatives: int = 10,
        epsilon: float = 0.98,
        refresh_every: int = 10,
        relation_weight: float = 0.01,
        relation_window: int = 50,
    ) -> None:
        super().__init__()
        if not 0 <= epsilon < 1:
            raise ValueError(f"epsilon must lie in [0, 1), got {epsilon}")
        self.margin = margin
        self.balance = balance
        self.batch_size = batch_size
        self.num_negatives = num_negatives
        self.epsilon = epsilon
        self.refresh_every = refresh_every
        self.relation_weight = relation_weight
        self.relation_window = relation_window

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
        unlinked = false_targets != self.partners[source].unsqueeze(1)
        hinges = (self._hinge(rows, source, false_targets) * unlinked).sum()
        unlinked = self.partners[false_sources] != target.unsqueeze(1)
        hinges = hinges + (self._hinge(rows, target, false_sources) * unlinked).sum()
        relational: Tensor = self._triples_per_relation(encoder) * encoder.consistency(rows)
        contrastive = apart.square().sum() + self.balance * hinges
        return contrastive + self.relation_weight * relational

    def _triples_per_relation(self, encoder: AliNet) -> int:
        share = self.batch_size // max(1, encoder.num_relations)
        return share if share > 1 else self.relation_window

    def _hinge(self, rows: Tensor, ends: Tensor, false: Tensor) -> Tensor:
        """Return the loss of each negative pair of these ends."""
        near = rows.index_select(0, false.flatten()).view(*false.shape, -1)
        products = (near @ rows.index_select(0, ends).unsqueeze(2)).squeeze(2)
        return torch.relu(self.margin - 2 + 2 * products)  # for unit rows, |a - b|^2 = 2 - 2 a.b

    def _draw_links(self, links: Tensor) -> Tensor:
        size = min(self.batch_size, len(links))
        if self.link_weights is None:
            return self._draw(len(links), (size,))
        return drawn_links(links, size, self.link_weights)

    def _draw_near(self, near: Tensor, picked: Tensor) -> Tensor:
        columns = self._draw(near.shape[1], (len(picked), self.num_negatives))
        return near[picked.unsqueeze(1), columns].long()

    def _draw(self, high: int, shape: tuple[int, ...]) -> Tensor:
        return torch.randint(high, shape, device=self.near_targets.device)

    def _start(self, encoder: AliNet, links: Tensor) -> None:
        size, num_source, device = len(encoder.features), encoder.num_source, links.device
        partners = counterparts(links.cpu().numpy(), size)
        self.register_buffer("partners", torch.from_numpy(partners).to(device), persistent=False)
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
        source, target = rows[: encoder.num_source], rows[encoder.num_source :]
        nearest = Cosine()(rows[links[:, 0]], target)
        found = top_candidates(nearest, self.near_targets.shape[1]).targets
        self.near_targets.copy_(found + encoder.num_source)
        nearest = Cosine()(rows[links[:, 1]], source)
        self.near_sources.copy_(top_candidates(nearest, self.near_sources.shape[1]).targets)
