"""``emea sync`` imports run folders into MLflow; ``emea ui`` opens its UI."""

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from filelock import FileLock

from emea.cli.arguments import PORTS, command_parser, number_in
from emea.errors import UserError
from emea.record.mlflow_store import MlflowStore
from emea.record.settings import DEFAULT_ARTIFACT_ROOT, DEFAULT_STORE
from emea.record.store_uri import (
    STORE_VARIABLE,
    shown_uri,
    sqlite_path,
    without_login,
)
from emea.record.sync import find_run_folders
from emea.record.sync import sync as sync_runs
from emea.record.ui import serve_ui
from emea.runtime.console import warn_on

logger = logging.getLogger("emea.tracking")

SYNC = """Import every run folder (a folder with run.json) below the given folders into an MLflow
store: parameters, metrics and files. Finished runs in the store are left unchanged, incomplete
copies are replaced, and a run that was deleted in the UI is imported again while its folder exists.
MLflow's own folders (mlruns, artifacts) are not searched. It is safe to repeat."""

UI = """Start the MLflow server at 127.0.0.1:PORT and print the address of a study's results when it
answers: a table of its runs with Hit@1 before and after EM, MRR and all settings that differ. Runs
whose process is gone are marked. The server has no login, so it is never opened to other
machines."""


def sync(arguments: Sequence[str]) -> int:
    """Import run folders into a store; the exit status is 1 if any of them failed."""
    parser = command_parser("sync", SYNC)
    parser.add_argument(
        "folders", nargs="+", metavar="DIR", help="e.g. outputs or multirun"
    )
    _add_store(parser)
    options = parser.parse_args(arguments)
    _log_to_stdout()
    folders = find_run_folders(options.folders)
    store = MlflowStore(options.uri, options.artifact_root)
    database = sqlite_path(store.uri)
    # Two imports at once would both find a run missing and import it twice.
    lock = nullcontext() if database is None else FileLock(f"{database}.sync.lock")
    with _store_errors(store.uri):
        # Open it first: an unreachable store is reported once, not once for every folder.
        _ = store.client
    with lock:
        counts = sync_runs(folders, store)
    kinds = ("imported", "present", "unfinished", "failed")
    numbers = (counts[kind] for kind in kinds)
    logger.info("imported %d, already there %d, unfinished %d, failed %d", *numbers)
    return 1 if counts["failed"] else 0


def ui(arguments: Sequence[str]) -> int:
    """Serve a store in the MLflow UI until interrupted."""
    parser = command_parser("ui", UI)
    port = number_in(PORTS, int)
    parser.add_argument("--port", type=port, default=5000, help="default: %(default)d")
    parser.add_argument(
        "--study", metavar="NAME", help="default: the study of the latest run"
    )
    _add_store(parser)
    options = parser.parse_args(arguments)
    _log_to_stdout()
    with _store_errors(options.uri):
        serve_ui(options.uri, options.artifact_root, options.port, options.study)
    return 0


def _log_to_stdout() -> None:
    warn_on(sys.stdout)
    logging.getLogger("emea").setLevel(logging.INFO)


@contextmanager
def _store_errors(uri: str) -> Iterator[None]:
    """Report errors of MLflow for a store that it cannot open, in one sentence."""
    try:
        yield
    except UserError:
        raise
    except ImportError as error:
        raise UserError("MLflow is not installed. Run pip install mlflow.") from error
    except Exception as error:
        reason = without_login(str(error), uri)
        raise UserError(
            f"The store {shown_uri(uri)} cannot be opened: {reason}"
        ) from error


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--uri",
        default=os.environ.get(STORE_VARIABLE, DEFAULT_STORE),
        help=f"the store (default: ${STORE_VARIABLE}, else {DEFAULT_STORE})",
    )
    parser.add_argument(
        "--artifact-root",
        default=DEFAULT_ARTIFACT_ROOT,
        metavar="DIR",
        help="where new experiments keep their files (default: %(default)s)",
    )
