"""``emea update`` from the files to the changes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from emea import Aligner
from emea.cli.main import main as emea
from emea.data.formats.graph_file import read_graph_file
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import UserError
from emea.explain.explainer import Explainer
from emea.run.finished_run import FinishedRun, load_run
from emea.run.job import run_job
from emea.update.planning import plan_update
from emea.update.updating import Update, mutual_matches, update_config

NUM = 120


def write_graph(path: Path, prefix: str, triples: np.ndarray) -> None:
    rows = (f"{prefix}{h}\t{prefix}r{r}\t{prefix}{t}\n" for h, r, t in triples.tolist())
    path.write_text("".join(rows))


def write_versions(
    folder: Path, pair: GraphPair, cuts: tuple[slice, slice], *ends: int
) -> None:
    """Write two versions of each graph, and files of links that end at these numbers."""
    for graph, prefix in ((pair.source, "s"), (pair.target, "t")):
        for version, cut in zip(("old", "new"), cuts, strict=True):
            write_graph(folder / f"{prefix}_{version}.tsv", prefix, graph.triples[cut])
    links = pair.links[np.random.default_rng(0).permutation(len(pair.links))]
    for name, part in zip(
        ("links", "test", "more"), np.split(links, ends), strict=False
    ):
        (folder / f"{name}.tsv").write_text(
            "".join(f"s{a}\tt{b}\n" for a, b in part.tolist())
        )
    align_small(
        folder,
        folder / "run",
        "em.iterations=2",
        "em.tolerance=0",
        "--test-links",
        str(folder / "test.tsv"),
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of two versions of a pair, and a run on the first."""
    folder = tmp_path_factory.mktemp("versions")
    pair = synthetic_pair(num_entities=NUM, overlap=1.0, seed=1)
    write_versions(folder, pair, (np.s_[:-40], np.s_[5:]), 40, len(pair.links) - 4)
    return folder


def align_small(folder: Path, out: Path, *arguments: str) -> None:
    """Align the earlier versions of a pair with a small encoder."""
    files = [str(folder / name) for name in ("s_old.tsv", "t_old.tsv")]
    settings = [
        "model.encoder.dim=64",
        "model.encoder.output_dim=64",
        "data.on_error=skip",
    ]
    settings.append("ensemble=none")
    links = ["--links", str(folder / "links.tsv"), "--out", str(out)]
    assert emea(["align", *files, *settings, *links, *arguments]) == 0


def updated(place: Path, name: str, *more: str) -> Path:
    files = ["--source", str(place / "s_new.tsv"), "--target", str(place / "t_new.tsv")]
    out = place / name
    assert emea(["update", str(place / "run"), *files, *more, "--out", str(out)]) == 0
    return out


@pytest.mark.slow
def test_new_versions_are_aligned(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (place / "run" / "metrics.json").read_text()
    out = updated(place, "updated", "--links", str(place / "more.tsv"))
    shown = capsys.readouterr().out
    assert "Matches:" in shown and "changes.tsv" in shown
    summary = json.loads((out / "update.json").read_text())
    old, new = load_run(place / "run"), load_run(out)
    assert summary["graphs"]["source"]["added_triples"] > 0
    assert summary["graphs"]["source"]["removed_triples"] > 0
    kept = sum(summary["matches"][kind] for kind in ("kept", "changed", "gone"))
    assert kept == len(Explainer(old).answers)
    assert new.config.em.iterations == 1 and len(new.metrics["history"]) == 2
    assert len(new.split.supervision.train) >= len(old.split.supervision.train)
    assert (place / "run" / "metrics.json").read_text() == before
    final = new.metrics["final"]["hit@1"]
    assert final > old.metrics["final"]["hit@1"] - 0.05
    assert Aligner.load(out).predict()
    again = place / "again"
    assert (
        emea(
            [
                "update",
                str(out),
                "--links",
                str(place / "more.tsv"),
                "--out",
                str(again),
            ]
        )
        == 0
    )
    assert not json.loads((again / "update.json").read_text())["graphs"]["source"][
        "added_triples"
    ]


@pytest.mark.slow
def test_an_update_starts_from_the_matches_of_the_run(place: Path) -> None:
    run = load_run(place / "run")
    empty = np.zeros((0, 2), dtype=np.int64)
    update = Update.of(run, run.pair.source, run.pair.target, empty, empty)
    source, _ = update.versions
    assert not len(source.added) and not len(source.removed)
    start = update.start()
    assert (mutual_matches(run)[1] > 0.5).all()  # others probably lack a counterpart
    old_name, new_name = run.pair.source.entity_name, update.pair.source.entity_name
    old_target, new_target = run.pair.target.entity_name, update.pair.target.entity_name
    pairs, probs = mutual_matches(run)
    expected = {old_name(s): old_target(t) for s, t in pairs.tolist()}
    expected |= {old_name(s): old_target(t) for s, t in run.labels.tolist()}
    found = {new_name(s): new_target(t) for s, t in start.known.pairs().tolist()}
    assert found == expected and len(found) > 60
    by_name = {
        old_name(s): p for (s, _), p in zip(pairs.tolist(), probs.tolist(), strict=True)
    }
    assert start.weights is not None
    for (s, _), weight in zip(
        start.labels.tolist(), start.weights.tolist(), strict=True
    ):
        assert weight == pytest.approx(by_name[new_name(s)])
    assert {"encoder.embedding", "encoder.draw_seeds"} <= start.encoder.keys()


def test_a_run_without_links_is_updated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def graph(name: str, size: int) -> str:
        path = tmp_path / f"{name}{size}.nt"
        rows = (
            f'<http://{name}/{i}> <http://{name}/name> "name {i}" .\n'
            for i in range(size)
        )
        path.write_text("".join(rows))
        return str(path)

    run, out = str(tmp_path / "run"), str(tmp_path / "new")
    assert emea(["align", graph("a", 9), graph("b", 9), "--out", run]) == 0
    files = ["--source", graph("a", 10), "--target", graph("b", 10)]
    (tmp_path / "file").write_text("")
    assert emea(["update", run, *files, "--out", str(tmp_path / "file" / "new")]) == 1
    assert "file/new cannot be written: " in capsys.readouterr().err
    assert emea(["update", run, *files, "--out", out]) == 0
    assert "Matches: 9 kept, 1 new, 0 changed, 0 gone" in capsys.readouterr().out
    (tmp_path / "more.tsv").write_text("http://a/0\thttp://b/1\n")
    assert emea(["update", out, "--links", str(tmp_path / "more.tsv")]) == 0
    changes = (tmp_path / "new-updated" / "changes.tsv").read_text().splitlines()
    assert changes[1].startswith("changed\thttp://a/0\t")
    assert changes[1].endswith("\ta new link names the match")


def test_an_update_of_an_update_reads_files_as_the_run_did(tmp_path: Path) -> None:
    def graph(size: int) -> str:
        rows = [f'{{ <http://a/{i}> <http://a/name> "name {i}" }}' for i in range(size)]
        text = "".join(
            f"<http://g/{number < size - 1}> {row}" for number, row in enumerate(rows)
        )
        (tmp_path / f"{size}.trig").write_text(text)
        return str(tmp_path / f"{size}.trig")

    runs = [str(tmp_path / name) for name in ("run", "first", "second")]
    named = ["data.graph=http://g/True", "data.limits.iri_length=50", "--out", runs[0]]
    assert emea(["align", graph(9), graph(10), *named]) == 0
    for size, old, new in ((10, *runs[:2]), (9, *runs[1:])):
        assert emea(["update", old, "--source", graph(size), "--out", new]) == 0
        assert load_run(new).pair.source.num_entities == size - 1
    (tmp_path / "l.ttl").write_text(f"@prefix a: <http://a/{'x' * 60}> . a:a a:b a:c .")
    assert (
        emea(["update", runs[2], "--source", str(tmp_path / "l.ttl")]) == 1
    )  # a long IRI


def test_a_run_with_a_target_precision_is_updated(place: Path, tmp_path: Path) -> None:
    given = [
        "--target-precision",
        "0.9",
        "model=lightea",
        "em=one_to_one",
        "em.iterations=1",
    ]
    align_small(place, tmp_path / "run", *given)
    more = ["--links", str(place / "more.tsv"), "--out", str(tmp_path / "new")]
    assert emea(["update", str(tmp_path / "run"), *more]) == 0
    before, after = (load_run(tmp_path / name) for name in ("run", "new"))
    assert after.metrics["export"]["target_precision"] == 0.9
    assert len(after.split.supervision.validation) == len(
        before.split.supervision.validation
    )


def test_a_run_with_the_released_protocol_needs_test_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = synthetic_pair(num_entities=100, overlap=1.0, seed=1)
    for graph, prefix in ((pair.source, "s"), (pair.target, "t")):
        write_graph(tmp_path / f"{prefix}.tsv", prefix, graph.triples)
    for name, part in (("links", pair.links[:30]), ("test", pair.links[30:])):
        (tmp_path / f"{name}.tsv").write_text(
            "".join(f"s{a}\tt{b}\n" for a, b in part.tolist())
        )
    files = [str(tmp_path / name) for name in ("s.tsv", "t.tsv")]
    known = [
        "--links",
        str(tmp_path / "links.tsv"),
        "--test-links",
        str(tmp_path / "test.tsv"),
    ]
    settings = ["protocol=released", "em=dual", "em.iterations=1", "data.on_error=skip"]
    settings += ["model=lightea", "model.encoder.dim=32", "model.encoder.output_dim=32"]
    run = str(tmp_path / "run")
    assert emea(["align", *files, *settings, *known, "--out", run]) == 0
    capsys.readouterr()
    assert emea(["update", run, "--links", str(tmp_path / "test.tsv")]) == 1
    shown = capsys.readouterr().err
    assert "Leave some test links out of --links" in shown and "emea align" in shown


KINDS = {
    "rrea": ["model=rrea", "model.initial_epochs=30", "model.epochs_per_iteration=5"],
    "one_to_one": ["em=one_to_one", "em.iterations=2"],
    "paper": ["em=paper", "em.iterations=2"],
    "none": [
        "em=none",
        "em.iterations=0",
        "rule=none",
        "model=rrea",
        "model.initial_epochs=30",
    ],
    "paris": ["method=paris"],
}


@pytest.mark.slow
def test_mistakes_are_reported(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(place / "run")
    first = (place / "links.tsv").read_text().splitlines()[0].split("\t")[0]
    other = (place / "more.tsv").read_text().splitlines()[0].split("\t")[1]
    (tmp_path / "wrong.tsv").write_text(f"{first}\t{other}\n")
    (tmp_path / "file").write_text("")
    missing, wrong = str(tmp_path / "no.tsv"), str(tmp_path / "wrong.tsv")
    for arguments, message in (
        ([run], "nothing to update"),
        ([run, "--source", missing], "no.tsv is not a file"),
        ([run, "--links", wrong, "--out", run], "is the run itself"),
        ([run, "--links", wrong, "--out", str(tmp_path / "file")], "is a file"),
        ([run, "--links", wrong, "--out", str(tmp_path)], "not from emea"),
        (
            [run, "--links", wrong, "--out", str(tmp_path / "new")],
            "already has another link",
        ),
        ([str(tmp_path), "--links", wrong], str(tmp_path)),
    ):
        assert emea(["update", *arguments]) == 1
        assert message in capsys.readouterr().err


def names_of(run: FinishedRun) -> dict[str, dict[str, float]]:
    """Candidates with a probability by the name of the source entity."""
    source, target, beliefs = run.pair.source, run.pair.target, run.beliefs
    return {
        source.entity_name(row): {
            target.entity_name(one): prob
            for one, prob in zip(targets, probs, strict=True)
            if prob
        }
        for row, (targets, probs) in enumerate(
            zip(beliefs.targets.tolist(), beliefs.probs.tolist(), strict=True)
        )
    }


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of a larger pair that differ by a few triples, and a run on the first."""
    folder = tmp_path_factory.mktemp("larger")
    pair = synthetic_pair(num_entities=400, overlap=0.9, seed=3)
    write_versions(folder, pair, (np.s_[:-6], np.s_[1:]), 100)
    return folder


@pytest.mark.slow
def test_only_the_surroundings_of_a_small_change_are_recomputed(
    larger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = updated(larger, "updated")
    assert "Recomputed: " in capsys.readouterr().out
    said = json.loads((out / "update.json").read_text())["recomputed"]
    assert said["kind"] == "local" and 0 < said["share"] < 0.33
    old, new = load_run(larger / "run"), load_run(out)
    assert new.metrics["recomputed"]["source"] == said["source"]
    assert len(new.metrics["history"]) == 1 and new.config.data.is_local
    before, after = names_of(old), names_of(new)
    same = [name for name in before if after.get(name) == before[name]]
    assert len(same) >= new.pair.source.num_entities - said["source"]
    assert new.metrics["final"]["hit@1"] > old.metrics["final"]["hit@1"] - 0.05
    assert Explainer(new).answers and Aligner.load(out).predict()
    assert emea(["explain", str(out), "--entity", next(iter(after))]) == 0
    whole = updated(larger, "whole", "--complete")
    said = json.loads((whole / "update.json").read_text())["recomputed"]
    assert said["kind"] == "complete" and said["reason"] == "it was requested"
    assert said["share"] == 1


@pytest.mark.slow
def test_without_a_change_nothing_is_recomputed(
    larger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [
        "--source",
        str(larger / "s_old.tsv"),
        "--target",
        str(larger / "t_old.tsv"),
    ]
    out = larger / "same"
    for _ in range(2):  # the second update replaces the first
        assert emea(["update", str(larger / "run"), *files, "--out", str(out)]) == 0
        assert "Nothing changed" in capsys.readouterr().out
    summary = json.loads((out / "update.json").read_text())
    assert (
        summary["recomputed"]["kind"] == "nothing"
        and not summary["recomputed"]["source"]
    )
    assert len((out / "changes.tsv").read_text().splitlines()) == 1
    assert not any(summary["matches"][kind] for kind in ("new", "changed", "gone"))
    old, new = load_run(larger / "run"), load_run(out)
    assert torch.equal(old.beliefs.probs, new.beliefs.probs)
    again = larger / "again"
    more = ["--source", str(larger / "s_new.tsv"), "--out", str(again)]
    assert emea(["update", str(out), *more]) == 0
    said = json.loads((again / "update.json").read_text())["recomputed"]
    assert said["kind"] == "local"


@pytest.mark.slow
def test_a_run_without_validation_links_keeps_all_training_links(
    larger: Path, tmp_path: Path
) -> None:
    run, out = tmp_path / "run", tmp_path / "updated"
    align_small(larger, run, "em.iterations=1", "split.num_validation=0")
    more = ["--source", str(larger / "s_new.tsv"), "--out", str(out)]
    assert emea(["update", str(run), *more]) == 0
    old, new = load_run(run).split.supervision, load_run(out).split.supervision
    assert not len(old.validation) and not len(new.validation)
    assert len(new.train) == len(old.train)


@pytest.mark.slow
def test_later_decisions_about_a_pair(larger: Path) -> None:
    run = load_run(larger / "run")
    source, target = run.pair.source, run.pair.target
    empty = np.zeros((0, 2), dtype=np.int64)
    with pytest.raises(UserError, match="both a known link and a rejected pair"):
        Update.of(run, source, target, empty, run.split.supervision.validation[:1])
    # a rejected test link is an ordinary rejected pair, and can be accepted later
    accepted, rejected = run.split.test[:1], run.split.test[:2]
    known = replace(run.split, test=run.split.test[:-3])  # without the last links
    last, links = run.split.test[-3:], run.pair.links
    rest = replace(run.pair, links=links[~np.isin(links[:, 0], last[:, 0])])
    before = replace(
        run, split=known, pair=replace(rest, rejected=rejected, unmatched=last[:, 0])
    )
    added = np.concatenate([accepted, last[:1]])  # the first of them is linked now
    pair = Update.of(before, source, target, added, empty).pair
    assert pair.rejected is not None and pair.official is not None
    names = [pair.source.entity_name(one) for one in pair.rejected[:, 0]]
    assert names == [source.entity_name(rejected[1, 0])]
    assert pair.unmatched is not None
    names = [pair.source.entity_name(one) for one in pair.unmatched]
    assert set(names) == {source.entity_name(one) for one in last[1:, 0]}
    assert len(pair.official.train) == len(run.split.supervision.train) + 2


@pytest.mark.slow
def test_test_links_of_unknown_entities_stay_missed(
    larger: Path, tmp_path: Path
) -> None:
    test = tmp_path / "test.tsv"
    test.write_text((larger / "test.tsv").read_text() + "s_x\tt_x\ns_y\tt_y\n")
    run = tmp_path / "run"
    align_small(larger, run, "em.iterations=1", "--test-links", str(test))
    old = load_run(run)
    assert old.split.num_missed >= 2
    Aligner.load(run).save(tmp_path / "saved")
    assert (
        Aligner.load(tmp_path / "saved")._fitted.run.split.num_missed
        == old.split.num_missed
    )
    for side, kind in (("s_old", "nothing"), ("s_new", "local")):
        out = tmp_path / kind
        more = ["--source", str(larger / f"{side}.tsv"), "--out", str(out)]
        assert emea(["update", str(run), *more]) == 0
        assert (
            json.loads((out / "update.json").read_text())["recomputed"]["kind"] == kind
        )
        new = load_run(out)
        assert new.split.num_missed == old.split.num_missed
        assert new.metrics["num_links"]["missed"] == old.split.num_missed
        assert emea(["predict", str(out)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("change", ["permuted", "deleted"])
def test_test_links_do_not_influence_a_local_update(
    change: str, larger: Path, tmp_path: Path
) -> None:
    run = load_run(larger / "run")
    empty = np.zeros((0, 2), dtype=np.int64)
    graphs = [
        read_graph_file(
            larger / f"{side}_new.tsv",
            None,
            on_error="skip",
            keep_isolated=False,
            keep_literals=False,
            attributes=(),
            label_language=None,
        )[0]
        for side in "st"
    ]
    links = run.split.test.copy()
    links[:, 1] = np.roll(links[:, 1], 1)
    links = links if change == "permuted" else links[:0]
    other = replace(run, split=replace(run.split, test=links))
    found = []
    for number, one in enumerate((run, other)):
        update = Update.of(one, graphs[0], graphs[1], empty, empty)
        plan = plan_update(update)
        assert plan.kind == "local"
        config = update_config(one, is_local=True)
        folder = tmp_path / str(number)
        found.append(run_job(config, folder, pair=update.pair, start_from=plan.start))
    assert names_of(found[0]) == names_of(found[1])
    assert (len(found[0].split.test) == len(found[1].split.test)) == (
        change == "permuted"
    )


@pytest.mark.slow
def test_an_interrupted_local_update_needs_the_earlier_run(
    larger: Path, tmp_path: Path
) -> None:
    run = load_run(larger / "run")
    empty = np.zeros((0, 2), dtype=np.int64)
    update = Update.of(run, run.pair.source, run.pair.target, empty, empty)
    with pytest.raises(UserError, match="command again"):
        run_job(update_config(run, is_local=True), tmp_path / "new", pair=update.pair)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_is_updated(kind: str, larger: Path, tmp_path: Path) -> None:
    files = [str(larger / name) for name in ("s_old.tsv", "t_old.tsv")]
    plain = [] if kind == "paris" else ["trainer.block_size=8"]
    command = ["align", *files, *KINDS[kind], *plain, "data.on_error=skip"]
    run, links = tmp_path / "run", str(larger / "links.tsv")
    assert emea([*command, "--links", links, "--out", str(run)]) == 0
    new = ["--source", str(larger / "s_new.tsv")]
    for option, expected in (((), "local"), (("--complete",), "complete")):
        out = tmp_path / expected
        assert emea(["update", str(run), *new, *option, "--out", str(out)]) == 0
        said = json.loads((out / "update.json").read_text())["recomputed"]
        assert said["kind"] == ("complete" if kind == "paris" else expected)
        updated = load_run(out)
        assert updated.beliefs.probs.max() > 0
        assert updated.pair.source.num_triples > load_run(run).pair.source.num_triples
        if kind == "rrea":
            assert updated.config.model.initial_epochs == 5
        if kind == "rrea" and not option:  # known entities keep their embeddings
            assert updated.metrics["history"][0]["epochs"] == 0


def test_decisions_bind_and_are_taken_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def graph(name: str) -> str:
        path = tmp_path / f"{name}.nt"
        rows = (
            f'<http://{name}/{i}> <http://{name}/name> "name {i}" .\n' for i in range(9)
        )
        path.write_text("".join(rows))
        return str(path)

    def decided(*numbers: tuple[int, int]) -> str:
        path = tmp_path / f"decided{len(list(tmp_path.iterdir()))}.tsv"
        path.write_text("".join(f"http://a/{i}\thttp://b/{j}\n" for i, j in numbers))
        return str(path)

    def answers(run: str) -> dict[str, str]:
        rows = (Path(run) / "alignment.tsv").read_text().splitlines()[1:]
        return dict(row.split("\t")[:2] for row in rows)

    first, second, third = (
        str(tmp_path / name) for name in ("first", "second", "third")
    )
    assert (
        emea(["align", graph("a"), graph("b"), "--formats", "sssom", "--out", first])
        == 0
    )
    assert answers(first)["http://a/3"] == "http://b/3"
    capsys.readouterr()
    choices = ["--rejected", decided((3, 3)), "--links", decided((4, 5))]
    assert emea(["update", first, *choices, "--author", "Ada", "--out", second]) == 0
    shown = capsys.readouterr().out
    assert "Decisions: 1 accepted, 1 rejected" in shown
    assert (
        "accepted: http://a/4 (name 4) = http://b/5 (name 5) (was matched to http://b/4 with prob"
        in shown
    )
    rejected = "rejected: http://a/3 (name 3) = http://b/3 (name 3)"
    assert f"{rejected} (was matched with probability" in shown
    found = answers(second)
    assert found.get("http://a/3") != "http://b/3"
    assert found["http://a/4"] == "http://b/5"
    sssom = (tmp_path / "second" / "alignment.sssom.tsv").read_text()
    assert (
        sssom.count("semapv:ManualMappingCuration") == 2 and "\tNot\t\tAda\t" in sssom
    )
    assert len(load_run(second).decisions) == 2

    # the link needs to be taken back before another one can replace it
    assert emea(["update", second, "--links", decided((4, 4)), "--out", third]) == 1
    assert "name it as --take-back" in capsys.readouterr().err
    assert emea(["update", second, "--take-back", decided((7, 7)), "--out", third]) == 1
    assert "neither a known link nor a rejected pair" in capsys.readouterr().err
    back = decided((3, 3), (4, 5))
    assert emea(["update", second, "--take-back", back, "--out", third]) == 0
    assert answers(third) == answers(first)
    assert not load_run(third).decisions


def test_a_file_of_decisions_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        lines = (
            f'<http://{name}/{n}> <http://{name}/name> "name {n * 37}" .\n'
            f"<http://{name}/{n}> <http://{name}/next> <http://{name}/{(n + 1) % 9}> .\n"
            for n in range(9)
        )
        (tmp_path / f"{name}.nt").write_text("".join(lines))
    files = [str(tmp_path / f"{name}.nt") for name in "ab"]
    first, second, third = (str(tmp_path / name) for name in ("1", "2", "3"))
    assert emea(["align", *files, "--out", first]) == 0

    def row(source: int, target: int, answer: str | None, **more: object) -> str:
        pair = {"source": f"http://a/{source}", "target": f"http://b/{target}"}
        return json.dumps({**pair, "answer": answer, **more}) + "\n"

    answers = tmp_path / "answers.jsonl"
    answers.write_text(
        row(4, 5, "yes", author="model", cost=0.5)
        + row(3, 3, "no", cost=0.25)
        + row(1, 1, None)
    )
    capsys.readouterr()
    given = ["--decisions", str(answers), "--author", "Ada"]
    assert emea(["update", first, *given, "--out", second]) == 0
    shown = capsys.readouterr().out
    assert "Decisions: 1 accepted, 1 rejected" in shown
    assert "answers.jsonl: 1 pair without a decision; cost: 0.75" in shown
    summary = json.loads((tmp_path / "2" / "update.json").read_text())
    applied = {"accepted": 1, "rejected": 1, "taken_back": 0, "open": 1, "cost": 0.75}
    assert summary["decisions"] == applied and summary["matches"]["changed"] >= 1
    decisions = {one.pair: one for one in load_run(second).decisions}
    accepted = decisions["http://a/4", "http://b/5"]
    rejected = decisions["http://a/3", "http://b/3"]
    assert (accepted.decision, accepted.author) == ("accepted", "model")
    assert (rejected.decision, rejected.author) == ("rejected", "Ada")
    # the same decisions, as the run wrote them, change nothing
    known = ["--decisions", str(tmp_path / "2" / "decisions.tsv")]
    assert emea(["update", second, *known, "--out", third]) == 0
    assert load_run(third).decisions == list(decisions.values())
