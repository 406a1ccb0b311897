"""Rules side by side."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph_pair import GraphPair
from emea.rules.avoid_conflict import AvoidConflict
from emea.rules.paris import PARIS
from emea.rules.rule import Composed, RuleView

from .literal_avoid_conflict import bare_pair
from .literal_paris import beliefs_of, pairs


@given(st.data(), pairs(loops=False), st.booleans(), st.integers(0, 2**32))
def test_equals_its_parts_one_after_the_other(
    data: st.DataObject, pair: GraphPair, blanket: bool, seed: int
) -> None:
    beliefs = data.draw(beliefs_of(pair))
    rng = np.random.default_rng(seed)
    embeddings = torch.from_numpy(rng.normal(size=(pair.source.num_entities, 3)))
    makers = {
        "paris": partial(PARIS, markov_blanket=blanket),
        "avoid_conflict": partial(AvoidConflict, num_neighbours=2),
    }
    together = Composed(makers, pair)
    alone = [make(pair=pair) for make in makers.values()]
    view = RuleView(beliefs, embeddings)
    for rule in (together, *alone):
        rule.prepare(view)
    # the parts' shortcuts rest on the beliefs they were prepared with; give them fewer, too
    for given_beliefs in (beliefs, beliefs.hardened()):
        expected = torch.cat([rule(given_beliefs) for rule in alone], dim=2)
        assert torch.equal(together(given_beliefs), expected)
    assert list(together.names) == ["paris", "follow_neural", "unique"]


USUAL_PARIS, USUAL_CONFLICT = PARIS, AvoidConflict
PAIR = bare_pair(3, 3)


def test_asks_for_unseen_links_if_a_part_does() -> None:
    assert not Composed({"a": USUAL_PARIS}, PAIR).fits_on_unseen_links
    assert Composed({"a": USUAL_PARIS, "b": USUAL_CONFLICT}, PAIR).fits_on_unseen_links


def test_parts_must_have_names_of_their_own() -> None:
    with pytest.raises(ValueError, match="must be distinct"):
        Composed({"a": USUAL_PARIS, "b": USUAL_PARIS}, PAIR)
    with pytest.raises(ValueError, match="at least one"):
        Composed({}, PAIR)
