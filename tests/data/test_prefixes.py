"""Names in full, in short and in brackets."""

from emea.data.names import Prefixes

DBR = {"dbr": "http://dbpedia.org/resource/"}


def test_a_name_without_expansion_comes_first() -> None:
    assert list(Prefixes().spellings("a:b")) == ["a:b"]


def test_short_names_in_full() -> None:
    assert list(Prefixes(DBR).spellings("dbr:A:b")) == [
        "dbr:A:b",
        "http://dbpedia.org/resource/A:b",
    ]


def test_full_names_in_short() -> None:
    full = "http://dbpedia.org/resource/A"
    assert list(Prefixes(DBR).spellings(f"<{full}>")) == [f"<{full}>", full, "dbr:A"]


def test_what_the_user_says_goes_before_what_a_file_says() -> None:
    both = Prefixes(DBR).with_others({"dbr": "http://other/", "x": "http://x/"})
    assert both.namespaces == {**DBR, "x": "http://x/"}
