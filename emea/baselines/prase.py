"""PRASE (Qi et al., IJCAI 2021): PARIS and an encoder that improve each other."""

import torch
from torch import Tensor

from emea.baselines.paris_reasoner import ParisReasoner
from emea.baselines.reasoner import Embed, Fusion, Observer, Reasoner
from emea.data.arrays import NO_MATCH
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Matching
from emea.matching.candidates import mutual_pairs
from emea.matching.rejected_pairs import RejectedPairs
from emea.matching.similarity import Similarity
from emea.rules.implied_pairs import ALMOST_SURE


class PRASE(Reasoner):
    """Runs PARIS, then, in each round, trains an encoder on its pairs and runs PARIS again.

    The encoder influences PARIS in two ways. Its cosine is mixed into every equivalence, and mutual
    nearest pairs among the unmatched entities join the matching, with their cosine as a lower
    bound of their probability. The released code takes these entities from the true links and
    thus knows which entities have a counterpart; here they are all unmatched entities.

    Args:
        pair: The two graphs.
        device: Device to compute on.
    """

    rounds = 1  # released PRASE
    """How often an encoder is trained."""

    weight = 0.2  # released PRASE: 0.8 of the probability, 0.2 of the cosine
    """Weight of the cosine in an equivalence."""

    least_prob = 0.1  # released PRASE
    """Minimum probability of the pairs that the encoder is trained on, in addition to the seeds."""

    def __init__(self, pair: GraphPair, device: torch.device | str = "cpu") -> None:
        self.paris = ParisReasoner(pair, device)

    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> Matching:
        """Align from seed links; the result is the matching of PARIS after the last round."""
        certain = Matching.of_links(seeds, self.paris.num_source, self.paris.num_target)
        matching = self.paris.settled(certain, certain, observer)
        for _ in range(self.rounds):
            assert isinstance(matching, Matching)
            similarity = embed(
                matching.pairs()[matching.pair_probs() >= self.least_prob]
            )
            known = certain.joined(
                left_over_pairs(similarity, matching, self.paris.rejected)
            )
            fusion = Fusion(similarity, self.weight)
            start = matching.joined(known)
            matching = self.paris.settled(known, start, observer, fusion)
        assert isinstance(matching, Matching)
        return matching


def left_over_pairs(
    similarity: Similarity, matching: Matching, rejected: RejectedPairs | None = None
) -> Matching:
    """Find mutual nearest pairs of unmatched entities, with their cosine as probability.

    Args:
        similarity: Similarity of the embedding.
        matching: The matching, whose entities are left out.
        rejected: Pairs that are left out.
    """
    rows = (matching.targets < 0).nonzero().squeeze(1)
    columns = (matching.target_probs() == 0).nonzero().squeeze(1)
    targets = torch.full_like(matching.targets, NO_MATCH)
    probs = torch.zeros_like(matching.probs)
    if len(rows) and len(columns):
        first, second = mutual_pairs(similarity.restricted(rows, columns)).T
        sources = rows[first]
        found = columns[second]
        if rejected is not None and len(rejected):
            kept = ~rejected(sources, found)
            sources = sources[kept]
            found = found[kept]
        targets[sources] = found
        cosines = Fusion(similarity, 1.0).cosines(sources, found)
        probs[sources] = cosines.clamp(max=ALMOST_SURE)
    return Matching(targets, probs, matching.num_target)
