"""What users rely on, as lists: options, settings, files, columns, keys, log lines and pages.

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
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from emea.cli.main import COMMANDS
from emea.cli.main import main as emea
from emea.config.composition import CONF, composed, option_names
from emea.config.groups import GROUPS
from emea.run.finished_run import load_run
from emea.run.job import run_job
from emea.run.predicting import predict
from emea.run.settings import RunSettings
from emea.run.sweep import TABLE_FILE, write_summary
from emea.setting import Setting, settings_of, typed

from ..clusters.people import people, with_duplicates, write_table

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


TABLES = ("--formats", "jsonl", "sssom")

PARTS = ("run", "predictions", "sweep", "aligned", "answers", "clusters", "pages")
"""Folders with what commands write; ``aligned`` has two tables without links, by decoys."""


def collected(folder: Path) -> Lists:
    """Return the lists of the product as it is.

    Args:
        folder: An empty folder, in which tiny runs are made.
    """
    write_examples(folder)
    lists = {
        "commands": _commands(),
        "settings": _settings(),
        "files": _files(folder),
        "columns": _columns(folder),
        "keys": _keys(folder),
        "log_lines": [*_log_lines(), *_status_lines()],
        "pages": _pages(folder),
    }
    return {name: sorted(set(entries)) for name, entries in lists.items()}


def write_examples(folder: Path) -> None:
    """Make a tiny run of each kind, and write their answers and pages."""
    run_job(composed(RUN), folder / "run")
    run = load_run(folder / "run")
    predict(run, folder / "predictions", run.settings.own.export)
    (folder / "sweep").mkdir()
    write_summary(folder / "sweep", [])
    rows, _ = with_duplicates(people(80, 1), 1, typos=0.15, missing=0.05)
    tables = [folder / "first.csv", folder / "second.csv"]
    for path, some in zip(tables, (people(60, 2), people(60, 2)[20:]), strict=True):
        write_table(path, some)
    people_file = write_table(folder / "people.csv", rows)
    aligned, pages = folder / "aligned", folder / "pages"
    for name in ("run", "aligned"):
        (pages / name).mkdir(parents=True)
    called("align", *tables, "--out", aligned, *TABLES)
    called("predict", aligned, "--out", folder / "answers", *TABLES)
    called("dedupe", people_file, "--out", folder / "clusters")
    for name in ("run", "aligned"):
        page = pages / name / "show.html"
        called("show", folder / name, "--out", page, "--no-open")
    explained = ("--html", pages / "explain.html")
    called(
        "explain", folder / "run", "--entity", first_source(folder / "run"), *explained
    )
    compared = ("--html", pages / "compare.html", "--csv", pages / "compare.csv")
    called("compare", folder / "run", folder / "run", *compared)
    called("report", "--runs", folder / "run", "--out", folder / "report")


def called(*arguments: str | Path) -> str:
    """Return what a command prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert emea([*map(str, arguments)]) == 0, shown.getvalue()
    return shown.getvalue()


def first_source(folder: Path) -> str:
    """Return the source of the first match of a run."""
    return (folder / "alignment.tsv").read_text().splitlines()[1].partition("\t")[0]


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
    """Yield each option of each group, and each setting with its option, default and choices."""
    for one in settings_of(RunSettings):
        if one.key != "export":  # each of its settings has an entry of its own
            yield from _described(one)
    for group, content in GROUPS.items():
        if group in PRESETS:
            continue
        yield from (f"{group}={option}" for option in option_names(group))
        # a schema belongs to the option of its name, or to options that inherit it
        for name, schema in content.schemas.items():
            for one in settings_of(schema, f"{group}."):
                if one.help:
                    yield from (f"{group}={name}: {line}" for line in _described(one))
        for path in (CONF / group).rglob("*.yaml"):
            inherited = re.findall(r"\bschema_(\w+)", path.read_text(encoding="utf-8"))
            option = path.relative_to(CONF / group).as_posix().removesuffix(".yaml")
            yield from (f"{group}={option} has those of {one}" for one in inherited)


def _described(one: Setting) -> Iterator[str]:
    """Yield the default of a setting, and the words that it allows."""
    yield f"{one.key}={typed(one.default)}"
    if isinstance(one.allowed, tuple):
        yield from (f"{one.key} can be {choice}" for choice in one.allowed)


def _files(folder: Path) -> Iterator[str]:
    """Yield what the runs, predictions, sweeps and other commands write."""
    for part in PARTS:
        paths = (path for path in (folder / part).rglob("[!.]*") if path.is_file())
        yield from (
            f"{part}/{path.relative_to(folder / part).as_posix()}" for path in paths
        )


def _columns(folder: Path) -> Iterator[str]:
    """Yield the columns of all tables."""
    tables = (*folder.glob("*/*.tsv"), *folder.glob("*/*.csv"))
    for path in tables:
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
    for path in folder.glob("*/*.json"):
        yield from (
            f"{path.name}: {key}" for key in _paths(json.loads(path.read_text()))
        )
    for path in folder.glob("*/alignment.jsonl"):
        for line in path.read_text().splitlines():
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

SPOKEN = (
    *("answer/decision.py", "answer/summary.py", "cli/align.py", "em/em_callback.py"),
    *("record/earlier_runs.py", "run/judgement.py", "run/observer.py", "run/sweep.py"),
)
"""Modules whose sentences are logged or printed after the run, apart from errors."""


def _status_lines() -> Iterator[str]:
    """Yield what is logged and the sentences of ``SPOKEN``, with an ellipsis for each value."""
    for path in (ROOT / "emea").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = list(_logged(tree))
        if path.relative_to(ROOT / "emea").as_posix() in SPOKEN:
            texts += _sentences(tree)
        for text in texts:
            line = re.sub(r"%[-+,.\d]*[a-z]", "…", text).replace("`", "'")
            line = " ".join(line.split())
            if re.search("[A-Za-z]{3}", line) and " " in line:
                yield line


def _logged(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of calls of the logger."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("logger."):
            yield from map(_text, node.args[:1])


def _sentences(node: ast.AST, is_inside: bool = False) -> Iterator[str]:
    """Yield the texts of functions, but not docstrings, errors and the help of arguments."""
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    # a function that declares arguments contains their help
    is_help = isinstance(node, ast.FunctionDef) and "add_argument" in ast.unparse(node)
    if isinstance(node, ast.Raise) or is_docstring or is_help:
        return
    if isinstance(node, ast.JoinedStr | ast.Constant):
        text = _text(node)
        # a part of a sentence, such as a plural, is no promise
        if is_inside and (isinstance(node, ast.JoinedStr) or text.count(" ") > 2):
            yield text
        return
    is_inside = is_inside or isinstance(node, ast.FunctionDef)
    for child in ast.iter_child_nodes(node):
        yield from _sentences(child, is_inside)


def _text(node: ast.expr) -> str:
    """Return a text with an ellipsis for each value; empty if it is no text."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(
        str(part.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
        else "…"
        for part in parts
    )


def _pages(folder: Path) -> Iterator[str]:
    """Yield the parts of each page."""
    pages = (*folder.glob("pages/**/*.html"), *folder.glob("report/*.html"))
    for path in (*pages, *folder.glob("clusters/*.html")):
        parts = PageParts()
        parts.feed(path.read_text(encoding="utf-8"))
        yield from (f"{path.name}: {part}" for part in parts.found)


class PageParts(HTMLParser):
    """Collects the headings, columns, buttons, fields, folded parts, ids and landmarks of a page.

    Numbers are left out, since they belong to the example. What scripts add is read from them.
    """

    ADDED = (
        r'_(button)\("([^"]+)"',
        r'element\("(h\d|th|dt|summary|label)", \{[^}]*\}, ["`]([^"`$]+)',
    )

    NAMED = frozenset(("h1", "h2", "h3", "h4", "th", "button", "label", "summary", "a"))
    LANDMARKS = frozenset(("main", "nav", "header", "footer", "aside", "dialog"))

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._open: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element with its id, its role and its label."""
        if tag in self.LANDMARKS:
            self.found.add(f"<{tag}>")
        for name, value in attrs:
            if name in ("id", "role", "aria-label") and value:
                self.found.add(f"{name} {_without_values(value)}")
        if tag in self.NAMED:
            self._open.append((tag, []))

    def handle_data(self, data: str) -> None:
        """Add a text to the elements around it, and note what a script adds."""
        if self.cdata_elem == "script":
            for pattern in self.ADDED:
                for tag, text in re.findall(pattern, data):
                    self.found.add(f"{tag} {text.strip()}")
            return
        for _, texts in self._open:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Note the text of an element that ends."""
        if self._open and self._open[-1][0] == tag:
            text = _without_values(" ".join("".join(self._open.pop()[1]).split()))
            if re.search("[a-z]{2}", text):
                self.found.add(f"{tag} {text}")


def _without_values(text: str) -> str:
    """Return a text without its numbers."""
    return re.sub(r"[\d.,]*\d", "…", text)
