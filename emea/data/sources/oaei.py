"""Reads instance matching pairs of OAEI 2010: two catalogues with literals, and the true links."""

from dataclasses import replace
from pathlib import Path

from emea.data.graph_pair import GraphPair
from emea.data.sources.download import locate, require_files
from emea.data.sources.own_files import read_own_files
from emea.data.sources.settings import OAEISettings

FILES = ("source.nt", "target.nt", "links.tsv")
CONTENT = (
    "source.nt and target.nt (both catalogues in N-Triples) and links.tsv (the true links, two "
    "columns of IRIs), for example from datasets/Restaurants or datasets/Persons1 in "
    "https://github.com/dice-group/LIMES,"
)


def read_oaei(
    folder: str | Path,
    name: str | None = OAEISettings.name,
    root: str | Path | None = None,
    keep_literals: bool = False,
    iri_names: bool = OAEISettings.iri_names,
) -> GraphPair:
    """Read a pair of catalogues. All links are known, and there is no official split.

    Args:
        folder: The folder of the pair, relative to the root.
        name: The name of the pair in results. The default is the name of the folder.
        root: The data root. The default is the variable ``EMEA_DATA``, or ``data``.
        keep_literals: Whether to keep literals.
        iri_names: Whether to make a name literal from the local part of each IRI, if literals are
            kept.

    Raises:
        DataError: A file is missing or cannot be used.
    """
    path = locate(folder, root)
    require_files(path, FILES, CONTENT)
    source, target, links = (path / file for file in FILES)
    pair = read_own_files(
        source,
        target,
        links,
        name=name or path.name,
        keep_literals=keep_literals,
        iri_names=iri_names,
    )
    return replace(pair, official=None)
