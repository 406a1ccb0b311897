"""Further attacks: vectors, tables, divisions, merges, outputs, truncations and the environment.

They are part of ``python -m benchmarks.attacks``, which describes how they are tried.
"""

import io
import json
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attack_parts import KINDS, Attack, npy, replaced, unsigned, written
from emea.record.checked_files import (
    read_checked_arrays,
    write_checked_arrays,
    write_checked_json,
)

ENTITIES, DIVISION = "division/part-0/entities.npz", "division/division.json"
VECTORS_OF_BOTH = "data.source_vectors=[{0}] data.target_vectors=[{0}]"
ALIGN_VECTORS = f"align a.nt a.nt --links l.tsv {VECTORS_OF_BOTH} --out out"
NUM = 20


def saved(values: np.ndarray) -> bytes:
    """Return an array as a ``.npy`` file."""
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def zipped_array() -> bytes:
    """Return an archive of arrays."""
    file = io.BytesIO()
    np.savez(file, np.eye(NUM, dtype=np.float32))
    return file.getvalue()


def vectors() -> dict[str, bytes]:
    """Return hostile files of vectors by their content."""
    eye = np.eye(NUM, dtype=np.float32)
    return {
        "a zip archive": zipped_array(),
        "objects": npy("'|O'", "(20, 1)", b"cos\nsystem\n(S'touch x'\ntR."),
        "a pickle": b"\x80\x04cos\nsystem\n",
        "huge shape": npy("'<f4'", f"({10**12}, 4)"),
        "negative shape": npy("'<f4'", "(-1, 4)"),
        "more rows than the file has": npy("'<f4'", f"({NUM}, 4)", bytes(40)),
        "deep header": npy("'<f4'", "(" * 3000 + ")" * 3000),
        "version 9": npy("'<f4'", "(1, 1)", bytes(4), b"\x09\x00"),
        "records": npy("[('a', '<f4')]", "(20, 1)", bytes(80)),
        "integers": saved(np.eye(NUM, dtype=np.int64)),
        "complex": saved(np.eye(NUM, dtype=np.complex64)),
        "NaN": saved(eye * np.float32("nan")),
        "infinite": saved(np.where(eye > 0, np.float32("inf"), eye)),
        "one dimension": saved(eye[0]),
        "three dimensions": saved(eye[None]),
        "no columns": saved(eye[:, :0]),
        "no rows": saved(eye[:0]),
        "too large for 32 bits": saved(np.eye(NUM) * 1e300),
        "cut": saved(eye)[:-7],
        "empty": b"",
        "text": b"a\t1\t2\n",
    }


def parquet_bombs() -> dict[str, bytes]:
    """Return Parquet files that are small and take much memory."""
    import pyarrow
    from pyarrow import parquet

    def file(**columns: Any) -> bytes:
        content = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), content, compression="zstd")
        return content.getvalue()

    num = 20_000_000
    zeros = pyarrow.array(np.zeros(num, dtype=np.float32))
    names = pyarrow.array(["http://a/1", "http://a/2"])
    return {
        "equal rows": file(id=zeros, v=zeros),
        "long lists": file(
            id=names, v=pyarrow.FixedSizeListArray.from_arrays(zeros, num // 2)
        ),
        "a long text": file(id=pyarrow.array(["x" * 9_000_000] * 40), v=zeros[:40]),
        "lists of texts": file(id=names, v=pyarrow.array([["x"], ["y"]])),
        "lists of different lengths": file(
            id=names, v=pyarrow.array([[1.0], [1.0, 2.0]])
        ),
        "no numbers": file(id=names),
        "null": file(id=names, v=pyarrow.array([None, None])),
    }


def vector_attacks() -> Iterator[Attack]:
    """Attacks by files of vectors and their names."""
    names = "".join(f"http://a/{number}\n" for number in range(NUM))
    for name, content in vectors().items():

        def change(place: Path, content: bytes = content) -> None:
            (place / "v.npy").write_bytes(content)
            (place / "v.txt").write_text(names)

        yield Attack(
            f"vectors: {name}", change, ALIGN_VECTORS.format("v.npy"), is_refused=True
        )
        yield Attack(
            f"vectors: {name}",
            change,
            "data files source=a.nt target=a.nt links=l.tsv source_vectors=[v.npy] "
            "target_vectors=[v.npy]",
            is_refused=True,
        )
    for name, content in parquet_bombs().items():
        put = written("v.parquet", content)
        command = ALIGN_VECTORS.format("v.parquet")
        yield Attack(f"Parquet: {name}", put, command, is_refused=True)
        as_table = "align v.parquet a.nt --links l.tsv"
        yield Attack(f"Parquet table: {name}", put, as_table, is_refused=True)
    for kind, make in KINDS.items():
        for file in ("v.npy", "v.txt"):

            def replace(place: Path, file: str = file, make: Any = make) -> None:
                (place / "v.npy").write_bytes(saved(np.eye(NUM, dtype=np.float32)))
                (place / "v.txt").write_text(names)
                replaced(file, make)(place)

            yield Attack(
                f"{file} is a {kind}", replace, ALIGN_VECTORS.format("v.npy"), True
            )


TABLES = {
    "two id columns": "id,id\na,b\n",
    "only a header": "id,name\n",
    "an id of control characters": "id,name\n\x1b[2J\x07,A\nb,B\n",
    "quotes": 'id,name\n"a,A\nb,B\n' + '"' * 3,
    "many columns": "id," + ",".join(f"c{one}" for one in range(20_000)) + "\na\n",
    "null bytes": "id,name\na\0,A\n",
    "formulas": "id,name\n=cmd()|x,@A\n",
    "empty ids": "id,name\n,A\n,B\n",
    "a list of separators": "id,authors\na," + ";" * 1_000_000 + "\n",
}


def table_attacks() -> Iterator[Attack]:
    """Attacks by tables of entities."""
    further = " data.lists={authors:';'} data.references=[name]"
    for name, text in TABLES.items():
        for command in (
            "data files source=t.csv target=t.csv links=l.tsv",
            f"align t.csv t.csv{further}",
        ):
            yield Attack(
                f"table: {name}", written("t.csv", text), command, is_refused=True
            )


def changed_arrays(
    name: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Any:
    """Change arrays of a file, which gets a valid checksum."""

    def apply(place: Path) -> None:
        arrays = read_checked_arrays(place / name)
        write_checked_arrays(place / name, **(arrays | change(arrays)))

    return apply


def changed_record(name: str, change: Callable[[dict[str, Any]], object]) -> Any:
    """Change a JSON object, which gets a valid checksum."""

    def apply(place: Path) -> None:
        content = json.loads(unsigned(place / name))
        change(content)
        write_checked_json(place / name, content)

    return apply


def division_attacks() -> Iterator[Attack]:
    """Attacks by the files of a division."""
    join = "join division --out out"
    part = "run data=part data.division=division data.part=0 tracking=none hydra.run.dir=out"
    arrays: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "other ids": lambda one: {"source": np.arange(len(one["source"]))},
        "unsorted ids": lambda one: {"source": one["source"][::-1].copy()},
        "repeated ids": lambda one: {"source": one["source"] * 0},
        "large ids": lambda one: {"source": one["source"] + 10**6},
        "negative ids": lambda one: {"source": one["source"] - 10**6},
        "fewer ids": lambda one: {"source": one["source"][1:]},
        "floats": lambda one: {"source": one["source"] / 2},
        "a matrix": lambda one: {"source": one["source"][:, None]},
        "NaN": lambda one: {"source_seen": one["source_seen"] * np.nan},
        "fewer shares": lambda one: {"target_seen": one["target_seen"][1:]},
        "large shares": lambda one: {"target_seen": one["target_seen"] * 1e9},
        "another array": lambda one: {"x": one["source"]},
    }
    for name, change in arrays.items():
        yield Attack(
            f"entities: {name}", changed_arrays(ENTITIES, change), join, is_refused=True
        )
    values: list[Any] = [None, [], ["x"], {}, "x", -1, 1e300, True, "\x1b[2J"]
    for value in values:
        for key in ("checksum", "parts", "name", "overlap"):
            if key == "name" and isinstance(value, str):
                continue
            record = changed_record(DIVISION, partial(_put, key=key, value=value))
            yield Attack(f"division: {key} is {value!r}", record, join)
            yield Attack(f"division: {key} is {value!r}", record, part)
        for key in ("checksum", "num_source", "entities"):
            record = changed_record(DIVISION, partial(_put_part, key=key, value=value))
            yield Attack(f"division: {key} of a part is {value!r}", record, join)
    for file in (
        DIVISION,
        ENTITIES,
        "division/part-0/pair.npz",
        "division/config.yaml",
    ):
        for kind, make in KINDS.items():
            yield Attack(
                f"{file} is a {kind}", replaced(file, make), join, is_refused=True
            )
        yield Attack(f"{file} is cut", cut(file), join, is_refused=True)
    for name in ("entities.npz", "pair.npz"):
        swapped = partial(
            _copied, source=f"division/part-1/{name}", target=f"division/part-0/{name}"
        )
        yield Attack(f"{name} of another part", swapped, join, is_refused=True)


def _put(content: dict[str, Any], key: str, value: Any) -> None:
    content[key] = value


def _put_part(content: dict[str, Any], key: str, value: Any) -> None:
    content["parts"][0][key] = value


def _copied(place: Path, source: str, target: str) -> None:
    (place / target).write_bytes((place / source).read_bytes())


def cut(name: str, at_line: bool = False) -> Any:
    """Remove the second half of a file, at the end of a line if ``at_line`` is set."""

    def apply(place: Path) -> None:
        content = (place / name).read_bytes()
        end = len(content) // 2
        (place / name).write_bytes(
            content[: content.rfind(b"\n", 0, end) + 1 if at_line else end]
        )

    return apply


def merge_attacks() -> Iterator[Attack]:
    """Attacks by alignments."""
    header = "source\ttarget\tprobability\n"
    texts = {
        "empty": "",
        "no header": "0\t0\t1\n",
        "swapped columns": "target\tsource\tprobability\n0\t0\t1\n",
        "unknown names": header + "unknown\t0\t1\n",
        "NaN": header + "0\t0\tnan\n",
        "2": header + "0\t0\t2\n",
        "fewer columns": header + "0\t0\n",
        "null bytes": header + "0\0\t0\t1\n",
        "not UTF-8": header + "\udcff\t0\t1\n",
    }
    for name, text in texts.items():
        change = written("m.tsv", text.encode(errors="surrogateescape"))
        yield Attack(
            f"alignment: {name}", change, "merge run --alignment m.tsv", is_refused=True
        )
    for at_line in (False, True):
        change = cut("run/alignment.tsv", at_line)
        yield Attack("alignment.tsv is cut", change, "merge run", is_refused=True)
    for text in ("", "text", "- a", "data: x", "data: {}"):
        yield Attack(
            f"settings {text!r}", written("run/config.yaml", text), "merge run", True
        )
    for kind, make in KINDS.items():
        yield Attack(
            f"alignment.tsv is a {kind}",
            replaced("run/alignment.tsv", make),
            "merge run",
            True,
        )


WRITERS = (
    "merge run --out {}",
    "show run --no-open --out {}",
    "explain run --entity 3 --html {}",
    "explain run --entity 3 --json {}",
    "compare run run --html {}",
)
FOLDER_WRITERS = ("predict run --out {}", "suggest run --count 2 --out {}")


def output_attacks() -> Iterator[Attack]:
    """Attacks by places where results must not be written."""
    places = (
        "run/config.yaml",
        "run/pair.npz",
        "run/.running",
        "run/alignment.tsv",
        "a.nt",
        "run",
    )
    for command in WRITERS:
        for place in (*places, "pipe", "link", "victim", "missing/" + "x" * 300):
            for force in ("", " --force"):
                is_refused = not (force and place == "a.nt")
                yield Attack(
                    f"output {place}",
                    _with_outputs,
                    command.format(place) + force,
                    is_refused=is_refused,
                )
    for command in FOLDER_WRITERS:
        for place in ("run", "division", "division/part-0", "a.nt", "pipe", "link"):
            yield Attack(
                f"output {place}", _with_outputs, command.format(place), is_refused=True
            )
    yield Attack(
        "output own",
        written("own/alignment.tsv", "mine"),
        "predict run --out own",
        True,
    )


def _with_outputs(place: Path) -> None:
    os.mkfifo(place / "pipe")
    (place / "link").symlink_to(place / "victim" / "secret.txt")


ALL = {"run.json", "metrics.json", "config.yaml", "beliefs.npz", "decisions.tsv"}
READERS = {
    "predict run": ALL | {"ranks.npz"},
    "show run --no-open": ALL | {"ranks.npz"},
    "suggest run --count 2": ALL | {"ranks.npz"},
    "explain run --entity 3": ALL | {"ranks.npz"},
    "merge run": {"run.json", "config.yaml", "alignment.tsv"},
    "compare run run": {"run.json", "metrics.json", "ranks.npz"},
    "report --runs run": {"run.json"},
    "update run --links links.tsv": ALL | {"ranks.npz"},
    "sync run --uri sqlite:///runs.db": {"run.json"},
}
"""Commands and the files of a run that they need."""

RUN_FILES = (
    *(
        "run.json",
        "metrics.json",
        "config.yaml",
        "beliefs.npz",
        "ranks.npz",
        "alignment.tsv",
    ),
    *("series.jsonl", "unmatched.tsv", "decisions.tsv", "pair.npz"),
    *("checkpoint.safetensors", "relations.tsv", "classes.tsv"),
)
"""Files that are cut. Where the run has none, such as decisions, a file of another run is there."""


ABSENT = ("decisions.tsv", "relations.tsv", "classes.tsv", "checkpoint.safetensors")
"""Files that the run of the attacks does not have."""


def truncation_attacks() -> Iterator[Attack]:
    """Each file of a run is cut, and each command is tried."""
    for command, needed in READERS.items():
        for file in RUN_FILES:
            change = written(f"run/{file}", b"source\ttarget\n")
            if file not in ABSENT:
                change = cut(f"run/{file}")
            yield Attack(f"{file} is cut", change, command, file in needed)
            empty = written(f"run/{file}", b"")
            yield Attack(f"{file} is empty", empty, command, file in needed)


NAMES = (
    '</script><img src=x onerror="document.title=1337">',
    "<svg onload=document.title=1337>",
    "${document.title=1337}",
    "\u2028\u202e\x1b[31m",
    "__proto__",
    '"><b onmouseover=x>',
    "<!--<script>",
    "javascript:document.title=1337",
)
"""Names that a page, a script or a terminal could take for something else."""


def hostile_table(side: str) -> str:
    """Return a table of entities whose ids and names are hostile."""
    texts = [NAMES[number % len(NAMES)] for number in range(5 * len(NAMES))]
    rows = [
        f"{side}{number}{text}\tname {text} {number}"
        for number, text in enumerate(texts)
    ]
    return "\n".join(["id\tname", *rows]) + "\n"


def page_attacks() -> Iterator[Attack]:
    """Attacks by names on pages. Tests with the marker ``browser`` open the pages."""

    def write(place: Path) -> None:
        for side in "xyz":
            written(f"{side}.tsv", hostile_table(side))(place)

    for command in (
        "align x.tsv y.tsv --out out",
        "dedupe x.tsv --out out",
        "align x.tsv y.tsv z.tsv --out out",
    ):
        yield Attack("hostile names", write, command)


def environment_attacks() -> Iterator[Attack]:
    """Attacks by the environment of the process."""
    variables = {
        "HOME": "/nonexistent",
        "TMPDIR": "/nonexistent",
        "COLUMNS": "x",
        "TERM": "\x1b[2J",
        "LANG": "tlh.KLINGON",
        "PYTHONIOENCODING": "ascii",
        "EMEA_DATA": "/dev/null",
        "MLFLOW_TRACKING_URI": "x:",
        "BROWSER": "touch victim/new",
        "OMP_NUM_THREADS": "x",
    }
    for command in (
        "predict run",
        "show run --no-open",
        "align a.nt a.nt --links l.tsv --out out",
    ):
        for name, value in variables.items():
            yield Attack(
                f"{name}={value!r}",
                lambda place: None,
                command,
                before=partial(os.environ.__setitem__, name, value),
            )
    for command in (
        "predict run",
        "show run --no-open",
        "merge run",
        "suggest run --count 2",
    ):
        yield Attack(
            "files of at most 1 KiB",
            lambda place: None,
            command,
            is_refused=True,
            before=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1024, 1024)),
        )
        yield Attack(
            "a deleted folder",
            lambda place: None,
            command,
            True,
            before=_deleted_folder,
        )


def _deleted_folder() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)


def door_attacks() -> Iterator[Attack]:
    """Return all attacks of this module."""
    yield from vector_attacks()
    yield from table_attacks()
    yield from division_attacks()
    yield from merge_attacks()
    yield from output_attacks()
    yield from truncation_attacks()
    yield from page_attacks()
    yield from environment_attacks()
