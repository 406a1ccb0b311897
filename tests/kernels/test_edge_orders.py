"""Orders and chunks of edges against loops over lists."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.reflection_layers import ReflectionLayers
from emea.kernels import edge_orders
from emea.kernels.edge_orders import Chunks, chunks

Runs = dict[int, list[list[int]]]


def slow_chunks(ids: list[int], num_runs: int, size: int) -> Runs:
    """Positions of each chunk of each run in the sorted ids."""
    found: Runs = {}
    start = 0
    for run in range(num_runs):
        places = list(range(start, start + ids.count(run)))
        start += len(places)
        found[run] = [
            places[at : at + size] for at in range(0, max(1, len(places)), size)
        ]
    return found


def check(found: Chunks, expected: Runs) -> None:
    seen: Counter[int] = Counter()
    by_slot: dict[int, tuple[int, list[int]]] = {}
    parts = zip(*(part.tolist() for part in found[:4]), strict=True)
    lengths = (found.ends - found.starts).tolist()
    assert lengths == sorted(lengths, reverse=True)
    for run, start, end, slot in parts:
        places = list(range(start, end))
        assert places in expected[run]
        seen[run] += 1
        assert (slot < 0) == (len(expected[run]) == 1)
        if slot >= 0:
            by_slot[slot] = run, places
    assert seen == {run: len(of_run) for run, of_run in expected.items()}
    assert sorted(by_slot) == list(range(found.num_slots))
    hubs = [run for run, of_run in expected.items() if len(of_run) > 1]
    assert found.hubs.tolist() == hubs
    for place, run in enumerate(hubs):
        first, last = found.hub_slots[place : place + 2].tolist()
        assert [by_slot[slot] for slot in range(first, last)] == [
            (run, c) for c in expected[run]
        ]


@pytest.mark.parametrize("size", [1, 3, 32])
@pytest.mark.parametrize("is_large", [False, True])
def test_chunks(size: int, is_large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_orders, "EDGES_PER_CHUNK", size)
    monkeypatch.setattr(edge_orders, "LARGE", 0 if is_large else 10**9)
    torch.manual_seed(0)
    ids = torch.randint(12, (90,)) ** 2 // 12
    ids = ids[ids != 3]
    expected = slow_chunks(ids.tolist(), 13, (1 + is_large) * size)
    check(chunks(ids, 13), expected)


def test_no_edges() -> None:
    empty = chunks(torch.zeros(0, dtype=torch.int64), 2)
    assert (empty.ends == empty.starts).all()
    assert empty.runs.tolist() == [0, 1]
    assert empty.num_slots == 0


def test_no_chunk_is_longer_than_the_bits_of_an_integer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edge_orders, "EDGES_PER_CHUNK", edge_orders.MAX_CHUNK)
    monkeypatch.setattr(edge_orders, "LARGE", 0)
    ids = [0] * 130 + [1] * 64 + [2]
    check(chunks(torch.tensor(ids), 3), slow_chunks(ids, 3, 64))


def test_orders_of_a_graph() -> None:
    graph = join_graphs(synthetic_pair(num_entities=100))
    layers = ReflectionLayers(graph, torch.relu, 0.0)
    attention = layers.attention
    parts = (attention.edges.rows, attention.edges.cols, attention.edge_sets.cols)
    orders = edge_orders.edge_orders(*parts, attention.edge_sets.shape)
    edges = list(zip(*(part.tolist() for part in parts), strict=True))
    numbers = range(len(edges))
    by_column = sorted(numbers, key=lambda e: (edges[e][1], edges[e][2], e))
    check_order(orders.by_column, [by_column] * 3, [numbers, *columns(edges, 0, 2)])
    by_neighbour = sorted(numbers, key=lambda e: (edges[e][2], edges[e][1], e))
    by_entity = sorted(numbers, key=lambda e: (edges[e][2], edges[e][0], e))
    sorted_by = [by_neighbour] * 3 + [by_entity] * 2
    values = [numbers, *columns(edges, 1, 0), numbers, *columns(edges, 0)]
    check_order(orders.by_set, sorted_by, values)


def columns(edges: list[tuple[int, ...]], *places: int) -> list[list[int]]:
    return [[edge[place] for edge in edges] for place in places]


def check_order(found: Tensor, orders: list[list[int]], values: list[Any]) -> None:
    for row, order, value in zip(found.tolist(), orders, values, strict=True):
        assert row == [value[edge] for edge in order]


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 4))
def test_chunks_cut_rows_without_gap_or_overlap(lengths: list[int], size: int) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_orders, "EDGES_PER_CHUNK", size)
        *chunks, hubs = edge_orders.row_chunks(starts)
    expected = [
        (row, begin, min(begin + size, int(starts[row + 1])), int(length <= size))
        for row, length in enumerate(lengths)
        # an empty row has an empty chunk, which writes its zeros
        for begin in range(
            int(starts[row]), max(int(starts[row + 1]), int(starts[row]) + 1), size
        )
    ]
    assert list(zip(*(part.tolist() for part in chunks), strict=True)) == expected
    assert hubs.tolist() == [row for row, length in enumerate(lengths) if length > size]
