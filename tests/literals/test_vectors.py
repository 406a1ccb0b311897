"""Vectors of entities: files, evidence and anchors, and the embeddings that a run writes."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from emea import Aligner, read_graph
from emea.cli.main import main as emea
from emea.cli.update import main as update
from emea.config.composition import composed
from emea.data.formats.limits import reading_limits
from emea.data.formats.settings import ReadingLimits
from emea.data.formats.vector_file import read_vectors
from emea.data.sources.own_files import read_own_files
from emea.data.vectors import EntityVectors
from emea.errors import DataError, UserError
from emea.literals.match_literals import EqualLiterals
from emea.literals.similar_items import similar_vectors
from emea.record.pair_file import read_pair, write_pair
from emea.run.finished_run import load_run
from emea.run.job import run_job

NUM, DIM = 120, 16
NAMES = [f"http://x/{number}" for number in range(NUM)]


def vectors_of(seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of the same things by a noisy model, as an encoder of texts gives them."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(NUM, DIM))
    noisy = [true + noise * rng.normal(size=true.shape) for _ in range(2)]
    return noisy[0].astype(np.float32), noisy[1].astype(np.float32)


def write_npy(path: Path, values: np.ndarray, names: list[str]) -> Path:
    np.save(path, values)
    path.with_suffix(".txt").write_text("\n".join(names) + "\n")
    return path


def write_graphs(folder: Path) -> list[Path]:
    """The same graph twice, with other names; the second one has another order."""
    ends = np.random.default_rng(1).integers(0, NUM, (4 * NUM, 2)).tolist()
    files = []
    for side in "ab":
        file = folder / f"{side}.tsv"
        rows = [f"http://{side}/{head}\tr\thttp://{side}/{tail}" for head, tail in ends]
        rows += [
            f"http://{side}/{n}\tr\thttp://{side}/{(n + 1) % NUM}" for n in range(NUM)
        ]
        file.write_text("\n".join(rows) + "\n")
        files.append(file)
    return files


def write_vectors(
    folder: Path, kind: str, seed: int = 0, noise: float = 0.3
) -> list[Path]:
    order = np.random.default_rng(seed).permutation(NUM)
    files = []
    for side, values in zip("ab", vectors_of(seed, noise), strict=True):
        names = [f"http://{side}/{number}" for number in order]
        files.append(write_npy(folder / f"{kind}_{side}.npy", values[order], names))
    return files


def test_all_formats_have_the_same_content(tmp_path: Path) -> None:
    values, _ = vectors_of()
    names = NAMES[::-1]
    paths = [write_npy(tmp_path / "v.npy", values, names), tmp_path / "v.safetensors"]
    save_file({"vectors": values}, paths[1])
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for form, columns in (
        ("list", {"vector": list(values)}),
        ("wide", {f"c{number}": values[:, number] for number in range(DIM)}),
    ):
        paths.append(tmp_path / f"{form}.parquet")
        pandas.DataFrame({"id": names, **columns}).to_parquet(paths[-1])
    for path in paths:
        found = read_vectors(path, NAMES)
        np.testing.assert_array_equal(found.entities, np.arange(NUM))
        np.testing.assert_array_equal(found.values, values[::-1])
    paths[0].with_suffix(".txt").write_bytes(
        "\r\n".join(["\ufeff" + names[0], *names[1:]]).encode()
    )
    np.testing.assert_array_equal(read_vectors(paths[0], NAMES).values, values[::-1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values, names: (values[:-1], names), "has 119 vectors for 120 names"),
        (
            lambda values, names: (values, [*names[:-1], "who"]),
            "1 of 120 names are not.*who",
        ),
        (
            lambda values, names: (values, [*names[:-1], names[0]]),
            "1 names occur twice",
        ),
        (
            lambda values, names: (np.where(values > 2, np.nan, values), names),
            "NaN.*http://x/",
        ),
        (
            lambda values, names: (np.zeros_like(values), names),
            "120 vectors contain.*zero",
        ),
        (lambda values, names: (values[0], names), "one matrix"),
        (lambda values, names: (values.astype(int), names), "floating-point"),
    ],
)
def test_wrong_vectors_are_one_sentence(change, message: str, tmp_path: Path) -> None:
    path = write_npy(tmp_path / "v.npy", *change(vectors_of()[0], NAMES))
    with pytest.raises(DataError, match=rf"^v\.npy.*{message}") as caught:
        read_vectors(path, NAMES)
    assert str(caught.value).count("\n") == 0


def test_unreadable_files_are_one_sentence(tmp_path: Path) -> None:
    path = write_npy(tmp_path / "v.npy", vectors_of()[0], NAMES)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataError, match=r"v\.npy cannot be read"):
        read_vectors(path, NAMES)
    path.with_suffix(".txt").unlink()
    with pytest.raises(DataError, match=r"needs the names of its entities.*v\.txt"):
        read_vectors(path, NAMES)
    with pytest.raises(DataError, match=r"must end in \.npy"):
        read_vectors(tmp_path / "v.csv", NAMES)


def test_a_zip_archive_is_not_a_matrix(tmp_path: Path) -> None:
    path = write_npy(tmp_path / "v.npy", vectors_of()[0], NAMES)
    np.savez(tmp_path / "v.npz", vectors_of()[0])
    path.write_bytes((tmp_path / "v.npz").read_bytes())
    with pytest.raises(
        DataError, match=r"v\.npy cannot be read: it is not a \.npy file"
    ):
        read_vectors(path, NAMES)


@pytest.mark.parametrize(
    "shape", [(1 << 40, 1 << 20), (1 << 62, 4), (121, DIM), (-1, DIM)]
)
def test_a_header_may_not_claim_more_than_the_file_has(
    shape: tuple[int, int], tmp_path: Path
) -> None:
    path = write_npy(tmp_path / "v.npy", vectors_of()[0], NAMES)
    header = {"shape": shape, "fortran_order": False, "descr": "<f4"}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(vectors_of()[0].tobytes())
    with pytest.raises(DataError, match=r"v\.npy cannot be read: its header"):
        read_vectors(path, NAMES)


@pytest.mark.parametrize("suffix", [".npy", ".safetensors", ".txt"])
def test_the_size_of_vectors_and_their_names_is_limited(
    suffix: str, tmp_path: Path
) -> None:
    path = write_npy(tmp_path / "v.npy", vectors_of()[0], NAMES)
    save_file({"vectors": vectors_of()[0]}, tmp_path / "v.safetensors")
    with (tmp_path / f"v{suffix}").open("r+b") as file:
        file.truncate((1 << 20) + 1)  # zeros, which take no space on the disk
    if suffix == ".safetensors":
        path = path.with_suffix(suffix)
    limits = reading_limits(ReadingLimits(size_mib=1))
    with (
        limits,
        pytest.raises(DataError, match=rf"^v\{suffix}: .*data\.limits\.size_mib=1"),
    ):
        read_vectors(path, NAMES)


def test_names_of_vectors_are_a_regular_file_in_utf_8(tmp_path: Path) -> None:
    path = write_npy(tmp_path / "v.npy", vectors_of()[0], NAMES)
    listed = path.with_suffix(".txt")
    listed.write_bytes(listed.read_bytes().replace(b"http://x/1\n", b"\xff\n"))
    with pytest.raises(DataError, match=r"^v\.txt, line 2 is not UTF-8"):
        read_vectors(path, NAMES)
    listed.unlink()
    os.mkfifo(listed)
    with pytest.raises(DataError, match=r"v\.txt is a pipe"):
        read_vectors(path, NAMES)


def test_a_parquet_file_of_equal_rows_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow, parquet = (
        pytest.importorskip("pyarrow"),
        pytest.importorskip("pyarrow.parquet"),
    )
    zeros = pyarrow.array(np.zeros(3_000_000, dtype=np.float32))
    lists = pyarrow.FixedSizeListArray.from_arrays(zeros, 300_000)
    for name, columns in (
        ("rows", {"id": zeros, "v": zeros}),
        ("lists", {"id": pyarrow.array(["a"] * 10), "v": lists}),
        ("columns", {"id": zeros[:9], **{f"c{n}": zeros[:9] for n in range(20)}}),
    ):
        parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", None)
    limits = ReadingLimits(size_mib=8, columns=20)
    for name, limit in (
        ("rows", "size_mib=8"),
        ("lists", "size_mib=8"),
        ("columns", "columns"),
    ):
        with (
            reading_limits(limits),
            pytest.raises(DataError, match=rf"{name}\.parquet: .*{limit}"),
        ):
            read_vectors(tmp_path / f"{name}.parquet", NAMES)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a"]}, "needs a column id and columns"),
        ({"id": ["a", "b"], "v": [[1.0], [1.0, 2.0]]}, "must have the same length"),
        ({"id": ["a", "b"], "v": [[1.0], None]}, "must have the same length"),
        ({"id": ["a"], "v": [[]]}, "contains list<.*null|same length"),
        ({"id": ["a"], "v": [["1"]]}, "contains list<.*string"),
        ({"id": ["a"], "v": ["1"], "w": [1.0]}, "column v contains string"),
        ({"id": ["a"], "v": [[[1.0]]]}, "contains list<.*list"),
        ({"id": ["a"], "v": [None], "w": [1.0]}, "column v contains null"),
        ({"id": ["http://x/1"], "v": [1.0], "w": [float("nan")]}, "NaN"),
        ({"id": [None], "v": [1.0], "w": [2.0]}, "1 of 1 names are not entities"),
    ],
)
def test_wrong_parquet_vectors_are_one_sentence(
    columns, message: str, tmp_path: Path
) -> None:
    pyarrow, parquet = (
        pytest.importorskip("pyarrow"),
        pytest.importorskip("pyarrow.parquet"),
    )
    parquet.write_table(pyarrow.table(columns), tmp_path / "v.parquet")
    with pytest.raises(DataError, match=rf"^v\.parquet.*({message})"):
        read_vectors(tmp_path / "v.parquet", NAMES)


def test_emea_data_reads_vectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graphs, files = write_graphs(tmp_path), write_vectors(tmp_path, "names")
    named = [
        f"source={graphs[0]}",
        f"target={graphs[1]}",
        f"source_vectors=[{files[0]}]",
    ]
    assert emea(["data", "files", *named, f"target_vectors=[{files[1]}]"]) == 0
    assert re.search(
        r"^vectors of names_a \(16 numbers\) +120 +120$", *capsys.readouterr()[:1], re.M
    )
    assert (
        emea(["data", "files", *named, f"target_vectors=[{tmp_path / 'none.npy'}]"])
        == 1
    )
    assert "none.npy" in capsys.readouterr().err


def test_unknown_names_can_be_left_out(tmp_path: Path) -> None:
    path = write_npy(tmp_path / "v.npy", vectors_of()[0], [*NAMES[:-1], "who"])
    found = read_vectors(path, NAMES, skips_unknown=True)
    assert found.entities.tolist() == list(range(NUM - 1))


def test_similar_vectors_are_those_of_all_pairs() -> None:
    values = vectors_of()
    sides = [EntityVectors("v", np.arange(NUM), side) for side in values]
    found = similar_vectors(*sides)
    units = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in values]
    every = units[0] @ units[1].T
    best = {
        (row, int(every[row].argmax()))
        for row in range(NUM)
        if every[:, every[row].argmax()].argmax() == row
    }
    chosen = found.margins > 0
    assert set(zip(found.rows[chosen], found.columns[chosen], strict=True)) == best
    for row, column, cosine, margin in zip(*found, strict=True):
        rivals = [*np.delete(every[row], column), *np.delete(every[:, column], row)]
        assert cosine == pytest.approx(every[row, column], abs=1e-5)
        assert margin == pytest.approx(cosine - max(max(rivals), 0), abs=1e-5)


def test_vectors_are_evidence_and_each_kind_has_its_own_weight(tmp_path: Path) -> None:
    graphs = write_graphs(tmp_path)
    good, bad = (
        write_vectors(tmp_path, "names"),
        write_vectors(tmp_path, "noise", 5, 9.0),
    )
    given = {"source_vectors": [good[0], bad[0]], "target_vectors": [good[1], bad[1]]}
    pair = read_own_files(*graphs, keep_literals=True, **given)
    found = EqualLiterals()(pair)
    names = [graph.all_entity_names for graph in (pair.source, pair.target)]
    right = [names[0][a][9:] == names[1][b][9:] for a, b in found.anchors.tolist()]
    assert len(right) > 0.9 * NUM and np.mean(right) > 0.97
    assert found.anchor_kinds["vectors of names_a"][1] > 0.9
    of_kind = {}
    for (node, _), prob in zip(found.pairs.tolist(), found.probs, strict=True):
        of_kind.setdefault(found.source.entity_name(node), []).append(prob)
    assert np.mean(of_kind['"vector of names_a"']) > 0.9
    assert np.mean(of_kind['"vector of noise_a"']) < 0.5
    write_pair(tmp_path / "pair.npz", pair)
    again = read_pair(tmp_path / "pair.npz")
    assert again.checksum() == pair.checksum()
    assert pair.checksum() != read_own_files(*graphs, keep_literals=True).checksum()


def test_kinds_and_sizes_must_agree(tmp_path: Path) -> None:
    graphs, files = write_graphs(tmp_path), write_vectors(tmp_path, "names")
    short = write_npy(tmp_path / "short.npy", vectors_of()[1][:, :3], NAMES)
    short.with_suffix(".txt").write_text(files[1].with_suffix(".txt").read_text())
    for target, message in (
        ([short], "have 16 numbers and those of short 3"),
        ([], "1 files of"),
    ):
        with pytest.raises(UserError, match=message):
            read_own_files(
                *graphs,
                keep_literals=True,
                source_vectors=[files[0]],
                target_vectors=target,
            )


def test_a_run_without_links_uses_vectors_and_writes_its_own(tmp_path: Path) -> None:
    graphs, files = write_graphs(tmp_path), write_vectors(tmp_path, "names", noise=0.9)
    settings = [
        *(f"data.source={graphs[0]}", f"data.target={graphs[1]}", "data=files"),
        *(f"data.source_vectors=[{files[0]}]", f"data.target_vectors=[{files[1]}]"),
        *("literals=equal", "model=lightea", "model.encoder.dim=64", "em=one_to_one"),
        *("em.iterations=1", "tracking=none", "export.formats=[tsv,vectors]"),
    ]
    run_job(composed(settings), tmp_path / "run")
    rows = (tmp_path / "run" / "alignment.tsv").read_text().splitlines()[1:]
    right = [row.split("\t")[0][9:] == row.split("\t")[1][9:] for row in rows]
    assert np.mean(right) > 0.95 and len(right) == NUM
    with pytest.raises(UserError, match="uses vectors of entities"):
        update([str(tmp_path / "run"), "--source", str(graphs[0])])
    names = (tmp_path / "run" / "source_vectors.txt").read_text().splitlines()
    written = read_vectors(tmp_path / "run" / "source_vectors.npy", names)
    assert len(written.values) == NUM and written.values.shape[1] >= 64
    sides = [
        read_graph(graph, vectors=[tmp_path / "run" / f"{side}_vectors.npy"])
        for graph, side in zip(graphs, ("source", "target"), strict=True)
    ]
    links = [(f"http://a/{number}", f"http://b/{number}") for number in range(NUM)]
    for known in ([], links[:100]):  # vectors are used although there are many links
        aligner = Aligner().fit(*sides, known)
        right = {(one.source, one.target) for one in aligner.predict()} & set(links)
        assert len(right) > 0.95 * NUM
        aligner.save(tmp_path / f"saved{len(known)}")
        assert (
            load_run(tmp_path / f"saved{len(known)}").config.literals.name == "similar"
        )


@pytest.mark.parametrize("factor", [1e37, 1e-37, 1e-42, 1e-20])
def test_the_length_of_vectors_has_no_meaning(factor: float, tmp_path: Path) -> None:
    """Squares of very large or small numbers would be infinite or 0."""
    values = vectors_of()[0].astype(np.float64)
    with np.errstate(under="ignore"):
        path = write_npy(tmp_path / "v.npy", (values * factor).astype("f4"), NAMES)
    found = read_vectors(path, NAMES).values
    lengths = np.linalg.norm(found, axis=1)
    assert np.isfinite(lengths).all() and (lengths > 0.5).all()
    cosines = (found * values).sum(1) / lengths / np.linalg.norm(values, axis=1)
    assert (cosines > 0.999).all()
    usual = write_npy(tmp_path / "u.npy", values.astype("f4"), NAMES)
    assert (read_vectors(usual, NAMES).values == values.astype("f4")).all()
