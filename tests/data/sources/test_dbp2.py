"""The reader of DBP2.0, and its evaluation, on made data."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from emea.config.composition import composed
from emea.data.sources.dbp2 import read_dbp2
from emea.data.sources.synthetic import synthetic_pair
from emea.data.split import official_split
from emea.errors import DataError
from emea.run.job import run_job

Files = dict[str, str]
SHORT = ("tracking=none", "trainer=cpu", "model=lightea", "em=none", "rule=none")


@pytest.fixture
def files() -> Files:
    return {
        "rel_triples_1": "a\tr\tb\nb\ts\tc\nc\ts\td\nd\tr\te\n",
        "rel_triples_2": "C\tR\tA\nA\tR\tB\nB\tR\tX\n",
        "ent_links": "a\tA\nb\tB\nc\tC\n",
        "splits/train_links": "c\tC\n",
        "splits/valid_links": "a\tA\n",
        "splits/test_links": "b\tB\n",
        "splits/test_unlinked_ent1": "d\n",
        "splits/train_unlinked_ent1": "e\n",
    }


def test_parts_and_test_entities_without_a_counterpart(
    write_files: Callable[[Files], Path], files: Files
) -> None:
    pair = read_dbp2(write_files(files), name="dbp2")
    assert pair.name == "dbp2"
    split = official_split(pair)
    known = split.supervision
    sources = [
        [pair.source.entity_name(one) for one in part[:, 0].tolist()]
        for part in (known.train, known.validation, split.test)
    ]
    assert sources == [["c"], ["a"], ["b"]]
    assert pair.unmatched is not None
    assert [pair.source.entity_name(one) for one in pair.unmatched.tolist()] == ["d"]


def test_a_missing_file_says_where_the_data_is(
    write_files: Callable[[Files], Path], files: Files
) -> None:
    del files["splits/test_unlinked_ent1"]
    with pytest.raises(
        DataError, match=r"figshare \(https://doi.org/10.6084/m9.figshare"
    ):
        read_dbp2(write_files(files))


def test_a_run_has_both_evaluations(tmp_path: Path) -> None:
    pair = synthetic_pair(num_entities=150, seed=2)
    links = [f"a{source}\tb{target}" for source, target in pair.links.tolist()]
    free = np.setdiff1d(np.arange(pair.source.num_entities), pair.links[:, 0])
    contents = {
        "rel_triples_1": [f"a{h}\tr{r}\ta{t}" for h, r, t in pair.source.triples],
        "rel_triples_2": [f"b{h}\tr{r}\tb{t}" for h, r, t in pair.target.triples],
        "ent_links": links,
        "splits/train_links": links[:30],
        "splits/valid_links": links[30:50],
        "splits/test_links": links[50:],
        "splits/test_unlinked_ent1": [f"a{one}" for one in free],
    }
    for name, lines in contents.items():
        path = tmp_path / "pair" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = composed(["data=dbp2_zh", f"data.folder={tmp_path / 'pair'}", *SHORT])
    run_job(config, tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["data"] == "dbp2_zh" and metrics["split"] == "official"
    sources = metrics["sources"]
    assert sources["num_without_counterpart"] == len(free)
    assert sources["num_entities"] == len(free) + len(links) - 50
    both = sources["two_step"]
    assert set(both) == {"detection", "alignment"}
    assert all(0 < one["f1"] <= 1 for one in both.values())
