"""Settings of the data sets and of your own files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from emea.data.formats.settings import GraphForm, ReadingLimits, listed_formats
from emea.data.settings import Cardinality
from emea.setting import MISSING, SEED, SHARE, SHARE_ABOVE_ZERO, Range, setting, up_to

ROOT = "${oc.env:EMEA_DATA,data}"


@dataclass(frozen=True)
class LiteralsRead:
    """Whether a reader keeps literals."""

    keep_literals: bool = setting(
        "${literals.reads}", "keep literals when reading; the literals group decides"
    )


@dataclass(frozen=True)
class LiteralsKept(LiteralsRead):
    """Which literals a reader keeps."""

    iri_names: bool = setting(
        False,
        "make a name literal from the local part of each IRI, if literals are kept",
    )


@dataclass(frozen=True)
class OAEISettings(LiteralsKept):
    """Two catalogues of OAEI 2010 and the true links."""

    name: str | None = setting(
        None, "name of the data set; null: the last part of the folder"
    )
    root: str | None = setting(
        ROOT, "folder of all data sets; the variable EMEA_DATA sets it, too"
    )
    folder: str = setting(MISSING, "folder of the data set in data.root")


@dataclass(frozen=True)
class IdFormatSettings(OAEISettings):
    """A data set with integer ids: DBP15K, DWY100K, ContEA."""

    download: str | None = setting(
        None,
        "entry in the list of sources from which missing files are fetched; null: none",
    )


@dataclass(frozen=True)
class SRPRSSettings(IdFormatSettings):
    """A pair of SRPRS."""

    archive: str | None = setting(
        "srprs.tar.xz",
        "archive in data.root with all pairs in the layout of OpenEA; used if data.folder does not "
        "exist; null: none",
    )
    member: str = setting(MISSING, "folder of the pair in data.archive")


@dataclass(frozen=True)
class OpenEASettings(OAEISettings):
    """A data set in the layout of OpenEA."""

    folder: str = setting("openea/D_Y_15K_V1", "folder of the data set in data.root")
    folds: str = setting(
        "721_5fold", "subfolder of the official folds (split=official)"
    )
    fold: int = setting(1, "official fold (split=official)", up_to(1000))
    unmatched: str | None = setting(
        None,
        "file in the folder whose first column names source entities without a counterpart, for "
        "the evaluation only",
    )


@dataclass(frozen=True)
class OwnFilesSettings(GraphForm, LiteralsRead):
    """Two graph files and a file of links (docs/own_graphs.md)."""

    iri_names: bool | None = setting(
        None,
        "if literals are kept, make a name from the last part of each IRI (true), of none (false), "
        "or of those of entities without a label, if few entities have one and these parts are "
        "words (null)",
    )
    source: str | None = setting(None, "file of the source graph")
    target: str | None = setting(None, "file of the target graph")
    links: str | None = setting(
        None,
        "file of the links to learn from; null: start from literals (literals=similar)",
    )
    test_links: str | None = setting(
        None,
        "file of the links for the evaluation; null: the run predicts and evaluates nothing",
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
        f"format of both graphs: {listed_formats(for_links=False)}; null: by file name",
    )
    links_format: str | None = setting(
        None,
        f"format of the link files: {listed_formats(for_links=True)}; null: by file name",
    )
    prefixes: dict[str, str] | None = setting(
        None,
        "prefixes of names in link files",
        example='{dbr: "http://dbpedia.org/resource/"}',
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
    target_vectors: tuple[str, ...] = setting(
        (), "the same for target entities, in the same order"
    )
    label_language: str | None = setting(
        None,
        "preferred language of the labels in results; null: no preference",
        example="de",
    )
    limits: ReadingLimits = ReadingLimits()


class OwnFilesOptions(TypedDict, total=False):
    """The settings of `OwnFilesSettings` as arguments of ``read_own_files``, for type checkers."""

    name: str | None
    format: str | None
    links_format: str | None
    rejected: str | None
    unmatched: str | None
    cardinality: str
    prefixes: Mapping[str, str] | None
    on_error: str
    keep_isolated: bool
    keep_literals: bool
    iri_names: bool | None
    label_language: str | None
    ontology: bool | None
    graph: str | None
    base_iri: str | None
    id_column: str | None
    label_column: str | None
    references: Sequence[str]
    lists: Mapping[str, str] | None
    attributes: Sequence[str]
    source_vectors: Sequence[str]
    target_vectors: Sequence[str]
    limits: Mapping[str, int]


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
        Range(100, 5_000_000),
        source="ours: a trial run on two cores takes about 25 seconds",
    )
    triples_per_entity: float = setting(
        4.5, "triples per entity before sampling", Range(1, 1000)
    )
    overlap: float = setting(
        0.75, "share of the entities with a counterpart", SHARE_ABOVE_ZERO
    )
    keep_prob: float = setting(
        0.8, "probability that a graph keeps a common triple", SHARE_ABOVE_ZERO
    )
    merged_share: float = setting(
        0.2, "share of the relations that the target graph merges", SHARE
    )
    split_share: float = setting(
        0.2, "share of the relations that the target graph splits", SHARE
    )
    num_relations: int | None = setting(
        None,
        "relations; null: eight times the square root of num_entities",
        up_to(1_000_000),
    )
    hub_skew: float = setting(2.5, "skew of the degrees; 1 is uniform", Range(1, 1000))
    seed: int = setting(0, "seed of the graphs", SEED)
