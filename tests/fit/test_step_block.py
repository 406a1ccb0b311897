"""Blocks of steps as the data module deals them out."""

from itertools import product

import numpy as np
import pytest
import torch

from emea.fit.step_block import LabelDataModule, Labels, block_sizes

LINKS = np.array([[0, 0], [2, 1]])


@pytest.mark.parametrize(
    ("num_steps", "expected"),
    [(0, []), (1, [1]), (4, [4]), (5, [4, 1]), (12, [4, 4, 4])],
)
def test_blocks_add_up_to_the_number_of_steps(
    num_steps: int, expected: list[int]
) -> None:
    data = LabelDataModule(LINKS, num_source=10, block_size=4)
    data.num_steps = num_steps
    loader = data.blocks()
    blocks = list(loader)
    assert [block.num_steps for block in blocks] == expected
    assert len(loader) == len(expected)


@pytest.mark.parametrize(
    ("links", "weights"),
    [
        ([[0, 10], [10, 11]], None),
        ([[0, 9]], None),
        ([[0, 15]], None),
        ([[-1, 10]], None),
        ([[0.0, 10.0]], None),
        ([0, 10], None),
        ([[0, 10]], [1.0, 2.0]),
    ],
)
def test_links_from_a_file_must_be_between_these_graphs(
    links: list[object], weights: list[float] | None
) -> None:
    data = LabelDataModule(LINKS, num_source=10, num_target=5)
    with pytest.raises(
        ValueError, match=r"not (between|pairs|every link has a weight)"
    ):
        given = None if weights is None else torch.tensor(weights)
        data.restore([Labels(torch.tensor(links), given)])
    assert data.labels.tolist() == LINKS.tolist()


def test_links_from_a_file_are_taken_over() -> None:
    data = LabelDataModule(LINKS, num_source=10, num_target=5)
    data.restore([Labels(torch.tensor([[9, 14]]), torch.tensor([0.5]))])
    assert data.labels.tolist() == [[9, 4]]
    assert data.weights is not None and data.weights.tolist() == [0.5]


def test_relabelling_shows_in_the_next_loader() -> None:
    links = LINKS.copy()
    data = LabelDataModule(links, num_source=10)
    data.num_steps = 1
    data.relabel([(np.array([[1, 5]]), None)])
    (block,) = data.blocks()
    assert block.labels[0].links.tolist() == [[1, 15]]
    assert links.tolist() == LINKS.tolist()


def test_links_are_copied() -> None:
    links = LINKS.copy()
    data = LabelDataModule(links, num_source=10)
    links[:] = 7
    assert data.links.tolist() == [[0, 10], [2, 11]]


@pytest.mark.parametrize("stop_every", [None, 3, 8, 100])
def test_a_block_ends_at_every_check(stop_every: int | None) -> None:
    for num_steps, block_size in product([0, 1, 11, 24, 25], [1, 4, 50]):
        sizes = block_sizes(num_steps, block_size, stop_every)
        assert sum(sizes) == num_steps
        assert all(1 <= size <= block_size for size in sizes)
        ends = set(np.cumsum(sizes).tolist())
        if stop_every:
            assert set(range(stop_every, num_steps + 1, stop_every)) <= ends
        else:
            assert len(sizes) == -(-num_steps // block_size)


def test_a_plan_counts_epochs() -> None:
    data = LabelDataModule(LINKS, num_source=10, block_size=4, check_every=2)
    data.plan(num_epochs=5, steps_per_epoch=3)
    blocks = list(data.blocks())
    assert [block.num_steps for block in blocks] == [4, 2, 4, 2, 3]
    assert {block.steps_per_epoch for block in blocks} == {3}


def test_blocks_carry_the_labels_of_all_members() -> None:
    data = LabelDataModule(LINKS, num_source=10)
    data.num_steps = 4
    data.active_members = (0, 1)
    (block,) = data.blocks()
    assert [links.tolist() for links, _ in block.labels] == [[[0, 10], [2, 11]]] * 2
    assert block.num_steps == 4 and block.total_steps == 8
    own = [(LINKS[:1], None), (LINKS[1:], torch.tensor([0.5])), (LINKS, None)]
    data.relabel(own)
    data.active_members = (1, 2)
    (block,) = data.blocks()
    assert [links.tolist() for links, _ in block.labels] == [
        [[2, 11]],
        [[0, 10], [2, 11]],
    ]
    assert block.labels[0].weights is not None and block.labels[1].weights is None
    assert data.labels.tolist() == [[2, 1]]
    data.active_members = (0,)
    (block,) = data.blocks()
    assert [links.tolist() for links, _ in block.labels] == [[[0, 10]]]
