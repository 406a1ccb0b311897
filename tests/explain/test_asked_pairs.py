"""Pairs that a file asks for."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from emea.data.graph import KnowledgeGraph
from emea.data.names import EntityIndex
from emea.explain.asked_pairs import listed_pairs

NAMES = ["a\u2028b", "c\x85d", "e\x0cf"]


def test_names_may_hold_what_ends_a_line_elsewhere(tmp_path: Path) -> None:
    graph = KnowledgeGraph([[0, 0, 1], [1, 0, 2]], 3, 1, NAMES)
    explainer: Any = SimpleNamespace(
        source=EntityIndex(graph, "source entity"), target=EntityIndex(graph, "target entity")
    )
    lines = ["source\ttarget", *(f"{name}\t{name}" for name in NAMES), ""]
    for end in ("\n", "\r\n"):
        (tmp_path / "asked.tsv").write_bytes(end.join(lines).encode())
        assert listed_pairs(explainer, tmp_path / "asked.tsv") == [(0, 0), (1, 1), (2, 2)]
