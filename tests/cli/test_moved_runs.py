"""Commands that take a run, called from another folder and without the files of its graphs."""

import shutil
from pathlib import Path

import pytest
import yaml

from emea.cli.main import main
from emea.config.composition import composed
from emea.record.run_folder import PAIR_FILE, read_config
from emea.run.finished_run import load_run
from emea.run.job import run_job
from emea.run.resuming import config_to_resume

from ..unsigned_files import replace_in

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
FILES = ("atlas.nt", "karte.ttl", "seeds.tsv")
QUICK = (
    "em.iterations=1",
    "model=lightea",
    "model.encoder.dim=32",
    "model.encoder.output_dim=32",
)
SMALL = ("tracking=none", "trainer=cpu", "method=paris")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that named its files relative to its own folder; then they were deleted."""
    home = tmp_path_factory.mktemp("home")
    for name in FILES:
        shutil.copy(EXAMPLES / name, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert (
            main(["align", *FILES[:2], *QUICK, "--links", FILES[2], "--out", "run"])
            == 0
        )
    for name in FILES:
        (home / name).unlink()
    return home / "run"


@pytest.fixture
def moved(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run on another machine, so to say."""
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    return Path("copy")


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "copy", "--threshold", "0.5"],
        ["suggest", "copy", "--count", "2"],
        ["explain", "copy", "--entity", "Vienna"],
        ["compare", "copy", "copy"],
        ["update", "copy", "--rejected", "rejected.tsv"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_needs_neither_the_folder_nor_the_files(
    command: list[str], moved: Path
) -> None:
    pair = (
        "http://atlas.example.org/place/Slovak",
        "http://karte.example.org/ort/Kroatisch",
    )
    Path("rejected.tsv").write_text("\t".join(pair))
    assert main(command) == 0


def test_paths_are_stored_as_absolute_paths(made: Path) -> None:
    data = read_config(made).data
    assert [data.source, data.target, data.links] == [
        str(made.parent / name) for name in FILES
    ]


def test_without_graphs_the_missing_file_is_named(
    moved: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (moved / PAIR_FILE).unlink()
    assert main(["predict", "copy"]) == 1
    message = capsys.readouterr().err
    assert (
        f"copy has no {PAIR_FILE}" in message
        and str(made.parent / "atlas.nt") in message
    )


def test_a_run_is_resumed_with_its_graphs(moved: Path) -> None:
    before = load_run(moved)
    replace_in(moved / "run.json", '"FINISHED"', '"KILLED"')
    after = run_job(config_to_resume(moved), moved, resumes=True)
    assert after.pair.checksum() == before.pair.checksum()


def test_a_moved_data_set_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = "".join(f"{n}\t0\t{(n * 7 + 1) % 40}\n" for n in range(40))
    home = tmp_path / "home" / "mine"
    home.mkdir(parents=True)
    for name in ("triples_1", "triples_2"):
        (home / name).write_text(graph)
    (home / "ref_ent_ids").write_text("".join(f"{n}\t{n}\n" for n in range(40)))
    monkeypatch.delenv("EMEA_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    own = [
        "data=dbp15k_zh",
        "data.folder=mine",
        "data.download=null",
        "split.num_validation=5",
    ]
    run_job(composed([*own, "data.root=home", *SMALL]), Path("run"))
    assert yaml.safe_load(Path("run/config.yaml").read_text())["data"]["root"] == str(
        home.parent
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["predict", "../run"]) == 0  # it is still there
    home.parent.rename(tmp_path / "archive")
    assert main(["predict", "../run"]) == 1
    monkeypatch.setenv("EMEA_DATA", str(tmp_path / "archive"))
    assert main(["predict", "../run"]) == 0
