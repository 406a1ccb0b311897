"""Records that are compared by all their words, whichever attribute has them."""

from pathlib import Path

import numpy as np
import pytest

from emea.cli.align import main
from emea.literals.similar_items import word_profiles
from emea.literals.value_nodes import value_nodes

from .pairs_with_values import graph_with_values


def test_a_profile_has_all_values_and_the_names_of_neighbours_without_values() -> None:
    facts = [(0, 0, "Blue Door"), (0, 1, "Ann Lee"), (1, 0, "Red"), (1, 1, "Blue Door")]
    graph = graph_with_values(3, facts, [(0, 0, 1), (0, 0, 2), (2, 0, 1)])
    named = ["http://x/0", "http://x/1", "http://x/Novels_set_in_Ruritania"]
    graph = type(graph)(**{**vars(graph), "entity_names": named})
    assert graph.attributes is not None
    nodes = value_nodes(graph.attributes)
    found = word_profiles(graph, nodes, nodes.keys)
    assert {entity: sorted(text.split()) for entity, text in found.items()} == {
        0: sorted(["blue", "door", "ann", "lee", "novels", "set", "in", "ruritania"]),
        1: sorted(["red", "blue", "door"]),
    }


def test_entities_with_a_single_value_have_no_profiles() -> None:
    graph = graph_with_values(2, [(0, 0, "Blue"), (1, 0, "Red")])
    assert graph.attributes is not None
    nodes = value_nodes(graph.attributes)
    assert word_profiles(graph, nodes, nodes.keys) == {}


def test_duplicates_are_found_although_their_words_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    words = [
        f"{first}{second}"
        for first in ("ba", "do", "ki", "lu")
        for second in "bcdfglmnprst"
    ]
    rows: dict[str, list[str]] = {"a": ["id,title,maker,note"], "b": ["id,text,kind"]}
    gold = []
    for number in range(60):
        own = rng.choice(words, 9, replace=False).tolist()
        parts = (" ".join(own[:3]), " ".join(own[3:5]), " ".join(own[5:]))
        rows["a"].append(f"a{number}," + ",".join(parts))
        for copy in range(number % 3):
            kept = rng.permutation(own)[:7].tolist()
            rows["b"].append(
                f"b{number}_{copy},{' '.join(kept[:5])},{' '.join(kept[5:])}"
            )
            gold.append((f"a{number}", f"b{number}_{copy}"))
    for side, lines in rows.items():
        (tmp_path / f"{side}.csv").write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / f"{side}.csv") for side in rows]
    assert (
        main([*files, "cardinality=one_to_many", "--out", str(tmp_path / "out")]) == 0
    )
    lines = (tmp_path / "out" / "alignment.tsv").read_text().splitlines()[1:]
    found = {tuple(line.split("\t")[:2]) for line in lines}
    assert f", with {len(found)} matches (0 links were given" in capsys.readouterr().out
    right = found & set(gold)
    assert 2 * len(right) / (len(found) + len(gold)) > 0.9
