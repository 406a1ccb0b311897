"""``emea show``, ``emea align --show`` and ``Aligner.show`` write the same page."""

import webbrowser
from itertools import pairwise
from pathlib import Path

import pytest

from emea import Aligner, graph_of
from emea.cli.main import main as emea

from ..finished_runs import Finished


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    monkeypatch.setenv("DISPLAY", ":0")
    return addresses


def test_a_finished_run_is_shown(
    finished: Finished,
    tmp_path: Path,
    opened: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, place = finished("paris").folder, tmp_path / "page.html"
    assert emea(["show", str(folder), "--out", str(place), "--no-open"]) == 0
    assert capsys.readouterr().out == f"Page: {place}\n" and opened == []
    assert "<title>Alignment of synthetic</title>" in place.read_text(encoding="utf-8")
    assert emea(["show", str(folder), "--out", str(place)]) == 0
    assert opened == [place.as_uri()]
    assert emea(["show", str(folder), "--out", "/proc/page.html"]) == 1
    assert "/proc/page.html cannot be written" in capsys.readouterr().err
    assert emea(["show", str(tmp_path)]) == 1


def test_align_and_the_library_show_it(tmp_path: Path, opened: list[str]) -> None:
    chain = [(one, "next", other) for one, other in pairwise("abcdefghijklmnop")]
    other = [(one.upper(), "next", two.upper()) for one, _, two in chain]
    links = [(name, name.upper()) for name in "abcop"]
    for name, rows in (("source", chain), ("target", other), ("links", links)):
        (tmp_path / f"{name}.tsv").write_text(
            "".join("\t".join(row) + "\n" for row in rows)
        )
    paths = [str(tmp_path / f"{name}.tsv") for name in ("source", "target", "links")]
    settings = ["em.iterations=1", "split.num_validation=1"]
    command = ["align", *paths[:2], *settings, "--links", paths[2], "--show"]
    assert emea([*command, "--out", str(tmp_path / "run")]) == 0
    page = tmp_path / "run" / "alignment.html"
    assert opened == [page.as_uri()]
    aligner = Aligner(model="lightea", settings=settings)
    aligner.fit(graph_of(chain), graph_of(other), links)
    found = aligner.show(tmp_path / "mine.html", is_opened=False)
    text = found.read_text(encoding="utf-8")
    assert 'aligner.save("FOLDER")' in text and len(opened) == 1
    assert 'aligner.save("FOLDER")' not in page.read_text(encoding="utf-8")
