"""Addresses in a report lead to the same place from the page."""

from pathlib import Path

import pytest

from emea.errors import UserError
from emea.reporting.page import PageLinks


@pytest.fixture
def links(tmp_path: Path) -> PageLinks:
    names = {tmp_path / "table1": "table1", tmp_path / "dual": "dual"}
    return PageLinks("table1", tmp_path / "table1", tmp_path, names)


@pytest.mark.parametrize(
    ("written", "seen_from_the_page"),
    [
        ("records/x/run.json", "table1/records/x/run.json"),
        ("./records/1%25/run.json#L3", "table1/records/1%25/run.json#L3"),
        ("../../docs/method.md", "../docs/method.md"),
        ("../dual/cells.txt", "dual/cells.txt"),
        ("../dual/results.md", "#dual"),
        ("../dual/results.md#the-rest-of-it", "#dual.the-rest-of-it"),
        ("#hit1", "#table1.hit1"),
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("mailto:a@b.org", "mailto:a@b.org"),
        ("/absolute/file", "/absolute/file"),
    ],
)
def test_addresses(links: PageLinks, written: str, seen_from_the_page: str) -> None:
    assert links.address(written) == seen_from_the_page


def test_a_folder_with_a_blank(tmp_path: Path) -> None:
    links = PageLinks("a", tmp_path / "a b", tmp_path, {})
    assert links.address("x.csv") == "a%20b/x.csv"


def test_pictures_are_held_whole(links: PageLinks, tmp_path: Path) -> None:
    (tmp_path / "table1").mkdir()
    (tmp_path / "table1" / "a b.png").write_bytes(b"abc")
    assert links.picture("a%20b.png") == "data:image/png;base64,YWJj"


def test_pictures_from_elsewhere_are_refused(links: PageLinks) -> None:
    with pytest.raises(UserError, match="files only"):
        links.picture("https://example.org/a.png")
