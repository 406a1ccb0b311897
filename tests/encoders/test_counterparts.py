"""One partner an entity."""

import numpy as np

from emea.encoders.joint_graph import counterparts


def test_partners_on_both_sides() -> None:
    assert counterparts(np.array([[0, 4], [2, 3]]), 6).tolist() == [4, -1, 3, 2, 0, -1]


def test_the_first_link_counts() -> None:
    links = np.array([[1, 4], [0, 4], [1, 5]])
    assert counterparts(links, 6).tolist() == [4, 4, -1, -1, 1, 1]


def test_without_links() -> None:
    assert counterparts(np.zeros((0, 2), dtype=np.int64), 2).tolist() == [-1, -1]
