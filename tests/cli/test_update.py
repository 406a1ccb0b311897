"""``emea update`` from the files to the changes."""

import json
from pathlib import Path

import numpy as np
import pytest

from emea import Aligner
from emea.cli.main import main as emea
from emea.data.sources.synthetic import synthetic_pair
from emea.explain.explainer import Explainer
from emea.run.finished_run import load_run
from emea.update.updating import Update, mutual_matches

NUM = 120


def write_graph(path: Path, prefix: str, triples: np.ndarray) -> None:
    rows = (f"{prefix}{h}\t{prefix}r{r}\t{prefix}{t}\n" for h, r, t in triples.tolist())
    path.write_text("".join(rows))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of two versions of a pair, and a run on the first."""
    folder, rng = tmp_path_factory.mktemp("versions"), np.random.default_rng(0)
    pair = synthetic_pair(num_entities=NUM, overlap=1.0, seed=1)
    for graph, prefix in ((pair.source, "s"), (pair.target, "t")):
        early = rng.random(graph.num_triples) < 0.9
        write_graph(folder / f"{prefix}_old.tsv", prefix, graph.triples[early])
        write_graph(folder / f"{prefix}_new.tsv", prefix, graph.triples[5:])
    links = pair.links[rng.permutation(len(pair.links))]
    for name, part in (("links", links[:40]), ("more", links[40:44]), ("test", links[44:])):
        (folder / f"{name}.tsv").write_text("".join(f"s{a}\tt{b}\n" for a, b in part.tolist()))
    files = [str(folder / name) for name in ("s_old.tsv", "t_old.tsv")]
    links_of = ["--links", str(folder / "links.tsv"), "--test-links", str(folder / "test.tsv")]
    settings = ["em.iterations=2", "model.encoder.dim=64", "model.encoder.output_dim=64"]
    settings += ["data.on_error=skip"]
    assert emea(["align", *files, *settings, *links_of, "--out", str(folder / "run")]) == 0
    return folder


def updated(place: Path, name: str, *more: str) -> Path:
    files = ["--source", str(place / "s_new.tsv"), "--target", str(place / "t_new.tsv")]
    out = place / name
    assert emea(["update", str(place / "run"), *files, *more, "--out", str(out)]) == 0
    return out


@pytest.mark.slow
def test_new_versions_are_aligned(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert emea(["update", str(out), "--links", str(place / "more.tsv"), "--out", str(again)]) == 0
    assert not json.loads((again / "update.json").read_text())["graphs"]["source"]["added_triples"]


@pytest.mark.slow
def test_an_update_starts_from_the_matches_of_the_run(place: Path) -> None:
    run = load_run(place / "run")
    empty = np.zeros((0, 2), dtype=np.int64)
    update = Update.of(run, run.pair.source, run.pair.target, empty, empty)
    assert not len(update.source.added) and not len(update.source.removed)
    start = update.start()
    old_name, new_name = run.pair.source.entity_name, update.pair.source.entity_name
    old_target, new_target = run.pair.target.entity_name, update.pair.target.entity_name
    pairs, probs = mutual_matches(run)
    expected = {old_name(s): old_target(t) for s, t in pairs.tolist()}
    expected |= {old_name(s): old_target(t) for s, t in run.labels.tolist()}
    found = {new_name(s): new_target(t) for s, t in start.known.pairs().tolist()}
    assert found == expected and len(found) > 60
    by_name = {old_name(s): p for (s, _), p in zip(pairs.tolist(), probs.tolist(), strict=True)}
    assert start.weights is not None
    for (s, _), weight in zip(start.labels.tolist(), start.weights.tolist(), strict=True):
        assert weight == pytest.approx(by_name[new_name(s)])
    assert {"encoder.embedding", "encoder.draw_seeds"} <= start.encoder.keys()


KINDS = {
    "rrea": ["model=rrea", "model.initial_epochs=30", "model.epochs_per_iteration=5"],
    "paper": ["em=paper", "em.iterations=2"],
    "none": ["em=none", "em.iterations=0", "rule=none", "model=rrea", "model.initial_epochs=30"],
    "paris": ["method=paris"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_is_updated(kind: str, place: Path, tmp_path: Path) -> None:
    files = [str(place / name) for name in ("s_old.tsv", "t_old.tsv")]
    plain = [] if kind == "paris" else ["trainer.block_size=8"]
    command = ["align", *files, *KINDS[kind], *plain, "data.on_error=skip"]
    command += ["--links", str(place / "links.tsv"), "--out", str(tmp_path / "run")]
    assert emea(command) == 0
    arguments = ["--source", str(place / "s_new.tsv"), "--target", str(place / "t_new.tsv")]
    assert emea(["update", str(tmp_path / "run"), *arguments, "--out", str(tmp_path / "new")]) == 0
    new = load_run(tmp_path / "new")
    assert new.pair.source.num_triples > load_run(tmp_path / "run").pair.source.num_triples
    if kind == "rrea":
        assert new.config.model.initial_epochs == 5


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
        ([run, "--links", wrong, "--out", str(tmp_path / "new")], "already has another link"),
        ([str(tmp_path), "--links", wrong], str(tmp_path)),
    ):
        assert emea(["update", *arguments]) == 1
        assert message in capsys.readouterr().err
