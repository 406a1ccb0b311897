"""The comparison of updates with new runs."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.benchmark_runs import finished_runs
from benchmarks.growing_graphs import Versions, main
from emea.data.sources.synthetic import synthetic_pair
from emea.data.split import random_split
from experiments.archive.packing import packed_runs

from ..data.named_facts import named_edges


@pytest.mark.parametrize("order", ["random", "file"])
def test_the_earlier_version_lacks_triples_and_their_entities(order: str) -> None:
    pair = synthetic_pair(num_entities=200, seed=4)
    split = random_split(pair, 0.2, seed=1, num_validation=20)
    found = Versions.of(pair, split, 0.25, order, seed=2)
    for side in ("source", "target"):
        old, new = (getattr(one, side) for one in (found.earlier, found.later))
        assert named_edges(old) < named_edges(new)
        assert old.num_triples == new.num_triples - round(0.25 * new.num_triples)
        assert set(np.unique(old.triples[:, [0, 2]])) == set(range(old.num_entities))
        assert set(old.all_entity_names) < set(new.all_entity_names)
    kept = named_edges(found.earlier.source)
    first = pair.source.triples[: len(kept)].tolist()
    is_first = kept == {tuple(map(str, triple)) for triple in first}
    assert is_first == (order == "file")


def test_both_versions_have_the_same_labels() -> None:
    pair = synthetic_pair(num_entities=200, seed=4)
    split = random_split(pair, 0.2, seed=1, num_validation=20)
    found = Versions.of(pair, split, 0.4, "random", seed=2)
    parts = []
    for one in (found.earlier, found.later):
        assert one.official is not None
        parts.append(
            [
                {
                    (one.source.entity_name(s), one.target.entity_name(t))
                    for s, t in links.tolist()
                }
                for links in (
                    one.official.train,
                    one.official.validation,
                    one.official.test,
                )
            ]
        )
    assert parts[0][:2] == parts[1][:2] and 0 < len(parts[0][0]) < len(
        split.supervision.train
    )
    assert (
        parts[0][2] < parts[1][2] == {(str(s), str(t)) for s, t in split.test.tolist()}
    )


@pytest.mark.slow
def test_updates_and_new_runs_have_the_same_test_links(tmp_path: Path) -> None:
    settings = ["data.num_entities=200", "split.num_validation=20", "trainer=cpu"]
    settings += ["model.encoder.dim=64", "em.iterations=1", "--shares", "0.1"]
    main([*settings, "--ratio", "0.2", "--out", str(tmp_path)])
    runs = dict(finished_runs(tmp_path))
    assert set(runs) == {f"growth {part} 10%" for part in ("base", "update", "fresh")}
    packed = {
        path.name.rpartition("-")[2]: packed_runs(path) for path in tmp_path.iterdir()
    }
    links = {
        part: next(iter(one.values())).entry["links"] for part, one in packed.items()
    }
    assert links["update"] == links["fresh"] != links["base"]
    counts = [runs[f"growth {part} 10%"]["num_links"] for part in ("update", "fresh")]
    assert counts[0] == counts[1]
