"""Runs in which an entity has several counterparts."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from emea import Aligner, read_graph
from emea.config.composition import composed
from emea.data.settings import Cardinality
from emea.errors import ConfigError, DataError
from emea.explain.explainer import Explainer
from emea.record.pair_file import load_pair
from emea.run.finished_run import load_run
from emea.run.job import run_job
from emea.run.settings import RunSettings
from emea.setting import settings_of

NUM_PEOPLE = 40
FIELDS = ("given", "family", "born", "phone", "town")


def written(folder: Path, side: str, people: list[tuple[str, list[str]]]) -> Path:
    lines = [
        f'<http://x/{side}/{name}> <http://x/{side}#{field}> "{value}" .'
        for name, values in people
        for field, value in zip(FIELDS, values, strict=True)
    ]
    lines += [
        f"<http://x/{side}/{name}> <http://x/a> <http://x/P> ." for name, _ in people
    ]
    path = folder / f"{side}.nt"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half of the persons have three duplicates, in each of which two fields differ."""
    folder, rng = tmp_path_factory.mktemp("people"), np.random.default_rng(7)
    people = [
        (
            f"p{one}",
            [f"g{one % 7}", f"f{one % 11}", f"b{one}", f"t{one}", f"c{one % 5}"],
        )
        for one in range(NUM_PEOPLE)
    ]
    copies, links = [], []
    for name, values in people[: NUM_PEOPLE // 2]:
        for copy in range(3):
            changed = list(values)
            for place in rng.choice(len(FIELDS), 2, replace=False):
                changed[place] = f"{changed[place]}{rng.integers(100, 999)}"
            copies.append((f"{name}-{copy}", changed))
            links.append((f"http://x/a/{name}", f"http://x/b/{name}-{copy}"))
    written(folder, "a", people)
    written(folder, "b", copies)
    (folder / "links.tsv").write_text(
        "".join(f"{one}\t{other}\n" for one, other in links)
    )
    (folder / "few.tsv").write_text(
        "".join(f"{one}\t{other}\n" for one, other in links[:9])
    )
    (folder / "others.tsv").write_text(
        "".join(f"{one}\t{other}\n" for one, other in links[9:])
    )
    return folder


def settings(files: Path, *further: str) -> list[str]:
    given = [f"data.source={files / 'a.nt'}", f"data.target={files / 'b.nt'}"]
    return [
        "data=files",
        *given,
        "method=paris",
        "literals=similar",
        "tracking=none",
        *further,
    ]


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        return list(csv.reader(lines, delimiter="\t"))[1:]


@pytest.mark.parametrize("links", ["none", "few"])
def test_duplicates_are_found_and_judged(
    files: Path, tmp_path: Path, links: str
) -> None:
    given = [] if links == "none" else [f"data.links={files / 'few.tsv'}"]
    test = "links.tsv" if links == "none" else "others.tsv"
    more = [*given, f"data.test_links={files / test}", "cardinality=one_to_many"]
    more += ["split.num_validation=0", "export.formats=[tsv,sssom,jsonl]"]
    run = run_job(composed(settings(files, *more)), tmp_path)
    answer = run.metrics["answer"]
    assert answer["recall"] > 0.9 and answer["precision"] > 0.9
    gold = {
        tuple(row) for row in csv.reader((files / "links.tsv").open(), delimiter="\t")
    }
    persons = [
        row for row in rows_of(tmp_path / "alignment.tsv") if row[0] != "http://x/P"
    ]
    pairs = {(one, other) for one, other, *_ in persons}
    assert len(pairs & gold) > 0.9 * len(gold) and len(pairs) == len(persons)
    assert len({other for _, other in pairs}) == len(pairs), "a target has one source"
    if links == "few":
        known = {
            tuple(row) for row in csv.reader((files / "few.tsv").open(), delimiter="\t")
        }
        objects = map(json.loads, (tmp_path / "alignment.jsonl").open())
        assert {
            (one["source"], one["target"]) for one in objects if one["given"]
        } == known
    shown = {
        row[9 - 1] for row in rows_of(tmp_path / "alignment.sssom.tsv") if row[4] != ""
    }
    assert shown >= {"1:n", "1:0"} and "n:1" not in shown
    objects = [json.loads(line) for line in (tmp_path / "alignment.jsonl").open()]
    assert {(one["source"], one["target"]) for one in objects if one["target"]} >= pairs
    assert Explainer(load_run(tmp_path)).answers


def test_the_python_api_has_a_row_for_each_match(files: Path) -> None:
    links = [
        tuple(row) for row in csv.reader((files / "links.tsv").open(), delimiter="\t")
    ]
    aligner = Aligner(settings=["literals=similar", "cardinality=one_to_many"])
    source, target = (read_graph(files / f"{side}.nt", literals=True) for side in "ab")
    aligner.fit(source, target, links[:9])
    found = {
        (match.source, match.target) for match in aligner.predict() if match.target
    }
    assert len(found & set(links)) > 0.9 * len(links)
    judged = aligner.evaluate(links[9:])
    assert judged.recall > 0.9 and judged.hit_at_1 > 0.9
    frame = aligner.to_frame()
    assert (
        frame["is_label"].sum() == len(aligner._fitted.run.labels)
        and frame["source"].duplicated().any()
    )


def test_links_that_contradict_it_are_refused(files: Path) -> None:
    one_to_one = settings(files, f"data.links={files / 'links.tsv'}")
    with pytest.raises(
        DataError, match=r"links\.tsv, line 2.*such as cardinality=one_to_many"
    ):
        load_pair(composed(one_to_one))
    with pytest.raises(DataError, match=r"source entity .* is already linked"):
        load_pair(composed([*one_to_one, "cardinality=many_to_one"]))
    pair = load_pair(composed([*one_to_one, "cardinality=one_to_many"]))
    assert len(pair.links) == 3 * NUM_PEOPLE // 2 and pair.cardinality == "one_to_many"


@pytest.mark.parametrize(
    ("further", "message"),
    [
        (["method=prase"], "method=prase is one-to-one"),
        (["method=emea", "model=lightea"], "method=emea is one-to-one"),
        (["cardinality=several"], "cardinality must be one of one_to_one, one_to_many"),
    ],
)
def test_what_cannot_match_several(
    files: Path, further: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run_job(
            composed(settings(files, "cardinality=one_to_many", *further)),
            files / "out",
        )


def test_the_setting_has_the_values_of_the_class() -> None:
    one = next(one for one in settings_of(RunSettings) if one.key == "cardinality")
    assert one.allowed == tuple(Cardinality) and one.default == Cardinality.ONE_TO_ONE
