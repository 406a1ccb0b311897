"""Command lines that must end in one sentence, and a driver that tries all of them.

``python -m tests.faults.bad_command_lines`` runs in a folder with the files of `prepare` and prints
one JSON object per command line. It refuses to import torch, so that a command line which loads
torch before it is refused shows.
"""

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

RUN = (
    # values outside of their range
    "model.encoder.dim=5000000",
    "model.encoder.dim=-3",
    "model.encoder.dim=many",
    "model.encoder.dropout=1",
    "model=alinet model.encoder.dims=[500,5000000]",
    "model.optimizer.lr=1e300",
    "model.optimizer.lr=nan",
    "model.initial_epochs=1000000000000",
    "model.early_stopping={every:0,patience:2}",
    "em.iterations=1000000000",
    "em.num_candidates=10000000",
    "em=dual em.two_way.features=[beauty]",
    "em=dual em.two_way.ridge=inf",
    "em=none em.iterations=3",
    "data.num_entities=99999999999",
    "ratio.value=1.5",
    "ratio=0.42",
    "split.num_validation=99999999999",
    "seed=99999999999999999999",
    "export.threshold=2",
    "export.formats=[pdf]",
    "trainer.block_memory=1e12",
    "trainer.accelerator=tpu",
    "data=files data.limits.depth=0 data.source=a.nt data.target=a.nt data.links=links.tsv",
    # keys and options that do not exist
    "model=rreea",
    "em.iteration=3",
    "no_such_key=1",
    "++em..x=1",
    "~model",
    "rule=paris,none",
    "experiment=table99",
    "hydra/launcher=nobody",
    "-m seed=1,2 hydra/sweeper=nobody",
    # text that is not a setting
    "word",
    "+",
    "seed=",
    "seed=[1,2",
    "seed='1",
    "seed=${oc.env:NO_SUCH_VARIABLE}",
    "seed=${seed}",
    f"seed={'[' * 5000}",
    f"seed={'[' * 300}{']' * 300}",
    f"study={'x' * 100000}",
    f"{'a.' * 5000}x=1",
    f"seed={'9' * 5000}",
    "seed=range(1,0) -m",
    "seed=range(0,1e12) -m",
    "seed=choice() -m",
    "seed=1,2",
    # code and files that a configuration may not name
    "data._target_=os.system",
    "rule._target_=no.such.module",
    "trainer.callbacks=[{_target_:os.remove}]",
    "trainer.precision=16",
    "data=files",
    "data=files data.source=missing.nt data.target=a.nt data.links=links.tsv",
    "data=files data.source=a.nt data.target=fifo.nt data.links=links.tsv",
    "data=files data.source=a.nt data.target=damaged.nt data.links=links.tsv",
    "data=files data.source=a.nt data.target=a.nt data.links=links.tsv data.format=docx",
    "data=openea data.folder=../../etc",
    "data=dbp15k_zh data.root=nowhere data.download=null",
    "initial_from=missing.safetensors",
    # folders that cannot be used
    "hydra.run.dir=a.nt",
    "hydra.run.dir=/proc/emea",
    "hydra.run.dir=dangling",
    f"hydra.run.dir={'x' * 300}",
    "-m seed=1,2 hydra.sweep.dir=a.nt",
    "resume=nowhere",
    "resume=folder",
    "resume=folder seed=1",
    "--config-dir=nowhere",
    "--no-such-flag",
)
OTHERS = (
    "no-such-command",
    "align",
    "align missing.nt a.nt",
    "align a.nt a.nt --links links.tsv --out a.nt",
    "align a.nt a.nt --links links.tsv --formats pdf",
    "align a.nt a.nt --links links.tsv --threshold 7",
    "align a.nt a.nt --links links.tsv no_such_key=1",
    "align a.nt damaged.nt --links links.tsv",
    "predict nowhere",
    "predict folder",
    "explain nowhere --entity x",
    "compare nowhere elsewhere",
    "compare folder folder --html /proc/emea.html",
    "report --records nowhere",
    "data no_such_data",
    "data missing.nt",
    "sync nowhere",
    "sync folder --uri nonsense://x",
    "ui --port 99999999",
    "ui --uri nonsense://x",
)
COMMAND_LINES = (*(f"run {line}" for line in RUN), *OTHERS)


def prepare(folder: Path) -> None:
    """Write the files that the command lines name."""
    statement = "<http://a/{}> <http://a/r> <http://a/{}> .\n"
    (folder / "a.nt").write_text("".join(statement.format(n, n + 1) for n in range(20)))
    (folder / "damaged.nt").write_text("<http://a/1> <http://a/r> <http://a/2\n")
    (folder / "links.tsv").write_text("http://a/1\thttp://a/1\n")
    (folder / "empty.tsv").write_text("")
    (folder / "folder").mkdir()
    (folder / "dangling").symlink_to(folder / "nowhere" / "at all")
    os.mkfifo(folder / "fifo.nt")


def arguments_of(line: str) -> list[str]:
    """Split a command line at spaces, as these have no quoted ones."""
    return line.split(" ")


def outcomes() -> Iterator[dict[str, Any]]:
    """Try all command lines in this process."""
    from emea.cli.main import main

    for line in COMMAND_LINES:
        out, error = io.StringIO(), io.StringIO()
        start = time.process_time()
        failure = ""
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            try:
                status: Any = main(arguments_of(line))
            except SystemExit as end:
                status = end.code
            except BaseException as raised:
                status, failure = None, f"{type(raised).__name__}: {raised}"[:300]
        yield {
            "line": line,
            "status": status,
            "failure": failure,
            "error": error.getvalue(),
            "seconds": time.process_time() - start,
        }


class TorchLoadedError(BaseException):
    """Raised if a command line loads torch before it is refused."""


class NoTorch(MetaPathFinder):
    """Refuses to import torch."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Raise an error for torch; other modules are found elsewhere."""
        if fullname == "torch":
            raise TorchLoadedError("torch was loaded")


if __name__ == "__main__":
    sys.meta_path.insert(0, NoTorch())
    for outcome in outcomes():
        print(json.dumps(outcome), flush=True)
