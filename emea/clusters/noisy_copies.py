"""Noisy copies of entities: duplicates that are known, from which others are learned.

In a graph without duplicates, nothing shows what a duplicate would look like, and the most similar
pairs would be taken for some. So copies of some entities are made, in which values are missing or
changed, and compared like all others. They show how duplicates agree. And the best other candidate
of an entity with a copy is a decoy that is known to be one.
"""

import random
from dataclasses import replace

import numpy as np

from emea.data.arrays import IntArray
from emea.data.attributes import AttributeTriples

SEED = 0

MOST_COPIES, SHARE = 500, 0.5
"""Maximum number of copies, and the share of the entities that have one."""

MISSING, CHANGED = 0.15, 0.3
"""Share of the values that a copy lacks, and of the others that are changed."""


def with_noisy_copies(
    attributes: AttributeTriples, num_entities: int, distinct: IntArray
) -> tuple[AttributeTriples, IntArray]:
    """Return the values with those of the copies, and the entity of which each copy is made.

    Args:
        attributes: The values of the entities.
        num_entities: The number of entities. Copies are numbered from here.
        distinct: Entities of which copies may be made; no two of them have the same values.
    """
    rng = random.Random(SEED)
    known = np.intersect1d(distinct, attributes.triples[:, 0]).tolist()
    num_copies = min(int(SHARE * len(known)), MOST_COPIES)
    originals = sorted(rng.sample(known, num_copies))
    cells = attributes.triples[np.lexsort(attributes.triples.T[::-1])]
    starts, ends = (
        np.searchsorted(cells[:, 0], originals, side=side).tolist()
        for side in ("left", "right")
    )
    triples = []
    texts: list[str] = []
    kinds: list[int] = []
    for copy, (start, end) in enumerate(zip(starts, ends, strict=True), num_entities):
        for _, attribute, value in cells[start:end].tolist():
            if rng.random() < MISSING:
                continue
            text = attributes.values[value]
            is_changed = rng.random() < CHANGED
            triples.append((copy, attribute, len(attributes.values) + len(texts)))
            texts.append(changed(text, rng) if is_changed else text)
            kinds.append(int(attributes.kinds[value]))
    further = np.array(triples, dtype=np.int64).reshape(-1, 3)
    copied = replace(
        attributes,
        triples=np.concatenate([attributes.triples, further]),
        values=[*attributes.values, *texts],
        kinds=np.append(attributes.kinds, kinds).astype(np.int64),
    )
    return copied, np.array(originals, dtype=np.int64)


def changed(text: str, rng: random.Random) -> str:
    """Return a text without one of its words, or with a mistyped character if it has few words."""
    words = text.split()
    if len(words) > 2:
        words.pop(rng.randrange(len(words)))
        return " ".join(words)
    place = rng.randrange(max(1, len(text)))
    start = text[:place]
    rest = text[place:]
    kind = rng.randrange(3)
    if kind == 0:
        return start + rest[1:]
    if kind == 1:
        return start + rng.choice(text or " ") + rest
    return start + rest[:2][::-1] + rest[2:]
