"""A run that is killed before any of its file operations resumes to the same results."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ..sweeping import environment
from .killed_runs import EM_SETTINGS

SAME = "resumed with the same result"


@pytest.mark.slow
@pytest.mark.parametrize("em", ["none", "paper", "dual", "one_to_one"])
def test_kills_at_every_file_operation(
    em: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    settings = [f"em={em}", *(() if em == "none" else EM_SETTINGS)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killed_runs", str(tmp_path), *settings],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    counts = Counter(kill["outcome"] for kill in kills)
    record_property("faults", (f"kills of a run with em={em}", len(kills), dict(counts)))
    assert [kill for kill in kills if kill["outcome"] != SAME] == []
    names = " ".join(kill["operation"] for kill in kills)
    for file in ("config.yaml", "run.json", "training-checkpoint", "metrics.json", "alignment.tsv"):
        assert f"os.rename .{file}" in names
