"""Commands on the files of a user: test links change neither an answer nor what follows from it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from emea.cli.main import main as emea

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
GRAPHS = (str(EXAMPLES / "atlas.nt"), str(EXAMPLES / "karte.ttl"))

LITERALS = ("literals=similar", "data.iri_names=true")
SMALL = ("model=lightea", "model.encoder.dim=64", "em.iterations=1")
METHODS = {
    "literals with links": (*SMALL, *LITERALS),
    "several encoders": (*SMALL, "em=one_to_one", "ensemble=independent"),
    "paris with links": ("method=paris", *LITERALS),
}
Links = list[tuple[str, str]]
Change = Callable[[Links], Links]


def moved(links: Links) -> Links:
    sources, targets = zip(*links, strict=True)
    return list(zip(sources, targets[1:] + targets[:1], strict=True))


CHANGES: dict[str, Change] = {
    "true": lambda links: links,
    "moved": moved,
    "deleted": lambda links: links[:1],
}


def aligned(folder: Path, change: Change, arguments: tuple[str, ...]) -> Path:
    """Align the example graphs with changed test links, and return the folder of the run."""
    rows = (EXAMPLES / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    links = change([(left, right) for left, right in (row.split("\t") for row in rows)])
    folder.mkdir()
    text = "".join(f"{left}\t{right}\n" for left, right in [("source", "target"), *links])
    (folder / "test.tsv").write_text(text, encoding="utf-8")
    known = ("--links", str(EXAMPLES / "seeds.tsv"), "--test-links", str(folder / "test.tsv"))
    assert emea(["align", *GRAPHS, *known, "--out", str(folder / "run"), *arguments]) == 0
    return folder / "run"


@pytest.mark.parametrize(
    "method",
    [pytest.param(one, marks=pytest.mark.slow if "paris" in one else ()) for one in METHODS],
)
def test_no_answer_depends_on_test_links(method: str, tmp_path: Path) -> None:
    runs = [aligned(tmp_path / name, CHANGES[name], METHODS[method]) for name in CHANGES]
    for name in ("alignment.tsv", "unmatched.tsv", "relations.tsv"):
        answers = {(run / name).read_bytes() for run in runs}
        assert len(answers) == 1, name


@pytest.mark.slow
def test_no_update_and_no_suggestion_depends_on_test_links(tmp_path: Path) -> None:
    lines = Path(GRAPHS[0]).read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "new.nt").write_text("".join(lines[:-5]), encoding="utf-8")
    found = []
    for name, change in CHANGES.items():
        run = aligned(tmp_path / name, change, SMALL)
        out = tmp_path / name
        assert emea(["suggest", str(run), "--count", "5", "--out", str(out / "labels")]) == 0
        update = ["update", str(run), "--source", str(tmp_path / "new.nt")]
        assert emea([*update, "--out", str(out / "updated")]) == 0
        files = ("labels/suggestions.tsv", "updated/alignment.tsv", "updated/changes.tsv")
        found.append([(out / file).read_bytes() for file in files])
    assert found[0] == found[1] == found[2]
