"""Rules of the project that concern more than one module."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from emea import __version__

ROOT = Path(__file__).resolve().parents[1]
LAYERS = (
    ("errors",),
    ("setting",),
    ("settings",),
    ("runtime",),
    ("data",),
    ("kernels",),
    ("matching",),
    ("literals",),
    ("evaluation",),
    ("config",),
    ("record",),
    ("encoders", "rules", "answer"),
    ("fit",),
    ("em", "baselines"),
    ("run",),
    ("results",),
    ("explain",),
    ("suggest", "update", "divide", "serve", "clusters"),
    ("aligner", "testing"),
    ("__init__",),
    ("cli",),
    ("__main__", "run.py"),
    ("experiments",),
    ("benchmarks",),
)
"""Packages and single modules. Each layer imports from those before it; neighbours do not import
each other. ``settings`` are the files ``settings.py`` of all packages; they only declare."""

CONDA_NAMES = {"torch": "pytorch"}


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return list(project["dependencies"])


def split_name(requirement: str) -> tuple[str, str]:
    name = requirement.split(">")[0].split("=")[0].split("<")[0].strip()
    return name, requirement[len(name) :]


@cache
def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_packages(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "emea":
            names |= {
                f"emea.{alias.name}" for alias in node.names if is_module(alias.name)
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def is_module(name: str) -> bool:
    """Whether a name in ``from emea import name`` is a module, not a value such as the version."""
    return (ROOT / "emea" / name).is_dir() or (ROOT / "emea" / f"{name}.py").is_file()


def within_emea(path: Path) -> tuple[str, ...]:
    return path.relative_to(ROOT / "emea").parts


def layered_name(path: Path) -> str:
    """The package or single module of a file, as the layers name it."""
    if (ROOT / "emea") in path.parents:
        is_settings = path.name == "settings.py"
        return "settings" if is_settings else within_emea(path)[0].removesuffix(".py")
    return path.relative_to(ROOT).parts[0]


MODULES = [*(ROOT / "emea").rglob("*.py")]
CODE = [
    *MODULES,
    ROOT / "run.py",
    *(ROOT / "experiments").rglob("*.py"),
    *(ROOT / "benchmarks").rglob("*.py"),
]


def wrong_imports(path: Path) -> list[str]:
    """Imports of a file from its own layer or one above."""
    name = layered_name(path)
    level = next(index for index, layer in enumerate(LAYERS) if name in layer)
    below = {name, *(one for layer in LAYERS[:level] for one in layer)}
    return [
        one for one in imported_packages(path) if (_layer(one) or name) not in below
    ]


def _layer(module: str) -> str | None:
    """Return the package or single module of the project that a module belongs to."""
    first, _, rest = module.partition(".")
    if module.endswith(".settings"):
        return "settings"
    if first == "emea":
        return rest.partition(".")[0] or None
    return first if first in ("experiments", "benchmarks") else None


def test_imports_go_down() -> None:
    wrong = {str(path.relative_to(ROOT)): wrong_imports(path) for path in CODE}
    assert not {path: names for path, names in wrong.items() if names}


def test_every_layer_has_files_and_every_file_a_layer() -> None:
    known = {name for layer in LAYERS for name in layer}
    assert {layered_name(path) for path in CODE} == known
    assert is_module("aligner") and is_module("config") and not is_module("__version__")


OMEGACONF = ("config", "record", "run", "cli")
"""Packages that see OmegaConf or Hydra."""


def test_omegaconf_is_seen_by_few() -> None:
    wrong = []
    for path in MODULES:
        roots = {module.split(".")[0] for module in imported_packages(path)}
        if within_emea(path)[0] not in OMEGACONF and roots & {"omegaconf", "hydra"}:
            wrong.append(str(path.relative_to(ROOT)))
    assert not wrong


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
    missing = [
        name for name, _ in map(split_name, wanted) if name.lower() not in pinned
    ]
    assert not missing


def test_citation_names_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    title = citation["preferred-citation"]["title"]
    assert title == "Guiding Neural Entity Alignment with Compatibility"


def test_version_is_the_same_in_all_files() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert citation["version"] == __version__
    assert f"\n## {__version__}" in changelog


UNSAFE = {"pickle", "dill", "marshal", "shelve", "joblib"}
UNSAFE_CALLS = {"torch.load", "eval", "exec", "os.system"}
SAFE_YAML = {"yaml.BaseLoader", "yaml.SafeLoader"}
UNSAFE_SETTINGS = {"allow_pickle": True, "shell": True, "weights_only": False}


def unsafe_parts(path: Path) -> Iterator[str]:
    for name in {name.split(".")[0] for name in imported_packages(path)} & UNSAFE:
        yield f"imports {name}"
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in UNSAFE_CALLS:
                yield f"calls {called}"
            if (
                called == "yaml.load"
                and not {ast.unparse(arg) for arg in node.args} & SAFE_YAML
            ):
                yield "calls yaml.load with an unsafe loader"
            for word in node.keywords:
                value = UNSAFE_SETTINGS.get(word.arg or "")
                if value is not None and ast.unparse(word.value) == str(value):
                    yield f"sets {word.arg}={value}"


def test_nothing_runs_what_it_reads() -> None:
    found = [
        f"{path.relative_to(ROOT)} {part}"
        for path in CODE
        for part in unsafe_parts(path)
    ]
    assert not found
