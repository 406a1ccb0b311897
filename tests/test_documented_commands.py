"""Commands, settings and Python code in the README and in ``docs/`` are valid."""

import argparse
import pkgutil
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from emea.cli import align as align_command
from emea.cli.main import COMMANDS, main
from emea.cli.run import resumed_folder
from emea.config.command_line import check_overrides
from emea.config.composition import CONF, composed, option_names
from emea.config.usual_settings import CPU_SETTINGS, LITERALS

from .sweeping import called_here

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_OURS = {".", "conda", "curl", "export", "git", "mlflow", "python3", "ssh"}
"""Programs whose arguments are not checked."""

SHORT = (
    "model.initial_epochs=4",
    "model.epochs_per_iteration=2",
    "em.iterations=1",
    "trainer=cpu",
    "tracking=none",
)
SMALL = (
    "data=synthetic",
    "data.num_entities=150",
    "split.num_validation=20",
    "ratio=0.2",
)
"""What replaces the public data sets, so that a command runs in seconds."""

PUBLIC_FILE = re.compile(r"\b(dy|oaei2010)/.*")
"""Files of public data sets, which need not exist where the tests run."""

GROUPS = [
    path.name for path in CONF.iterdir() if path.is_dir() and path.name != "hydra"
]
QUICK = ("align", "predict", "explain", "divide", "join")
NOT_RUN = (
    "resume=",
    "experiment=",
    "hydra/launcher=",
    "hydra/sweeper=",
    "tracking.uri=",
)
NOT_RUN += ("https://",)


class Documented(NamedTuple):
    """A command of a page, with the environment variables before it."""

    page: str
    words: tuple[str, ...]
    environ: dict[str, str]

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def blocks(path: Path, language: str) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def documented(path: Path) -> Iterator[Documented]:
    for block in blocks(path, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            environ = {}
            while words and re.match(r"[A-Z_]+=", words[0]):
                name, _, environ[name] = words.pop(0).partition("=")
            if words:
                yield Documented(path.name, tuple(words), environ)


COMMANDS_OF_PAGES = [command for path in PAGES for command in documented(path)]
IS_EMEA = [command for command in COMMANDS_OF_PAGES if command.words[0] == "emea"]
IS_MODULE = [
    command for command in COMMANDS_OF_PAGES if command.words[:2] == ("python", "-m")
]


class ParsedError(Exception):
    """Ends a command once argparse has accepted its arguments."""


@pytest.fixture
def only_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands parse their arguments and do nothing else."""
    for name in ("parse_args", "parse_intermixed_args"):
        parse = getattr(argparse.ArgumentParser, name)

        def parsed(
            self: Any, *args: Any, _parse: Any = parse, **kwargs: Any
        ) -> NoReturn:
            _parse(self, *args, **kwargs)
            raise ParsedError

        monkeypatch.setattr(argparse.ArgumentParser, name, parsed)


def check_run(arguments: list[str]) -> None:
    """Check the settings; of a sweep, each option and one job, because composing takes long."""
    if resumed_folder(arguments) is not None:
        return
    arguments = [PUBLIC_FILE.sub("docs/examples/seeds.tsv", word) for word in arguments]
    if "-m" not in arguments:
        return checked(tuple(arguments))
    job = []
    for word in arguments:
        key, _, value = word.partition("=")
        if key == "experiment":
            assert value in option_names("experiment")
        elif not key.startswith(("hydra/", "hydra.", "+hydra.", "-m")):
            is_list = value.startswith("[") or "(" in value
            job.append(word if is_list else word.partition(",")[0])
        if key in GROUPS and key != "experiment" and "--config-dir" not in arguments:
            assert set(value.split(",")) <= set(option_names(key))
    checked(tuple(word for word in job if "(" not in word))


@cache
def checked(arguments: tuple[str, ...]) -> None:
    check_overrides(list(arguments))


def check_data(arguments: list[str]) -> None:
    name, *overrides = arguments
    if name == "--help":
        return
    assert name in option_names("data")
    config = composed([f"data={name}", *(f"data.{override}" for override in overrides)])
    files = [config.data.get(key) for key in ("source", "target", "links")]
    assert all((ROOT / file).is_file() for file in files if name == "files")


def check_align(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = [PUBLIC_FILE.sub("docs/examples/seeds.tsv", word) for word in arguments]
    options = align_command._parser().parse_intermixed_args(arguments)
    options.out = Path("no_such_folder")
    literals = [] if options.links is not None else [LITERALS]
    align_command._config(options, [*CPU_SETTINGS, *literals])


@pytest.mark.parametrize("command", COMMANDS_OF_PAGES, ids=str)
def test_a_command_is_valid(
    command: Documented, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *arguments = command.words
    monkeypatch.chdir(ROOT)
    if "PYTHONPATH" in command.environ:
        assert (ROOT / command.environ["PYTHONPATH"]).is_dir()
        monkeypatch.syspath_prepend(ROOT / command.environ["PYTHONPATH"])
    if program == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{arguments[0]}:", makefile, re.MULTILINE)
    elif program == "pip":
        check_pip(arguments)
    elif program == "python":
        if arguments[0] != "-m":
            assert arguments[0] == "run.py"
            check_run(arguments[1:])
    elif program == "emea":
        assert arguments[0] in COMMANDS or arguments[0].startswith("--")
        if arguments[0] == "run":
            check_run(arguments[1:])
        elif arguments[0] == "data":
            check_data(arguments[1:])
        elif arguments[0] == "align":
            check_align(arguments[1:], monkeypatch)
    else:
        assert program in NOT_OURS


@pytest.mark.parametrize("command", IS_EMEA, ids=str)
@pytest.mark.usefixtures("only_parsed")
def test_the_options_of_a_command_exist(command: Documented) -> None:
    if command.words[1] in ("run", "data") or command.words[1].startswith("--"):
        return  # these do not use argparse
    with pytest.raises(ParsedError):
        main(command.words[1:])


@pytest.mark.parametrize("command", IS_MODULE, ids=str)
@pytest.mark.usefixtures("only_parsed")
def test_the_options_of_a_module_exist(command: Documented) -> None:
    name, *arguments = command.words[2:]
    if name == "pytest":
        return
    assert (ROOT / name / "__main__.py").is_file()
    with pytest.raises(ParsedError):
        import_module(f"{name}.__main__").main(arguments)


def check_pip(arguments: list[str]) -> None:
    assert arguments[0] == "install"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    for extra in re.findall(r"\[(\w+)\]", arguments[-1]):
        assert extra in project["optional-dependencies"]
    if "-c" in arguments:
        assert (ROOT / arguments[arguments.index("-c") + 1]).is_file()


def inline_code(path: Path) -> set[str]:
    text = re.sub(
        r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return set(re.findall(r"`([^`\n]+)`", text))


HAND_WRITTEN = [
    path for path in PAGES if path.name not in ("configuration.md", "results.md")
]


@pytest.mark.parametrize("path", HAND_WRITTEN, ids=lambda path: path.name)
def test_options_and_settings_in_the_text_exist(path: Path) -> None:
    settings = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for code in inline_code(path):
        for word in code.split():
            key, equals, value = word.partition("=")
            if equals and key in GROUPS and value.islower():
                assert set(value.split(",")) <= set(option_names(key)), (
                    f"{path.name}: {word}"
                )
            elif re.fullmatch(rf"({'|'.join(GROUPS)}|export)(\.\w+)+", key):
                assert f"`{key}" in settings or key in OTHER_SETTINGS, (
                    f"{path.name}: {word}"
                )
        command = re.match(r"emea ([a-z]+)", code)
        if command:
            assert command[1] in COMMANDS, f"{path.name}: {code}"


@pytest.mark.parametrize("path", HAND_WRITTEN, ids=lambda path: path.name)
def test_named_objects_exist(path: Path) -> None:
    for code in inline_code(path):
        found = re.match(r"emea(\.\w+)+", code)
        if found:
            assert pkgutil.resolve_name(found[0]) is not None
        found = re.match(r"(emea|tests|docs|conf|experiments)/[\w/.]+", code)
        if found:
            assert (ROOT / found[0]).exists(), f"{path.name}: {code}"


OTHER_SETTINGS = {
    "tracking.uri",
    *(
        "trainer.global_step",
        "trainer.callback_metrics",
        "trainer.should_stop",
    ),  # Lightning's own
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a clone of the repository, with two finished runs."""
    place = tmp_path_factory.mktemp("clone")
    for name in ("docs", "conf"):
        (place / name).symlink_to(ROOT / name)
    files = [f"docs/examples/{name}" for name in ("atlas.nt", "karte.ttl", "seeds.tsv")]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        arguments = [*files[:2], "em.iterations=1", "--links", files[2]]
        assert main(["align", *arguments]) == 0
    shutil.copytree(place / "alignment", place / "outputs" / "my_run")
    return place


def quick_form(words: list[str]) -> list[str]:
    """The arguments of ``emea run`` on a small pair, for a few steps."""
    own_files = not {"data=files", "data=part"}.isdisjoint(words)
    replaced = ("em.iterations", "tracking", "trainer", "model.initial_epochs")
    if not own_files:
        replaced = (*replaced, "data", "ratio")
    kept = [word for word in words if word.partition("=")[0] not in replaced]
    if not own_files:  # the synthetic pair has none of the settings of another data set
        kept = [word for word in kept if not word.startswith("data.")]
    kept = [word.replace("em=none,", "em=") for word in kept]  # it has other settings
    short = list(SHORT)
    if {"em=none", "variant=lightea_published"} & set(words):  # both have no EM
        short = [word for word in SHORT if "iteration" not in word]
    if "method=paris" in words:
        short = [word for word in short if not word.startswith(("model.", "em."))]
    return [*kept, *short, *(() if own_files else SMALL)]


NEEDS_DATA = ("gallery.md", "worked_example.md")
"""Pages whose commands read a public data set; their output is a recorded run."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if path.name not in NEEDS_DATA],
    ids=lambda path: path.name,
)
def test_the_commands_of_a_page_run(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in documented(path):
        program, *arguments = command.words
        is_run = arguments[:1] == ["run.py" if program == "python" else "run"]
        if (
            any(word.startswith(NOT_RUN) for word in arguments)
            or "outputs/openea" in arguments
        ):
            continue
        if "PYTHONPATH" in command.environ:
            monkeypatch.syspath_prepend(ROOT / command.environ["PYTHONPATH"])
        if is_run:
            done = called_here(folder, *quick_form(arguments[1:]))
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        elif arguments[0] == "divide" and any(
            word.startswith("data=") for word in arguments
        ):
            continue  # a public data set
        elif program == "emea" and (
            arguments[0] in QUICK or arguments[:2] == ["data", "files"]
        ):
            monkeypatch.chdir(folder)
            assert main(arguments) == 0, str(command)


def masked(line: str) -> str:
    """A printed line without numbers and names of entities, which differ between machines."""
    return re.sub(r"https?://\S+", "ENTITY", re.sub(r"\d+(\.\d+)?", "NUMBER", line))


def test_the_readme_shows_what_its_first_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "README.md"
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    command = next(
        command for command in documented(page) if command.words[0] == "emea"
    )
    assert main(list(command.words[1:])) == 0
    shown, printed = (
        blocks(page, "text")[0].splitlines(),
        capsys.readouterr().out.splitlines(),
    )
    assert [masked(line) for line in shown] == [masked(line) for line in printed]


PYTHON = [
    pytest.param(
        path, block, marks=() if path.name == "own_graphs.md" else pytest.mark.slow
    )
    for path in PAGES
    for block in blocks(path, "python")
]


@pytest.mark.parametrize(("path", "block"), PYTHON)
def test_python_code_runs(
    path: Path,
    block: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = re.search(r'load(_run)?\("(alignment|outputs/\w+)"\)', block)
    needs_a_run = run is not None
    place = request.getfixturevalue("folder" if needs_a_run else "tmp_path")
    if (
        run is not None and not (place / run[2]).exists()
    ):  # a command of the page makes it
        shutil.copytree(place / "alignment", place / run[2])
    if not needs_a_run:
        (place / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(place)
    exec(compile(block, str(path), "exec"), {"__name__": "__main__"})
