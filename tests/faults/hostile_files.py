"""Hostile input files, and a driver that reads all of them.

``python -m tests.faults.hostile_files FOLDER FIRST`` reads the files from number FIRST on and
prints a JSON object before and after each file. If a native parser ends the process, the caller
starts it again with the next file.
"""

import gzip
import io
import json
import os
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

NTRIPLES = b"".join(
    b"<http://a/%d> <http://a/r> <http://a/%d> .\n" % (number, number + 1)
    for number in range(9)
)
TURTLE = b'@prefix : <http://a/> .\n:a :r :b ; :name "A"@en .\n:b :r [ :r :c ] .\n'
RDFXML = b"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://a/">
<rdf:Description rdf:about="http://a/a"><e:r rdf:resource="http://a/b"/></rdf:Description>
</rdf:RDF>
"""
TSV = b"head\trelation\ttail\na\tr\tb\nb\tr\tc\n"
CSV = TSV.replace(b"\t", b",")
LINKS = b"source\ttarget\na\tx\nb\ty\n"
SSSOM = b"#curie_map:\n#  e: http://a/\nsubject_id\tpredicate_id\tobject_id\ne:a\tskos:exactMatch\te:b\n"

GRAPHS = {"nt": NTRIPLES, "ttl": TURTLE, "rdf": RDFXML, "tsv": TSV, "csv": CSV}
LINK_FILES = {
    "nt": NTRIPLES.replace(b"http://a/r", b"http://www.w3.org/2002/07/owl#sameAs"),
    "ttl": TURTLE.replace(b":r :b", b"<http://www.w3.org/2002/07/owl#sameAs> :b"),
    "tsv": LINKS,
    "csv": LINKS.replace(b"\t", b","),
    "sssom.tsv": SSSOM,
}

Damage = Callable[[bytes], bytes]


def zipped(content: bytes) -> bytes:
    """Return a zip archive whose member would leave the folder."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../../outside.nt", content)
    return file.getvalue()


def long_first_field(content: bytes) -> bytes:
    """Return the content with a field of two million characters."""
    return content.replace(b"a", b"a" * 2_000_000, 1)


DAMAGES: dict[str, Damage] = {
    "empty": lambda content: b"",
    "zeros": lambda content: b"\x00" * 100_000,
    "carriage returns": lambda content: content.replace(b"\n", b"\r"),
    "half": lambda content: content[: len(content) // 2],
    "half a character": lambda content: content + b"\xc3",
    "utf-16": lambda content: content.decode().encode("utf-16"),
    "null inside": lambda content: content.replace(b"a", b"a\x00", 1),
    "escape codes": lambda content: content.replace(b"a", b"\x1b[2J\x1b]0;x\x07", 1),
    "quotes": lambda content: content + b'"' * 9999,
    "open brackets": lambda content: content + b"[" * 99_999,
    "open quoted triples": lambda content: content + b"<<" * 99_999,
    "long field": long_first_field,
    "long line": lambda content: content + b"x" * 3_000_000,
    "markup": lambda content: content.replace(b"a", b"<script>alert(1)</script>", 1),
    "web page": lambda content: b"<!DOCTYPE html><html><body>404</body></html>",
    "zip": zipped,
    "pickle": lambda content: b"\x80\x04cos\nsystem\nX\x04\x00\x00\x00echo\x85R.",
}
PACKED: dict[str, Damage] = {
    "half of a gzip": lambda content: gzip.compress(content)[:-9],
    "not a gzip": lambda content: content,
    "gzip with a wrong checksum": lambda content: (
        gzip.compress(content)[:-8] + b"\x00" * 8
    ),
    "bomb of one line": lambda content: gzip.compress(b"x" * 40_000_000),
}

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [{}]>\n'
BODY = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://a/">'
    '<rdf:Description rdf:about="http://a/a"><e:r>{}</e:r></rdf:Description></rdf:RDF>'
)
LAUGHS = '<!ENTITY a0 "ha">' + "".join(
    f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 12)
)
XML = {
    "billion laughs": HEAD.format(LAUGHS) + BODY.format("&a11;"),
    "quadratic": HEAD.format(f'<!ENTITY a "{"x" * 100_000}">')
    + BODY.format("&a;" * 10_000),
    "file entity": HEAD.format('<!ENTITY a SYSTEM "file:///etc/passwd">')
    + BODY.format("&a;"),
    "parameter entity": HEAD.format('<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;')
    + BODY,
    "deep elements": BODY.format("<rdf:Description><e:r>" * 100_000),
    "endless tag": "<" + "x" * 1_000_000,
}


def parquet_files() -> Iterator[tuple[str, bytes]]:
    """Yield damaged Parquet files, and Parquet files with unusual columns."""
    import pyarrow
    from pyarrow import parquet

    def written(columns: dict[str, Any]) -> bytes:
        file = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), file)
        return file.getvalue()

    whole = written({"head": [*"abc"], "relation": [*"rrs"], "tail": [*"bca"]})
    names = ("head", "relation", "tail")
    yield "half", whole[: len(whole) // 2]
    yield "length of the footer", whole[:-8] + b"\xff\xff\xff\x7fPAR1"
    yield "zeros inside", whole[:20] + b"\x00" * 40 + whole[60:]
    for place in range(0, len(whole), max(1, len(whole) // 12)):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        yield f"byte {place}", bytes(changed)
    yield "two columns", written({"head": ["a"], "tail": ["b"]})
    yield "numbers", written({key: [1.5, float("nan")] for key in names})
    yield "lists", written({key: [["a"], ["b"]] for key in names})
    yield "bytes", written({key: [b"\xff", b"\x00"] for key in names})
    yield "thousand columns", written({f"c{n}": ["a"] for n in range(1000)})


def contents() -> Iterator[tuple[str, str, bytes]]:
    """Yield the reader, the file name and the content of each hostile file."""
    for kind, files in (("graph", GRAPHS), ("links", LINK_FILES)):
        for suffix, whole in files.items():
            for name, damage in DAMAGES.items():
                yield kind, f"{name}.{suffix}", damage(whole)
    for suffix in ("nt", "ttl", "tsv"):
        for name, damage in PACKED.items():
            yield "graph", f"{name}.{suffix}.gz", damage(GRAPHS[suffix])
    for name, text in XML.items():
        yield "graph", f"{name}.rdf", text.encode()
    for name, content in parquet_files():
        yield "graph", f"{name}.parquet", content


def special_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Create and yield what is not a regular file."""
    os.mkfifo(folder / "fifo.nt")
    (folder / "folder.nt").mkdir()
    (folder / "loop.nt").symlink_to(folder / "loop.nt")
    (folder / "dangling.nt").symlink_to(folder / "nowhere.nt")
    (folder / "zero.nt").symlink_to("/dev/zero")
    for path in sorted(folder.iterdir()):
        yield "graph", path
        yield "links", path
    yield "graph", folder / "missing.nt"
    yield "graph", folder / ("x" * 300 + ".nt")
    yield "graph", folder / "null\x00.nt"


def cases(folder: Path) -> Iterator[tuple[str, str, Callable[[], Path]]]:
    """Yield the reader and the name of each file, and a function that writes it."""
    for kind, name, content in contents():
        yield kind, name, partial(_written, folder / name.replace("/", "-"), content)
    special = folder / "special"
    special.mkdir(exist_ok=True)
    for path in special.iterdir():
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for kind, path in special_files(special):
        yield kind, f"special {path.name[:20]}", partial(Path, path)


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def read(kind: str, path: Path) -> str:
    """Read a file and describe the outcome."""
    from emea.data.formats.graph_file import read_graph_file
    from emea.data.formats.link_file import read_link_file
    from emea.errors import UserError

    try:
        if kind == "graph":
            graph, _ = read_graph_file(path)
            return f"read {graph.num_triples} triples"
        return f"read {len(read_link_file(path).links)} links"
    except UserError as error:
        return f"error: {error}"


def main(folder: Path, first: int) -> None:
    """Read all files from a number on; each line is printed before and after a file is read."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    for number, (kind, name, write) in enumerate(cases(folder)):
        if number < first:
            continue
        print(json.dumps({"number": number, "kind": kind, "name": name}), flush=True)
        start = time.process_time()
        try:
            outcome = read(kind, write())
        except BaseException as raised:
            outcome = f"{type(raised).__name__}: {raised}"
        seconds = time.process_time() - start
        print(
            json.dumps(
                {"number": number, "outcome": outcome[:2000], "seconds": seconds}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
