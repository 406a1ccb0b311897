"""Translations are further values: they find names in other scripts, and wrong ones do no harm."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from emea.cli.main import main
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.literals.dictionaries import Dictionary
from emea.literals.match_literals import SimilarLiterals
from emea.literals.readings import reader
from emea.literals.translations import Translator
from tests.literals.pairs_with_values import graph_with_values, pair_with_values

WORDS = {
    "北京": "Beijing",
    "京": "capital",
    "大学": "university",
    "大": "big",
    "桥": "bridge",
}

NAMES = {
    "苹果": "apple",
    "长江": "yangtze",
    "红楼": "red mansion",
    "月亮": "moon",
    "铁路": "railway",
    "大学": "university",
    "图书馆": "library",
    "足球": "football",
}
"""Chinese names whose readings are not similar to the English ones."""


def translator(
    words: Mapping[str, str | list[str]], texts: list[str] | None = None
) -> Translator:
    """Return a translator whose other graph has these texts."""
    entries = [
        (word, [found] if isinstance(found, str) else found)
        for word, found in words.items()
    ]
    frequency = Counter(word for text in texts or [] for word in text.split())
    return Translator(Dictionary(entries), reader(["汉字"]), frequency)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("北京大学", "beijing university"),
        ("北京 大-桥", "beijing big bridge"),
        ("上海大学", "shanghai university"),
        ("espn", None),
        ("", None),
    ],
)
def test_the_longest_headword_counts_and_the_rest_is_transliterated(
    text: str, expected: str | None
) -> None:
    assert translator(WORDS)(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("alter berg", "alter mountain"),
        ("heidelberg", None),
        ("bergen", None),
        ("berg-bahn", "mountain bahn"),
        ("rotes kreuz", "red cross"),
    ],
)
def test_words_are_whole_where_spaces_separate_them(
    text: str, expected: str | None
) -> None:
    assert (
        translator({"berg": "mountain", "rotes kreuz": "Red Cross"})(text) == expected
    )


SOUNDS = {"里": "inside", "贝": "shell", "市": "city", "吹田": "Suita", "的": "of"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("里贝里", None),
        ("里贝里市", None),
        ("吹田市", "suita city"),
        ("吹田里贝里", "suita libeili"),
        ("里贝里 吹田市", "libeili suita city"),
        ("上海的", None),
        ("上海-的", "shanghai of"),
        ("里 贝", "inside shell"),
    ],
)
def test_single_letters_in_a_row_write_a_sound(text: str, expected: str | None) -> None:
    assert translator(SOUNDS)(text) == expected


@pytest.mark.parametrize(
    "texts, expected",
    [
        ([], "soccer ball match"),
        (["football club", "a match"], "football match"),
        (["ball match", "soccer rules"], "soccer ball match"),
        (["football", "soccer ball", "soccer ball"], "soccer ball match"),
        (["ball", "ball", "football"], "football match"),
    ],
    ids=["first", "only", "all words", "most", "rarest word"],
)
def test_the_translation_whose_words_the_other_graph_has_counts(
    texts: list[str], expected: str
) -> None:
    words = {"足球": ["soccer ball", "football"], "比赛": ["match"]}
    assert translator(words, texts)("足球比赛") == expected


def test_a_translation_is_chosen_by_the_values_of_the_other_graph(
    tmp_path: Path,
) -> None:
    names = {**NAMES, "足球": "football"}
    path = tmp_path / "words.tsv"
    lines = [f"{word}\t{text}\n" for word, text in names.items()]
    path.write_text("".join(["足球\tsoccer ball\n", *lines]))
    pair = named_pair(list(names), list(names.values()))
    found = SimilarLiterals(dictionary=str(path))(pair)
    shown = [found.source.entity_name(value) for value in found.pairs[:, 0].tolist()]
    assert '"足球 → football"' in shown


def named_pair(left: list[str], right: list[str]) -> GraphPair:
    rings = [
        graph_with_values(
            len(names),
            [(entity, 0, name) for entity, name in enumerate(names)],
            [(entity, 0, (entity + 1) % len(names)) for entity in range(len(names))],
        )
        for names in (left, right)
    ]
    return pair_with_values(*rings)


def matched(
    pair: GraphPair, folder: Path, words: dict[str, str] | None
) -> LiteralMatches:
    path = folder / "words.tsv"
    path.write_text(
        "".join(f"{word}\t{text}\n" for word, text in (words or {}).items())
    )
    return SimilarLiterals(dictionary=str(path) if words else None)(pair)


def test_translations_make_anchors_and_are_shown(tmp_path: Path) -> None:
    pair = named_pair(list(NAMES), list(NAMES.values()))
    assert not len(matched(pair, tmp_path, None).anchors)
    found = matched(pair, tmp_path, NAMES)
    assert found.anchors.tolist() == [[entity, entity] for entity in range(len(NAMES))]
    assert found.anchor_kinds.keys() == {"similar after translation"}
    shown = [found.source.entity_name(value) for value in found.pairs[:, 0].tolist()]
    assert '"苹果 → apple"' in shown


def test_the_target_graph_can_be_the_one_that_is_translated(tmp_path: Path) -> None:
    found = matched(named_pair(list(NAMES.values()), list(NAMES)), tmp_path, NAMES)
    assert found.anchors.tolist() == [[entity, entity] for entity in range(len(NAMES))]
    shown = [found.target.entity_name(value) for value in found.pairs[:, 1].tolist()]
    assert '"苹果 → apple"' in shown


def test_a_translation_into_another_script_is_transliterated(tmp_path: Path) -> None:
    # the English graph is translated: the dictionary has no Russian headwords
    english = ["apple", "bridge", "moon", "railway", "river", "school"]
    russian = ["яблоко", "мост", "луна", "железная дорога", "река", "школа"]
    words = dict(zip(english, russian, strict=True))
    found = matched(named_pair(english, russian), tmp_path, words)
    assert found.anchors.tolist() == [[entity, entity] for entity in range(6)]
    shown = [found.source.entity_name(value) for value in found.pairs[:, 0].tolist()]
    assert '"bridge → most"' in shown


def test_a_transliteration_still_counts(tmp_path: Path) -> None:
    pair = named_pair([*NAMES, "上海"], [*NAMES.values(), "shanghai"])
    found = matched(pair, tmp_path, NAMES | {"上海": "on the sea"})
    assert found.anchors.tolist() == [
        [entity, entity] for entity in range(len(NAMES) + 1)
    ]


def test_a_wrong_dictionary_does_no_harm(tmp_path: Path) -> None:
    # half of the names are equal; the dictionary translates all of them to other names
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    names = ["".join(rng.choice(letters, 9)) for _ in range(200)]
    others = ["".join(rng.choice(letters, 9)) for _ in range(200)]
    pair = named_pair(names + others, names + others[::-1])
    wrong = dict(zip(names, [*names[7:], *names[:7]], strict=True))
    found = matched(pair, tmp_path, wrong)
    right = {(entity, entity) for entity in range(len(names))}
    anchors = dict(
        zip(map(tuple, found.anchors.tolist()), found.anchor_probs, strict=True)
    )
    assert right <= anchors.keys()
    assert min(anchors[one] for one in right) > 0.8
    is_translated = np.array(
        ["→" in found.source.entity_name(value) for value in found.pairs[:, 0].tolist()]
    )
    assert found.probs[is_translated].max(initial=0) < found.probs[~is_translated].min()


def write_graph(path: Path, side: str, names: list[str]) -> str:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines = [f'<http://{side}/{n}> {label} "{name}" .' for n, name in enumerate(names)]
    lines += [
        f"<http://{side}/{n}> <http://{side}/next> <http://{side}/0> ."
        for n in range(1, 8)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_the_command_line_takes_a_dictionary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_graph(tmp_path / "a.nt", "a", list(NAMES))
    target = write_graph(tmp_path / "b.nt", "b", list(NAMES.values()))
    words = tmp_path / "words.tsv"
    words.write_text("".join(f"{word}\t{text}\n" for word, text in NAMES.items()))
    out = tmp_path / "out"
    given = ["align", source, target, "--out", str(out), "method=paris"]
    assert main([*given, "--dictionary", str(words)]) == 0
    assert "8 similar after translation" in capsys.readouterr().out
    rows = [
        line.split("\t")[:2]
        for line in (out / "alignment.tsv").read_text().splitlines()[1:]
    ]
    assert sorted(rows) == [
        [f"http://a/{n}", f"http://b/{n}"] for n in range(len(NAMES))
    ]
    assert main([*given, "--dictionary", str(tmp_path / "none.tsv")]) != 0
    assert "literals.dictionary: there is no file" in capsys.readouterr().err
