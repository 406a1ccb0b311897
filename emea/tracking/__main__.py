"""`python -m emea.tracking`: import run folders into MLflow, open its UI."""

import argparse
import logging
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from emea.errors import UserError
from emea.tracking.file_lock import file_lock
from emea.tracking.mlflow_store import MlflowStore
from emea.tracking.store_uri import (
    DEFAULT_ARTIFACT_ROOT,
    DEFAULT_URI,
    STORE_VARIABLE,
    shown_uri,
    sqlite_path,
    without_login,
)
from emea.tracking.sync import find_run_folders, sync
from emea.tracking.ui import serve_ui

logger = logging.getLogger("emea.tracking")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logging.getLogger("emea").setLevel(logging.INFO)
    options = _parser().parse_args(arguments)
    try:
        return _run_ui(options) if options.command == "ui" else _run_sync(options)
    except UserError as error:
        logger.error("%s", error)
        return 2


def _run_sync(options: argparse.Namespace) -> int:
    artifacts = Path(options.artifact_root).resolve()
    folders = find_run_folders(options.folders, exclude=artifacts)
    store = MlflowStore(options.uri, options.artifact_root, options.max_artifact_mb)
    database = sqlite_path(store.uri)
    # Two imports at once would both find a run missing and import it twice.
    lock = None if database is None else database.with_name(database.name + ".sync.lock")
    with _store_errors(store.uri):
        # Opened first: a store that is away is told once, not once for every folder.
        _ = store.client
    with nullcontext() if lock is None else file_lock(lock, timeout=math.inf):
        counts = sync(folders, store, options.unfinished)
    logger.info("%s", counts)
    return 1 if counts.failed else 0


def _run_ui(options: argparse.Namespace) -> int:
    with _store_errors(options.uri):
        serve_ui(options.uri, options.artifact_root, options.port)
    return 0


@contextmanager
def _store_errors(uri: str) -> Iterator[None]:
    """Turn what MLflow raises over a store it cannot open into one sentence."""
    try:
        yield
    except UserError:
        raise
    except ImportError as error:
        raise UserError("MLflow is not installed here: pip install mlflow.") from error
    except Exception as error:
        told = without_login(str(error), uri)
        raise UserError(f"The store {shown_uri(uri)} cannot be opened: {told}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emea.tracking", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_sync(commands.add_parser("sync", help="import run folders into an MLflow store, once"))
    _add_ui(commands.add_parser("ui", help="open a store in the MLflow UI, on this machine only"))
    return parser


def _add_sync(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Finds every run folder (it holds run.json) below the given folders and replays its "
        "header, metrics and files into the store. Runs that are there completely are left "
        "alone; torn copies are replaced; a run deleted in the UI comes back while its folder "
        "exists. Safe to repeat."
    )
    parser.add_argument("folders", nargs="+", metavar="DIR", help="e.g. outputs or multirun")
    _add_store(parser)
    parser.add_argument(
        "--max-artifact-mb",
        type=float,
        default=200.0,
        metavar="MB",
        help="files larger than this are not copied (default: %(default)g)",
    )
    parser.add_argument(
        "--unfinished",
        action="store_true",
        help="also import runs without an end, as KILLED; not for runs that still go on",
    )


def _add_ui(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serves the store at http://127.0.0.1:PORT with one worker until interrupted. The server "
        "has no login and is therefore never opened to other machines."
    )
    parser.add_argument("--port", type=int, default=5000, help="default: %(default)d")
    _add_store(parser)


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--uri",
        default=os.environ.get(STORE_VARIABLE, DEFAULT_URI),
        help=f"the store (default: ${STORE_VARIABLE}, else {DEFAULT_URI})",
    )
    parser.add_argument(
        "--artifact-root",
        default=DEFAULT_ARTIFACT_ROOT,
        metavar="DIR",
        help="where new experiments keep their files (default: %(default)s)",
    )


if __name__ == "__main__":
    sys.exit(main())
