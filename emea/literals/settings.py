"""Settings of the evidence from literals."""

from dataclasses import dataclass

from emea.setting import SHARE_ABOVE_ZERO, setting, up_to

DICTIONARY_HELP = (
    "translate texts of one graph word by word, as further values: zh-en (CC-CEDICT, "
    "emea[chinese]), ja-en (JMdict and JMnedict, emea[japanese]), a file with two columns, an "
    "index of dictd (.index), or auto: zh-en or ja-en if it is installed, one graph is in this "
    "language and the other in Latin letters; null: none"
)


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
    dictionary: str | None = setting(
        None,
        DICTIONARY_HELP,
        example="zh-en",
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

    dictionary: str | None = setting(
        "auto",
        DICTIONARY_HELP,
        source="ours: helps on ja and zh, changes nothing on fr",
    )
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
