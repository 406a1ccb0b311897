"""The files of a run, and only of that run."""

from pathlib import Path

from emea.record.run_folder import run_files


def test_the_runs_own_files_by_size(tmp_path: Path) -> None:
    sizes = {"run.json": 5, "ranks.npz": 1000, "checkpoint.safetensors": 1001}
    sizes |= {"inner/run.json": 5, "private.txt": 5, ".hydra/config.yaml": 5}
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1" * size)
    (tmp_path / "metrics.json").symlink_to(tmp_path / "nowhere")
    small, large = run_files(tmp_path, max_mb=0.001)
    kept = [
        tmp_path / ".hydra" / "config.yaml",
        tmp_path / "ranks.npz",
        tmp_path / "run.json",
    ]
    assert small == kept
    assert large == [tmp_path / "checkpoint.safetensors"]
