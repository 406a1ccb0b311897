"""The mapping of relations and classes that whole runs find."""

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig

from emea.answer.decision import Decision, with_given
from emea.answer.schema import Schema
from emea.config.composition import composed
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.matching.beliefs import Beliefs
from emea.run.finished_run import load_run
from emea.run.job import run_job
from emea.run.predicting import predict, run_schema
from emea.run.schema_mapping import schema_mapping

from ..data.conftest import real_folder  # noqa: F401

Configs = Callable[..., DictConfig]


def sure(pair: GraphPair) -> Decision:
    """All links of a pair, as certain matches."""
    targets = torch.zeros(pair.source.num_entities, 1, dtype=torch.int64)
    probs = torch.zeros(pair.source.num_entities, 1)
    links = torch.from_numpy(pair.links.copy())
    targets[links[:, 0], 0] = links[:, 1]
    probs[links[:, 0]] = 1
    answer = Beliefs(targets, probs)
    return Decision(answer, answer, links, 0.0)


def true_inclusions(pair: GraphPair) -> dict[tuple[str, str], str]:
    """The mapping of each pair of relations, from the facts that both graphs contain."""
    theirs: dict[tuple[int, int], set[int]] = {}
    for head, relation, tail in pair.target.triples.tolist():
        theirs.setdefault((head, tail), set()).add(relation)
    ours = dict(map(tuple, pair.links.tolist()))
    common: Counter[tuple[int, int]] = Counter()
    num_ours: Counter[int] = Counter()
    num_theirs: Counter[int] = Counter()
    for head, relation, tail in pair.source.triples.tolist():
        others = theirs.get((ours.get(head, -1), ours.get(tail, -1)), set())
        common.update((relation, other) for other in others)
        num_ours[relation] += bool(others)
        num_theirs.update(others)
    found = {}
    for (one, other), count in common.items():
        shares = count / num_ours[one], count / num_theirs[other]
        kind = {
            (True, True): "equivalent",
            (True, False): "narrower",
            (False, True): "broader",
        }
        mapping = kind.get((shares[0] > 0.75, shares[1] > 0.75))
        if mapping is not None:
            found[str(one), str(other)] = mapping
    return found


def precision_and_recall(schema: Schema, pair: GraphPair) -> tuple[float, float, float]:
    """Precision of all statements, their recall, and the recall of equivalences."""
    true = true_inclusions(pair)
    stated = {
        (row.source, row.target): row.mapping for row in schema.relations if row.mapping
    }
    right = {names for names, mapping in stated.items() if true.get(names) == mapping}
    equal = {names for names, mapping in true.items() if mapping == "equivalent"}
    return (
        len(right) / len(stated),
        len(right) / len(true),
        len(right & equal) / len(equal),
    )


def test_true_links_give_the_true_relations() -> None:
    pair = synthetic_pair(num_entities=1000, num_relations=40)
    schema = schema_mapping(pair, sure(pair), 0.5)
    precision, recall, equal = precision_and_recall(schema, pair)
    assert precision >= 0.8 and recall >= 0.8 and equal >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [["method=paris"], ["model=lightea", "em=dual", "em.iterations=1"]]
)
def test_runs_find_the_relations_of_the_synthetic_pair(
    method: list[str], tmp_path: Path
) -> None:
    pair = synthetic_pair(num_entities=1000, num_relations=40)
    config = composed(["data=synthetic", "tracking=none", "ratio=0.2", *method])
    precision, recall, equal = precision_and_recall(
        run_job(config, tmp_path, pair=pair).schema, pair
    )
    assert precision >= 0.8 and recall >= 0.7 and equal >= 0.8


def test_a_run_writes_its_relations_and_predict_writes_the_same(
    tiny_config: Configs, tmp_path: Path
) -> None:
    result = run_job(tiny_config("method=paris", "export.formats=[nt,sssom]"), tmp_path)
    run = load_run(tmp_path)
    files = ["relations.tsv", "classes.tsv", "schema.nt", "schema.sssom.tsv"]
    _, written = predict(run, tmp_path / "again", result.export)
    assert set(files) <= {path.name for path in written}
    for file in files:
        assert (tmp_path / file).read_bytes() == (
            tmp_path / "again" / file
        ).read_bytes()
    with (tmp_path / "relations.tsv").open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    assert rows and len(rows) == len(result.schema.relations)
    again = run_schema(run, run.settings.own.export)
    assert again == result.schema
    stricter = with_given(result.export, least_inclusion=1.0)
    predict(run, tmp_path / "strict", stricter)
    with (tmp_path / "strict" / "relations.tsv").open(newline="") as lines:
        strict = list(csv.DictReader(lines, delimiter="\t"))
    assert len(strict) == len(rows) and not any(row["mapping"] for row in strict)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["EN_FR_15K_V1", "EN_DE_15K_V1"])
def test_relations_with_the_same_name_are_found(
    name: str,
    real_folder: Callable[[str], Path],  # noqa: F811
    tmp_path: Path,
) -> None:
    folder = real_folder(f"openea/{name}")
    chosen = ["data=openea", f"data.folder={folder}", "split=official", "method=paris"]
    schema = run_job(composed([*chosen, "tracking=none"]), tmp_path).schema
    rows = [row for row in schema.relations if row.mapping == "equivalent"]
    pair = load_run(tmp_path).pair
    names = [
        {one.rpartition("/")[2] for one in graph.relation_names or ()}
        for graph in (pair.source, pair.target)
    ]
    shared = names[0] & names[1]
    judged = [
        (row.source.rpartition("/")[2], row.target.rpartition("/")[2], row.inverse)
        for row in rows
    ]
    judged = [one for one in judged if one[0] in shared or one[1] in shared]
    right = [one for one in judged if one[0] == one[1] and not one[2]]
    assert len(right) / len(judged) >= 0.75
    assert len(right) / len(shared) >= 0.38
