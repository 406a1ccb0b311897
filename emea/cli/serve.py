"""``emea serve RUN`` serves a run on this machine: reconciliation, matches and decisions."""

import argparse
import ipaddress
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from emea.cli.arguments import (
    PORTS,
    add_author_argument,
    add_force_argument,
    number_in,
    run_options,
    run_parser,
)
from emea.errors import UserError
from emea.record import outputs
from emea.record.outputs import locked_file
from emea.runtime.console import say
from emea.runtime.signals import signals_as_interrupt

HOST, PORT = "127.0.0.1", 8700

TOKEN_VARIABLE = "EMEA_SERVE_TOKEN"

DECISIONS = Path("served") / "decisions.tsv"
"""The file of decisions in the folder of the run."""

DESCRIPTION = """Serve a finished run on this machine until interrupted. At /reconcile, OpenRefine
reconciles tables with one of its graphs (Reconciliation Service API 0.2). Below /api, programs read
matches and explanations as JSON, and accept or reject pairs. Decisions are written to a file that
emea update --decisions reads."""

EXAMPLES = """examples:
  emea serve RUN
  emea serve RUN --graph source --port 8701

RUN is the folder of a finished run. Other machines reach the service with --host ADDRESS only. Then
requests need a token, which the printed address contains."""


def main(arguments: Sequence[str]) -> int:
    """Serve the run and return the exit status."""
    options = run_options(_parser(), arguments)
    for origin in options.origin:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or origin != origin_of(origin):
            raise UserError(
                f"--origin must be an origin such as https://refine.example.org, got {origin}."
            )
    place: Path = options.out or options.run / DECISIONS
    with locked_file(
        place, options.force, is_default=options.out is None, kind=outputs.DECISIONS
    ):
        _serve(options, place)
    return 0


def origin_of(address: str) -> str:
    """Return scheme, host and port of an address."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def is_any(host: str) -> bool:
    """Return whether a host means all addresses of this machine: 0.0.0.0 or ::."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def base_address(host: str, port: int, token: str) -> str:
    """Return the address of the service that a browser on this machine can open.

    Args:
        host: The address at which the service listens.
        port: Its port.
        token: The token that requests need; empty if none is needed.
    """
    if is_any(host):
        host = "[::1]" if ":" in host else "127.0.0.1"
    elif ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}{f'/{token}' if token else ''}"


def token_for(host: str) -> str:
    """Return the token that requests need: from the environment, or a new one.

    Requests to this machine only need one if the environment names it.

    Raises:
        UserError: If the token in the environment can be guessed.
    """
    from emea.serve.guard import TOKEN, is_loopback

    given = os.environ.get(TOKEN_VARIABLE, "")
    if given and not TOKEN.fullmatch(given):
        raise UserError(
            f"{TOKEN_VARIABLE} must have 16 to 128 letters, digits, - or _. Unset it to get a new "
            "token."
        )
    return given or ("" if is_loopback(host) else secrets.token_urlsafe(24))


def _serve(options: argparse.Namespace, place: Path) -> None:
    """Load the run, and serve it until the process is interrupted."""
    # torch and the server are imported after the command line and the file were checked.
    try:
        from emea.serve.app import Service
        from emea.serve.server import bound_socket, server_of
    except ImportError as error:
        raise UserError(
            f"emea serve needs {error.name}, which MLflow brings: pip install uvicorn starlette"
        ) from error
    from emea.explain.facts import Facts
    from emea.run.finished_run import load_run
    from emea.serve.curator import Curator
    from emea.serve.guard import Guard
    from emea.serve.limits import Limits
    from emea.serve.reconciliation import Reconciliation

    guard = Guard(options.host, token_for(options.host), options.origin)
    limits = Limits()
    with bound_socket(options.host, options.port) as listening:
        run = load_run(options.run, options.trust)
        sides = Facts(run.pair.source), Facts(run.pair.target)
        served = sides[options.graph == "target"]
        space = f"{run.pair.name}:{options.graph}"
        service = Service(
            Reconciliation(served, space, limits),
            Curator(run, sides, place, options.author or ""),
            guard,
            limits,
        )
        base = base_address(options.host, options.port, guard.token)
        if is_any(options.host):
            say(
                "From other machines, replace the host in these addresses by the IP address of "
                "this machine."
            )
        say(
            f"Reconciliation of the {options.graph} graph: {base}/reconcile",
            f"Matches and decisions: {base}/api/match?entity=NAME",
            f"Decisions are written to {place}. Ctrl-C ends the service.",
        )
        sys.stdout.flush()
        with signals_as_interrupt():
            server_of(service.app(), limits).run(sockets=[listening])


def _parser() -> argparse.ArgumentParser:
    parser = run_parser("serve", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--graph",
        choices=("target", "source"),
        default="target",
        help="the graph with which tables are reconciled (default: %(default)s)",
    )
    parser.add_argument(
        "--host",
        default=HOST,
        metavar="ADDRESS",
        help="where to listen (default: %(default)s, this machine only)",
    )
    parser.add_argument(
        "--port",
        type=number_in(PORTS, int),
        default=PORT,
        metavar="N",
        help="default: %(default)d",
    )
    parser.add_argument(
        "--origin",
        action="append",
        default=[],
        metavar="URL",
        help="pages of this origin may use the service, in addition to those of this machine; "
        "can be repeated",
    )
    help = f"file of the decisions (default: RUN/{DECISIONS})"
    parser.add_argument("--out", type=Path, metavar="FILE", help=help)
    add_author_argument(parser)
    add_force_argument(parser)
    return parser
