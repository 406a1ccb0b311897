"""Settings of the readers of graph files."""

from dataclasses import dataclass

from emea.setting import setting, up_to


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
