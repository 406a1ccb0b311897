"""The comparison of suggested and random labels."""

from pathlib import Path

import pytest

from benchmarks.benchmark_runs import claimed, finished_runs
from benchmarks.suggested_labels import Person, Task, main
from emea.config.composition import composed
from emea.config.run_config import RunConfig
from emea.run.building import draw_split
from experiments.archive.packing import packed_runs

SETTINGS = [
    "data=synthetic",
    "data.num_entities=150",
    "split.num_validation=20",
    "ratio='0.1'",
]


@pytest.fixture(scope="module")
def task() -> Task:
    return Task.of(composed(SETTINGS), seed=3)


def test_answers_and_test_links_are_disjoint_parts_of_the_test_links(
    task: Task,
) -> None:
    config = composed(SETTINGS)
    split = draw_split(RunConfig.of(config), task.graphs)
    source = task.graphs.source.all_entity_names
    drawn = {source[one] for one in split.test[:, 0].tolist()}
    assert task.pair.official is not None
    names = task.pair.source.all_entity_names
    tested = {names[one] for one in task.pair.official.test[:, 0].tolist()}
    assert tested.isdisjoint(task.answers) and tested | task.answers.keys() == drawn
    assert tested.isdisjoint(task.can_ask) and task.answers.keys() <= task.can_ask
    assert 0.25 * len(drawn) < len(tested) < 0.75 * len(drawn)


def test_random_links_of_more_questions_contain_those_of_fewer(task: Task) -> None:
    people = [Person(arm, task, seed=5) for arm in ("random", "more", "control")]
    run = None  # only suggestions use the run
    few, _ = people[0].reply(run, 4)  # type: ignore[arg-type]
    more, rejected = people[1].reply(run, 6)  # type: ignore[arg-type]
    assert few.items() < more.items() <= task.answers.items()
    assert not rejected and people[2].reply(run, 5) == ({}, [])  # type: ignore[arg-type]
    later, _ = people[0].reply(run, 3)  # type: ignore[arg-type]
    assert len(later) == 3 and later.keys().isdisjoint(few)


def test_a_chain_is_claimed_once(tmp_path: Path) -> None:
    queue = tmp_path / "queue"
    first = claimed(["a", "b", "c"], queue)
    assert next(first) == "a"
    assert list(claimed(["a", "b", "c"], queue)) == ["b", "c"]
    assert list(first) == []


@pytest.mark.slow
def test_all_arms_are_evaluated_on_the_same_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [
        "data.num_entities=150",
        "split.num_validation=20",
        "model=lightea",
        "em=dual",
    ]
    settings += ["model.encoder.dim=64", "em.iterations=1", "trainer=cpu"]
    arguments = ["--data", "synthetic", "--ratio", "0.1", "--split-seeds", "3"]
    arguments += ["--counts", "4", "10", "--out", str(tmp_path / "runs")]
    main([*settings, *arguments, "--queue", str(tmp_path / "queue")])
    counts = {"start": (0,), "suggested": (4, 10), "random": (4, 10), "more": (6, 15)}
    counts["control"] = (4, 10)
    runs = dict(finished_runs(tmp_path / "runs"))
    assert set(runs) == {
        f"labels {arm} {num}" for arm, some in counts.items() for num in some
    }
    trained = {mark: run["num_links"]["train"] for mark, run in runs.items()}
    start = trained["labels start 0"]
    for arm in ("random", "more"):
        assert [trained[f"labels {arm} {num}"] - start for num in counts[arm]] == list(
            counts[arm]
        )
    assert trained["labels control 10"] == start
    assert start <= trained["labels suggested 4"] <= start + 4
    packed = [packed_runs(path) for path in (tmp_path / "runs").iterdir()]
    links = {run.entry["links"] for one in packed for run in one.values()}
    assert len(packed) == 9 and len(links) == 1
    assert {run["num_links"]["test"] for run in runs.values()} == {
        runs["labels start 0"]["num_links"]["test"]
    }
    table = capsys.readouterr().out
    assert f"{runs['labels more 15']['final']['hit@1']:7.4f}" in table
    main(
        [*arguments, "--queue", str(tmp_path / "queue")]
    )  # another process finds nothing to do
    assert capsys.readouterr().out.count("synthetic") == 9
