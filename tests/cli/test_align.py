"""``emea align``: two files in, an alignment and a summary out."""

import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from emea.answer.summary import next_selection
from emea.cli.arguments import check_output_folder
from emea.cli.main import main
from emea.errors import UserError

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
FILES = [str(EXAMPLES / name) for name in ("atlas.nt", "karte.ttl")]
LINKS = ["--links", str(EXAMPLES / "seeds.tsv")]
QUICK = [
    "em.iterations=1",
    "model.encoder.dim=32",
    "model.encoder.output_dim=32",
    "trainer=cpu",
]
QUICK += ["model=lightea"]


def test_two_files_are_aligned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "result"
    extras = ["--test-links", str(EXAMPLES / "test.tsv"), "--formats", "nt", "sssom"]
    assert main(["align", *FILES, *QUICK, *LINKS, "--out", str(out), *extras]) == 0
    shown = capsys.readouterr().out
    rows = (out / "alignment.tsv").read_text().splitlines()[1:]
    # the 20 known links are in the answer, and each target has one source
    targets = [row.split("\t")[1] for row in rows]
    num_found = len(rows) - 20
    assert 40 <= num_found <= 46 and len(set(targets)) == len(targets)
    assert (
        f"Matched {num_found} of 46 source entities without a given link (16 links"
        in shown
    )
    counts = shown.split("Probability of these matches: ")[1].split(".\n")[0]
    assert sum(int(part.split()[0]) for part in counts.split(", ")) == num_found
    assert "on 42 test links, not used for training" in shown
    assert "validation links, held out from training" in shown
    assert f"emea explain {out} --entity NAME" in shown
    assert {"alignment.nt", "alignment.sssom.tsv"} <= {
        path.name for path in out.iterdir()
    }
    assert "run.log" in {path.name for path in out.iterdir()}
    assert main(["predict", str(out), "--threshold", "0.5"]) == 0


def test_a_run_that_used_test_links_does_not_deny_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "result")
    given = [*LINKS, "--test-links", str(EXAMPLES / "test.tsv"), "--out", out]
    assert main(["align", *FILES, *QUICK, "em=dual", "protocol=released", *given]) == 0
    shown = capsys.readouterr().out
    assert (
        "on 42 test links, but protocol=released USED TEST LINKS in training." in shown
    )
    assert "not used for training" not in shown
    assert main(["predict", out]) == 0
    assert "[protocol released: USED TEST LINKS in training]" in capsys.readouterr().out


def test_names_with_odd_signs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "it's a, b=c [1].nt"
    shutil.copy(FILES[0], source)
    out = str(tmp_path / "my result")
    assert main(["align", str(source), FILES[1], *LINKS, "--out", out, *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "Least sure matches" in shown
    assert f"emea explain '{out}' --entity NAME" in shown
    assert f"emea predict '{out}' --" in shown


def test_examples_have_labels_and_are_not_blank_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    files = []
    for name in "ab":
        place = f"<http://{name}/"
        parts = (f"{place}X{i}> {place}part> _:n{i} .\n" for i in range(9))
        labels = (f'{place}X{i}> {label} "thing {i}" .\n' for i in range(9))
        files.append(tmp_path / f"{name}.nt")
        values = (f'_:n{i} {place}name> "part {i}" .\n' for i in range(9))
        files[-1].write_text("".join([*parts, *labels, *values]))
    assert main(["align", *map(str, files), "--out", str(tmp_path / "result")]) == 0
    shown = capsys.readouterr().out
    assert "Matched 18 of 18 source entities" in shown and "_:" not in shown
    assert (
        "These probabilities are not calibrated: there are no validation links" in shown
    )
    pattern = r"http://a/X(\d) \(thing \1\)  =  http://b/X\1 \(thing \1\)\n"
    assert len(re.findall(pattern, shown)) == 6


def test_a_chosen_precision_is_not_the_precision_of_all_matches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    given = [*LINKS, "--target-precision", "0.5", "--out", str(tmp_path / "result")]
    assert main(["align", *FILES, *QUICK, "decoding=greedy", *given]) == 0
    shown = capsys.readouterr().out
    assert (
        "The target precision of 0.5 is expected, but not confirmed: with 95% confidence"
        in shown
    )
    assert "over all source entities" in shown
    assert "Only sure matches:" in shown  # the threshold is low
    caplog.clear()
    assert main(["show", given[-1], "--no-open"]) == 0
    assert "expected, but not confirmed" not in caplog.text


def test_the_next_step_follows_from_the_threshold() -> None:
    links = {"train": 0, "validation": 20}
    for threshold, reached, num_found, expected in (
        (0.176, False, 9, "Only sure matches:    emea predict --threshold 0.95"),
        (0.6, False, 9, "More matches:         emea predict --threshold 0.5"),
        (None, False, 0, "More matches:         emea predict --threshold 0.5"),
        (None, None, 9, "Only sure matches:    emea predict --target-precision 0.95"),
        (None, None, 0, "Nothing was matched. Give a few known links (--links FILE)."),
    ):
        export = {"threshold": threshold, "reached": reached, "num_answered": num_found}
        export["target_precision"] = None if reached is None else 0.9
        assert next_selection(export, links, "emea predict") == expected


def test_reversed_links_are_recognised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [line.split("\t") for line in Path(LINKS[1]).read_text().splitlines()]
    links = tmp_path / "links.tsv"
    links.write_text("".join(f"{target}\t{source}\n" for source, target in rows[1:]))
    command = [
        "align",
        *FILES,
        *QUICK,
        "--links",
        str(links),
        "--out",
        str(tmp_path / "result"),
    ]
    assert main(command) == 1
    assert (
        "links.tsv names the target entities first. Put the" in capsys.readouterr().err
    )
    links.write_text(f"target\tsource\n{links.read_text()}")
    assert main(command) == 0  # as the message advises


def small_files(folder: Path, with_names: bool) -> tuple[list[str], list[str]]:
    """Return two rings of nine entities, and the option that names a file with six links."""
    files = []
    for name in "ab":
        path = folder / f"{name}.nt"
        place = f"<http://{name}/"
        knows = (
            f"{place}{i}> {place}knows> {place}{(i + 1) % 9}> .\n" for i in range(9)
        )
        names = (f'{place}{i}> {place}name> "name {i}" .\n' for i in range(9))
        path.write_text("".join([*knows, *(names if with_names else ())]))
        files.append(str(path))
    links = folder / "my links.tsv"
    links.write_text("".join(f"http://a/{i}\thttp://b/{i}\n" for i in range(6)))
    return files, ["--links", str(links)]


@pytest.mark.parametrize("first", ["graphs", "links"])
def test_few_links_suggest_settings_that_use_names_in_iris(
    first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, links = small_files(tmp_path, with_names=False)
    given = [*links, "--out", str(tmp_path / "result")]
    assert (
        main(["align", *(files + given if first == "graphs" else given + files)]) == 0
    )
    shown = capsys.readouterr()
    iri_names = "literals=similar data.iri_names=true"
    assert f"Use names and values as evidence with {iri_names}." in shown.err
    assert main(["align", *files, *iri_names.split(), *given]) == 0
    shown = capsys.readouterr()
    assert "9 pairs are suggested by unambiguous literals: 9 equal" in shown.out
    assert "as evidence with" not in shown.err
    for more in ([], ["literals.negative=false"], ["em=none"]):
        settings = ["data.iri_names=true", *more]
        assert main(["align", *files, *settings, *given]) == 0
        assert (
            "9 pairs are suggested by unambiguous literals" in capsys.readouterr().out
        )


def test_with_few_links_literals_are_used_unless_the_user_leaves_them_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, links = small_files(tmp_path, with_names=True)
    given = [*files, *links, "--out", str(tmp_path / "result")]
    assert main(["align", *given]) == 0
    shown = capsys.readouterr()
    assert "9 pairs are suggested by unambiguous literals: 9 equal" in shown.out
    assert (
        "PARIS was used, because" in shown.out and "on 1 validation link" in shown.out
    )
    assert (
        "\nMatches:\n" in shown.out and "Surest matches" not in shown.out
    )  # they are few
    Path(links[1]).write_text("http://a/0\thttp://b/0\n")
    assert main(["align", *given, "em=dual"]) == 0
    shown = capsys.readouterr()
    assert "9 pairs are suggested" in shown.out and "was used" not in shown.out
    assert "(1 link was given for training)" in shown.out
    small_files(tmp_path, with_names=True)
    assert main(["align", *given, "literals=none"]) == 0
    assert "unambiguous literals" not in capsys.readouterr().out


def test_rejected_pairs_are_not_counted_as_suggested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, _ = small_files(tmp_path, with_names=True)
    rejected = tmp_path / "rejected.tsv"
    rejected.write_text("http://a/0\thttp://b/0\nhttp://a/1\thttp://b/1\n")
    given = ["--rejected", str(rejected), "--out", str(tmp_path / "result")]
    assert main(["align", *files, *given]) == 0
    shown = capsys.readouterr().out
    assert "7 pairs are suggested by unambiguous literals: 7 equal" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["model=rreaa"], "model has no option rreaa (nearest: rrea"),
        (["em.iteration=2"], "There is no key em.iteration (nearest: em.iterations"),
        (["export.threshold=2"], "export.threshold must be"),
    ],
)
def test_mistakes_in_settings(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "result"
    assert (
        main(["align", FILES[0], FILES[0], *LINKS, "--out", str(out), *arguments]) == 1
    )
    shown = capsys.readouterr().err
    assert sentence in shown and f"Both sides are the same file: {FILES[0]}" in shown
    assert not out.exists()


def test_a_folder_with_other_files_is_left_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    assert main(["align", *FILES, *LINKS, "--out", str(tmp_path)]) == 1
    assert "holds files that are not from emea" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert main(["align", *FILES, *LINKS, "--out", str(tmp_path / "thesis.tex")]) == 1
    assert "is a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "is_usable"),
    [
        ([], True),
        (["run.log"], True),
        ([".running", "run.log", ".config.yaml.a1.tmp"], True),
        ([".running", "config.yaml", "pair.npz", ".run.json.a1.tmp"], True),
        (["run.json", "thesis.tex"], True),
        (["config.yaml"], False),
        (["run.log", "pair.npz"], False),
        ([".running", "thesis.tex"], False),
        ([".thesis"], False),
    ],
)
def test_a_run_that_was_killed_at_its_start_is_replaced(
    names: list[str], is_usable: bool, tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_text("")
    expected = (
        nullcontext() if is_usable else pytest.raises(UserError, match="not from emea")
    )
    with expected:
        check_output_folder(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(names)


@pytest.mark.parametrize("target", ["0.9", "1"])
def test_a_target_that_neither_links_nor_decoys_support_is_refused(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = []
    for side in "ab":
        rows = [f"{side}{n},{name}" for n, name in enumerate(("Bern", "Brno", "Graz"))]
        place = tmp_path / f"{side}.csv"
        place.write_text("id,name\n" + "\n".join(rows) + "\n")
        places.append(str(place))
    out = str(tmp_path / "out")

    status = main(["align", *places, "--target-precision", target, "--out", out])

    assert status == 1
    error = capsys.readouterr().err
    assert "A target precision needs validation links" in error
    assert "fewer than 100 entities. Set a threshold instead" in error
    assert "Traceback" not in error


def test_a_missing_third_graph_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for place in places:
        place.write_text("id,name\nx,Bern\n")

    status = main(["align", *map(str, places), str(tmp_path / "c.csv")])

    assert status == 1
    assert "There is no file of this name" in capsys.readouterr().err
