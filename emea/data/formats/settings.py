"""Settings of the readers of graph files, and the table of the formats that they read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emea.setting import setting, up_to

Reader = str | Callable[[Any], Any]
"""A function that reads an `InputFile`, or its place as ``module:function``, imported late."""


@dataclass(frozen=True)
class InputFormat:
    """A format of graphs or links.

    Args:
        name: What ``data.format`` and ``data.links_format`` call it.
        suffixes: Ends of its file names, without that of a compression.
        graph_reader: Reads a graph and returns a `TripleCollector`; ``None`` if it has no graphs.
        link_reader: Reads links and returns a `LinkListing`; ``None`` if it has no links.
        links_also: What else a file of links of this format may be.
        beginning: How its content begins after comments, as a regular expression. The content of
            no other format begins in this way, except for those of ``begins_like``.
        begins_like: Formats as which its content may begin, so that the suffix decides.
        media_type: The media type of an RDF format, by which its parser knows it.
        is_packable: Whether its files may be compressed.
        unit: What messages about a file count.
    """

    name: str
    suffixes: tuple[str, ...]
    graph_reader: Reader | None = None
    link_reader: Reader | None = None
    links_also: str = ""
    beginning: bytes = b""
    begins_like: tuple[str, ...] = ()
    media_type: str = ""
    is_packable: bool = True
    unit: str = "line"

    @property
    def is_rdf(self) -> bool:
        """Whether it is a format of RDF, in which ontologies are written."""
        return bool(self.media_type)


_GRAPHS, _LINKS = "emea.data.formats.graph_file", "emea.data.formats.link_file"
_RDF: dict[str, Any] = {
    "graph_reader": f"{_GRAPHS}:read_rdf",
    "link_reader": f"{_LINKS}:read_statements",
}
_TEXT_TABLE: dict[str, Any] = {
    "graph_reader": f"{_GRAPHS}:read_table",
    "link_reader": f"{_LINKS}:read_link_table",
}
_IRI = rb"<[^<>\s]*>"
_TRIPLE = rb"(?:" + _IRI + rb"|_:\S+)[ \t]+" + _IRI + rb"[ \t]+[^\n]*\.[ \t]*\r?\n"

INPUT_FORMATS = (
    InputFormat(
        name="ntriples",
        suffixes=(".nt",),
        graph_reader=f"{_GRAPHS}:read_ntriples_graph",
        link_reader=f"{_LINKS}:read_statements",
        beginning=_TRIPLE,
        media_type="application/n-triples",
    ),
    InputFormat(
        name="turtle",
        suffixes=(".ttl",),
        **_RDF,
        beginning=rb"(?i:@?prefix[ \t]+[^\s<>]*:|@?base)[ \t]*" + _IRI,
        begins_like=("ntriples",),
        media_type="text/turtle",
    ),
    InputFormat(
        name="rdfxml",
        suffixes=(".rdf", ".owl", ".xml"),
        **_RDF,
        beginning=rb"<\?xml\s|<rdf:RDF\s|<!DOCTYPE\s+rdf:RDF\s",
        media_type="application/rdf+xml",
    ),
    InputFormat(
        name="nquads",
        suffixes=(".nq",),
        **_RDF,
        begins_like=("ntriples", "turtle"),
        media_type="application/n-quads",
    ),
    InputFormat(
        name="trig",
        suffixes=(".trig",),
        **_RDF,
        begins_like=("ntriples", "turtle"),
        media_type="application/trig",
    ),
    InputFormat(
        name="n3",
        suffixes=(".n3",),
        **_RDF,
        begins_like=("ntriples", "turtle"),
        media_type="text/n3",
    ),
    InputFormat(
        name="jsonld",
        suffixes=(".jsonld",),
        **_RDF,
        media_type="application/ld+json",
    ),
    InputFormat(
        name="tsv",
        suffixes=(".tsv",),
        **_TEXT_TABLE,
        links_also="SSSOM",
    ),
    InputFormat(
        name="csv",
        suffixes=(".csv",),
        **_TEXT_TABLE,
    ),
    InputFormat(
        name="parquet",
        suffixes=(".parquet",),
        graph_reader=f"{_GRAPHS}:read_table",
        is_packable=False,
        unit="row",
    ),
)
"""All formats of emea; `register_format` adds those of users."""


def listed_formats(for_links: bool) -> str:
    """Return the names of the formats of graphs or links in words, for the help of a setting."""
    names = []
    for one in INPUT_FORMATS:
        if (one.link_reader if for_links else one.graph_reader) is None:
            continue
        also = f" (also {one.links_also})" if for_links and one.links_also else ""
        names.append(one.name + also)
    return f"{', '.join(names[:-1])} or {names[-1]}"


@dataclass(frozen=True)
class ReadingLimits:
    """What an input file may contain before reading stops with an error.

    The defaults are far above what knowledge graphs contain. They stop files that are damaged or
    that were made to exhaust memory.
    """

    size_mib: int = setting(
        1 << 18, "size of a file in MiB after decompression", up_to(1 << 40)
    )
    ratio: int = setting(
        300,
        "decompressed over compressed size, and names with prefixes in full over the size of the "
        "file, both above 16 MiB",
        up_to(1 << 30),
    )
    line_mib: int = setting(
        16, "length of a line in MiB, in N-Triples, TSV and CSV", up_to(1 << 20)
    )
    columns: int = setting(10_000, "columns of a table", up_to(1 << 30))
    depth: int = setting(
        256,
        "nesting depth of elements in RDF/XML and of quoted triples in RDF",
        up_to(1_000_000),
    )
    entity_length: int = setting(
        1000, "characters of an entity definition in RDF/XML", up_to(1_000_000_000)
    )
    iri_length: int = setting(
        10_000,
        "length of an IRI in Turtle, and of a prefix or base in RDF/XML and SSSOM",
        up_to(1 << 24),
    )


@dataclass(frozen=True)
class GraphForm:
    """What a graph file means: the terms of an ontology, or the columns of a table of entities."""

    ontology: bool | None = setting(
        None,
        "read RDF files as ontologies: match named classes, properties and individuals within "
        "their kind, and turn class expressions into edges; null: files that declare an owl:Class "
        "or owl:Ontology",
    )
    graph: str | None = setting(
        None,
        "N-Quads, TriG and JSON-LD only: the IRI of the named graph to read; null: all graphs",
        example="http://example.org/graph",
    )
    base_iri: str | None = setting(
        None,
        "beginning of the IRIs of a table's entities, and what relative IRIs in RDF are resolved "
        "against; two with a comma if the files differ; null: ids stay as they are, and relative "
        "IRIs begin with http://relative.invalid/",
        example="http://example.org/",
    )
    id_column: str | None = setting(
        None,
        "tables only: the column that identifies the entity of each row; null: a column named id, "
        "uri, iri or identifier; two names with a comma if the tables name it differently",
        example="isbn",
    )
    label_column: str | None = setting(
        None,
        "tables with an id column only: the column that names the entity of each row in results; "
        "null: a column such as label, name or title, or the first one with words; two names with "
        "a comma if the tables name it differently",
        example="title",
    )
    references: tuple[str, ...] = setting(
        (),
        "tables with an id column only: columns that name other entities",
        example="[publisher]",
    )
    lists: dict[str, str] | None = setting(
        None,
        "tables with an id column only: the separator of each column whose cells are lists",
        example='{authors: ", "}',
    )
