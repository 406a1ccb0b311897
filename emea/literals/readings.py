"""Readings of texts in Latin letters, so that texts in different scripts can be compared."""

import logging
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from anyascii import anyascii

from emea.literals.value_nodes import normalised_value

logger = logging.getLogger(__name__)

MOST_SAMPLED = 10_000
"""Texts of each graph from which its scripts are counted."""

LEAST_DIFFERENCE = 0.1
"""Share of the texts in another script from which the scripts of two graphs differ."""

LEAST_KANA = 0.02
"""Share of the letters that are kana, from which texts with Han characters are Japanese."""

JAPANESE_EXTRA = (
    "The texts are Japanese. "
    "pip install 'emea[japanese]' gives better readings of Han characters."
)


def readings(
    source: Sequence[str], target: Sequence[str], transliterate: str
) -> tuple[list[str], list[str]] | None:
    """Return the texts of both graphs in Latin letters, or ``None`` if they need no reading.

    Args:
        source: Normal forms of the source values.
        target: Normal forms of the target values.
        transliterate: ``always``, ``never``, or ``auto`` if the scripts of the graphs differ.
    """
    counts = [_scripts(texts) for texts in (source, target)]
    if transliterate == "never" or (transliterate == "auto" and not _differ(*counts)):
        return None
    names = [
        " and ".join(name.title() for name, _ in one.most_common(2)) for one in counts
    ]
    logger.info("Texts are compared in Latin letters (scripts: %s; %s)", *names)
    first, second = (
        list(map(_reader(count), texts))
        for count, texts in zip(counts, (source, target), strict=True)
    )
    return first, second


def _scripts(texts: Sequence[str]) -> Counter[str]:
    """Return how many letters of a sample of the texts belong to each script."""
    step = max(1, len(texts) // MOST_SAMPLED)
    letters = Counter(
        letter for text in texts[::step] for letter in text if letter.isalpha()
    )
    counts: Counter[str] = Counter()
    for letter, number in letters.items():
        counts[script_of(letter)] += number
    return counts


LATIN = "latin"
"""What ``language_of`` returns for texts in Latin letters."""

LEAST_HAN = 0.5
"""Share of the letters that are Han characters or kana, from which texts are Chinese or Japanese,
and share of Latin letters from which they are in Latin letters."""


def language_of(texts: Sequence[str]) -> str:
    """Return ``zh``, ``ja`` or ``latin`` if the script of most letters shows it, or nothing."""
    counts = _scripts(texts)
    total = max(1, counts.total())
    kana = counts["HIRAGANA"] + counts["KATAKANA"]
    if counts["CJK"] + kana >= LEAST_HAN * total:
        return "ja" if kana >= LEAST_KANA * total else "zh"
    return LATIN if counts["LATIN"] >= LEAST_HAN * total else ""


@cache
def script_of(letter: str) -> str:
    """Return the script of a letter, which is the first word of its name in Unicode."""
    return unicodedata.name(letter, "OTHER").split()[0].split("-")[0]


def _differ(source: Counter[str], target: Counter[str]) -> bool:
    """Return whether the shares of the scripts differ (total variation distance)."""
    if not source or not target:
        return False
    shares = [
        {name: one[name] / one.total() for name in source | target}
        for one in (source, target)
    ]
    distance = sum(abs(shares[0][name] - shares[1][name]) for name in shares[0]) / 2
    return distance >= LEAST_DIFFERENCE


def reader(texts: Sequence[str]) -> Callable[[str], str]:
    """Return the function that transliterates the texts of a graph."""
    return _reader(_scripts(texts))


def _reader(scripts: Counter[str]) -> Callable[[str], str]:
    """Return the function that transliterates the texts of a graph with these scripts."""
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if kana < LEAST_KANA * max(1, scripts.total()):
        return _latin
    try:
        converter: Any = import_module("pykakasi").kakasi()
    except ImportError:
        logger.info(JAPANESE_EXTRA)
        return _latin

    def japanese(text: str) -> str:
        return _latin("".join(part["hepburn"] for part in converter.convert(text)))

    return japanese


def _latin(text: str) -> str:
    return text if text.isascii() else normalised_value(anyascii(text))
