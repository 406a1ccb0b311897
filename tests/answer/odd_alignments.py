"""Alignments of entities with any names."""

import numpy as np
from hypothesis import strategies as st

from emea.answer.alignment import Alignment, Origin
from emea.data.arrays import NO_MATCH
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair

ORIGIN = Origin(
    "0123456789abcdef0123456789abcdef", "a run: 5%", "2022-12-07", "0.1.0+abc", "how"
)

MARKS = "\t\n\r \"'\\<>{}|^`%#[]:/?&=,;ä中\u2028\u0085\ufeff\U0001f600"
NAMES = st.one_of(
    st.text(min_size=1, max_size=8),
    st.text(alphabet=MARKS, min_size=1, max_size=8),
    st.text(alphabet=MARKS, max_size=8).map("http://example.org/resource/a".__add__),
    st.sampled_from(
        ["urn:isbn:1", "HTTPS://x.org/#a#b", "a+b://c", "Batman: Year One", "_:b1"]
    ),
)


def named_graph(names: list[str]) -> KnowledgeGraph:
    return KnowledgeGraph(np.zeros((0, 3), dtype=np.int64), len(names), 1, names)


def alignment_of(
    source: list[str], target: list[str], targets: list[int], name: str = "a pair"
) -> Alignment:
    """The first entity is given, the others have some probability and two candidates."""
    pair = GraphPair(
        name, named_graph(source), named_graph(target), np.zeros((0, 2), dtype=np.int64)
    )
    chosen = np.array(targets, dtype=np.int64)
    probs = np.where(chosen == NO_MATCH, 0, 1 / (1 + np.arange(len(source))))
    best = np.stack([chosen.clip(0), np.zeros_like(chosen)], axis=1)
    return Alignment(
        pair=pair,
        origin=ORIGIN,
        targets=chosen,
        probs=probs,
        is_given=(np.arange(len(source)) == 0) & (chosen != NO_MATCH),
        candidates=best,
        candidate_probs=np.tile([0.25, 0.125], (len(source), 1)),
    )


@st.composite
def alignments(draw: st.DrawFn) -> Alignment:
    source = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    target = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    choice = st.integers(NO_MATCH, len(target) - 1)
    targets = draw(st.lists(choice, min_size=len(source), max_size=len(source)))
    return alignment_of(
        source, target, targets, draw(st.sampled_from(["zh", "a pair: 1%"]))
    )


def answer(alignment: Alignment) -> dict[str, str | None]:
    """The target of each source entity, by name."""
    return {row.source: row.target for row in alignment.rows()}
