"""What users rely on, as lists: options, settings, files, columns, keys and quoted log lines.

`python -m tests.promises` writes the lists from the product. An entry that is gone needs a line in
CHANGELOG.md that contains it.
"""

import ast
import contextlib
import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emea.cli.main import COMMANDS
from emea.cli.main import main as emea
from emea.config.composition import composed, option_names
from emea.config.groups import GROUPS
from emea.run.finished_run import load_run
from emea.run.job import run_job
from emea.run.predicting import predict
from emea.run.settings import RunSettings
from emea.run.sweep import TABLE_FILE, write_summary
from emea.setting import settings_of, typed

HERE = Path(__file__).parent
RELEASED = HERE / "released"
"""The lists at the last release."""

ROOT = HERE.parents[1]
PRESETS = ("variant", "experiment", "schedule")
"""Groups whose options belong to the project's own studies."""

RUN = (
    *("data.num_entities=150", "ratio=0.2", "split.num_validation=20", "trainer=cpu"),
    *(
        "model=lightea",
        "model.encoder.dim=64",
        "model.encoder.output_dim=64",
        "tracking=none",
    ),
    *("em=one_to_one", "em.iterations=1", "em.keep=best"),
    *("ensemble=independent", "ensemble.num_members=2", "ensemble.models=null"),
    "export.formats=[nt,sssom,jsonl,alignment,vectors]",
)
"""A tiny run that writes every kind of file, with several encoders and the best iteration."""

LEAST_QUOTE = 12
"""Characters of a log line that a guide must have in common with it to quote it."""

QUOTED = ("README.md", "docs/*.md")

Lists = dict[str, list[str]]


def collected(folder: Path) -> Lists:
    """Return the lists of the product as it is.

    Args:
        folder: An empty folder, in which a tiny run is made.
    """
    run_job(composed(RUN), folder / "run")
    run = load_run(folder / "run")
    predict(run, folder / "predictions", run.settings.own.export)
    (folder / "sweep").mkdir()
    write_summary(folder / "sweep", [])
    lists = {
        "commands": _commands(),
        "settings": _settings(),
        "files": _files(folder),
        "columns": _columns(folder),
        "keys": _keys(folder),
        "log_lines": _log_lines(),
    }
    return {name: sorted(set(entries)) for name, entries in lists.items()}


def stored(folder: Path) -> Lists:
    """Return the lists that a folder contains, one entry per line."""
    return {
        path.stem: path.read_text(encoding="utf-8").splitlines()
        for path in sorted(folder.glob("*.txt"))
    }


def store(folder: Path, lists: Lists) -> None:
    """Write the lists into a folder."""
    folder.mkdir(exist_ok=True)
    for name, entries in lists.items():
        (folder / f"{name}.txt").write_text("\n".join(entries) + "\n", encoding="utf-8")


def _commands() -> Iterator[str]:
    """Yield each command, and each option and argument that its help names."""
    for command in COMMANDS:
        yield f"emea {command}"
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            emea([command, "--help"])
        usage = shown.getvalue()
        for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", usage):
            yield f"emea {command} {option}"


def _settings() -> Iterator[str]:
    """Yield each option of each group, and each setting with its default."""
    for one in settings_of(RunSettings):
        if one.key != "export":  # each of its settings has an entry of its own
            yield f"{one.key}={typed(one.default)}"
    for group, content in GROUPS.items():
        if group in PRESETS:
            continue
        yield from (f"{group}={option}" for option in option_names(group))
        for schema in content.schemas.values():
            for one in settings_of(schema, f"{group}."):
                if one.help:
                    yield f"{one.key}={typed(one.default)}"


def _files(folder: Path) -> Iterator[str]:
    """Yield the files of a run folder, of a prediction and of a sweep."""
    for part in ("run", "predictions", "sweep"):
        paths = (path for path in (folder / part).rglob("[!.]*") if path.is_file())
        yield from (
            f"{part}/{path.relative_to(folder / part).as_posix()}" for path in paths
        )


def _columns(folder: Path) -> Iterator[str]:
    """Yield the columns of all tables."""
    for path in (*folder.glob("run/*.tsv"), *folder.glob("sweep/*.csv")):
        lines = (
            line for line in path.read_text().splitlines() if not line.startswith("#")
        )
        delimiter = "\t" if path.suffix == ".tsv" else ","
        head = next(csv.reader(lines, delimiter=delimiter))
        yield from (f"{path.name}: {column}" for column in head)
    for line in (folder / "sweep" / TABLE_FILE).read_text().splitlines():
        if line.startswith("| setting"):
            yield from (
                f"{TABLE_FILE}: {cell.strip()}" for cell in line.strip("|").split("|")
            )


def _keys(folder: Path) -> Iterator[str]:
    """Yield the keys of all JSON files; settings and the tags of the machine have their names."""
    files = (*folder.glob("run/*.json"), *folder.glob("predictions/*.json"))
    for path in files:
        yield from (
            f"{path.name}: {key}" for key in _paths(json.loads(path.read_text()))
        )
    for line in (folder / "run" / "alignment.jsonl").read_text().splitlines():
        yield from (f"alignment.jsonl: {key}" for key in _paths(json.loads(line)))


def _paths(node: Any, place: str = "") -> Iterator[str]:
    """Yield the paths of all values; parameters are settings, which have their own list."""
    if isinstance(node, dict) and node and place != "params":
        for key, value in node.items():
            yield from _paths(value, f"{place}.{key}".lstrip("."))
    elif isinstance(node, list) and any(isinstance(one, dict) for one in node):
        for one in node:
            yield from _paths(one, f"{place}[]")
    else:
        yield place


def _log_lines() -> Iterator[str]:
    """Yield the parts of log lines, warnings and errors that a guide quotes."""
    guides = [
        path.read_text(encoding="utf-8") for name in QUOTED for path in ROOT.glob(name)
    ]
    text = " ".join(" ".join(guides).split())
    for path in (ROOT / "emea").rglob("*.py"):
        for message in _messages(ast.parse(path.read_text(encoding="utf-8"))):
            for piece in re.split(r"%[-+,.\d]*[a-z]|\n", message):
                # a guide may quote a warning by its first words
                for quote in (piece.strip(), piece.partition(":")[0].strip()):
                    is_long = len(quote) >= LEAST_QUOTE and quote.count(" ") > 1
                    if is_long and quote[0].isalpha() and quote in text:
                        yield quote


def _messages(tree: ast.AST) -> Iterator[str]:
    """Yield the constant parts of all texts that are logged, printed, raised or returned."""
    for node in ast.walk(tree):
        texts: list[ast.expr | None] = []
        if isinstance(node, ast.Return | ast.Yield):
            texts = [node.value]
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            texts = (
                [*node.args[:1]] if name in LOGGING or name.endswith("Error") else []
            )
        for value in texts:
            parts = value.values if isinstance(value, ast.JoinedStr) else [value]
            for part in parts:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


LOGGING = ("info", "warning", "error", "print", "append")
"""Functions whose first argument users read."""
