"""Rules of the house that no single module can keep."""

import ast
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
LAYERS = (
    ("data",),
    ("matching", "tracking"),
    ("evaluation", "export"),
    ("encoders", "rules"),
    ("em", "baselines"),
    ("training",),
    ("pipeline", "reporting"),
    ("explain",),
    ("bench",),
    ("cli",),
)
"""Each layer imports from those before it; neighbours do not import each other."""

CONDA_NAMES = {"torch": "pytorch"}


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return list(project["dependencies"])


def split_name(requirement: str) -> tuple[str, str]:
    name = requirement.split(">")[0].split("=")[0].split("<")[0].strip()
    return name, requirement[len(name) :]


def imported_packages(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


MODULES = [path for path in (ROOT / "emea").rglob("*.py") if path.name != "__main__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    parts = path.relative_to(ROOT / "emea").parts
    if len(parts) == 1:
        return
    room = parts[0]
    level = next(index for index, layer in enumerate(LAYERS) if room in layer)
    below = {name for layer in LAYERS[:level] for name in layer} | {room, "errors"}
    for module in imported_packages(path):
        if module.startswith("emea."):
            assert module.split(".")[1] in below, f"{path.name} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_omegaconf_stays_in_the_pipeline(path: Path) -> None:
    if path.relative_to(ROOT / "emea").parts[0] not in ("pipeline", "cli"):
        roots = {module.split(".")[0] for module in imported_packages(path)}
        assert not roots & {"omegaconf", "hydra"}


def test_conda_and_pip_ask_for_the_same() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = {entry for entry in environment["dependencies"] if isinstance(entry, str)}
    for requirement in requirements():
        name, versions = split_name(requirement)
        assert f"{CONDA_NAMES.get(name, name)}{versions}" in conda
    assert len(conda) == len(requirements()) + 2  # python and pip beside them


def test_constraints_pin_every_requirement() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower() for line in lines if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = requirements() + project["optional-dependencies"]["test"]
    missing = [name for name, _ in map(split_name, wanted) if name.lower() not in pinned]
    assert not missing


def test_citation_names_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    title = citation["preferred-citation"]["title"]
    assert title == "Guiding Neural Entity Alignment with Compatibility"


UNSAFE = {"pickle", "dill", "marshal", "shelve", "joblib"}
UNSAFE_CALLS = {"torch.load", "eval", "exec", "os.system"}
SAFE_YAML = {"yaml.BaseLoader", "yaml.SafeLoader"}
UNSAFE_SETTINGS = {"allow_pickle": True, "shell": True, "weights_only": False}
CODE = [*MODULES, *(ROOT / "emea").rglob("__main__.py"), ROOT / "run.py"]


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_runs_what_it_reads(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported_packages(path)} & UNSAFE
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in UNSAFE_CALLS
            if called == "yaml.load":
                assert {ast.unparse(value) for value in node.args} & SAFE_YAML
            given = {word.arg: ast.unparse(word.value) for word in node.keywords}
            for name, value in UNSAFE_SETTINGS.items():
                assert given.get(name) != str(value), f"{name}={value}"
