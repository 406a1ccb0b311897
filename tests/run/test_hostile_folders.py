"""Nothing in a data file or a run folder makes the program act outside what the user named."""

import json
import os
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from omegaconf import OmegaConf

from emea.cli.main import main
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import DataError
from emea.record.checked_files import read_checked_arrays
from emea.record.mlflow_store import open_client
from emea.record.run_folder import read_config, run_files
from emea.record.run_record import RunHeader, log_point, read_series, start_record

from ..record.serving import served

EXECUTED = "a name was executed"
NOTE_EXECUTION = f"window.alert = () => console.error('{EXECUTED}')"
REFUSED_DIALOG = "Ignored call to 'alert()'"
"""What Chromium reports about a script in a sandboxed frame, which cannot open dialogs."""

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;]](javascript:alert(1))"


class Tags(HTMLParser):
    """Collects what could run in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_script = tag == "script"
        self.found += [name for name, _ in attrs if name.startswith("on")]
        self.found += [
            value for _, value in attrs if (value or "").startswith("javascript:")
        ]
        if tag in ("iframe", "object", "embed") or (
            tag == "img" and dict(attrs).get("src") == "x"
        ):
            self.found.append(tag)

    def handle_data(self, data: str) -> None:
        if (
            self.in_script
            and "alert(1)" in data.replace("\\u003c", "<")
            and "<script" in data
        ):
            self.found.append(data)


def assert_harmless(page: Path) -> None:
    tags = Tags()
    text = page.read_text(encoding="utf-8")
    tags.feed(text)
    assert tags.found == [], page.name
    assert "<script>alert(1)" not in text


def run_emea(*arguments: str) -> None:
    assert main(list(arguments)) == 0


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """Settings of a pair whose names are full of markup and paths."""
    pair = synthetic_pair(num_entities=100, seed=1)
    names = {"a": f"a{HOSTILE}", "b": "../../../../etc/b"}
    for side, graph in zip("ab", (pair.source, pair.target), strict=True):
        rows = (
            f"{names[side]}{h}\t{HOSTILE}{r}\t{names[side]}{t}\n"
            for h, r, t in graph.triples.tolist()
        )
        (tmp_path / f"{side}.tsv").write_text("".join(rows), encoding="utf-8")
    links = [f"{names['a']}{s}\t{names['b']}{t}\n" for s, t in pair.links.tolist()]
    (tmp_path / "links.tsv").write_text("".join(links[:40]), encoding="utf-8")
    (tmp_path / "test.tsv").write_text("".join(links[40:]), encoding="utf-8")
    return (
        "data=files",
        *(
            f"data.{key}={tmp_path}/{name}.tsv"
            for key, name in (("source", "a"), ("target", "b"))
        ),
        f"data.links={tmp_path}/links.tsv",
        f"data.test_links={tmp_path}/test.tsv",
        'data.name="<script>alert(1)</script>../../x"',
        *("model=lightea", "em=dual", "em.iterations=1", "trainer=cpu"),
        *("export.formats=[tsv,nt,sssom,jsonl]", "tracking=none"),
    )


@pytest.mark.slow
def test_names_with_markup_and_paths_stay_text(
    files: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(place)}
    for name in ("one", "two"):
        run_emea("run", *files, f"hydra.run.dir={place}/{name}", f"seed={len(name)}")
    run_emea(
        "explain",
        "one",
        "--entity",
        f"a{HOSTILE}1",
        "--html",
        "why.html",
        "--json",
        "why.json",
    )
    run_emea("compare", "one", "two", "--examples", "5", "--html", "compare.html")
    run_emea("report", "--runs", "one", "two", "--out", "report")
    run_emea("suggest", "one", "--count", "5")
    pages = [*place.rglob("*.html"), *place.rglob("*.svg"), *place.rglob("*.md")]
    assert len(pages) >= 4
    for page in pages:
        assert_harmless(page)
    assert json.loads((place / "why.json").read_text(encoding="utf-8"))
    statements = (place / "one" / "alignment.nt").read_bytes()
    assert len(list(pyoxigraph.parse(statements, pyoxigraph.RdfFormat.N_TRIPLES))) > 40
    rows = (place / "one" / "alignment.tsv").read_text(encoding="utf-8").splitlines()
    assert len({row.count("\t") for row in rows}) == 1
    for name in ("relations.tsv", "unmatched.tsv"):
        rows = (place / "one" / name).read_text(encoding="utf-8").splitlines()
        assert len({row.count("\t") for row in rows if not row.startswith("#")}) <= 1, (
            name
        )
    for line in (
        (place / "one" / "alignment.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        assert isinstance(json.loads(line), dict)
    outside = {path for path in tmp_path.rglob("*") if not path.is_relative_to(place)}
    assert outside == before


def shows(visit: Any, address: str | Path, expected: str) -> bool:
    """Open a page, and wait until it or one of its frames shows a text."""
    page = visit.open(address)
    for _ in range(60):
        if any(expected in frame.locator("body").inner_text() for frame in page.frames):
            page.wait_for_timeout(500)  # a broken picture reports its error late
            return True
        page.wait_for_timeout(500)
    return False


def executed(visit: Any) -> list[str]:
    return [text for text in visit.errors if EXECUTED in text or REFUSED_DIALOG in text]


@pytest.mark.browser
def test_a_name_that_is_executed_would_be_noticed(visit: Any, tmp_path: Path) -> None:
    visit.page.add_init_script(NOTE_EXECUTION)
    framed = '<iframe sandbox="allow-scripts" srcdoc="<script>alert(1)</script>"></iframe>done'
    for content in (f"{HOSTILE}done", framed):
        (tmp_path / "page.html").write_text(content, encoding="utf-8")
        assert shows(visit, tmp_path / "page.html", "done")
        assert executed(visit)
        visit.errors.clear()


@pytest.mark.browser
def test_names_are_not_executed_in_a_browser(
    files: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    visit: Any,
    store_template: Path,
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    shutil.copy(store_template, place / "mlflow.db")
    uri = f"sqlite:///{place}/mlflow.db"
    tracked = (*files[:-1], "tracking=mlflow", f"tracking.uri={uri}")
    # without EM the second run is worse, so that links differ
    for name, settings in (("one", ()), ("two", ("em=none", "em.iterations=0"))):
        run_emea("run", *tracked, *settings, f"hydra.run.dir={place}/{name}")
    run_emea("explain", "one", "--entity", f"a{HOSTILE}1", "--html", "why.html")
    run_emea("compare", "one", "two", "--examples", "5", "--html", "compare.html")
    run_emea("report", "--runs", "one", "two", "--out", "report")
    run_emea("suggest", "one", "--count", "5", "--out", "suggestions")
    visit.page.add_init_script(NOTE_EXECUTION)
    script = "<script>alert(1)</script>"
    pages: dict[str | Path, str] = dict.fromkeys(place.rglob("*.html"), script)
    with served(uri, place) as address:
        run = stored_runs(uri)[0]
        runs = f"{address}/#/experiments/{run.info.experiment_id}/runs"
        pages[runs] = run.info.run_name
        pages[f"{runs}/{run.info.run_id}"] = script
        for name in ("config.yaml", "alignment.tsv", "relations.tsv"):
            pages[f"{runs}/{run.info.run_id}/artifacts/{name}"] = script
        missing = [page for page, text in pages.items() if not shows(visit, page, text)]
    assert not executed(visit)
    assert missing == [] and len(pages) >= 9


def stored_runs(uri: str) -> list[Any]:
    client = open_client(uri)
    experiment = client.get_experiment_by_name("emea")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id]))


@pytest.mark.slow
def test_links_in_a_run_folder_are_replaced_and_not_followed(
    files: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    folder = tmp_path / "run"
    folder.mkdir()
    names = ("alignment.tsv", "metrics.json", "config.yaml", "ranks.npz", "beliefs.npz")
    for name in (
        *names,
        "run.log",
        "checkpoint.safetensors",
        "unmatched.tsv",
        "alignment.nt",
    ):
        os.symlink(victim, folder / name)
    run_emea("run", *files, f"hydra.run.dir={folder}")
    assert victim.read_text(encoding="utf-8") == "precious"
    assert not any((folder / name).is_symlink() for name in names)


@pytest.mark.parametrize("link", [".hydra", ".hydra/config.yaml", "0/.hydra"])
def test_hydra_does_not_write_through_links(
    link: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    path = tmp_path / "run" / link
    path.parent.mkdir(parents=True)
    path.symlink_to(victim if link.endswith("hydra") else victim / "config.yaml")
    sweep = ("-m", f"hydra.sweep.dir={tmp_path}/run") if link[0] == "0" else ()
    assert main(["run", *(sweep or (f"hydra.run.dir={tmp_path}/run",))]) == 1
    assert f"{path} is a symbolic link, so a run would write" in capsys.readouterr().err
    assert list(victim.iterdir()) == []


def test_series_are_not_written_through_a_dangling_link(tmp_path: Path) -> None:
    folder, victim = tmp_path / "run", tmp_path / "victim"
    folder.mkdir()
    (folder / "series.jsonl").symlink_to(victim)
    start_record(folder, RunHeader("a" * 32, "name", "tests"))
    log_point(folder, {"loss": 1.0}, 0)
    assert not victim.exists()
    assert len(read_series(folder)) == 1


def test_files_elsewhere_are_not_copied_to_mlflow(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    for path in (folder, elsewhere):
        path.mkdir()
    (elsewhere / "secret.yaml").write_text("key: 1\n")
    (folder / ".hydra").symlink_to(elsewhere)
    (folder / "alignment.nt").symlink_to(elsewhere / "secret.yaml")
    (folder / "metrics.json").write_text("{}")
    assert run_files(folder, 1) == ([folder / "metrics.json"], [])


@pytest.mark.slow
def test_a_config_cannot_name_code_to_run(
    files: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run_emea("run", *files, "hydra.run.dir=run")
    config = OmegaConf.load("run/config.yaml")
    for target in ("os.system", "builtins.exec", "subprocess.run"):
        config.data = {"_target_": target, "command": f"touch {tmp_path}/victim"}
        OmegaConf.save(config, "run/config.yaml")
        capsys.readouterr()
        assert main(["predict", "run"]) != 0
        assert f"data._target_ names {target}" in capsys.readouterr().err
    assert not (tmp_path / "victim").exists()


LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n"
    for level in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, r"config\.yaml, line 2: the YAML has aliases"),
        ("a: !!python/object/apply:os.system [touch /nonexistent/x]\n", "damaged"),
        (
            "a: ${oc.env:HOME}\n",
            r"it contains an interpolation, .*: \$\{oc\.env:HOME\}",
        ),
        ("a: [{b: '${.c}', c: 1}]\n", "it contains an interpolation"),
        ("data: ${oc.env:HOME}\n", "it contains an interpolation"),
        ("data: ${nothing}\n", "it contains an interpolation"),
        ("- a\n", "it contains no settings"),
    ],
)
def test_a_hostile_config_of_a_run_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_config(tmp_path)


def test_objects_in_arrays_are_not_loaded(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.savez(tmp_path / "beliefs.npz", a=np.array([{"x": 1}], dtype=object))
    with pytest.raises(DataError, match="is damaged"):
        read_checked_arrays(tmp_path / "beliefs.npz")
