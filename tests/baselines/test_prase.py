"""PRASE with an embedding made by hand."""

import numpy as np
import pytest
import torch

from emea.baselines.paris_reasoner import ParisReasoner
from emea.baselines.prase import PRASE, left_over_pairs
from emea.baselines.reasoner import Fusion, ReasoningReport, fixed_log_doubt
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.matching.beliefs import Matching
from emea.matching.similarity import Cosine, Similarity
from emea.rules.implied_pairs import ImpliedPairs


def telling_embedding(pair: GraphPair, noise: float, seed: int = 0) -> Similarity:
    """Linked entities have nearly the same vector."""
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(pair.target.num_entities, 16))
    source = rng.normal(size=(pair.source.num_entities, 16))
    near = target[pair.links[:, 1]]
    source[pair.links[:, 0]] = near + noise * rng.normal(size=near.shape)
    return Cosine()(torch.from_numpy(source).float(), torch.from_numpy(target).float())


def recall(matching: Matching, links: np.ndarray) -> float:
    return float((matching.targets.numpy()[links[:, 0]] == links[:, 1]).mean())


def test_the_cosine_is_mixed_in() -> None:
    axes = torch.eye(3)
    similarity = Cosine()(axes, torch.stack([axes[0], -axes[1], axes[0] + axes[1]]))
    pairs = ImpliedPairs(
        torch.tensor([0, 1, 0]),
        torch.tensor([0, 1, 2]),
        fixed_log_doubt(torch.tensor([0.5] * 3)),
    )
    mixed = Fusion(similarity, 0.2)(pairs)
    expected = [0.8 * 0.5 + 0.2 * cosine for cosine in (1.0, 0.0, 0.5**0.5)]
    assert mixed.log_doubt.tolist() == pytest.approx(
        fixed_log_doubt(torch.tensor(expected)).tolist(), rel=1e-5
    )


def test_left_over_entities_pair_among_themselves() -> None:
    axes = torch.eye(4)
    matching = Matching(
        torch.tensor([0, -1, -1]), torch.tensor([1.0, 0, 0]).double(), 4
    )
    # 1 is nearest to the taken 0, then to 1; 2 prefers 1, which prefers 1
    source = torch.stack([axes[0], 2 * axes[0] + axes[1], axes[1] + axes[2]])
    found = left_over_pairs(Cosine()(source, axes), matching)
    brute = torch.nn.functional.normalize(source[1:]) @ axes[1:].T
    best = brute.argmax(1)
    expected = [
        [i + 1, int(j) + 1] for i, j in enumerate(best) if brute[:, j].argmax() == i
    ]
    assert found.pairs().tolist() == expected
    for x, y in expected:
        assert found.probs[x].item() == pytest.approx(
            brute[x - 1, y - 1].item(), abs=1e-6
        )


def test_trains_on_seeds_and_sure_pairs_and_improves_on_paris() -> None:
    pair = synthetic_pair(num_entities=300)
    links = torch.from_numpy(
        pair.links[np.random.default_rng(0).permutation(len(pair.links))]
    )
    seeds, asked, reports = links[:15], [], []
    prase = PRASE(pair)
    prase.rounds = 2

    def embed(labels: torch.Tensor) -> Similarity:
        asked.append(labels)
        return telling_embedding(pair, noise=0.5)

    found = prase.align(seeds, embed, reports.append)
    alone = ParisReasoner(pair).align(seeds, embed, lambda _: None)
    assert len(asked) == 2
    assert asked[0].tolist() == alone.pairs().tolist()
    assert recall(found, links[15:].numpy()) > recall(alone, links[15:].numpy()) + 0.05
    check_history(reports)


def check_history(reports: list[ReasoningReport]) -> None:
    assert [report.iteration for report in reports] == list(range(len(reports)))
    with_embedding = [report.similarity is not None for report in reports]
    assert with_embedding == sorted(with_embedding)
    assert set(with_embedding) == {False, True}
