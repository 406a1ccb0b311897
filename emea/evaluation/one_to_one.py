"""Metrics of test links after one-to-one inference, next to those of the ranking."""

from collections.abc import Callable
from typing import Any

from emea.data.arrays import IntArray
from emea.evaluation.joint_ranks import candidate_ranks
from emea.evaluation.metric_table import RANKING_METRICS
from emea.evaluation.ranks import ranking_metrics
from emea.matching.beliefs import Beliefs

MOST_BELIEFS = 2**25
"""Beliefs up to which they are balanced. A round holds them several times in double precision."""

SHOWN = tuple(metric.name for metric in RANKING_METRICS if metric.after_one_to_one)


def one_to_one_metrics(
    balanced: Callable[[Beliefs], Beliefs],
    beliefs: Beliefs,
    links: IntArray,
    missed_share: float = 0.0,
) -> dict[str, Any] | None:
    """Return Hit@k and MRR among test targets and, as ``all_targets``, among all targets.

    Args:
        balanced: The inference, which moves source entities with the same best candidate apart.
        beliefs: Candidates and probabilities, without entities of known links.
        links: ``[num_links, 2]`` test links that are ranked. A target that is not a candidate
            counts as not found.
        missed_share: Share of all test links that no method can find.

    Returns:
        The metrics; ``None`` if there are no links, or too many beliefs to balance.
    """
    if not len(links) or beliefs.probs.numel() > MOST_BELIEFS:
        return None
    ranks = candidate_ranks(balanced(beliefs), links)
    found, in_all = (
        {name: (1 - missed_share) * ranking_metrics(values)[name] for name in SHOWN}
        for values in (ranks.in_pool, ranks.in_all)
    )
    return {**found, "all_targets": in_all}
