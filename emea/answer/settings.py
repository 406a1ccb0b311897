"""Settings of the answer and of its files."""

from dataclasses import dataclass, field

from emea.setting import SHARE, SHARE_ABOVE_ZERO, setting, up_to

VECTORS = "vectors"
"""An additional format, which only a run of an encoder can write: its embeddings."""


@dataclass(frozen=True)
class ExportFormat:
    """A file format of an answer.

    Args:
        name: What ``export.formats`` and ``--formats`` call it.
        files: The files with the matches of entities. Each has the place (``module:function``) of
            the function that yields its lines from an `Alignment`.
        schema_files: The same for relations and classes, from a `Schema` and its `Origin`.
    """

    name: str
    files: dict[str, str]
    schema_files: dict[str, str] = field(default_factory=dict)


EXPORTS = (
    ExportFormat(
        "tsv",
        files={
            "alignment.tsv": "emea.answer.exporting:matched_lines",
            "unmatched.tsv": "emea.answer.exporting:unmatched_lines",
        },
        schema_files={
            "relations.tsv": "emea.answer.schema:relation_lines",
            "classes.tsv": "emea.answer.schema:class_lines",
        },
    ),
    ExportFormat(
        "nt",
        files={"alignment.nt": "emea.answer.rdf:owl_triples"},
        schema_files={"schema.nt": "emea.answer.schema:schema_triples"},
    ),
    ExportFormat(
        "sssom",
        files={"alignment.sssom.tsv": "emea.answer.sssom:sssom_lines"},
        schema_files={"schema.sssom.tsv": "emea.answer.schema:schema_sssom_lines"},
    ),
    ExportFormat(
        "jsonl",
        files={"alignment.jsonl": "emea.answer.exporting:json_lines"},
    ),
    ExportFormat(
        "alignment",
        files={"alignment.rdf": "emea.answer.rdf:rdf_cells"},
        schema_files={"schema.rdf": "emea.answer.schema:schema_cells"},
    ),
)
"""All file formats of an answer; the first one is always written."""

EXPORT_FORMATS = tuple(one.name for one in EXPORTS)
ALIGNMENT_FILES = frozenset(file for one in EXPORTS for file in one.files)
SCHEMA_FILES = frozenset(file for one in EXPORTS for file in one.schema_files)

VOCABULARIES = ("owl", "skos")


@dataclass(frozen=True)
class HungarianSettings:
    """The most probable one-to-one assignment."""

    unmatched_prob: float = setting(
        0.1,
        "probability of staying unmatched; a lower one matches more entities and is slower",
        SHARE_ABOVE_ZERO,
        source="ours, chosen over 0.01 by F1 on test links",
    )


@dataclass(frozen=True)
class ExportSettings:
    """The answer of a run and the files that hold it (docs/exports.md)."""

    formats: tuple[str, ...] = setting(
        ("tsv",),
        "file formats of the alignment; tsv is always written. vectors: the embeddings",
        (*EXPORT_FORMATS, VECTORS),
    )
    top_k: int = setting(
        1, "candidates of each source entity in alignment.jsonl", up_to(100_000)
    )
    threshold: float | None = setting(
        None,
        "lowest probability of an answer; other source entities stay unmatched",
        SHARE,
    )
    target_precision: float | None = setting(
        None,
        "chooses the lowest threshold at which this precision is expected over all matches",
        SHARE,
    )
    vocabulary: str = setting(
        "owl",
        "predicates of matches in N-Triples and SSSOM: owl:sameAs, owl:equivalentClass and "
        "owl:equivalentProperty, or skos:exactMatch",
        VOCABULARIES,
    )
    close_below: float | None = setting(
        None, "matches below this probability are stated as skos:closeMatch", SHARE
    )
    license: str | None = setting(
        None,
        "licence of the mappings in SSSOM files: an SPDX identifier or an IRI",
        example="CC-BY-4.0",
    )
    least_inclusion: float = setting(
        0.5,
        "lowest probability of an inclusion of relations or classes that is stated",
        SHARE_ABOVE_ZERO,
        source="ours",
    )
