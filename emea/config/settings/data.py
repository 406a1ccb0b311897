"""Settings of the data readers and of the split into train, validation and test links."""

from dataclasses import dataclass

from emea.config.settings.cardinality import Cardinality
from emea.config.settings.setting import (
    MISSING,
    SEED,
    SHARE,
    SHARE_ABOVE_ZERO,
    SHARE_BELOW_ONE,
    Range,
    setting,
    up_to,
)

ROOT = "${oc.env:EMEA_DATA,data}"
NUM_VALIDATION = up_to(100_000_000, least=0)


@dataclass(frozen=True)
class LiteralsKept:
    """Which literals a reader keeps."""

    keep_literals: bool = setting(
        "${literals.reads}", "keep literals when reading; the literals group decides"
    )
    iri_names: bool = setting(
        False, "make a name literal from the local part of each IRI, if literals are kept"
    )


@dataclass(frozen=True)
class OAEISettings(LiteralsKept):
    """Two catalogues of OAEI 2010 and the true links."""

    name: str | None = setting(None, "name of the data set; null: the last part of the folder")
    root: str | None = setting(ROOT, "folder of all data sets; the variable EMEA_DATA sets it, too")
    folder: str = setting(MISSING, "folder of the data set in data.root")


@dataclass(frozen=True)
class IdFormatSettings(OAEISettings):
    """A data set with integer ids: DBP15K, DWY100K, ContEA."""

    download: str | None = setting(
        None, "entry in the list of sources from which missing files are fetched; null: none"
    )


@dataclass(frozen=True)
class OpenEASettings(OAEISettings):
    """A data set in the layout of OpenEA."""

    folder: str = setting("openea/D_Y_15K_V1", "folder of the data set in data.root")
    folds: str = setting("721_5fold", "subfolder of the official folds (split=official)")
    fold: int = setting(1, "official fold (split=official)", up_to(1000))
    unmatched: str | None = setting(
        None,
        "file in the folder whose first column names source entities without a counterpart, for "
        "the evaluation only",
    )


@dataclass(frozen=True)
class ReadingLimits:
    """What an input file may contain before reading stops with an error.

    The defaults are far above what knowledge graphs contain. They stop files that are damaged or
    that were made to exhaust memory.
    """

    size_mib: int = setting(1 << 18, "size of a file in MiB after decompression", up_to(1 << 40))
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
        256, "nesting depth of elements in RDF/XML and of quoted triples in RDF", up_to(1_000_000)
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
    id_column: str | None = setting(
        None,
        "tables only: the column that identifies the entity of each row; null: a column named id, "
        "uri, iri or identifier; two names with a comma if the tables name it differently",
        example="isbn",
    )
    references: tuple[str, ...] = setting(
        (), "tables with an id column only: columns that name other entities", example="[publisher]"
    )
    lists: dict[str, str] | None = setting(
        None,
        "tables with an id column only: the separator of each column whose cells are lists",
        example='{authors: ", "}',
    )


@dataclass(frozen=True)
class OwnFilesSettings(GraphForm, LiteralsKept):
    """Two graph files and a file of links (docs/own_graphs.md)."""

    source: str | None = setting(None, "file of the source graph")
    target: str | None = setting(None, "file of the target graph")
    links: str | None = setting(
        None, "file of the links to learn from; null: start from literals (literals=similar)"
    )
    test_links: str | None = setting(
        None, "file of the links for the evaluation; null: the run predicts and evaluates nothing"
    )
    rejected: str | None = setting(
        None, "file of pairs that are not links, such as rejected.tsv of a review"
    )
    unmatched: str | None = setting(
        None,
        "file whose first column names source entities without a counterpart, for the evaluation "
        "only",
    )
    cardinality: str = setting(
        "${cardinality}",
        "how many links an entity may have; the setting cardinality decides",
        tuple(Cardinality),
    )
    name: str | None = setting(None, "name of the pair; null: the names of both files")
    format: str | None = setting(
        None,
        "format of both graphs: ntriples, turtle, rdfxml, nquads, trig, n3, jsonld, tsv, csv or "
        "parquet; null: by file name",
    )
    links_format: str | None = setting(
        None,
        "format of the link files: ntriples, turtle, rdfxml, nquads, trig, n3, jsonld, tsv (also "
        "SSSOM) or csv; null: by file name",
    )
    prefixes: dict[str, str] | None = setting(
        None, "prefixes of names in link files", example='{dbr: "http://dbpedia.org/resource/"}'
    )
    on_error: str = setting(
        "stop",
        "what to do about a line that cannot be read or a contradictory link; skip counts them",
        ("stop", "skip"),
    )
    keep_isolated: bool = setting(
        False,
        "keep entities that have literals but no other triple",
        source="ours: nothing can be learnt about them",
    )
    attributes: tuple[str, ...] = setting(
        (),
        "tables only: relations whose tail is a literal, and columns that hold a literal of the "
        "head; with an id column: the columns to use, [] for all",
        example="[name,birth_date]",
    )
    source_vectors: tuple[str, ...] = setting(
        (),
        "files with vectors of source entities, one file for each kind (docs/literals.md)",
        example="[names_a.npy,images_a.parquet]",
    )
    target_vectors: tuple[str, ...] = setting((), "the same for target entities, in the same order")
    label_language: str | None = setting(
        None, "preferred language of the labels in results; null: no preference", example="de"
    )
    limits: ReadingLimits = ReadingLimits()


@dataclass(frozen=True)
class SyntheticSettings:
    """Two overlapping random graphs.

    The defaults are ours: 20,000 entities come close to DBP15K zh-en, with mean degree 7.3 / 9.7,
    median 5 / 7, maximum 832 / 982, and 77% of the entities linked.
    """

    name: str = setting("synthetic", "name of the pair")
    num_entities: int = setting(
        500,
        "entities of each graph",
        Range(100, 1_000_000),
        source="ours: a trial run on two cores takes about 25 seconds",
    )
    triples_per_entity: float = setting(4.5, "triples per entity before sampling", Range(1, 1000))
    overlap: float = setting(0.75, "share of the entities with a counterpart", SHARE_ABOVE_ZERO)
    keep_prob: float = setting(
        0.8, "probability that a graph keeps a common triple", SHARE_ABOVE_ZERO
    )
    merged_share: float = setting(0.2, "share of the relations that the target graph merges", SHARE)
    split_share: float = setting(0.2, "share of the relations that the target graph splits", SHARE)
    num_relations: int | None = setting(
        None, "relations; null: eight times the square root of num_entities", up_to(1_000_000)
    )
    hub_skew: float = setting(2.5, "skew of the degrees; 1 is uniform", Range(1, 1000))
    seed: int = setting(0, "seed of the graphs", SEED)


@dataclass(frozen=True)
class PartSettings:
    """A part of a pair that ``emea divide`` cut (docs/large.md)."""

    division: str | None = setting(None, "folder that emea divide wrote", example="division")
    part: int = setting(0, "number of the part, from 0", up_to(1_000_000, least=0))


@dataclass(frozen=True)
class RatioSettings:
    """The share of the links used for training."""

    value: float = setting(
        MISSING, "share of the links used for training", Range(0, 1, above=True, below=True)
    )


VALIDATION_FROM = ("rest", "train")


@dataclass(frozen=True)
class SplitSettings:
    """A split that draws validation links."""

    seed: int = setting("${split_seed}", "seed of the split", SEED)
    num_validation: int = setting(
        100, "number of validation links", NUM_VALIDATION, "paper, section 5.1"
    )


@dataclass(frozen=True)
class RandomSplitSettings(SplitSettings):
    """A random split of all links."""

    ratio: float = setting(
        "${ratio.value}", "share of the links used for training", Range(0, 1, True, True)
    )
    validation_from: str = setting(
        "rest",
        "rest: validation links are labels in addition to the ratio; train: they are part of it",
        VALIDATION_FROM,
        source="paper",
    )


@dataclass(frozen=True)
class OfficialSplitSettings(SplitSettings):
    """The split that the authors of the data published."""

    num_validation: int = setting(
        100, "validation links to draw if the authors published none", NUM_VALIDATION
    )
    validation_from: str = setting(
        "rest",
        "where these links are drawn from: the test links or the train links",
        VALIDATION_FROM,
    )


@dataclass(frozen=True)
class KnownSplitSettings(SplitSettings):
    """All known links are labels."""

    num_validation: int = setting(
        100, "number of validation links, at most", NUM_VALIDATION, source="ours, as in the paper"
    )
    validation_share: float = setting(
        0.2,
        "share of the labels that become validation links, at most",
        SHARE_BELOW_ONE,
        source="ours: if there are few labels, training needs them more",
    )
    few_links: int = setting(
        200,
        "with fewer labels, each encoder of ensemble=independent holds out another part of them, "
        "so that all are used for training and for validation; 0: never",
        NUM_VALIDATION,
        source="ours",
    )


@dataclass(frozen=True)
class ReleasedSettings:
    """The protocol of the paper's released code, in which test links influence training."""

    seed: int = setting("${seed}", "seed that draws the links", SEED)


@dataclass(frozen=True)
class NoLiteralsSettings:
    """Structure only."""

    reads: bool = setting(False, "keep literals when graphs are read")


@dataclass(frozen=True)
class EqualLiteralsSettings:
    """Literals with equal normal forms are evidence."""

    reads: bool = setting(True, "keep literals when graphs are read")
    pairs_per_triple: int = setting(
        20,
        "pairs of entities that matched values may imply, for each literal triple; values of the "
        "most entities are left out",
        up_to(100_000),
        source="ours",
    )
    transliterate: str = setting(
        "auto",
        "compare texts in Latin letters: if the scripts of the two graphs differ (auto), always, "
        "or never",
        ("auto", "always", "never"),
    )
    negative: bool = setting(
        True,
        "different values of an attribute that has one value per entity, such as a birth date, are "
        "evidence against a pair; its weight is estimated from the matches",
        source="ours, after PARIS",
    )


@dataclass(frozen=True)
class SimilarLiteralsSettings(EqualLiteralsSettings):
    """As equal, and similar texts are weaker evidence."""

    least_similarity: float = setting(
        0.6, "least cosine of two texts that match", SHARE_ABOVE_ZERO, source="ours"
    )
    anchor_similarity: float = setting(
        0.3,
        "least cosine of two texts that make an anchor if no other text is nearly as similar",
        SHARE_ABOVE_ZERO,
        source="ours",
    )
    num_similar: int = setting(
        3, "most similar texts to keep for each value", up_to(1000), source="ours"
    )
