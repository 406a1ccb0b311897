"""Who is linked to whom, one partner an entity."""

import numpy as np

from emea.data.arrays import IntArray

NOBODY = -1


def counterparts(links: IntArray, num_entities: int) -> IntArray:
    """``[num_entities]`` the entity each is linked to, or ``NOBODY``.

    Where labels of an E-step give an entity several links, the first counts: given links come
    before derived ones.
    """
    partner = np.full(num_entities, NOBODY, dtype=np.int64)
    backwards = links[::-1]
    partner[backwards[:, 0]] = backwards[:, 1]
    partner[backwards[:, 1]] = backwards[:, 0]
    return partner
