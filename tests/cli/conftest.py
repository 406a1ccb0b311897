"""Run folders and stores, as the tests of runs make them."""

from ..record.conftest import _own_folder, make_folder, make_header, store

__all__ = ["_own_folder", "make_folder", "make_header", "store"]
