"""The code, the libraries and the machine that produced a run."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from emea import __version__

UNKNOWN = "unknown"


def provenance() -> dict[str, str]:
    """Return tags with the code, libraries and machine of a run.

    In a copy of the project without `.git`, set `EMEA_COMMIT` and `EMEA_DIRTY`.
    """
    import torch  # not needed by commands that only read records

    # taskset or Slurm can limit the CPUs that the process may use
    has_limit = hasattr(os, "sched_getaffinity")
    num_cpus = len(os.sched_getaffinity(0)) if has_limit else os.cpu_count()
    return {
        **code_state(),
        "emea_version": __version__,
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "numpy": metadata.version("numpy"),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu_count": str(num_cpus or UNKNOWN),
        **({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}),
    }


def code_state() -> dict[str, str]:
    """Return the commit and whether the code, not another file, has uncommitted changes."""
    commit = os.environ.get("EMEA_COMMIT")
    dirty = os.environ.get("EMEA_DIRTY")
    # With EMEA_COMMIT, the state of this repository does not describe the code.
    if commit is None:
        commit, from_git = _git_state(_repository_root())
        dirty = dirty or from_git
    return {"commit": commit, "dirty": (dirty or UNKNOWN).lower()}


def _git_state(root: Path) -> tuple[str, str]:
    top = _git(root, "rev-parse", "--show-toplevel")
    # An installed copy may be inside another repository, whose commit is unrelated.
    if top is None or Path(top).resolve() != root:
        return UNKNOWN, UNKNOWN
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD") or UNKNOWN
    changes = _git(
        root, "status", "--porcelain", "--", "emea", "conf", "pyproject.toml", "run.py"
    )
    return commit, UNKNOWN if changes is None else str(bool(changes)).lower()


def _git(root: Path, *arguments: str) -> str | None:
    """Return the output of git, or ``None`` if git or the repository is missing."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _repository_root() -> Path:
    return Path(__file__).resolve().parents[2]
