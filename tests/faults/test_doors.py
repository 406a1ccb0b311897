"""Each guarded door of files that may come from a stranger, and what it lets in."""

import gzip
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from benchmarks.attacks import ARRAYS, KINDS, OPTIONS, written
from emea.answer.merging import read_matches
from emea.cli.main import main
from emea.config.command_line import check_overrides
from emea.config.composition import composed, search_also
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import byte_stream
from emea.data.formats.limits import RATIO_FROM, Guard
from emea.data.formats.link_file import read_link_file
from emea.errors import ConfigError, DataError, UserError
from emea.fit.tensor_file import read_tensors
from emea.record.checked_files import opened, read_checked_arrays, read_checked_json
from emea.record.pair_file import pair_of_run
from emea.record.run_record import read_series
from emea.results.own_runs import write_own_runs
from emea.results.recorded_run import load_record_folders
from emea.runtime.console import LogFileHandler
from emea.runtime.regular_file import open_regular
from emea.runtime.signals import exit_status, signals_as_interrupt
from emea.update.updating import update_config

from ..finished_runs import Finished

GOOD = ("null for hydra", "bytes", "number", "unicode")
"""Harmless files of options, or those that Hydra refuses."""


@pytest.fixture(autouse=True)
def no_other_folders() -> Iterator[None]:
    yield
    search_also([])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "secret.txt").write_text("secret")
    (tmp_path / "run").mkdir()
    return tmp_path


READERS: dict[str, Callable[[Path], object]] = {
    "run.json": read_checked_json,
    "beliefs.npz": read_checked_arrays,
    "checkpoint.safetensors": read_tensors,
    "series.jsonl": lambda path: read_series(path.parent),
    "alignment.tsv": read_matches,
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dangling link"])
@pytest.mark.parametrize("name", READERS)
def test_a_file_of_a_run_is_a_regular_file_of_its_folder(
    name: str, kind: str, place: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = place / "run" / name
    KINDS[kind](path, place)
    with pytest.raises(Exception) as caught:
        READERS[name](path)
    assert type(caught.value).__module__ == "emea.errors"
    said = {
        "pipe": "pipe",
        "100 GiB": "is larger than",
        "folder": "",
        "endless device": "outside",
    }
    assert said.get(kind, "outside of its folder") in str(caught.value)


def test_links_within_a_run_folder_are_followed(place: Path) -> None:
    (place / "run" / "a.json").write_text("{}")
    (place / "run" / "b.json").symlink_to("a.json")
    with opened(place / "run" / "b.json") as file:
        assert file.read() == b"{}"


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tr\tb\n" * 9)
    for change in (lambda: path.write_text("a"), lambda: os.utime(path, (1, 1))):
        with (
            pytest.raises(DataError, match=r"a\.tsv changed while it was read"),
            open_regular(path),
        ):
            change()
    with pytest.raises(DataError, match="changed while"), byte_stream(path) as stream:
        path.write_text("b")
        stream.read()


@pytest.mark.parametrize(
    "kind", [kind for kind in ARRAYS if kind not in ("texts", "a path", "not a number")]
)
def test_arrays_are_checked_before_they_are_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(ARRAYS[kind]())
    with pytest.raises(DataError, match=r"a\.npz is damaged"):
        read_checked_arrays(tmp_path / "a.npz")


def test_compressible_arrays_are_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", zeros=np.zeros(7_000_000))
    assert not read_checked_arrays(tmp_path / "a.npz")["zeros"].any()


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in GOOD])
def test_options_set_nothing_that_runs_programs(name: str, tmp_path: Path) -> None:
    text = f"# @package _global_\n{OPTIONS[name]}\n"
    written("own/experiment/evil.yaml", text)(tmp_path)
    with pytest.raises(ConfigError) as caught:
        check_overrides([f"--config-dir={tmp_path}/own", "experiment=evil", "-m"])
    assert "Traceback" not in str(caught.value)
    if "hydra" in text or "trust" in text:
        assert "evil.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("study: x\nseed: [1\n", r"evil\.yaml, line \d+: the YAML cannot be read"),
        ("a: &a [1]\nstudy: x\nb: *a\n", r"evil\.yaml, line 4: the YAML has aliases"),
        (
            "defaults:\n  - override /em: dul\n",
            r"evil\.yaml, line 3: em has no option dul",
        ),
        (
            "hydra: {sweeper: {params: [1]}}\n",
            r"evil\.yaml: hydra\.sweeper\.params must contain",
        ),
    ],
)
def test_mistakes_in_options_have_a_file_and_a_line(
    text: str, said: str, tmp_path: Path
) -> None:
    written("own/experiment/evil.yaml", f"# @package _global_\n{text}")(tmp_path)
    with pytest.raises(ConfigError, match=said):
        check_overrides([f"--config-dir={tmp_path}/own", "experiment=evil"])


def test_an_experiment_without_a_sweep_is_a_run(tmp_path: Path) -> None:
    written("own/experiment/mine.yaml", "# @package _global_\nstudy: mine\n")(tmp_path)
    check_overrides([f"--config-dir={tmp_path}/own", "experiment=mine"])
    assert composed(["experiment=mine"]).study == "mine"


def test_callbacks_may_be_classes_of_trusted_modules(tmp_path: Path) -> None:
    text = (
        "# @package _global_\nhydra: {callbacks: {x: {_target_: mine.Own, path: x}}}\n"
    )
    written("own/experiment/mine.yaml", text)(tmp_path)
    search_also([tmp_path / "own"], ["mine"])
    assert composed(["experiment=mine"], with_hydra=True).hydra.callbacks.x.path == "x"
    search_also([tmp_path / "own"], ["min"])
    with pytest.raises(
        ConfigError, match=r"mine\.yaml sets hydra\.callbacks\.x\._target_"
    ):
        composed(["experiment=mine"])


@pytest.mark.parametrize(
    "flag", ["--config-path=x", "-cn=x", "--experimental-rerun=x.pickle"]
)
def test_hydras_configuration_is_not_replaced(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", flag]) == 1
    assert "is not supported. Use --config-dir" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["predict", "suggest"])
def test_results_are_not_written_through_links(
    command: str, finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "victim")
    assert (
        main([command, str(finished("one_to_one").folder), "--out", f"{tmp_path}/out"])
        == 1
    )
    assert "out is a symbolic link" in capsys.readouterr().err
    assert not list((tmp_path / "victim").iterdir())


def test_a_stored_configuration_contacts_no_host(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished("one_to_one")
    run.config.tracking = {"uri": "http://example.org", "artifact_root": "s3://bucket"}
    with pytest.raises(
        ConfigError, match="repeat the command with MLFLOW_TRACKING_URI=http://ex"
    ):
        update_config(run)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://example.org")
    assert update_config(run).tracking.artifact_root == "mlruns"
    monkeypatch.setenv("EMEA_DATA", str(tmp_path))
    data = OmegaConf.to_container(
        composed(["data=dbp15k_zh", f"data.root={tmp_path}"]).data
    )
    given = {
        "data": {**data, "base_url": f"file://{tmp_path}"},
        "literals": {"reads": False},
    }  # type: ignore[dict-item]
    contacted = OmegaConf.create(given)
    assert data["download"]  # type: ignore[index,call-overload]
    with pytest.raises(DataError, match=r"does not exist\. Put"):
        pair_of_run(tmp_path, contacted)  # type: ignore[arg-type]


@pytest.mark.parametrize("params", [{"data.fold": 1}, None])
def test_reports_refuse_damaged_records(params: object, tmp_path: Path) -> None:
    times = {"start_time": 1, "end_time": 2, "reason": "", "status": "FINISHED"}
    header = {
        "run_id": "a",
        "name": "b",
        "experiment": "c",
        "params": params,
        "tags": {},
        **times,
    }
    written("run.json", json.dumps(header))(tmp_path)
    metrics = {"split": "official", "num_links": [1], "data": ["d"], "final": 3}
    written("metrics.json", json.dumps(metrics))(tmp_path)
    if params is None:
        with pytest.raises(UserError, match="its 'params' cannot be used"):
            load_record_folders([tmp_path])
    else:
        with pytest.raises(UserError, match="its num_links is not an object"):
            load_record_folders([tmp_path])
        written("metrics.json", '{"data": "d", "final": null}')(tmp_path)
        write_own_runs(load_record_folders([tmp_path]), tmp_path / "report")


def test_empty_gzip_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"") * 200_000)
    with pytest.raises(
        DataError, match=r"a\.tsv\.gz has many empty compressed members"
    ):
        read_graph_file(path)
    lines = b"a\tr\tb\nb\tr\tc\n" * 20_000
    path.write_bytes(gzip.compress(lines[:140_000]) + gzip.compress(lines[140_000:]))
    assert read_graph_file(path)[0].num_entities == 3


@pytest.mark.parametrize(("texts", "rows"), [(1, 3_000_000), (1000, 200_000)])
def test_small_parquet_files_do_not_fill_the_memory(
    texts: int, rows: int, tmp_path: Path
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = pyarrow.DictionaryArray.from_arrays(
        np.zeros(rows, np.int32), ["x" * texts]
    )
    table = pyarrow.table(dict.fromkeys(("head", "relation", "tail"), column))
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"data\.limits\.ratio"):
        read_graph_file(tmp_path / "a.parquet")


def test_a_long_prefix_of_sssom_is_not_expanded_without_end(tmp_path: Path) -> None:
    rows = "".join(
        f"e:{number}\tskos:exactMatch\te:{number}\n" for number in range(1000)
    )
    header = "subject_id\tpredicate_id\tobject_id\n"
    (tmp_path / "a.sssom.tsv").write_text(
        f"#curie_map:\n#  e: http://{'a' * 9_900}/\n{header}{rows}"
    )
    with pytest.raises(DataError, match=r"data\.limits\.ratio"):
        read_link_file(tmp_path / "a.sssom.tsv")


def test_any_reader_can_limit_the_length_of_its_names(tmp_path: Path) -> None:
    guard = Guard(tmp_path / "a.jsonld", num_bytes=1000)
    guard.check_expanded(["a" * RATIO_FROM])
    with pytest.raises(DataError, match=r"a\.jsonld: the length of all names"):
        guard.check_length(1)


def test_long_names_are_read(tmp_path: Path) -> None:
    name = "http://a/" + "x" * 200_000
    (tmp_path / "alignment.tsv").write_text(
        f"source\ttarget\tprobability\n{name}\tb\u2028\t0.5\n"
    )
    assert read_matches(tmp_path / "alignment.tsv") == [(name, "b\u2028", 0.5)]


def test_the_limit_of_cpu_time_interrupts_once() -> None:
    with pytest.raises(KeyboardInterrupt), signals_as_interrupt():
        try:
            os.kill(os.getpid(), signal.SIGXCPU)
        finally:
            os.kill(
                os.getpid(), signal.SIGXCPU
            )  # the system repeats it while the run is saved
    assert exit_status() == 128 + signal.SIGXCPU


def test_a_log_replaces_pipes_and_survives_a_full_disk(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.log")
    handler = LogFileHandler(tmp_path / "run.log")
    handler.close()
    assert (tmp_path / "run.log").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["study="], "study must not be empty"),
        (["study='  '"], "study must not be empty"),
        (["+em.nope=1"], "There is no key em.nope"),
        (["method=paris", "em=dual"], "em has no effect here"),
        (["em=none", "rule=paris"], "rule has no effect here"),
        (
            ["data=files", "data.prefixes={a: 1}"],
            "data.prefixes must be .* whose values are text",
        ),
        (
            ["ensemble=models", "ensemble.models=[]"],
            "ensemble.models must be a group of settings",
        ),
        (
            ["data=openea", "data.folder=http://me:pw@host/x"],
            "must not contain a user or password",
        ),
    ],
)
def test_settings_that_were_accepted(arguments: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_overrides(arguments)
