"""Dictionaries: files with two columns, data of packages, and what a missing or bad one says."""

import gzip
import re
import sqlite3
from pathlib import Path

import pytest

from emea.data.formats.limits import reading_limits
from emea.data.formats.settings import ReadingLimits
from emea.data.graph_pair import GraphPair
from emea.errors import ConfigError, DataError
from emea.literals import dictionaries
from emea.literals.dictionaries import (
    MOST_GLOSSES,
    Dictionary,
    announce_dictionary,
    dictionary_file,
    fitting_dictionary,
    read_dictionary,
    translation_of,
)
from tests.literals.pairs_with_values import graph_with_values, pair_with_values


def write(folder: Path, text: str) -> str:
    path = folder / "words.tsv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def shown(dictionary: Dictionary) -> dict[str, tuple[str, ...]]:
    """Return the headwords with a translation that can be used."""
    words = {word: dictionary.translations(word) for word in dictionary.headwords}
    return {word: found for word, found in words.items() if found}


def test_a_file_has_two_columns_and_may_repeat_a_word(
    tmp_path: Path,
) -> None:
    name = write(
        tmp_path, "Fluss\triver\nBerg \t mountain, hill\n\nFLUSS\tflow\nfluss\triver\n"
    )
    assert shown(read_dictionary(name)) == {
        "fluss": ("river", "flow"),
        "berg": ("mountain, hill",),
    }


def test_rare_meanings_and_unknown_words_have_no_translation() -> None:
    glosses = [f"meaning {number}" for number in range(MOST_GLOSSES + 5)]
    words = Dictionary(
        [("word", glosses[:3]), ("WORD", glosses[3:]), ("tell", ["(a remark)"])]
    )
    assert words.translations("word") == tuple(glosses[:MOST_GLOSSES])
    assert words.translations("tell") == words.translations("other") == ()
    assert set(words.headwords) == {"word", "tell"}


@pytest.mark.parametrize(
    "gloss, expected",
    [
        ("Beijing, capital of the People's Republic of China", "Beijing"),
        ("football (loanword) [soccer]; soccer", "football"),
        ("surname Wang", "Wang"),
        ("to run", "run"),
        ("variant of bridge", ""),
        ("see also river", ""),
        ("seeing", "seeing"),
        ("abbr. for 北京", ""),
        ("a kind of very long explanation of a word", ""),
        ("(remark)", ""),
    ],
)
def test_a_gloss_is_shortened_to_a_translation(gloss: str, expected: str) -> None:
    assert translation_of(gloss) == expected


@pytest.mark.parametrize(
    "line, reason",
    [
        ("river", "two columns.*this line has 1"),
        ("Fluss\triver\twater", "two columns.*this line has 3"),
        ("\triver", "a word is empty"),
        ("Fluss\t ", "a word is empty"),
        ("F" * 101 + "\triver", "more than 100 letters"),
    ],
)
def test_a_bad_line_is_named_in_one_sentence(
    tmp_path: Path, line: str, reason: str
) -> None:
    name = write(tmp_path, f"Berg\tmountain\n{line}\n")
    with pytest.raises(DataError, match=rf"^words\.tsv, line 2: .*{reason}") as raised:
        read_dictionary(name)
    assert "\n" not in str(raised.value)


def test_other_bytes_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_bytes(b"Stra\xdfe\tstreet\n")
    with pytest.raises(DataError, match="line 1: a word is not UTF-8"):
        read_dictionary(str(path))
    path.write_bytes(gzip.compress(b"Berg\tmountain\n"))
    with pytest.raises(DataError, match="compressed with gzip"):
        read_dictionary(str(path))


def test_limits_of_reading_apply(tmp_path: Path) -> None:
    name = write(tmp_path, "x" * (1 << 20) + "\triver\n")
    with (
        reading_limits(ReadingLimits(size_mib=1)),
        pytest.raises(DataError, match=r"words\.tsv"),
    ):
        read_dictionary(name)
    packed = tmp_path / "words.tsv.gz"
    packed.write_bytes(gzip.compress(b"Berg\tmountain\n" * 100_000))
    with (
        reading_limits(ReadingLimits(size_mib=1)),
        pytest.raises(DataError, match=r"words\.tsv\.gz"),
    ):
        read_dictionary(str(packed))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*none\.tsv.*two columns"):
        dictionary_file(str(tmp_path / "none.tsv"))
    with pytest.raises(ConfigError, match=r"there is no file de-en\..*zh-en or ja-en"):
        read_dictionary("de-en")


@pytest.mark.parametrize("name, extra", [("zh-en", "chinese"), ("ja-en", "japanese")])
def test_a_missing_package_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, name: str, extra: str
) -> None:
    monkeypatch.setattr(dictionaries, "find_spec", lambda module: None)
    with pytest.raises(ConfigError, match=re.escape(f"pip install 'emea[{extra}]'")):
        dictionary_file(name)


def test_chinese_headwords_are_traditional_and_simplified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cedict.gz"
    lines = (
        "# a comment",
        "臺灣 台湾 [Tai2 wan1] /Taiwan, an island/other/",
        "3C 3C [san1 C] /computers/",
        "橋 桥 [qiao2] /old variant of 北[bei3]/bridge/CL:座[zuo4]/",
    )
    path.write_bytes(gzip.compress("\r\n".join(lines).encode()))
    monkeypatch.setattr(dictionaries, "_installed", lambda name: path)
    assert shown(read_dictionary("zh-en")) == {
        "臺灣": ("Taiwan", "other"),
        "台湾": ("Taiwan", "other"),
        "橋": ("bridge",),
        "桥": ("bridge",),
    }


def test_japanese_words_come_before_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "jamdict.db"
    database = sqlite3.connect(path)
    words, names = ("Kanji", "Kana"), ("NEKanji", "NEKana")
    for table in (*words, *names):
        database.execute(f"CREATE TABLE {table} (id, idseq, text)")
    database.execute("CREATE TABLE Sense (id, idseq)")
    database.execute("CREATE TABLE NETranslation (id, idseq)")
    database.execute("CREATE TABLE SenseGloss (sid, text)")
    database.execute("CREATE TABLE NETransGloss (tid, text)")
    entries = [
        ("Kanji", 1, "日本", "Japan"),
        ("Kana", 2, "にほん", "Japan"),
        ("Kana", 3, "サッカー", "soccer"),
        ("NEKanji", 4, "日本", "Nippon"),
        ("NEKana", 5, "リンカーン", "Lincoln"),
    ]
    for table, number, text, gloss in entries:
        senses, glosses = (
            ("NETranslation", "NETransGloss")
            if table in names
            else ("Sense", "SenseGloss")
        )
        database.execute(
            f"INSERT INTO {table} VALUES (?, ?, ?)", (number, number, text)
        )
        database.execute(f"INSERT INTO {senses} VALUES (?, ?)", (number, number))
        database.execute(f"INSERT INTO {glosses} VALUES (?, ?)", (number, gloss))
    database.commit()
    database.close()
    monkeypatch.setattr(dictionaries, "_installed", lambda name: path)
    assert shown(read_dictionary("ja-en")) == {
        "日本": ("Japan", "Nippon"),
        "サッカー": ("soccer",),
        "リンカーン": ("Lincoln",),
    }


def base64_digits(number: int) -> str:
    """Return a number as in an index of dictd."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    text = ""
    while number or not text:
        number, rest = divmod(number, 64)
        text = digits[rest] + text
    return text


def write_dictd(folder: Path, entries: dict[str, str]) -> Path:
    """Write a database of dictd, and return its index."""
    content = b""
    lines = []
    for headword, entry in entries.items():
        part = entry.encode()
        lines.append(
            f"{headword}\t{base64_digits(len(content))}\t{base64_digits(len(part))}\n"
        )
        content += part
    index = folder / "freedict-deu-eng.index"
    index.write_text("".join(lines), encoding="utf-8")
    (folder / "freedict-deu-eng.dict.dz").write_bytes(gzip.compress(content))
    return index


def test_a_database_of_dictd_is_read(tmp_path: Path) -> None:
    entries = {
        "00databaseinfo": "00databaseinfo\nFreeDict, GPL\n",
        "Brücke": "Brücke /bryke/ <fem, n, sg>\nbridge <n>, bridging [tech.]\n"
        "   Synonym: {Steg}\n\n see: {Steg}\n",
        "Fluss": 'Fluss <masc>\n1. river\n2. flow; stream\n    "im Fluss" - in flow\n',
        "Wort" * 300: "Wort\n" + "long remark, " * 500 + "\nword\n",
    }
    found = read_dictionary(str(write_dictd(tmp_path, entries)))
    assert shown(found) == {
        "brücke": ("bridge", "bridging"),
        "fluss": ("river", "flow", "stream"),
        ("Wort" * 300).casefold(): ("long remark",),
    }


def test_a_damaged_database_of_dictd_is_named(tmp_path: Path) -> None:
    index = write_dictd(tmp_path, {"Fluss": "Fluss\nriver\n"})
    for line in ("Fluss\tA", "Fluss\tA!\tC", "Fluss\tA\tC\tD\tE"):
        index.write_text(f"Fluss\tA\tC\n{line}\n")
        with pytest.raises(DataError, match=r"deu-eng\.index, line 2: not a headword"):
            read_dictionary(str(index))
    (tmp_path / "freedict-deu-eng.dict.dz").unlink()
    with pytest.raises(
        DataError, match=r"freedict-deu-eng\.dict\.dz, is not next to it"
    ):
        read_dictionary(str(index))


def pair_of(source: list[str], target: list[str]) -> GraphPair:
    """Return two graphs with these names."""
    graphs = [
        graph_with_values(len(names), [(i, 0, name) for i, name in enumerate(names)])
        for names in (source, target)
    ]
    return pair_with_values(*graphs)


CHINESE = ["北京大学", "苹果", "长江"]
JAPANESE = ["東京タワー", "りんご", "京都"]
ENGLISH = ["peking university", "apple", "yangtze"]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (CHINESE, ENGLISH, "zh-en"),
        (ENGLISH, CHINESE, "zh-en"),
        (JAPANESE, ENGLISH, "ja-en"),
        (CHINESE, JAPANESE, None),
        (CHINESE, CHINESE, None),
        (ENGLISH, ENGLISH, None),
        (CHINESE, ["Москва", "яблоко"], None),
        (CHINESE, [], None),
    ],
)
def test_the_dictionary_of_the_language_of_one_graph_is_found(
    source: list[str],
    target: list[str],
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pair = pair_of(source, target)
    caplog.set_level("INFO")
    monkeypatch.setattr(dictionaries, "_installed", lambda name: Path(name))
    assert fitting_dictionary("auto", "auto", pair) == expected
    assert fitting_dictionary("auto", "never", pair) is None
    assert fitting_dictionary(None, "auto", pair) is None
    assert fitting_dictionary("words.tsv", "auto", pair) == "words.tsv"
    announce_dictionary("auto", "auto", pair)
    assert (f"The dictionary {expected} is used" in caplog.text) == bool(expected)
    assert len(caplog.records) == (expected is not None)


def test_a_dictionary_that_is_not_installed_is_offered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(dictionaries, "find_spec", lambda module: None)
    pair = pair_of(CHINESE, ENGLISH)
    assert fitting_dictionary("auto", "auto", pair) is None
    announce_dictionary("auto", "auto", pair)
    assert "pip install 'emea[chinese]'" in caplog.text
