"""Commands on the files of a user: test links change neither an answer nor what follows from it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
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
    "several matches": ("method=paris", *LITERALS, "cardinality=one_to_many"),
    "several matches on both sides": (
        "method=paris",
        *LITERALS,
        "cardinality=many_to_many",
    ),
    "vectors": (*SMALL, "literals=equal"),
    "vectors and paris": ("method=paris", "literals=equal"),
}
DEFAULT = ("literals with links", "several encoders")
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


def links_of(name: str) -> Links:
    rows = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()[1:]
    return [(left, right) for left, right in (row.split("\t") for row in rows)]


def vectors(folder: Path) -> tuple[str, ...]:
    """Write vectors of the linked entities, which agree for most pairs, and return the settings."""
    pairs = links_of("seeds.tsv") + links_of("test.tsv")
    rng = np.random.default_rng(0)
    true = rng.normal(size=(len(pairs), 8))
    settings = []
    for side, names in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        noisy = true + 0.5 * rng.normal(size=true.shape)
        np.save(folder / f"{side}.npy", noisy.astype(np.float32))
        (folder / f"{side}.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
        settings.append(f"data.{side}_vectors=[{folder / side}.npy]")
    return tuple(settings)


def aligned(folder: Path, change: Change, arguments: tuple[str, ...]) -> Path:
    """Align the example graphs with changed test links, and return the folder of the run."""
    links = change(links_of("test.tsv"))
    folder.mkdir()
    text = "".join(
        f"{left}\t{right}\n" for left, right in [("source", "target"), *links]
    )
    (folder / "test.tsv").write_text(text, encoding="utf-8")
    known = (
        "--links",
        str(EXAMPLES / "seeds.tsv"),
        "--test-links",
        str(folder / "test.tsv"),
    )
    assert (
        emea(["align", *GRAPHS, *known, "--out", str(folder / "run"), *arguments]) == 0
    )
    return folder / "run"


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(one, marks=() if one in DEFAULT else pytest.mark.slow)
        for one in METHODS
    ],
)
def test_no_answer_depends_on_test_links(method: str, tmp_path: Path) -> None:
    arguments = METHODS[method] + (vectors(tmp_path) if "vectors" in method else ())
    runs = [
        aligned(tmp_path / name, change, arguments) for name, change in CHANGES.items()
    ]
    if method not in DEFAULT:
        for run in runs:
            assert emea(["predict", str(run), "--target-precision", "0.5"]) == 0
    names = {
        run: sorted(str(path.relative_to(run)) for path in run.rglob("*.tsv"))
        for run in runs
    }
    assert {"alignment.tsv", "unmatched.tsv", "relations.tsv"} <= {*names[runs[0]]}
    for name in names[runs[0]]:
        assert len({(run / name).read_bytes() for run in runs}) == 1, name


@pytest.mark.slow
def test_no_command_on_a_run_depends_on_what_only_the_evaluation_sees(
    tmp_path: Path,
) -> None:
    lines = Path(GRAPHS[0]).read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "new.nt").write_text("".join(lines[:-5]), encoding="utf-8")
    alone = [
        f"http://atlas.example.org/place/{name}" for name in ("Hungarian", "Serbian")
    ]
    (tmp_path / "alone.tsv").write_text(
        "\n".join(["entity", *alone]) + "\n", encoding="utf-8"
    )
    known = (f"data.unmatched={tmp_path / 'alone.tsv'}",)
    found = []
    for name in (*CHANGES, "unmatched"):
        further = known if name == "unmatched" else ()
        run = aligned(
            tmp_path / name, CHANGES.get(name, CHANGES["true"]), SMALL + further
        )
        out = tmp_path / name
        assert (
            emea(["suggest", str(run), "--count", "5", "--out", str(out / "labels")])
            == 0
        )
        assert emea(["predict", str(run), "--target-precision", "0.5"]) == 0
        update = ["update", str(run), "--source", str(tmp_path / "new.nt")]
        assert emea([*update, "--out", str(out / "updated")]) == 0
        files = (
            "labels/suggestions.tsv",
            "updated/alignment.tsv",
            "updated/changes.tsv",
        )
        files += ("run/alignment.tsv", "run/predictions/alignment.tsv")
        found.append([(out / file).read_bytes() for file in files])
    assert all(one == found[0] for one in found)
