"""``python -m tests.promises`` writes the lists; ``--release`` also keeps them as the last ones."""

import shutil
import sys
import tempfile
from pathlib import Path

from .promises import HERE, RELEASED, collected, store

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        lists = collected(Path(folder))
    store(HERE, lists)
    if "--release" in sys.argv:
        store(RELEASED, lists)
        shutil.copy(HERE / "mlflow.txt", RELEASED)
    for name, entries in lists.items():
        print(f"{name}: {len(entries)} entries")
