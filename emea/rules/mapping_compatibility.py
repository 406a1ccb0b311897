"""How well the counterparts of a hard mapping support each other."""

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.rules.paris import PARIS
from emea.rules.rule import RuleView


def mapping_compatibility(rule: PARIS, targets: Tensor) -> Tensor:
    """``[num_source]`` Eq. 19 at each entity's counterpart, its neighbours' taken for certain.

    What relations include each other is estimated from the mapping itself: it is asked whether
    it is compatible with itself, not with what else is known.

    Args:
        rule: of the pair of graphs; whatever it was prepared with before is replaced.
        targets: ``[num_source]`` counterpart of each source entity, on the rule's device; negative
            where there is none. Such entities support nobody and have compatibility 0.
    """
    mapped = targets >= 0
    # one slot for each entity: the join has a row for each edge at most, and nothing is quadratic
    beliefs = Beliefs(targets.clamp(min=0).unsqueeze(1), mapped.float().unsqueeze(1))
    unused = torch.empty(len(targets), 0, device=targets.device)
    rule.prepare(RuleView(beliefs, source_embeddings=unused))
    return rule(beliefs)[:, 0, 0] * mapped
