"""Which links a finished run took as labels and as test links, compared with those of today."""

from pathlib import Path

import numpy as np

from emea.data.arrays import IntArray
from emea.data.split import Split
from emea.errors import DataError
from emea.pipeline.run_files import RANKS_FILE, read_arrays


def check_parts(folder: Path, split: Split, labels: IntArray | None) -> None:
    """Refuse a split whose parts are not those that the run had.

    A pair's checksum is of all its links: it stays the same where they are cut anew into labels
    and test links.

    Args:
        folder: of the run, which keeps its test links beside their ranks.
        split: as it is drawn now.
        labels: links that the run was certain of; ``None``: it did not keep them.

    Raises:
        DataError: the parts are others, or the file of the ranks cannot be read.
    """
    test = _test_links(folder)
    same = test is None or _as_set(test) == _as_set(split.test)
    if labels is not None:
        # protocol=released with AvoidConf is also certain of some test links
        trained = _as_set(labels) - _as_set(split.test)
        same = same and trained == _as_set(split.supervision.train)
    if not same:
        raise DataError(
            f"{folder} was made with other labels and test links than its data has now: put back "
            "the files of links that it had, or run it anew"
        )


def _test_links(folder: Path) -> IntArray | None:
    """Those that the run ranked; ``None``: the file is not there."""
    path = folder / RANKS_FILE
    if not path.exists():
        return None
    links = read_arrays(path).get("links")
    if links is None or links.dtype != np.int64 or links.ndim != 2 or links.shape[1] != 2:
        raise DataError(f"{path} is damaged: it holds no links")
    return links


def _as_set(links: IntArray) -> set[tuple[int, ...]]:
    return set(map(tuple, links.tolist()))
