"""How compatible a run's predictions are, beside the oracle's alignment (Fig. 8).

The oracle knows the test links. What is computed here is told in ``metrics.json`` and nowhere else,
once the run has made its predictions.
"""

from typing import Any

import numpy as np
import torch

from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.evaluation.compatibility import compatibility_metrics
from emea.matching.beliefs import Beliefs
from emea.matching.matching import NOBODY
from emea.rules.mapping_compatibility import mapping_compatibility
from emea.rules.paris import PARIS


def compatibility_section(
    pair: GraphPair, split: Split, mappings: dict[str, IntArray], device: torch.device
) -> dict[str, Any]:
    """What ``metrics.json`` says of each mapping, and of the oracle's.

    Each mapping is taken as it stands: labelled entities have their label in it where a run is
    certain of labels, and what relations include each other is estimated from it alone. The
    oracle's mapping is all links, so all links tell its inclusions.

    Args:
        pair: the graphs and all their links.
        split: of the links; the test links' source entities are judged.
        mappings: ``[num_source]`` counterparts by stage, ``NOBODY`` where there is none.
        device: where to compute.
    """
    rule = PARIS(pair, device=device)
    judged, linked = split.test[:, 0], pair.links[:, 0]
    section = {}
    for stage, targets in {**mappings, "oracle": oracle_mapping(pair)}.items():
        values = mapping_compatibility(rule, torch.from_numpy(targets).to(device))
        section[stage] = compatibility_metrics(
            values.double().cpu().numpy(), targets, judged, linked
        )
    return section


def oracle_mapping(pair: GraphPair) -> IntArray:
    """``[num_source]`` the true counterpart of each source entity, ``NOBODY`` without a link."""
    targets = np.full(pair.source.num_entities, NOBODY, dtype=np.int64)
    targets[pair.links[:, 0]] = pair.links[:, 1]
    return targets


def hard_mapping(beliefs: Beliefs) -> IntArray:
    """``[num_source]`` the most probable candidates, ``NOBODY`` where none has any probability."""
    possible = beliefs.probs.max(1).values > 0
    targets: IntArray = torch.where(possible, beliefs.best_targets(), NOBODY).cpu().numpy()
    return targets
