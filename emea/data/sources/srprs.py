"""Reads the pairs of SRPRS, as their authors publish them or from an archive of all pairs."""

import lzma
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.sources.download import locate
from emea.data.sources.id_format import read_id_format
from emea.data.sources.openea_format import FILES, FOLD_FILES, read_openea_format
from emea.data.sources.settings import SRPRSSettings
from emea.errors import DataError

FOLDS = "721_5fold"
MOST_BYTES = 64 << 20
"""Maximum size of a file of the archive; the largest file of SRPRS has 2 MB."""

NUM_VALIDATION = 100
"""Labels that validate, as in the archive; the authors publish labels and test links only."""


def read_srprs(
    folder: str | Path,
    *,
    name: str | None = SRPRSSettings.name,
    root: str | Path | None = None,
    download: str | None = SRPRSSettings.download,
    archive: str | None = SRPRSSettings.archive,
    member: str = "",
    keep_literals: bool = False,
    iri_names: bool = SRPRSSettings.iri_names,
) -> GraphPair:
    """Read a pair of SRPRS with its official split of 30% labels and 70% test links.

    The folder is used if it exists. It has integer ids, as DWY100K. Otherwise, the pair comes
    from the archive, if there is one. Otherwise, it is downloaded into the folder. From a folder,
    100 labels are drawn for validation. The archive names its validation links.

    Args:
        folder: The folder of the pair, relative to the root.
        name: The name of the pair in results. The default is the name of the folder.
        root: The data root. The default is the variable ``EMEA_DATA``, or ``data``.
        download: The key in ``sources.json`` with which missing files are downloaded, if any.
        archive: A tar archive with one folder per pair in OpenEA's layout, relative to the root.
        member: The folder of the pair in the archive.
        keep_literals: Whether to keep literals, which only ``iri_names`` gives.
        iri_names: Whether to make a name literal from the local part of each IRI, if literals are
            kept.

    Raises:
        DataError: A file is missing or cannot be used.
    """
    packed = None if archive is None else locate(archive, root)
    if packed is not None and packed.is_file() and not locate(folder, root).is_dir():
        with _unpacked(packed, member) as place:
            return read_openea_format(
                place,
                name=name or Path(folder).name,
                fold=1,
                folds=FOLDS,
                root=None,
                keep_literals=keep_literals,
                iri_names=iri_names,
                unmatched=None,
            )
    pair = read_id_format(
        folder,
        name=name,
        root=root,
        download=download,
        keep_literals=keep_literals,
        iri_names=iri_names,
    )
    return _with_validation(pair)


@contextmanager
def _unpacked(archive: Path, member: str) -> Iterator[Path]:
    """Unpack the files of a pair into a temporary folder, and no other files."""
    wanted = {*FILES, *(f"{FOLDS}/1/{file}" for file in FOLD_FILES)}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / member
        try:
            found = _unpack(archive, member, wanted, place)
        except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
            raise DataError(
                f"{archive} is not a tar archive that can be read ({error}). Copy it again."
            ) from error
        if missing := sorted(wanted - found):
            raise DataError(
                f"{archive} has no file {member}/{missing[0]}. Copy it again."
            )
        yield place


def _unpack(archive: Path, member: str, wanted: set[str], place: Path) -> set[str]:
    """Write the wanted files of a folder of an archive, and return their names."""
    found = set()
    with tarfile.open(archive) as packed:
        # in the order of the archive, since a compressed file cannot be read backwards
        for one in packed:
            folder, _, name = one.name.removeprefix("./").partition("/")
            if folder != member or name not in wanted or not one.isreg():
                continue
            if one.size > MOST_BYTES:
                raise DataError(
                    f"{archive}: {one.name} has {one.size:,} bytes, which no file of SRPRS has. "
                    "Check where the archive comes from."
                )
            content = packed.extractfile(one)
            assert content is not None  # a regular file has content
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.read())
            found.add(name)
    return found


def _with_validation(pair: GraphPair) -> GraphPair:
    """Return the pair with validation links, which are drawn from its training links."""
    official = pair.official
    if official is None or len(official.validation):
        return pair
    order = np.random.default_rng(0).permutation(len(official.train))
    held_out = official.train[order[:NUM_VALIDATION]]
    kept = official.train[order[NUM_VALIDATION:]]
    return replace(
        pair,
        official=OfficialSplit(kept, held_out, official.test, official.num_absent),
    )
