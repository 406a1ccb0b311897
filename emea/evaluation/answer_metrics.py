"""How good an answer is that names at most one target for each source entity."""

import numpy as np

from emea.data.arrays import IntArray
from emea.evaluation.mapping_metrics import mapping_metrics
from emea.matching.beliefs import Beliefs


def answer_metrics(answer: Beliefs, known: IntArray, test: IntArray) -> dict[str, float]:
    """Precision, recall and F1 over the source entities without a label.

    Hit@1 is the share of the test links that the answer has, which is its recall: an entity that
    is left unmatched counts as missed.

    Args:
        answer: its most probable target is what it says of an entity, nothing where that has
            probability 0.
        known: ``[num_known]`` source entities whose label a run may have seen.
        test: ``[num_links, 2]``, of other source entities.
    """
    judged = np.setdiff1d(np.arange(answer.num_source), known)
    matched = judged[answer.probs.max(1).values.cpu().numpy()[judged] > 0]
    pairs = np.stack([matched, answer.best_targets().cpu().numpy()[matched]], axis=1)
    mapping = mapping_metrics(pairs, test)
    num_unmatched = float(len(judged) - len(matched))
    return {"hit@1": mapping["recall"], **mapping, "num_unmatched": num_unmatched}
