"""Reads DBP2.0, whose entities partly have no counterpart (Sun et al., ACL 2021)."""

from dataclasses import replace
from pathlib import Path

from emea.data.graph_pair import GraphPair
from emea.data.sources.download import locate, require_files
from emea.data.sources.openea_format import FILES, FOLD_FILES, read_named_pair
from emea.data.sources.settings import OAEISettings

SPLITS = "splits"
TEST_UNLINKED = f"{SPLITS}/test_unlinked_ent1"
REQUIRED = (*FILES, *(f"{SPLITS}/{file}" for file in FOLD_FILES), TEST_UNLINKED)
CONTENT = (
    "the files of the pair from figshare (https://doi.org/10.6084/m9.figshare.14872080): "
    "ent_links, rel_triples_1, rel_triples_2 and splits"
)


def read_dbp2(
    folder: str | Path,
    name: str | None = OAEISettings.name,
    root: str | Path | None = None,
    keep_literals: bool = False,
    iri_names: bool = OAEISettings.iri_names,
) -> GraphPair:
    """Read a pair of DBP2.0 with its official split of 30/20/50%.

    ``splits/test_unlinked_ent1`` names the source entities without a counterpart that are judged
    with the test links. The lists of other entities without a counterpart, on which methods may
    train, are not read.

    Args:
        folder: The folder of the pair, relative to the root.
        name: The name of the pair in results. The default is the name of the folder.
        root: The data root. The default is the variable ``EMEA_DATA``, or ``data``.
        keep_literals: Whether to keep literals, which only ``iri_names`` gives.
        iri_names: Whether to make a name literal from the local part of each IRI, if literals are
            kept.

    Raises:
        DataError: A file is missing or has a line that cannot be used.
    """
    path = locate(folder, root)
    require_files(path, REQUIRED, CONTENT)
    unmatched = path / TEST_UNLINKED
    pair = read_named_pair(path, path / SPLITS, keep_literals, iri_names, unmatched)
    return replace(pair, name=name or path.name)
