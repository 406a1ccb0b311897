"""run.py as a person calls it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from emea.cli.main import main
from emea.config.composition import composed
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import DivergedError
from emea.record.run_record import read_header
from emea.run import job
from emea.run.job import run_job

from ..sweeping import called_here

ROOT = Path(__file__).resolve().parents[2]
QUICK = (
    "split.num_validation=10",
    "model.initial_epochs=4",
    "model.epochs_per_iteration=2",
    "model.encoder.dim=16",
    "em.iterations=1",
    "tracking=none",
    "trainer=cpu",
)


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    """Small pairs in the place and the format of DBP15K."""
    root = tmp_path / "data"
    for seed, name in enumerate(("zh_en", "fr_en", "ja_en")):
        write_id_format(root / "dbp15k" / name, seed)
    return root


def write_id_format(folder: Path, seed: int) -> None:
    pair = synthetic_pair(num_entities=150, seed=seed)
    folder.mkdir(parents=True)
    shift = pair.source.num_entities
    target = pair.target.triples + np.array([shift, pair.source.num_relations, shift])
    names1 = [f"{i}\ts{i}" for i in range(shift)]
    names2 = [f"{shift + i}\tt{i}" for i in range(pair.target.num_entities)]
    files = {"triples_1": pair.source.triples, "triples_2": target}
    files["ref_ent_ids"] = pair.links + np.array([0, shift])
    for name, rows in files.items():
        np.savetxt(folder / name, rows, fmt="%d", delimiter="\t")
    (folder / "ent_ids_1").write_text("\n".join(names1) + "\n")
    (folder / "ent_ids_2").write_text("\n".join(names2) + "\n")


@pytest.mark.slow
def test_the_sweep_command_letter_for_letter(data_root: Path, tmp_path: Path) -> None:
    sweep = ("-m", "data=dbp15k_zh,fr,ja", "ratio=0.01,0.05")
    done = called_here(tmp_path, *sweep, *QUICK, EMEA_DATA=str(data_root))
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "multirun").rglob("metrics.json"))
    runs = [json.loads(file.read_text()) for file in files]
    found = {(metrics["data"], metrics["ratio"]) for metrics in runs}
    expected = {
        (f"dbp15k_{name}", ratio)
        for name in ("zh", "fr", "ja")
        for ratio in (0.01, 0.05)
    }
    assert found == expected
    assert len(runs) == 6
    headers = [read_header(file.parent) for file in files]
    assert {header.tags["sweep"] for header in headers} == {
        file.parent.parent.relative_to(tmp_path / "multirun").as_posix()
        for file in files
    }


@pytest.mark.slow
def test_a_run_ends_with_a_table_and_where_to_look_even_without_mlflow(
    tmp_path: Path,
) -> None:
    blocker = tmp_path / "site" / "mlflow"
    blocker.mkdir(parents=True)
    (blocker / "__init__.py").write_text(
        "raise ImportError('mlflow is not installed here')\n"
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "data.num_entities=150", *QUICK],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(blocker.parent), str(ROOT)]),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for text in (
        "Hit@1",
        "Hit@10",
        "MRR",
        "MR",
        "initial",
        "final",
        "strict",
        "Results: outputs/",
    ):
        assert text in done.stdout


@pytest.mark.parametrize(
    ("overrides", "end"),
    [
        ([], "-synthetic-rrea-0.05-strict-s0"),
        (["ratio.value=0.07", "split_seed=3"], "-synthetic-rrea-0.07-strict-s3"),
        (["data=files", "protocol=released"], "-files-rrea-known-released-s0"),
        (
            ["data=openea", "split=official", "model=lightea"],
            "-openea-lightea-official-strict-s0",
        ),
    ],
)
def test_folders_are_called_by_what_was_chosen(
    overrides: list[str], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = composed(overrides, with_hydra=True)
    monkeypatch.setattr(HydraConfig.instance(), "cfg", config)
    _, day, time = Path(config.hydra.run.dir).parts
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    # to the microsecond: runs are often started side by side
    assert re.fullmatch(r"\d\d-\d\d-\d\d-\d{6}" + re.escape(end), time)


def test_a_failed_download_is_one_sentence(tmp_path: Path) -> None:
    server = "+data.base_url=http://127.0.0.1:9"  # as on a machine without network
    chosen = ("data=dbp15k_zh", server)
    done = called_here(tmp_path, *chosen, *QUICK, EMEA_DATA=str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "zh_en" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("em.iteratons=3", "There is no key em.iteratons (nearest: em.iterations"),
        ("rule=none", "em=paper needs a rule to measure compatibility"),
        ("seed=1,2", "seed=1,2 has several values. Add the flag -m"),
        (
            "data.label_column=what,title",
            """Write 'data.label_column="what,title"' to give one for each graph.""",
        ),
        ("initial_from=nowhere", "initial_from: there is no file nowhere"),
        ("++split.seeed=1", "split.seeed is unknown: nothing reads it (nearest: split"),
        ("-m --cfg job", "-m and --cfg cannot be combined. Leave one of them out."),
    ],
)
def test_a_single_run_is_refused_before_its_folder_exists(
    argument: str, sentence: str, tmp_path: Path
) -> None:
    done = called_here(tmp_path, *argument.split())
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sweep", "sentence"),
    [
        (["ratio.value=0.00001,0.2"], "no training link is left"),
        (
            ["split.num_validation=10,5000", "seed=0,1"],
            "too few for 5000 validation links",
        ),
        (
            ["em.num_candidates=0,10"],
            "got 0. This concerns the jobs with em.num_candidates=0.",
        ),
        (
            ["rule=none,paris", "em=none,paper"],
            "This concerns the jobs with rule=none em=paper.",
        ),
    ],
)
def test_a_sweep_that_cannot_work_is_refused_before_its_first_job(
    sweep: list[str], sentence: str, tmp_path: Path
) -> None:
    done = called_here(tmp_path, "-m", "data.num_entities=150", "trainer=cpu", *sweep)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_failing_job_does_not_stop_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = job.prepare

    def fails(config: DictConfig, *arguments: Any) -> Any:
        if config.seed == 0:
            raise DivergedError("the loss became NaN in step 3")
        return prepare(config, *arguments)

    monkeypatch.setattr(job, "prepare", fails)
    done = called_here(
        tmp_path, "-m", "seed=0,1", "data.num_entities=150", "ratio=0.2", *QUICK
    )
    assert done.returncode == 1
    assert "the loss became NaN in step 3" in done.stderr
    assert "1 of 2 jobs failed" in done.stderr
    assert "failed: " in done.stdout
    assert len(list((tmp_path / "multirun").rglob("metrics.json"))) == 1


def test_a_python_without_our_packages_prints_what_to_do() -> None:
    # -S: no installed packages
    done = subprocess.run(
        [sys.executable, "-S", str(ROOT / "run.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: this Python has no hydra. Activate the project"
    )


def test_an_interrupted_sweep_says_how_to_continue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["emea"])
    monkeypatch.setattr("emea.cli.run.hydra.main", interrupted)
    assert main(["run", "-m", "seed=0,1"]) == 130
    assert "repeat the command with skip_recorded=true" in capsys.readouterr().err


def test_an_interrupted_run_names_the_modules_to_trust(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupted(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("emea.run.resuming.start_or_resume", interrupted)
    for given, shown in (
        ([], ""),
        (["trust=[my_module,other]"], " 'trust=[my_module,other]'"),
    ):
        with pytest.raises(KeyboardInterrupt):
            run_job(composed([*QUICK, *given]), tmp_path)
        assert caplog.messages[-1].endswith(
            f"Continue with: emea run resume={tmp_path}{shown}"
        )
