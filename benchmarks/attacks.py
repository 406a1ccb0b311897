"""Hostile run folders, option folders, inputs and outputs, tried on all commands.

``python -m benchmarks.attacks FOLDER`` makes a finished and an interrupted run, applies one
attack at a time to a copy of them, calls a command in a forked process, and prints a JSON object
per attack. An attack succeeds if the command ends in a traceback, takes long or much memory,
contacts a host, starts a program, writes outside its folder, shows the environment, or accepts what
it must refuse.
"""

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from benchmarks.attack_parts import (
    KINDS,
    Attack,
    nothing,
    npy,
    npz,
    replaced,
    rewritten,
    with_values,
    written,
)
from benchmarks.door_attacks import door_attacks

SECRET = "swordfish-4711"
SECONDS, MIB = 60, 1 << 20
MOST_MIB = 1500
"""What a command may take beyond the memory that the process had before."""

SMALL = ["data.num_entities=100", "ratio=0.3", "split.num_validation=8", "trainer=cpu"]
SMALL += [
    "model=lightea",
    "model.encoder.dim=16",
    "model.encoder.output_dim=16",
    "em.iterations=1",
]
FILES = (
    "run.json",
    "metrics.json",
    "config.yaml",
    "beliefs.npz",
    "ranks.npz",
    "alignment.tsv",
)
ARRAYS = {
    "bomb": partial(npz, labels=npy("'<i8'", "(50000000,)", bytes(400_000_000))),
    "huge shape": partial(npz, labels=npy("'<i8'", f"({10**15},)")),
    "negative shape": partial(npz, labels=npy("'<i8'", "(-1,)")),
    "objects": partial(
        npz, labels=npy("'|O'", "(1,)", b"cos\nsystem\n(S'touch x'\ntR.")
    ),
    "no item size": partial(npz, labels=npy("'<U0'", f"({10**15},)")),
    "records": partial(npz, labels=npy("[('a', '|O')]", "(1,)", b"x")),
    "call in the header": partial(
        npz, labels=npy("__import__('os').system('touch x')", "(1,)")
    ),
    "deep header": partial(npz, labels=npy("'<i8'", "(" * 3000 + ")" * 3000)),
    "version 2": partial(npz, labels=npy("'<i8'", "(0, 2)", b"", b"\x02\x00")),
    "many members": partial(
        npz, **{f"a{number}": npy("'<i8'", "(0,)") for number in range(3000)}
    ),
    "texts": partial(
        npz, labels=npy("'<U4'", "(1, 2)", "ab\0\0cd\0\0".encode("utf-32-le"))
    ),
    "a path": partial(npz, **{"../../victim/new": npy("'<i8'", "(0, 2)")}),
    "not a number": partial(
        npz, joint_probs=npy("'<f4'", "(1, 1)", b"\x00\x00\xc0\x7f")
    ),
}

LAUGHS = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghij", "bcdefghijk", strict=True)
)
TEXTS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
INTERPOLATIONS, TARGETS, HOSTS = (
    TEXTS[key] for key in ("interpolations", "targets", "hosts")
)
OPTIONS: dict[str, str] = {
    **TEXTS["options"],
    "aliases": LAUGHS,
    "deep": "a: " + "[" * 5000,
    "long number": "seed: " + "9" * 9999,
    "zeros": "\0" * 100,
    "large": "a: " + "x" * 3_000_000,
}
PREFIX = "x" * 9_000
INPUTS: dict[str, tuple[str, bytes]] = {
    "long prefix of Turtle": (
        "a.ttl",
        f"@prefix p: <http://{PREFIX}/> .\n".encode()
        + b"".join(
            b"p:%d p:r p:%d .\n" % (number, number + 1) for number in range(60_000)
        ),
    ),
    "base of Turtle": (
        "a.ttl",
        f"@base <http://{PREFIX}/> .\n".encode()
        + b"<a> <b> <c>, <d>, <e>, <f> .\n" * 60_000,
    ),
    "base of RDF/XML": (
        "a.rdf",
        f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/" '
        f'xml:base="http://{PREFIX}/">'.encode()
        + b'<rdf:Description rdf:about="#a"><e:r rdf:resource="#b"/></rdf:Description>'
        * 60_000
        + b"</rdf:RDF>",
    ),
    "namespaces of RDF/XML": (
        "a.rdf",
        f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:e="http://{PREFIX}/">'.encode()
        + b'<e:A rdf:about="http://a/a"><e:r rdf:resource="http://a/b"/></e:A>' * 30_000
        + b"</rdf:RDF>",
    ),
    "empty gzip members": ("a.nt.gz", gzip.compress(b"") * 500_000),
    "small gzip members": ("a.tsv.gz", gzip.compress(b"a\tr\tb\n") * 500_000),
    "gzip bomb": ("a.tsv.gz", gzip.compress(b"a\tr\tb\n" * 20_000_000, 9)),
    "one long line": ("a.nt", b"<http://a/" + b"x" * 40_000_000),
    "long cells": ("a.tsv", b"\t".join([b"x" * 5_000_000] * 3)),
    "quotes": ("a.csv", b'"' * 5_000_000),
    "null bytes": ("a.tsv", b"a\0\tr\tb\n" * 9),
    "formulas": ("a.tsv", b"=cmd|' /C calc'!A0\tr\t@SUM(1)\n+1\tr\t-1\n"),
}
DEVICES = (
    "/dev/zero",
    "/dev/random",
    "/dev/full",
    "/proc/self/mem",
    "/dev/stdin",
    "/dev/fd/0",
)


def run_attacks() -> Iterator[Attack]:
    """Attacks by the files of a run folder."""
    commands = {
        "run.json": ("predict run", "sync run", "report --runs run"),
        "metrics.json": ("compare run run", "explain run --entity 3"),
        "config.yaml": ("predict run", "compare run run"),
        "beliefs.npz": ("suggest run", "explain run --entity 3"),
        "ranks.npz": ("compare run run",),
        "alignment.tsv": ("update run --links links.tsv",),
    }
    for file in FILES:
        for kind, make in KINDS.items():
            for command in commands[file]:
                yield Attack(
                    f"{file} is a {kind}", replaced(f"run/{file}", make), command
                )
    for file in (
        "checkpoint.safetensors",
        "run.json",
        "config.yaml",
        "series.jsonl",
        "run.log",
    ):
        for kind, make in KINDS.items():
            change = replaced(f"killed/{file}", make)
            yield Attack(
                f"{file} of an interrupted run is a {kind}", change, "run resume=killed"
            )
    for kind, archive in ARRAYS.items():
        for file, command in (("beliefs", "predict run"), ("ranks", "compare run run")):
            yield Attack(
                f"{file}: {kind}", written(f"run/{file}.npz", archive()), command
            )
    tensors: list[Any] = [
        {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 4]}},
        {},
        {"a": 1},
    ]
    for header in (json.dumps(one).encode() for one in tensors):
        content = len(header).to_bytes(8, "little") + header + bytes(4)
        yield Attack(
            "tensors",
            written("killed/checkpoint.safetensors", content),
            "run resume=killed",
        )
    values: list[Any] = [
        None,
        1,
        "x",
        [],
        {"x": []},
        -1e308,
        "\x1b[2J",
        "../../victim/new",
    ]
    for value in values:
        for key in ("params", "tags", "start_time", "run_id", "name", "status"):
            change = with_values("run/run.json", **{key: value})
            yield Attack(f"run.json: {key} is {value!r}", change, "report --runs run")
        for key in ("history", "final", "protocol", "num_links", "data"):
            change = with_values("run/metrics.json", **{key: value})
            yield Attack(f"metrics.json: {key} is {value!r}", change, "compare run run")
            yield Attack(
                f"metrics.json: {key} is {value!r}", change, "report --runs run"
            )


def config_attacks() -> Iterator[Attack]:
    """Attacks by the stored configuration of a run, and by folders of options."""
    config, killed = "run/config.yaml", "killed/config.yaml"
    for text in INTERPOLATIONS:
        quoted = json.dumps(text) if not text.startswith("\\") else f'"{text}"'
        yield Attack(
            text, rewritten(config, "study: emea", f"study: {quoted}"), "predict run"
        )
        yield Attack(
            text, rewritten(killed, "seed: 0", f"seed: {quoted}"), "run resume=killed"
        )
    for target in TARGETS:
        new = f"_target_: {target}"
        for old in (
            "emea.data.sources.synthetic.synthetic_pair",
            "emea.data.protocol.Strict",
        ):
            text = f"_target_: {old}"
            yield Attack(
                f"{old} is {target}", rewritten(config, text, new), "predict run"
            )
    for host in HOSTS:
        change = rewritten(
            killed, "_target_: emea.record.tracker.NoTracker", TRACKED.format(host)
        )
        yield Attack(f"store {host}", change, "run resume=killed")
        change = rewritten(
            config, "_target_: emea.record.tracker.NoTracker", TRACKED.format(host)
        )
        yield Attack(f"store {host}", change, "update run --links links.tsv")
    yield Attack("aliases", written(config, LAUGHS), "predict run")
    for name, text in OPTIONS.items():
        change = written("own/experiment/evil.yaml", f"# @package _global_\n{text}\n")
        for flag in ("", "-m "):
            yield Attack(
                f"options: {name}",
                change,
                f"run {flag}--config-dir own experiment=evil {TINY}",
            )
        if name in (
            "callback",
            "logger",
            "its own trust",
            "syntax",
            "aliases",
            "target",
        ):
            yield Attack(
                f"options: {name}",
                change,
                "align a.nt a.nt --links l.tsv --config-dir own experiment=evil",
            )
    packages = {
        "hydra.callbacks.x": "experiment/evil",
        "trust": "experiment/evil",
        "_group_": "hydra/launcher/evil",
    }
    for package, file in packages.items():
        text = f"# @package {package}\n_target_: os.system\ncommand: touch victim/new\n"
        choice = f"{file.rpartition('/')[0]}=evil"
        yield Attack(
            f"package {package}",
            written(f"own/{file}.yaml", text),
            f"run --config-dir own {choice} {TINY}",
        )
    for kind in ("pipe", "endless device", "folder", "100 GiB"):
        change = replaced("own/experiment/evil.yaml", KINDS[kind])
        yield Attack(
            f"options: {kind}", change, f"run --config-dir own experiment=evil {TINY}"
        )


TINY = " ".join([*SMALL, "tracking=none"])
TRACKED = "_target_: emea.record.mlflow_tracker.MlflowTracker\n  uri: {}"


def file_attacks() -> Iterator[Attack]:
    """Attacks by input files, and by links where results are written."""
    for name, (file, content) in INPUTS.items():
        for command in (
            f"align {file} a.nt --links l.tsv",
            f"update run --source {file}",
        ):
            yield Attack(name, written(file, content), command)
    for device in DEVICES:
        for command in (
            f"align {device} a.nt --links l.tsv",
            f"align a.nt a.nt --links {device}",
            f"explain run --pairs {device}",
            f"update run --links {device}",
            f"run initial_from={device} em=none rule=none {TINY}",
        ):
            yield Attack(f"input {device}", nothing, command)
    for output, command in {
        "run/predictions": "predict run",
        "run/suggestions": "suggest run",
        "run-updated": "update run --links links.tsv",
        "out": "align a.nt a.nt --links l.tsv --out out",
        "report": "report --runs run",
        "report/runs": "report --runs run",
        "outputs/x": f"run hydra.run.dir=outputs/x {TINY}",
        "outputs/x/.hydra": f"run hydra.run.dir=outputs/x {TINY}",
        "why": "explain run --entity 3 --html why --json why",
        "c.html": "compare run run --html c.html",
        "run/.running": "run resume=run",
        "killed/.running": "run resume=killed",
    }.items():
        yield Attack(
            f"{output} is a link", replaced(output, KINDS["link to a folder"]), command
        )
        yield Attack(f"{output} is a pipe", replaced(output, KINDS["pipe"]), command)
    for command in (
        "update . --links ../links.tsv",
        "update ../run/. --links ../links.tsv --out ..",
    ):
        yield Attack(command, nothing, command)


def attacks() -> list[Attack]:
    """Return all attacks."""
    return [*config_attacks(), *file_attacks(), *run_attacks(), *door_attacks()]


def prepare(base: Path) -> None:
    """Make the runs and files that attacks change."""
    from emea.config.composition import composed
    from emea.run.job import run_job

    (base / "victim").mkdir(parents=True)
    (base / "victim" / "secret.txt").write_text(SECRET)
    run_job(composed([*SMALL, "tracking=none"]), base / "run")
    shutil.copytree(base / "run", base / "killed")
    with_values("killed/run.json", status="RUNNING")(base)
    divide_in(base / "division")
    names = [f"<http://a/{number}>" for number in range(30)]
    pairs = pairwise(names)
    (base / "a.nt").write_text("".join(f"{a} <http://a/r> {b} .\n" for a, b in pairs))
    (base / "l.tsv").write_text(
        "".join(f"http://a/{n}\thttp://a/{n}\n" for n in range(9))
    )
    rows = (base / "run" / "alignment.tsv").read_text().splitlines()[1:3]
    (base / "links.tsv").write_text(
        "".join("\t".join(row.split("\t")[:2]) + "\n" for row in rows)
    )


def divide_in(folder: Path) -> None:
    """Make a division and a run of each of its parts."""
    from emea.cli.main import main
    from emea.config.composition import composed
    from emea.run.job import run_job

    pair = [
        "data=synthetic",
        "data.num_entities=200",
        "ratio=0.3",
        "split.num_validation=20",
    ]
    status = main(["divide", *pair, "--parts", "2", "--out", str(folder)])
    assert status == 0
    for number in range(2):
        part = [
            "data=part",
            f"data.division={folder}",
            f"data.part={number}",
            "em=one_to_one",
        ]
        run_job(
            composed([*part, *SMALL[3:], "tracking=none"]),
            folder / "runs" / str(number),
        )


def attempted(attack: Attack, base: Path, place: Path) -> dict[str, Any]:
    """Apply an attack to a copy of the files and return how the command ended."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place)
    attack.change(place)
    report = place.with_suffix(".txt")
    report.write_text("")
    child = os.fork()
    if not child:
        _run(attack, place, report)
    _, status, usage = os.wait4(child, 0)
    text = report.read_text(errors="replace")
    faults = [line for line in text.splitlines() if line.startswith("FAULT")]
    faults += ["traceback"] if "Traceback (most recent call last)" in text else []
    faults += ["accepted"] if attack.is_refused and status == 0 else []
    faults += (
        [f"status {status}"]
        if os.waitstatus_to_exitcode(status) not in (0, 1, 2)
        else []
    )
    faults += ["the secret is shown"] if SECRET in text or _is_leaked(place) else []
    faults += ["the victim was changed"] if _victim(place) != _victim(base) else []
    grown = (usage.ru_maxrss - resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) >> 10
    faults += [f"{grown} MiB"] if grown > MOST_MIB else []
    last = text.strip().splitlines()[-1:] or [""]
    seconds = round(usage.ru_utime + usage.ru_stime, 1)
    said = {
        "name": attack.name[:99],
        "command": attack.command[:99],
        "seconds": seconds,
    }
    return {**said, "faults": faults, "end": last[0][:400]}


def _run(attack: Attack, place: Path, report: Path) -> None:
    """Call the command in this process, and end it."""
    from emea.cli.main import main

    os.chdir(place / "run" if attack.command.startswith("update .") else place)
    os.environ["EMEA_SECRET"] = SECRET
    with report.open("w") as file, redirect_stdout(file), redirect_stderr(file):
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        attack.before()
        sys.addaudithook(partial(_watch, file))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process
        signal.alarm(4 * SECONDS)
        status: Any = 1
        try:
            status = main(attack.command.split())
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        file.flush()
        os._exit(int(status))


def _watch(file: Any, event: str, arguments: Sequence[Any]) -> None:
    is_program = event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
    known = ("git", "uname")  # they describe the code and the machine
    if is_program and not any(name in str(arguments[0]) for name in known):
        file.write(f"FAULT: started {arguments}\n")
    if event in ("socket.connect", "socket.getaddrinfo"):
        file.write(f"FAULT: contacted {arguments}\n")


def _victim(place: Path) -> list[tuple[str, bytes]]:
    paths = sorted((place / "victim").rglob("*"))
    return [(path.name, path.read_bytes() if path.is_file() else b"") for path in paths]


def _is_leaked(place: Path) -> bool:
    """Return whether a small file outside of the victim has the secret."""
    found = subprocess.run(
        ["grep", "-rlsI", "--devices=skip", "--exclude-dir=victim", SECRET, "--include=*.y*ml",
         "--include=*.json*", "--include=*.tsv", "--include=*.log", "--include=*.html", str(place)],
        capture_output=True, check=False,
    )  # fmt: skip
    return bool(found.stdout.strip())


if __name__ == "__main__":
    start = Path(sys.argv[1]).resolve()
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    prepare(start / "base")
    import emea.cli.update
    import emea.explain.explainer
    import emea.record.mlflow_store
    import emea.results.comparison
    import emea.suggest
    import emea.update.updating  # noqa: F401

    wanted = sys.argv[2:]
    for number, one in enumerate(attacks()):
        if not wanted or any(text in f"{one.name} {one.command}" for text in wanted):
            outcome = attempted(one, start / "base", start / "place")
            print(json.dumps({"number": number, **outcome}), flush=True)
