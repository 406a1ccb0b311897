"""Pictures inside a page."""

import base64
from pathlib import Path

import pytest

from emea.errors import UserError
from emea.reporting.page import data_uri


def test_a_drawing_is_taken_before_a_photograph_of_it(tmp_path: Path) -> None:
    (tmp_path / "figure.png").write_bytes(b"pixels")
    assert data_uri(tmp_path / "figure.png").startswith("data:image/png;base64,")
    (tmp_path / "figure.svg").write_text("<svg/>")
    kind, content = data_uri(tmp_path / "figure.png").split(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(content) == b"<svg/>"


@pytest.mark.parametrize("name", ["missing.svg", "run.json"])
def test_what_cannot_be_shown_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=name):
        data_uri(tmp_path / name)
