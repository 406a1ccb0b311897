"""Figures as files."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from emea.reporting.figures import write_figure


def drawn() -> Figure:
    figure = Figure()
    axes = figure.subplots()
    axes.bar([0, 1], [1, 2], hatch="//")  # hatches and clips are what an SVG names at random
    axes.set_title("a title")
    return figure


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    figure = drawn()
    first, again = (write_figure(figure, tmp_path / name) for name in ("a", "b"))
    another = write_figure(drawn(), tmp_path / "c")
    for paths in zip(first, again, another, strict=True):
        assert len({path.read_bytes() for path in paths}) == 1, paths[0].suffix


def test_the_last_bits_of_coordinates_do_not_change_the_bytes(tmp_path: Path) -> None:
    figures = [drawn() for _ in range(3)]
    for figure, direction in zip(figures, (0.125, 0, 1), strict=True):
        figure.subplots_adjust(left=np.nextafter(0.125, direction))  # as on another machine
    for paths in zip(*(write_figure(f, tmp_path / str(id(f))) for f in figures), strict=True):
        assert len({path.read_bytes() for path in paths}) == 1, paths[0].suffix


def test_every_name_in_an_svg_has_one_meaning(tmp_path: Path) -> None:
    _, svg = write_figure(drawn(), tmp_path / "a")
    text = svg.read_text(encoding="utf-8")
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    used = re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', text)
    assert len(used) > 4 and {one or other for one, other in used} <= set(names)


def test_files_do_not_say_when_or_by_what_they_were_written(tmp_path: Path) -> None:
    png, svg = (path.read_bytes() for path in write_figure(drawn(), tmp_path / "a"))
    assert png.startswith(b"\x89PNG")
    assert b"Software" not in png
    assert b"dc:date" not in svg
    assert b"a title" in svg


@pytest.mark.parametrize("name", ["zh-0.05", "zh-0.05.svg", "zh-0.05.png"])
def test_both_forms_lie_where_they_are_wanted(name: str, tmp_path: Path) -> None:
    paths = write_figure(drawn(), tmp_path / name)
    assert [path.name for path in paths] == ["zh-0.05.png", "zh-0.05.svg"]
