"""The library: what its examples show, and what it refuses."""

import doctest
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import emea.aligner
import emea.cli.main
from emea import DualSettings, LightEASettings, ParisRuleSettings
from emea.aligner import Aligner, graph_of, read_graph, read_links
from emea.config.composition import composed
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import ConfigError, DataError, UserError
from emea.fit import training_loop
from emea.run import finished_run
from emea.run.finished_run import load_run
from emea.run.job import run_job
from emea.run.resuming import config_to_resume

Triples = list[tuple[str, str, str]]
Example = tuple[Triples, Triples, list[tuple[str, str]]]
QUICK = ["em.iterations=1", "trainer=cpu"]


@pytest.fixture(scope="module")
def example() -> Example:
    """Two graphs by name, and all links between them."""
    pair = synthetic_pair(num_entities=120, seed=1)
    sides = []
    for side, graph in (("s", pair.source), ("t", pair.target)):
        sides.append(
            [(f"{side}{h}", f"{side}r{r}", f"{side}{t}") for h, r, t in graph.triples]
        )
    named = {
        entity
        for triples in sides
        for head, _, tail in triples
        for entity in (head, tail)
    }
    links = [(f"s{one}", f"t{other}") for one, other in pair.links.tolist()]
    return sides[0], sides[1], [link for link in links if named.issuperset(link)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the fitted aligner keeps its run."""
    return tmp_path_factory.mktemp("aligner") / "run"


@pytest.fixture(scope="module")
def fitted(example: Example, folder: Path) -> Aligner:
    source, target, links = example
    aligner = Aligner(model="lightea", em="dual", settings=QUICK, folder=folder)
    return aligner.fit(graph_of(source), graph_of(target), links[:40])


def test_the_example_of_the_docstring() -> None:
    assert doctest.testmod(emea.aligner).failed == 0


def test_settings_as_objects_give_the_same_alignment(
    fitted: Aligner, example: Example
) -> None:
    source, target, links = example
    assert "em.iterations=1" in QUICK
    own = [one for one in QUICK if not one.startswith("em.")]
    aligner = Aligner(LightEASettings(), DualSettings(iterations=1), own)
    aligner.fit(graph_of(source), graph_of(target), links[:40])
    assert aligner.predict() == fitted.predict()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"rule": "avoid_conflict", "em": "paper"}, "avoid_conflict"),
        ({"rule": ParisRuleSettings(markov_blanket=True), "em": "paper"}, "paris"),
        ({"em": "none"}, "none"),
    ],
)
def test_a_rule_is_a_name_or_settings(given: dict[str, Any], expected: str) -> None:
    assert Aligner(model="lightea", **given)._config.rule.name == expected


def test_given_links_are_kept_and_others_found(
    fitted: Aligner, example: Example
) -> None:
    _, _, links = example
    found = {match.source: match.target for match in fitted.predict()}
    held_out = fitted._fitted.run.split.supervision.validation
    names = {fitted._fitted.run.pair.source.entity_name(one) for one in held_out[:, 0]}
    assert all(found[one] == other for one, other in links[:40] if one not in names)
    right = [found[one] == other for one, other in links[40:]]
    assert sum(right) > len(right) / 3


def test_a_threshold_leaves_the_improbable_out(fitted: Aligner) -> None:
    every, some = fitted.predict(), fitted.predict(threshold=0.9)
    assert len(every) == len(some)
    for match, kept in zip(every, some, strict=True):
        assert kept.target == (match.target if match.probability >= 0.9 else None)
    assert any(match.target is None for match in some)


def test_relations_are_those_of_the_file(fitted: Aligner, folder: Path) -> None:
    rows = fitted.relations()
    lines = (folder / "relations.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert [[row.source, row.target, row.mapping] for row in rows] == [
        [*line.split("\t")[:2], line.split("\t")[3]] for line in lines
    ]
    assert any(row.mapping == "equivalent" for row in rows)
    assert not any(row.mapping for row in fitted.relations(least_inclusion=1))
    fewer = sum(row.evidence for row in fitted.relations(threshold=0.9))
    assert fewer < sum(row.evidence for row in rows)
    assert fitted.classes() == []
    with pytest.raises(
        ConfigError, match=r"export\.least_inclusion must be a number above 0"
    ):
        fitted.relations(least_inclusion=0)


def test_classes_follow_from_typed_instances() -> None:
    people = ("anna", "ben", "cleo", "dora")
    source = [(one, "rdf:type", "Person") for one in people] + [
        ("anna", "knows", "ben")
    ]
    target = [(one.upper(), "rdf:type", "Mensch") for one in people] + [
        ("ANNA", "kennt", "BEN")
    ]
    links = [(one, one.upper()) for one in people]
    aligner = Aligner(model="lightea", em="none", settings=["split.num_validation=0"])
    (row,) = aligner.fit(graph_of(source), graph_of(target), links).classes()
    assert (row.source, row.mapping, row.target, row.evidence) == (
        *("Person", "equivalent", "Mensch"),
        4,
    )
    assert row.source_in_target == row.target_in_source == pytest.approx(4 / 4.5)
    assert row.source_example[0].upper() == row.target_example[0]


def test_numbers_of_numpy_are_numbers(fitted: Aligner) -> None:
    plain = fitted.predict(top_k=2, threshold=0.5)
    assert fitted.predict(top_k=np.int64(2), threshold=np.float32(0.5)) == plain  # type: ignore[arg-type]


def test_a_pair_is_explained_after_the_run_is_gone(fitted: Aligner) -> None:
    match = max(fitted.predict(), key=lambda match: match.probability)
    assert match.target is not None
    explanation = fitted.explain(match.source, match.target)
    assert explanation.answer is not None
    assert explanation.answer.name == match.target
    lines = fitted.why(match.source, match.target).splitlines()
    assert match.target in lines[0]
    assert not any(line.endswith(" ") for line in lines)


def same_answers(one: Aligner, other: Aligner) -> bool:
    """Whether two aligners answer and explain alike."""
    first, second = one.predict(top_k=3), other.predict(top_k=3)
    pairs = [(match.source, match.target or "t0") for match in first[:5]]
    return (
        first == second
        and one.predict(threshold=0.9) == other.predict(threshold=0.9)
        and all(one.explain(*pair) == other.explain(*pair) for pair in pairs)
        and one.why(*pairs[0]) == other.why(*pairs[0])
        and one.to_frame().equals(other.to_frame())
    )


def test_a_saved_aligner_answers_as_before(
    fitted: Aligner, folder: Path, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "saved")
    loaded = Aligner.load(tmp_path / "saved")
    assert same_answers(loaded, fitted)
    assert repr(loaded) == repr(fitted)
    loaded.save(tmp_path / "again")
    shutil.rmtree(tmp_path / "saved")
    assert same_answers(Aligner.load(tmp_path / "again"), loaded)
    assert same_answers(Aligner.load(folder), fitted)
    kept = {path.name for path in folder.iterdir()}
    saved = {path.name for path in (tmp_path / "again").iterdir()}
    assert kept - saved <= {"checkpoint.safetensors", "series.jsonl", "run.log"}
    assert saved <= kept


@pytest.mark.parametrize(
    ("method", "settings"),
    [((), ["trainer=cpu", "method=paris"]), (("lightea", "dual"), QUICK)],
)
def test_a_run_without_a_folder_is_saved_with_the_same_files(
    method: tuple[str, ...], settings: list[str], example: Example, tmp_path: Path
) -> None:
    source, target, links = example
    for folder in (tmp_path / "run", None):
        aligner = Aligner(*method, settings=settings, folder=folder)
        aligner.fit(graph_of(source), graph_of(target), links[:40])
    aligner.save(tmp_path / "saved")
    assert same_answers(Aligner.load(tmp_path / "run"), aligner)
    for name in (
        "config.yaml",
        "alignment.tsv",
        "unmatched.tsv",
        "beliefs.npz",
        "ranks.npz",
    ):
        files = [tmp_path / folder / name for folder in ("saved", "run")]
        assert files[0].read_bytes() == files[1].read_bytes(), name


def test_saving_replaces_runs_and_nothing_else(
    fitted: Aligner, choosy: Aligner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.yaml").write_text("mine")
    with pytest.raises(DataError, match="mine contains other files than a run"):
        fitted.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "config.yaml").read_text() == "mine"
    with pytest.raises(UserError, match="cannot be written: "):
        fitted.save(tmp_path / "mine" / "config.yaml" / "below")
    choosy.save(tmp_path / "run")
    (tmp_path / "run" / "checkpoint.safetensors").write_text("of the other run")
    with monkeypatch.context() as patch:
        patch.setattr(
            finished_run, "write_atomic", Mock(side_effect=OSError(28, "disk full"))
        )
        with pytest.raises(DataError, match="run cannot be written: disk full"):
            fitted.save(tmp_path / "run", overwrite=True)
    with pytest.raises(UserError, match="is not a finished run"):
        Aligner.load(tmp_path / "run")
    with pytest.raises(
        DataError, match=r"contains a run\. .* save\(folder, overwrite=True\)"
    ):
        fitted.save(tmp_path / "run")
    fitted.save(tmp_path / "run", overwrite=True)
    assert same_answers(Aligner.load(tmp_path / "run"), fitted)
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_folder_is_asked_on_the_command_line(
    is_saved: bool,
    fitted: Aligner,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if is_saved:
        folder = tmp_path / "saved"
        fitted.save(folder)
    assert (
        emea.cli.main.main(["predict", str(folder), "--out", str(tmp_path / "out")])
        == 0
    )
    lines = (tmp_path / "out" / "alignment.tsv").read_text().splitlines()[1:]
    answers = {match.source: match.target for match in fitted.predict() if match.target}
    assert dict(line.split("\t")[:2] for line in lines) == answers
    capsys.readouterr()
    source, target = next(iter(answers.items()))
    assert emea.cli.main.main(["explain", str(folder), "--pair", source, target]) == 0
    assert target in capsys.readouterr().out


def test_an_old_folder_without_graphs_is_refused(folder: Path, fitted: Aligner) -> None:
    (folder / "pair.npz").rename(folder / "elsewhere.npz")
    with pytest.raises(
        DataError, match="in-memory graphs through the Python API, and its pair"
    ):
        Aligner.load(folder)
    (folder / "elsewhere.npz").rename(folder / "pair.npz")
    assert len(Aligner.load(folder).predict()) == len(fitted.predict())


def test_an_interrupted_fit_is_resumed_from_its_folder(
    fitted: Aligner,
    example: Example,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target, links = example
    aligner = Aligner("lightea", "dual", QUICK, tmp_path / "half")
    save = training_loop.save_checkpoint

    def save_and_die(*arguments: Any, **named: Any) -> None:
        save(*arguments, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(training_loop, "save_checkpoint", save_and_die)
        aligner.fit(graph_of(source), graph_of(target), links[:40])
    run_job(config_to_resume(tmp_path / "half"), tmp_path / "half", resumes=True)
    assert same_answers(Aligner.load(tmp_path / "half"), fitted)


@pytest.fixture(scope="module")
def with_test_links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an ordinary run with test links."""
    folder = tmp_path_factory.mktemp("ordinary")
    settings = [
        "data.num_entities=100",
        "ratio=0.2",
        "split.num_validation=10",
        "tracking=none",
    ]
    run_job(composed([*settings, "model=lightea", "em=dual", *QUICK]), folder)
    return folder


def test_an_ordinary_run_is_evaluated_as_it_evaluates_itself(
    with_test_links: Path,
) -> None:
    assert not (with_test_links / "pair.npz").exists()
    run, aligner = load_run(with_test_links), Aligner.load(with_test_links)
    names = run.pair.source.all_entity_names, run.pair.target.all_entity_names
    links = [(names[0][one], names[1][other]) for one, other in run.pair.links.tolist()]
    found, own = aligner.evaluate(links), run.metrics["final"]
    assert found.num_links == len(run.split.test)
    assert found.num_known == len(links) - found.num_links
    # the run also ranks targets that are not candidates
    assert own["hit@1"] - 0.05 <= found.hit_at_1 <= own["hit@1"]
    assert own["mrr"] - 0.1 <= found.mrr <= own["mrr"]
    assert found.recall == pytest.approx(run.metrics["answer"]["hit@1"])
    assert found.precision == pytest.approx(run.metrics["export"]["test"]["precision"])


def test_an_unknown_argument_is_an_error_of_python() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'iterations'"):
        Aligner(iterations=3)  # type: ignore[call-arg]


def test_evaluation_by_hand(fitted: Aligner, example: Example) -> None:
    links = example[2]
    found = fitted.evaluate(links, threshold=0.5)
    assert (found.num_links, found.num_known) == (len(links) - 40, 40)
    assert found == fitted.evaluate(links[40:] + links[40:41], threshold=0.5)._replace(
        num_known=40
    )
    answers = {
        match.source: match for match in fitted.predict(top_k=1000, threshold=0.5)
    }
    pool = {other for _, other in links[40:]}
    ranks, right, answered = [], 0, 0
    for source, target in links[40:]:
        order = [name for name, _ in answers[source].candidates if name in pool]
        ranks.append(1 + order.index(target) if target in order else math.inf)
        right += answers[source].target == target
        answered += answers[source].target is not None
    for cut, hit in ((1, found.hit_at_1), (5, found.hit_at_5), (10, found.hit_at_10)):
        assert hit == pytest.approx(sum(rank <= cut for rank in ranks) / len(ranks))
    assert found.mrr == pytest.approx(sum(1 / rank for rank in ranks) / len(ranks))
    assert found.num_answered == answered
    assert found.precision == pytest.approx(right / answered)
    assert found.recall == pytest.approx(right / len(ranks))
    both = found.precision + found.recall
    assert found.f1 == pytest.approx(2 * found.precision * found.recall / both)


def test_what_cannot_be_evaluated(fitted: Aligner, example: Example) -> None:
    links = example[2]
    with pytest.raises(
        DataError, match="nothing to evaluate: fit was given all 40 links"
    ):
        fitted.evaluate(links[:40])
    with pytest.raises(
        DataError, match="nothing to evaluate: the list of links is empty"
    ):
        fitted.evaluate([])
    with pytest.raises(DataError, match="source entity nobody is not in its graph"):
        fitted.evaluate([("nobody", links[0][1])])
    with pytest.raises(ConfigError, match="threshold must be a number"):
        fitted.evaluate(links, threshold="half")  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match=r"must be a number from 0 to 1, got the text '0\.5'"
    ):
        fitted.predict(threshold="0.5")  # type: ignore[arg-type]


def test_answers_as_a_frame(fitted: Aligner) -> None:
    frame, matches = fitted.to_frame(threshold=0.9), fitted.predict(threshold=0.9)
    assert list(frame.columns) == [
        "source",
        "target",
        "probability",
        "is_label",
        "candidate",
        "candidate_probability",
    ]
    assert frame["source"].tolist() == [match.source for match in matches]
    assert frame["target"].tolist() == [match.target for match in matches]
    assert frame["probability"].tolist() == [match.probability for match in matches]
    assert frame["is_label"].sum() == len(fitted._fitted.run.labels)
    assert frame["is_label"].dtype == bool
    best = [match.candidates[0] for match in matches]
    pairs = zip(frame["candidate"], frame["candidate_probability"], strict=True)
    assert list(pairs) == best
    assert frame[frame["is_label"]]["probability"].eq(1).all()


def test_the_package_loads_its_library_when_asked() -> None:
    code = (
        "import sys, emea; assert 'Aligner' in dir(emea) and not hasattr(emea, 'nothing');"
        "assert not {'torch', 'numpy', 'pandas', 'emea.aligner'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for name in ("Aligner", "Evaluation", "Match", "ToLabel"):
        assert getattr(emea, name) is getattr(emea.aligner, name)
    assert (Path(emea.__file__).parent / "py.typed").exists()


def test_a_table_file_may_have_attributes(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("head,relation,tail\na,knows,b\na,name,Anna\n")
    graph = read_graph(file, attributes=["name", "full_name"])
    assert graph.num_triples == 1
    assert graph.attributes is not None and list(graph.attributes.values) == ["Anna"]


def test_few_links_and_early_stopping(example: Example) -> None:
    source, target, links = example
    aligner = Aligner(model="alinet", em="none", settings=["trainer=cpu"])
    with pytest.raises(ConfigError, match=r"or set model\.early_stopping=null"):
        aligner.fit(graph_of(source), graph_of(target), links[:3])


GRAPH = graph_of([("a", "r", "b"), ("b", "r", "c")])
WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: Aligner(model="rreaa"), r"model has no option rreaa \(nearest: rrea\)"),
    (lambda: Aligner(em="duall"), r"em has no option duall \(nearest: dual\)"),
    (
        lambda: Aligner(settings="em.iterations=2"),
        "settings must be a list of .* got str 'em",
    ),
    (
        lambda: Aligner(settings=[3]),
        "settings must be a list of .* but one of them is int 3",
    ),
    (
        lambda: Aligner(settings=["em.iteration=2"]),
        r"no key em.iteration \(nearest: em.iter",
    ),
    (
        lambda: Aligner(settings=["data=zh"]),
        "data=zh has no effect here, because fit gets the graphs",
    ),
    (lambda: Aligner.load(3), "folder must be a path, got int 3"),
    (lambda: Aligner.load("nowhere"), "nowhere is not a run's folder"),
    (
        lambda: Aligner().fit("a.nt", GRAPH, []),
        "source must be a graph, got str 'a.nt'. Use read_g",
    ),
    (
        lambda: Aligner().fit(GRAPH, Path("b.nt"), []),
        "target must be a graph, got .*Path 'b.nt'",
    ),
    (
        lambda: Aligner().fit(GRAPH, GRAPH, "seeds.tsv"),
        r"read_links\('seeds.tsv'\) to read a file",
    ),
    (lambda: Aligner().fit(GRAPH, GRAPH, {"a": "a"}), r"got dict. Use links.items\(\)"),
    (
        lambda: Aligner().fit(GRAPH, GRAPH, [("a", "r", "b")]),
        r"A link must be .*, got \('a', 'r', 'b'\)",
    ),
    (lambda: Aligner().fit(GRAPH, GRAPH, [("a", 1)]), r"each a str, got \('a', 1\)"),
    (lambda: graph_of("a.nt"), r"read_graph\('a.nt'\) to read a file"),
    (lambda: read_graph("http://x.org/a.nt"), r"Download http://x.org/a.nt first"),
]


@pytest.mark.parametrize(
    ("has_gpu", "given", "chosen"),
    [
        (False, {}, ("lightea", "one_to_one", 2)),
        (True, {}, ("rrea", "one_to_one", 5)),
        (False, {"settings": ["em.iterations=1"]}, ("lightea", "one_to_one", 1)),
        (False, {"model": "rrea", "em": "dual"}, ("rrea", "dual", 10)),
        (True, {"em": "paper"}, ("rrea", "paper", 10)),
    ],
)
def test_what_is_not_chosen_fits_the_device(
    has_gpu: bool,
    given: dict[str, Any],
    chosen: tuple[str, str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: has_gpu)
    config = Aligner(**given)._config
    assert (config.model.name, config.em.name, config.em.iterations) == chosen
    assert (config.ensemble.name == "independent") == {"model", "em"}.isdisjoint(given)


@pytest.mark.parametrize(("ask", "sentence"), WRONG)
def test_wrong_input_gets_one_sentence(
    ask: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        ask()


def test_entities_are_asked_by_name(fitted: Aligner) -> None:
    with pytest.raises(
        DataError, match=r"source entity must be a name \(str\), got int 3"
    ):
        fitted.explain(3, "t1")  # type: ignore[arg-type]


def test_impossible_requests_raise_errors() -> None:
    graph = graph_of([("a", "r", "b")])
    first, second = (
        r"number 1: source entity nobody",
        r"number 2: target entity elsewhere",
    )
    with pytest.raises(
        DataError, match=f"{first} is not in its graph; the links, {second}"
    ):
        Aligner().fit(graph, graph, [("nobody", "a"), ("b", "elsewhere")])
    with pytest.raises(DataError, match="number 2: source entity a is already linked"):
        Aligner().fit(graph, graph, [("a", "a"), ("a", "b")])
    with pytest.raises(UserError, match="Call fit"):
        Aligner().predict()
    with pytest.raises(UserError, match="Call fit"):
        Aligner().explain("a", "b")
    with pytest.raises(DataError, match="needs at least one"):
        graph_of([])


@pytest.mark.parametrize("row", [("a", "r"), ("a", 1, "b"), ("a", "r", "b", "c")])
def test_a_triple_has_three_names(row: Any) -> None:
    with pytest.raises(DataError, match="each a str, got"):
        graph_of([("a", "r", "b"), row])


def test_triples_may_be_rows_of_an_array() -> None:
    rows = [["a", "r", "b"], ["b", "r", "c"]]
    for given in (rows, np.array(rows)):
        assert graph_of(given).entity_names == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"threshold": 2.0}, "export.threshold"),
        ({"threshold": object()}, "object.* is not a supported primitive type"),
        ({"top_k": 0}, "export.top_k must be a whole number from 1 to 100,000, got 0"),
        ({"threshold": 0.5, "target_precision": 0.9}, "Remove export.threshold"),
    ],
)
def test_impossible_questions_raise_errors(
    fitted: Aligner, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        fitted.predict(**asked)


@pytest.mark.parametrize("count", [0, 1.5])
def test_the_number_of_suggestions_is_positive(fitted: Aligner, count: Any) -> None:
    with pytest.raises(
        ConfigError, match="count must be a whole number of at least 1, got"
    ):
        fitted.suggest(count)


@pytest.fixture(scope="module")
def choosy(example: Example) -> Aligner:
    source, target, links = example
    chosen = ["export.threshold=0.9", "export.top_k=3"]
    aligner = Aligner(model="lightea", em="dual", settings=[*QUICK, *chosen])
    return aligner.fit(graph_of(source), graph_of(target), links[:40])


def test_what_is_not_given_is_as_the_settings_have_it(
    fitted: Aligner, choosy: Aligner
) -> None:
    assert choosy.predict() == fitted.predict(top_k=3, threshold=0.9)
    assert choosy.predict(top_k=1, threshold=0) == fitted.predict()
    assert choosy.predict(target_precision=0.5) == fitted.predict(
        top_k=3, target_precision=0.5
    )


def test_odd_names_and_other_random_numbers(example: Example) -> None:
    def odd(name: str) -> str:
        return f"{name}\t\n"

    source, target, links = example
    source = [(odd(head), relation, odd(tail)) for head, relation, tail in source]
    turned = [(other, odd(one)) for one, other in links[:40]]
    state = torch.get_rng_state()
    aligner = Aligner(model="lightea", em="none", settings=["trainer=cpu"])
    aligner.fit(graph_of(source), graph_of(target), [*turned, turned[0]])
    assert torch.equal(torch.get_rng_state(), state)
    # one-to-one answers leave out entities whose best target belongs to another
    match = next(one for one in aligner.predict() if one.target is not None)
    assert match.source.endswith("\t\n")
    assert match.target is not None
    assert aligner.explain(match.source, match.target).answer is not None


def test_links_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "seeds.tsv"
    file.write_text("source\ttarget\na\tx\nb\ty\n")
    assert read_links(file) == [("a", "x"), ("b", "y")]
    table = tmp_path / "seeds.sssom.tsv"
    table.write_text(
        "#curie_map:\n#  A: http://a/\nsubject_id\tobject_id\nA:1\thttp://b/1\n"
    )
    assert read_links(table) == [("http://a/1", "http://b/1")]


def test_the_order_of_triples_and_links_changes_no_match(example: Example) -> None:
    source, target, links = example
    known, rng = links[:40], np.random.default_rng(0)
    mixed = [
        [rows[place] for place in rng.permutation(len(rows))]
        for rows in (source, target)
    ]
    aligner = Aligner(model="lightea", em="dual", settings=QUICK)
    before = aligner.fit(graph_of(source), graph_of(target), known).predict()
    # a set of tuples of text has another order in each process
    after = aligner.fit(graph_of(mixed[0]), graph_of(mixed[1]), known[::-1]).predict()
    assert after == before


def test_a_link_cannot_be_rejected() -> None:
    triples = [("a", "r", "b"), ("b", "r", "c")]
    links = [("a", "a"), ("b", "b")]
    aligner = Aligner(model="lightea", settings=QUICK)
    with pytest.raises(
        DataError, match="b - b is both a known link and a rejected pair"
    ):
        aligner.fit(
            graph_of(triples),
            graph_of(triples),
            links,
            rejected=[("a", "c"), ("b", "b")],
        )
