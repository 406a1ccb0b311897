"""Translates texts word by word with a dictionary, as further values of their entities."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from emea.data.arrays import IntArray
from emea.data.graph_pair import ARROW, TRANSLATION
from emea.data.settings import Cardinality
from emea.literals.dictionaries import Dictionary
from emea.literals.readings import reader, script_of
from emea.literals.similar_items import SimilarItems
from emea.literals.similar_texts import similar_texts
from emea.literals.value_nodes import ValueNodes, normalised_value

logger = logging.getLogger(__name__)

UNSPACED = frozenset({"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"})
"""Scripts without spaces between words. In the others, only whole words are translated."""

LEAST_SOUNDS = 2
"""Number of single letters in a row from which they write a name by its sound."""

LEAST_SIMILARITY, NUM_SIMILAR = 0.3, 3
"""Minimum cosine of a translation and a text, and the number of pairs to keep for each."""

LEAST_PRECISION = 0.5
"""Minimum estimated precision of translations that are evidence. Less precise ones are many, and
would match entities for which nothing else speaks."""

TRANSLATED = "similar after translation"
"""What the log calls matches of translations."""


class Piece(NamedTuple):
    """A part of a text: a headword, or a letter that belongs to none.

    ``translation`` is empty if the piece is transliterated.
    """

    text: str
    translation: str


class Translator:
    """Translates words by a greedy search for the longest headword, from left to right.

    What has no translation is transliterated. So are several letters in a row that belong to no
    longer headword: in scripts without spaces, they usually write a foreign name by its sound.

    Args:
        dictionary: The translations of each headword.
        read: Returns a text in Latin letters.
        frequency: In how many values of the other graph each word occurs. Of several translations
            of a headword, that counts whose rarest word occurs most; without one, the first.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        read: Callable[[str], str],
        frequency: Mapping[str, int] | None = None,
    ) -> None:
        self._dictionary = dictionary
        self._read = read
        self._frequency = frequency or {}
        self._chosen: dict[str, str] = {}
        # the length of the longest headword with each first letter
        self._longest: dict[str, int] = {}
        for headword in dictionary.headwords:
            first = headword[:1]
            self._longest[first] = max(self._longest.get(first, 0), len(headword))

    def __call__(self, text: str) -> str | None:
        """Return the translation of a normal form, or ``None`` if it has no word with one."""
        pieces = _without_sounds(self._pieces(text))
        if not any(piece.translation for piece in pieces):
            return None
        parts = []
        # letters without a translation are read together, because a reading may depend on the next
        for is_translated, group in groupby(
            pieces, lambda piece: bool(piece.translation)
        ):
            if is_translated:
                parts += [piece.translation for piece in group]
            else:
                parts.append(self._read("".join(piece.text for piece in group)))
        return normalised_value(" ".join(parts))

    def _pieces(self, text: str) -> list[Piece]:
        """Return the parts of a text: the longest headwords, and single letters between them."""
        ends = _word_ends(text)
        pieces = []
        start = 0
        while start < len(text):
            piece = Piece(text[start], "")
            if ends[start]:
                piece = self._longest_headword(text, start, ends) or piece
            pieces.append(piece)
            start += len(piece.text)
        return pieces

    def _longest_headword(
        self, text: str, start: int, ends: Sequence[bool]
    ) -> Piece | None:
        """Return the longest headword that starts here; ``None`` if there is none."""
        longest = min(len(text), start + self._longest.get(text[start], 0))
        for end in range(longest, start, -1):
            headword = text[start:end]
            if ends[end] and (translation := self._translation(headword)):
                return Piece(headword, translation)
        return None

    def _translation(self, headword: str) -> str:
        """Return the translation of a headword that suits the other graph; empty if it has none."""
        found = self._chosen.get(headword)
        if found is None:
            known = self._dictionary.translations(headword)
            found = max(known, key=self._num_values, default="")
            self._chosen[headword] = found
        return found

    def _num_values(self, translation: str) -> int:
        """Return in how many values of the other graph the rarest word of a translation occurs."""
        words = normalised_value(translation).split()
        return min((self._frequency.get(word, 0) for word in words), default=0)


def _without_sounds(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces, without translations of single letters that follow each other."""
    found: list[Piece] = []
    for is_short, group in groupby(pieces, _is_letter):
        run = list(group)
        if is_short and len(run) >= LEAST_SOUNDS:
            run = [Piece(piece.text, "") for piece in run]
        found += run
    return found


def _is_letter(piece: Piece) -> bool:
    """Return whether a piece is one letter of a script without spaces between words."""
    text = piece.text
    return len(text) == 1 and text.isalpha() and script_of(text) in UNSPACED


def _word_ends(text: str) -> list[bool]:
    """Return for each place of a text, and its end, whether a word can start or end there."""
    inside = [
        first.isalnum()
        and second.isalnum()
        and script_of(first) not in UNSPACED
        and script_of(second) not in UNSPACED
        for first, second in pairwise(text)
    ]
    return [True, *(not one for one in inside), True][: len(text) + 1]


def translated_items(
    source: ValueNodes,
    target: ValueNodes,
    texts: tuple[Sequence[str], Sequence[str]],
    dictionary: Dictionary,
    cardinality: Cardinality,
) -> SimilarItems | None:
    """Return the similar pairs of translated values of one graph and values of the other.

    A translation is a further value of its entity, so that the original text and its
    transliteration remain evidence. The graph is translated in which more values have a word with a
    translation. The result is ``None`` if there is no such value.

    Args:
        source: Values of the source graph.
        target: Values of the target graph.
        texts: The text of each value of both graphs, to compare.
        dictionary: The translation of each headword.
        cardinality: How many counterparts an entity may have.
    """
    both = source, target
    side, translated = _translated_side(both, dictionary)
    wanted = [_with_letters(one) for one in texts]
    if texts[1 - side] is not both[1 - side].keys:
        # the other texts are in Latin letters, but the translation is in the script of that graph
        translated = _read(translated, reader(both[1 - side].keys))
    wanted[side] = translated
    held = [_held(nodes, known) for nodes, known in zip(both, wanted, strict=True)]
    if not all(map(len, held)):
        return None
    compared = [
        [known[number] for number in pairs[:, 1].tolist()]
        for known, pairs in zip(wanted, held, strict=True)
    ]
    found = similar_texts(
        compared[0],
        compared[1],
        least=LEAST_SIMILARITY,
        num_similar=NUM_SIMILAR,
        cardinality=cardinality,
    )
    shown = [
        [nodes.texts[number] for number in pairs[:, 1].tolist()]
        for nodes, pairs in zip(both, held, strict=True)
    ]
    shown[side] = [
        f"{text}{ARROW}{translation}"
        for text, translation in zip(shown[side], compared[side], strict=True)
    ]
    entities = held[0][:, 0], held[1][:, 0]
    return SimilarItems(
        TRANSLATED,
        TRANSLATION,
        entities,
        found,
        texts=(shown[0], shown[1]),
        least_prob=LEAST_PRECISION,
    )


def _translated_side(
    both: tuple[ValueNodes, ValueNodes], dictionary: Dictionary
) -> tuple[int, dict[int, str]]:
    """Return which graph is translated, 0 or 1, and the translations of its values."""
    translated = [
        _translations(nodes, dictionary, other)
        for nodes, other in zip(both, reversed(both), strict=True)
    ]
    shares = [
        len(known) / max(1, len(nodes.keys))
        for known, nodes in zip(translated, both, strict=True)
    ]
    side = int(shares[1] > shares[0])
    logger.info(
        "Dictionary: %s of %s distinct values of the %s graph have a translation",
        f"{len(translated[side]):,}",
        f"{len(both[side].keys):,}",
        ("source", "target")[side],
    )
    return side, translated[side]


def _translations(
    nodes: ValueNodes, dictionary: Dictionary, other: ValueNodes
) -> dict[int, str]:
    """Return the translation of each value that has a word with one.

    Args:
        nodes: The values.
        dictionary: The translations of each headword.
        other: Values of the other graph, whose words are preferred as translations.
    """
    frequency = Counter(word for key in other.keys for word in set(key.split()))
    translate = Translator(dictionary, reader(nodes.keys), frequency)
    translated = {
        number: translate(key) for number, key in _with_letters(nodes.keys).items()
    }
    return {number: text for number, text in translated.items() if text}


def _read(texts: Mapping[int, str], read: Callable[[str], str]) -> dict[int, str]:
    """Return the texts in Latin letters."""
    return {number: read(text) for number, text in texts.items()}


def _with_letters(texts: Sequence[str]) -> dict[int, str]:
    """Return the texts with letters. Numbers, dates and codes match only if they are equal."""
    return {
        number: text for number, text in enumerate(texts) if any(map(str.isalpha, text))
    }


def _held(nodes: ValueNodes, wanted: dict[int, str]) -> IntArray:
    """Return ``[num_items, 2]`` each entity and each of its values among the wanted ones."""
    held: IntArray = np.unique(nodes.triples[:, [0, 2]], axis=0)
    return held[np.isin(held[:, 1], list(wanted))]
