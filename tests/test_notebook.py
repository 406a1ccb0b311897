"""The notebook of the documentation runs from the first to the last cell."""

from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
SECONDS = 300


def read_notebook() -> Any:
    nbformat = pytest.importorskip("nbformat")
    return nbformat.read(DOCS / "notebook.ipynb", as_version=4)


def printed(notebook: Any) -> str:
    """Everything that the cells printed to standard output."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    return "".join(one.text for one in outputs if one.get("name") == "stdout")


def test_the_notebook_is_stored_with_its_output() -> None:
    notebook = read_notebook()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code and all(cell.outputs for cell in code)
    assert all(one.output_type != "error" for cell in code for one in cell.outputs)


@pytest.mark.slow
def test_the_notebook_runs() -> None:
    client = pytest.importorskip("nbclient").NotebookClient
    notebook = read_notebook()
    stored = printed(notebook)
    resources = {"metadata": {"path": str(DOCS)}}
    client(
        notebook, timeout=SECONDS, kernel_name="python3", resources=resources
    ).execute()
    assert printed(notebook) == stored
