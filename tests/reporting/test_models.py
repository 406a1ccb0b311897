"""The report over models, trainings and rules."""

import json
from pathlib import Path
from typing import Any

from emea.reporting.models import report, summary

PAPER = "data,ratio,method,hit@1\ndbp15k_zh,0.01,rrea_semi,0.3\ndbp15k_zh,0.01,emea_semi,0.4\n"


def write_run(folder: Path, name: str, **changes: Any) -> None:
    metrics = {"data": "dbp15k_zh", "model": "rrea", "training": "sup", "rule": "paris"}
    metrics |= {"protocol": "strict", "method": "emea", "ratio": 0.01, "split_seed": 0}
    metrics |= {"initial": {"hit@1": 0.1234}, "final": {"hit@1": 0.5}}  # type: ignore[dict-item]
    target = folder / "records" / name
    target.mkdir(parents=True)
    (target / "metrics.json").write_text(json.dumps(metrics | changes))
    tags = {"commit": "c" * 40, "dirty": "false", "gpu": "G", "torch": "2"}
    (target / "run.json").write_text(json.dumps({"tags": tags}))


def test_a_row_per_setting_beside_the_papers(tmp_path: Path) -> None:
    study, other = tmp_path / "models", tmp_path / "other"
    write_run(study, "a")
    write_run(study, "b", model="lightea", ratio=0.05)
    write_run(study, "second-split", split_seed=1, final={"hit@1": 0.9})
    write_run(study, "neural", method="neural", model="alone")
    write_run(other, "c", protocol="released")
    (study / "paper.csv").write_text(PAPER)
    rows = summary(study, [other]).splitlines()
    assert rows[0].endswith("| 1% | 5% |")
    assert rows[2:] == [
        "| dbp15k_zh | lightea | sup | paris | strict | not run | 0.123 → 0.500 |",
        "| dbp15k_zh | rrea | sup | paris | released | 0.123 → 0.500 | not run |",
        "| dbp15k_zh | rrea | sup | paris | strict | 0.123 → 0.500 | not run |",
        "| dbp15k_zh | rrea | semi | paris | paper's Table 2 | 0.300 → 0.400 |  |",
    ]
    assert "dirty: false" in report(study, [other])
