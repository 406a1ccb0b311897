"""Alignment without links: command line, library, explanations, and the wall around test links."""

from pathlib import Path

import numpy as np
import pytest

from emea import Aligner, read_graph
from emea.cli.align import main
from emea.config.composition import composed
from emea.data.sources.own_files import read_own_files
from emea.errors import DataError, UserError
from emea.record.pair_file import read_pair, write_pair
from emea.run.job import run_job

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
NAME = "http://xmlns.com/foaf/0.1/name"
CITIES = [
    "Graz",
    "Linz",
    "Wien",
    "Bregenz",
    "Salzburg",
    "Innsbruck",
    "Klagenfurt",
    "Eisenstadt",
]


def write_graphs(folder: Path) -> tuple[Path, Path, Path]:
    """Two rings of cities; the last city has a label in one graph only."""
    paths = folder / "a.nt", folder / "b.nt", folder / "test.tsv"
    for path, side, attribute in zip(paths, "ab", (LABEL, NAME), strict=False):
        ring = zip(range(len(CITIES)), [*range(1, len(CITIES)), 0], strict=True)
        lines = [
            f"<http://{side}/{i}> <http://{side}/next> <http://{side}/{j}> ."
            for i, j in ring
        ]
        labelled = CITIES if side == "a" else CITIES[:-1]
        text = str if side == "a" else str.upper
        lines += [
            f'<http://{side}/{i}> <{attribute}> "{text(city)}" .'
            for i, city in enumerate(labelled)
        ]
        path.write_text("\n".join(lines) + "\n")
    paths[2].write_text(
        "".join(f"http://a/{i}\thttp://b/{i}\n" for i in range(len(CITIES)))
    )
    return paths


def test_the_command_line_aligns_without_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, _ = write_graphs(tmp_path)
    out = tmp_path / "out"
    formats = ["--formats", "sssom", "jsonl"]
    assert main([str(source), str(target), "--out", str(out), *formats]) == 0
    printed = capsys.readouterr().out
    assert (
        "7 pairs are suggested by unambiguous literals: 7 equal (estimated precision"
        in printed
    )
    assert "PARIS was used, because too few neighbours can be compared" in printed
    rows = [
        line.split("\t")[:2]
        for line in (out / "alignment.tsv").read_text().splitlines()[1:]
    ]
    assert sorted(rows) == [
        [f"http://a/{i}", f"http://b/{i}"] for i in range(len(CITIES))
    ]
    assert "\tGraz\t" in (out / "alignment.sssom.tsv").read_text()
    assert (
        '"source_label": "Graz", "target_label": "GRAZ"'
        in (out / "alignment.jsonl").read_text()
    )


def test_without_literals_and_links_there_is_one_sentence(tmp_path: Path) -> None:
    source, target, _ = write_graphs(tmp_path)
    given = [str(source), str(target), "literals=none", "--out", str(tmp_path / "out")]
    with pytest.raises(
        UserError, match=r"nothing to start from.*--links FILE.*literals=similar"
    ):
        main(given)
    with pytest.raises(
        DataError, match=r"nothing to learn from.*links=\[.*literals=True"
    ):
        Aligner(model="lightea").fit(read_graph(source), read_graph(target))


def test_a_graph_without_literals_is_named_and_names_from_iris_are_suggested(
    tmp_path: Path,
) -> None:
    source, target, _ = write_graphs(tmp_path)
    edges = [line for line in target.read_text().splitlines() if '"' not in line]
    target.write_text("\n".join(edges) + "\n")
    given = [str(source), str(target), "--out", str(tmp_path / "out")]
    advice = r"Give known links \(.*\)\. If.*data\.iri_names=true"
    message = rf"its target graph has no literals\. {advice}"
    with pytest.raises(UserError, match=message):
        main(given)


@pytest.mark.slow
def test_the_library_aligns_without_links_and_explains_by_literals(
    tmp_path: Path,
) -> None:
    source, target, _ = write_graphs(tmp_path)
    settings = ["literals=equal", "em.iterations=1", "model.encoder.dim=64"]
    aligner = Aligner(model="lightea", em="dual", settings=settings)
    aligner.fit(read_graph(source, literals=True), read_graph(target, literals=True))
    found = {match.source: match.target for match in aligner.predict()}
    assert found == {f"http://a/{i}": f"http://b/{i}" for i in range(len(CITIES))}
    explanation = aligner.explain("http://a/0", "http://b/0")
    heard = {piece.neighbour.name: piece for piece in explanation.asked.contributions}
    assert heard['"Graz"'].relation.name == LABEL
    assert heard['"Graz"'].target_relation.name == NAME
    assert explanation.source.label == "Graz" and "Graz" in aligner.why(
        "http://a/0", "http://b/0"
    )
    aligner.save(tmp_path / "saved")
    again = Aligner.load(tmp_path / "saved")
    assert again.predict() == aligner.predict()


@pytest.mark.parametrize(
    "method", ["paris", pytest.param("emea", marks=pytest.mark.slow)]
)
def test_test_links_influence_nothing(tmp_path: Path, method: str) -> None:
    source, target, test = write_graphs(tmp_path)
    neural = ["model=lightea", "model.encoder.dim=64", "em=dual", "em.iterations=1"]
    config = composed(
        [
            *(
                "data=files",
                f"data.source={source}",
                f"data.target={target}",
                "literals=similar",
            ),
            *(
                f"method={method}",
                "tracking=none",
                *(neural if method == "emea" else []),
            ),
        ]
    )
    answers = []
    for change in ("none", "true", "permuted"):
        links = [line.split("\t") for line in test.read_text().splitlines()]
        if change == "permuted":
            moved = [*links[1:], links[0]]
            links = [
                [one[0], other[1]] for one, other in zip(links, moved, strict=True)
            ]
        file = tmp_path / f"{change}.tsv"
        file.write_text("".join(f"{left}\t{right}\n" for left, right in links))
        pair = read_own_files(
            source, target, None, None if change == "none" else file, keep_literals=True
        )
        result = run_job(config, tmp_path / f"run_{change}", pair=pair)
        answers.append(
            (result.decision.answer.targets.numpy(), result.beliefs.probs.numpy())
        )
    for targets, probs in answers[1:]:
        np.testing.assert_array_equal(targets, answers[0][0])
        np.testing.assert_array_equal(probs, answers[0][1])


def test_literals_and_labels_survive_in_the_folder_of_a_run(tmp_path: Path) -> None:
    source, target, _ = write_graphs(tmp_path)
    pair = read_own_files(source, target, keep_literals=True)
    write_pair(tmp_path / "pair.npz", pair)
    again = read_pair(tmp_path / "pair.npz")
    assert again.checksum() == pair.checksum()
    assert again.source.labels == pair.source.labels
    assert again.source.attributes is not None and pair.source.attributes is not None
    assert again.source.attributes.kind_names == list(pair.source.attributes.kind_names)
