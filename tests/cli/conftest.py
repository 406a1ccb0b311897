"""Finished runs, run folders and stores, as the tests of other packages make them."""

from ..explain.conftest import finished
from ..record.conftest import _own_folder, make_folder, make_header, store

__all__ = ["_own_folder", "finished", "make_folder", "make_header", "store"]
