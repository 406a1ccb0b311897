"""Options of one's own, and the guides that show how."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from emea.aligner import Aligner, read_graph, read_links
from emea.cli.main import main as emea
from emea.config.command_line import without_config_dirs
from emea.config.composition import composed, option_names, search_also
from emea.errors import ConfigError
from emea.record.run_folder import read_config

from ..sweeping import called_here

ROOT = Path(__file__).resolve().parents[2]
GUIDES = {"add_encoder": "trust=[neighbour_mean]", "add_rule": "trust=[similar_degree]"}
SHORT = [
    "data.num_entities=150",
    "split.num_validation=10",
    "em.iterations=1",
    "ratio=0.2",
]
SHORT += [
    "model.initial_epochs=3",
    "model.epochs_per_iteration=2",
    "tracking=none",
    "trainer=cpu",
]


@pytest.fixture(autouse=True)
def no_other_folders() -> Iterator[None]:
    yield
    search_also([])


def test_the_flag_is_taken_out_in_every_form() -> None:
    arguments = ["-m", "--config-dir", "a", "model=x", "--config-dir=b", "-cd", "c"]
    assert without_config_dirs(arguments) == (
        ["-m", "model=x"],
        [Path("a"), Path("b"), Path("c")],
    )


def test_a_folder_adds_options_and_takes_none_away() -> None:
    usual = option_names("model")
    search_also([ROOT / "docs" / "examples" / "encoder" / "conf"])
    assert option_names("model") == sorted([*usual, "neighbour_mean"])
    assert composed(["model=neighbour_mean"]).model.encoder.dim == 64


def test_a_run_searches_several_folders(tmp_path: Path) -> None:
    for group, option, name in (("em", "none", "mine"), ("model", "lightea", "own")):
        (tmp_path / group / group).mkdir(parents=True)
        text = (ROOT / "conf" / group / f"{option}.yaml").read_text(encoding="utf-8")
        (tmp_path / group / group / f"{name}.yaml").write_text(text, encoding="utf-8")
    folders = [f"--config-dir={tmp_path / group}" for group in ("em", "model")]
    small = [
        "data.num_entities=150",
        "split.num_validation=10",
        "ratio=0.2",
        "tracking=none",
    ]
    chosen = ["em=mine", "rule=none", "model=own", "trainer=cpu", *small]
    done = called_here(ROOT, *folders, *chosen, f"hydra.run.dir={tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "metrics.json").is_file()


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guides_first_command_runs(
    guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    setting, python, *arguments = shlex.split(block[1].splitlines()[0])
    assert (python, arguments[0], arguments[-1]) == ("python", "run.py", GUIDES[guide])
    variable, _, value = setting.partition("=")
    assert variable == "PYTHONPATH"
    monkeypatch.syspath_prepend(ROOT / value)
    done = called_here(ROOT, *arguments[1:], *SHORT, f"hydra.run.dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "metrics.json").exists()


EXAMPLES = ROOT / "docs" / "examples"
GRAPHS = [str(EXAMPLES / "atlas.nt"), str(EXAMPLES / "karte.ttl")]
OWN = {
    "encoder": ("model=neighbour_mean", "trust=[neighbour_mean]", "em=dual"),
    "rule": (
        "rule=paris_degree",
        "trust=[similar_degree]",
        "em=paper",
        "model=lightea",
    ),
}


@pytest.mark.parametrize("kind", OWN)
def test_emea_align_uses_own_options(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / kind)
    arguments = ["align", *GRAPHS, *OWN[kind], "em.iterations=1", "trainer=cpu"]
    arguments += ["--links", str(EXAMPLES / "seeds.tsv"), "--out", str(tmp_path)]
    assert emea(arguments) == 1
    group, _, name = OWN[kind][0].partition("=")
    assert f"{group} has no option {name}" in capsys.readouterr().err
    assert emea([*arguments, "--config-dir", str(EXAMPLES / kind / "conf")]) == 0
    assert read_config(tmp_path)[group].name == name


@pytest.mark.parametrize("kind", OWN)
def test_the_library_uses_own_options(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / kind)
    settings = [*OWN[kind], "em.iterations=1", "trainer=cpu"]
    with pytest.raises(ConfigError, match="has no option"):
        Aligner(settings=settings)
    with pytest.raises(ConfigError, match="nowhere is not a folder"):
        Aligner(settings=settings, config_dir=tmp_path / "nowhere")
    aligner = Aligner(settings=settings, config_dir=EXAMPLES / kind / "conf")
    graphs = [read_graph(path) for path in GRAPHS]
    aligner.fit(*graphs, read_links(EXAMPLES / "seeds.tsv")).save(tmp_path / "run")
    trust = [OWN[kind][1].removeprefix("trust=[").removesuffix("]")]
    assert Aligner.load(tmp_path / "run", trust).predict() == aligner.predict()
    with pytest.raises(ConfigError, match="If you trust that module"):
        Aligner.load(tmp_path / "run")
