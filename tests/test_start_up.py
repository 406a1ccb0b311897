"""A command imports what it uses: large packages are loaded only by what needs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

LARGE = {
    *("pytorch_lightning", "lightning_fabric", "torchmetrics", "torch._dynamo"),
    *(
        "mlflow",
        "sklearn",
        "pandas",
        "pyarrow",
        "scipy.stats",
        "scipy.optimize",
        "matplotlib",
        "vl_convert",
    ),
}
"""Packages that a run without training, tracking and tables does not need."""

COMMANDS = """
import contextlib, io, json, sys

import emea

loaded = {"import emea": [name for name in sys.modules if "." not in name]}
from emea import Aligner

loaded["Aligner"] = list(sys.modules)
from emea.cli.main import main

from emea.literals import lookalikes

rank_correlation, correlated = lookalikes.rank_correlation, []
lookalikes.rank_correlation = lambda *ranked: (
    correlated.append(ranked) or rank_correlation(*ranked)
)
source, target, out = sys.argv[1:]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for command in (
        ["align", source, target, "--out", out],
        ["explain", out, "--entity", "http://a.org/0"],
        ["predict", out, "--threshold", "0.5", "--out", out + "-sure"],
        ["show", out, "--no-open"],
    ):
        assert main(command) == 0, command
        loaded[command[0]] = list(sys.modules)
assert correlated, "no attribute was compared with the similarity"
print(json.dumps(loaded))
"""

WITHOUT_HARNESS = """
import importlib, pkgutil, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"hydra", "omegaconf", "mlflow", "jinja2", "pyoxigraph"}:
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Refused())
for room in sys.argv[1:]:
    package = importlib.import_module(f"emea.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"emea.{room}."):
        *_, group, name = module.name.split(".")
        # readers belong to the harness; Triton may be missing; Lightning itself imports omegaconf
        if group in ("formats", "sources") or "triton" in name or name == "lightning_trainer":
            continue
        importlib.import_module(module.name)
print(len([name for name in sys.modules if name.startswith("emea.")]))
"""

METHOD = (
    *("data", "matching", "encoders", "rules", "evaluation"),
    *("fit", "em", "literals", "baselines", "answer"),
)
"""Packages of the method, which work without the configuration, the tracker and the pages."""


def output_of(script: str, *arguments: str) -> str:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_graph(path: Path, host: str) -> str:
    """Write entities with similar names, so that decoys and their attributes are compared."""
    words = (
        ["red", "blue", "green", "amber", "violet"],
        ["house", "mill", "tower", "bridge"],
    )
    lines = []
    for n in range(130):
        name = f"{words[0][n % 5]} {words[1][n % 4]} {n * 37}"
        lines += [
            f'<http://{host}/{n}> <http://{host}/name> "{name}" .\n',
            f'<http://{host}/{n}> <http://{host}/year> "{1900 + n * 7 % 60}" .\n',
            f"<http://{host}/{n}> <http://{host}/next> <http://{host}/{(n + 1) % 130}> .\n",
        ]
    path.write_text("".join(lines))
    return str(path)


def test_commands_import_what_they_use(tmp_path: Path) -> None:
    files = [write_graph(tmp_path / f"{host}.nt", host) for host in ("a.org", "b.org")]
    loaded = json.loads(output_of(COMMANDS, *files, str(tmp_path / "out")))
    assert {"torch", "numpy"}.isdisjoint(loaded["import emea"])
    assert "torch" in loaded["Aligner"]
    for command, modules in loaded.items():
        assert LARGE.isdisjoint(modules), f"{command}: {LARGE.intersection(modules)}"


def test_the_method_imports_without_the_harness() -> None:
    assert int(output_of(WITHOUT_HARNESS, *METHOD)) > 80
