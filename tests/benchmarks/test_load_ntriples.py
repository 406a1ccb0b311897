"""The benchmark of loading reads what it wrote."""

from pathlib import Path

from benchmarks.load_ntriples import make_files, measured
from emea.data.formats.graph_file import read_graph_file


def test_three_files_of_one_size(tmp_path: Path) -> None:
    files = make_files(tmp_path, num_triples=500, literals=0.5)
    readings = {what: read_graph_file(path)[1] for what, path in files.items()}
    assert readings["iris"].num_literals == readings["iris_gz"].num_literals == 0
    assert 150 < readings["mixed"].num_literals < 350


def test_a_reading_is_measured(tmp_path: Path) -> None:
    files = make_files(tmp_path, num_triples=500, literals=0.0)
    numbers = measured(files["iris"])
    assert numbers["seconds"] > 0 and numbers["peak_memory_gb"] > 0
    assert 400 < numbers["num_triples"] <= 500
