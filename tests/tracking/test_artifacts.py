"""The files of a run, and only of that run."""

from pathlib import Path

from emea.tracking.artifacts import run_files


def test_files_by_size_without_other_runs(tmp_path: Path) -> None:
    sizes = {"run.json": 5, "a/b.npz": 1000, "a/c.ckpt": 1001, "inner/run.json": 5, "inner/x": 5}
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1" * size)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    small, large = run_files(tmp_path, max_mb=0.001)
    assert small == [tmp_path / "a" / "b.npz", tmp_path / "run.json"]
    assert large == [tmp_path / "a" / "c.ckpt"]
