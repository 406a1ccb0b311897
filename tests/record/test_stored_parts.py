"""A finished run whose list of links was split again into labels and test links."""

from pathlib import Path

import numpy as np
import pytest

from emea.config.composition import composed
from emea.errors import DataError
from emea.run.finished_run import load_run
from emea.run.job import run_job

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
QUICK = ("model=lightea", "em.iterations=1", "trainer=cpu", "tracking=none")
KINDS = {
    "strict": QUICK,
    "released": (*QUICK, "protocol=released", "rule=avoid_conflict"),
    "paris": ("method=paris", "trainer=cpu", "tracking=none"),
}


def cut_links(folder: Path, num_labels: int) -> None:
    """All links of the example, the first of them as labels and the others as test links."""
    read = [
        (EXAMPLES / name).read_text().splitlines() for name in ("seeds.tsv", "test.tsv")
    ]
    links = [
        f"{line}\n"
        for lines in read
        for line in lines
        if not line.startswith("source\t")
    ]
    (folder / "seeds.tsv").write_text("".join(links[:num_labels]))
    (folder / "test.tsv").write_text("".join(links[num_labels:]))


def finished(folder: Path, kind: str) -> Path:
    cut_links(folder, 20)
    files = {"source": EXAMPLES / "atlas.nt", "target": EXAMPLES / "karte.ttl"}
    files |= {"links": folder / "seeds.tsv", "test_links": folder / "test.tsv"}
    given = [f"data.{key}={path}" for key, path in files.items()]
    run_job(composed(["data=files", *given, *KINDS[kind]]), folder / "run")
    return folder / "run"


@pytest.mark.parametrize("kind", KINDS)
def test_links_that_were_cut_again_are_refused(kind: str, tmp_path: Path) -> None:
    folder = finished(tmp_path, kind)
    run = load_run(folder)
    assert (len(run.labels) > len(run.split.supervision.train)) == (kind == "released")
    cut_links(tmp_path, 19)
    assert (
        load_run(folder).pair.checksum() == run.pair.checksum()
    )  # the folder has the links
    (folder / "pair.npz").unlink()  # like a run of an earlier version
    for num_labels in (19, 21):
        cut_links(tmp_path, num_labels)
        with pytest.raises(
            DataError, match="Train or test links changed since the run"
        ):
            load_run(folder)
    cut_links(tmp_path, 20)
    assert load_run(folder).pair.checksum() == run.pair.checksum()


def test_without_ranks_the_labels_are_compared(tmp_path: Path) -> None:
    folder = finished(tmp_path, "paris")
    (folder / "pair.npz").unlink()
    (folder / "ranks.npz").unlink()
    assert len(load_run(folder).labels)
    cut_links(tmp_path, 21)
    with pytest.raises(DataError, match="Train or test links changed"):
        load_run(folder)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04"])
def test_damaged_ranks_are_reported(content: bytes, tmp_path: Path) -> None:
    folder = finished(tmp_path, "paris")
    (folder / "ranks.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"ranks\.npz is damaged"):
        load_run(folder)
    np.savez(folder / "ranks.npz", links=np.zeros(3))
    with pytest.raises(DataError, match=r"ranks\.npz is damaged: it contains no links"):
        load_run(folder)
