"""Data sets of the field, aligned without links from the files as they were published."""

from collections.abc import Callable
from pathlib import Path

import pytest

from emea.cli.main import main
from emea.data.formats.link_file import read_link_file
from emea.data.names import local_name


def f1(alignment: Path, gold: set[tuple[str, str]], threshold: float) -> float:
    rows = [line.split("\t") for line in alignment.read_text().splitlines()[1:]]
    found = {
        (source, target)
        for source, target, prob, *_ in rows
        if float(prob) >= threshold
    }
    return 2 * len(found & gold) / (len(found) + len(gold))


@pytest.mark.data
def test_dblp_acm_from_csv_files(
    real_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = real_folder("tables/dblp_acm")
    files = [str(folder / name) for name in ("DBLP2.csv.gz", "ACM.csv.gz")]
    assert main(["align", *files, "--out", str(tmp_path)]) == 0
    gold = set(read_link_file(folder / "DBLP-ACM_perfectMapping.csv.gz").links)
    assert f1(tmp_path / "alignment.tsv", gold, 0.5) >= 0.98


@pytest.mark.data
def test_anatomy_from_owl_files(
    real_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = real_folder("oaei/anatomy")
    files = [str(folder / f"{name}.owl.gz") for name in ("mouse", "human")]
    links = ["--test-links", str(folder / "reference.rdf.gz"), "data.on_error=skip"]
    assert main(["align", *files, *links, "--out", str(tmp_path)]) == 0
    gold = set(read_link_file(folder / "reference.rdf.gz").links)
    alignment = tmp_path / "alignment.tsv"
    assert f1(alignment, gold, 0.0) >= 0.87
    targets = [line.split("\t")[1] for line in alignment.read_text().splitlines()[1:]]
    assert not any(local_name(target).startswith("genid") for target in targets)
