"""Any content of a run's records is either read or rejected with a one-sentence error."""

from dataclasses import asdict
from pathlib import Path

from emea.record.run_record import (
    FINGERPRINT_TAG,
    SERIES_FILE,
    RunHeader,
    keep_points,
    log_point,
    read_series,
    start_record,
)

from ..mutated_files import changed_json, damaged, few_or_many, fuzz

HEADER = RunHeader(
    "a" * 32,
    "emea-rrea-1%",
    "tests",
    {"em.k": 10, "x": None},
    {FINGERPRINT_TAG: "f"},
    17,
)


@few_or_many(25, 1000)
def test_series(tmp_path: Path, num_examples: int) -> None:
    start_record(tmp_path, HEADER)
    points = [
        log_point(tmp_path, {"loss": value, "hit@1": 0.5}, step)
        for step, value in ((0, 1), (9, 2))
    ]
    whole = (tmp_path / SERIES_FILE).read_bytes()
    first = whole.splitlines(keepends=True)[0]

    def read(content: bytes) -> None:
        (tmp_path / SERIES_FILE).write_bytes(content)
        for point in read_series(tmp_path):
            assert point.step + point.time is not None
            assert all(
                isinstance(float(value), float) for value in point.metrics.values()
            )
        kept = read_series(tmp_path)[:1]
        keep_points(tmp_path, 1)
        assert read_series(tmp_path) == kept

    changed = changed_json(asdict(points[1]))
    fuzz(
        damaged(whole) | changed.map(lambda line: first + line + b"\n" + first),
        read,
        num_examples,
    )
