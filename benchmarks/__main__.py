"""``python -m benchmarks NAME`` measures speed and memory; without a name, all that are usual."""

import logging
import sys
from collections.abc import Sequence
from importlib import import_module

from emea.errors import UserError

BENCHMARKS = {
    "compare": "a step, the PARIS rule and searches against other forms, and growth with size",
    "run-parts": "a step, the candidate search and the reasoning of one configuration",
    "whole-run": "time, memory and accuracy of a whole run",
    "overhead": "time that Lightning, MLflow and files add to a run",
    "default-run": "the default run, from the command to its end",
    "start-up": "the import of the package, and two small graphs aligned",
    "floors": "commands and parts of runs as ratios to a floor, against recorded ratios",
    "hubs": "reasoning with a matched pair of hubs, by their degree",
    "suggested-labels": "Hit@1 after suggested labels and after random ones",
    "growing-graphs": "updates of a run against new runs after its graphs have grown",
    "house": "how the code reads: tokens per line, comments, definitions",
    "mutants": "whether the tests notice small changes of the critical code",
    "load-ntriples": "reading large N-Triples files",
    "in-parts": "one alignment as a whole and in parts",
    "decoys": "answers without links on public files, judged with their gold",
    "clusters": "duplicates, clusters of several graphs, and the service over HTTP",
}
USUAL = ("floors", "compare", "hubs", "overhead", "start-up", "default-run")
"""Benchmarks that run without a name, or with ``all``: they need no data sets."""


def main(arguments: Sequence[str]) -> int:
    """Run the named benchmark, or the usual ones, and return the exit status."""
    name, *rest = arguments or ["all"]
    if name in ("-h", "--help"):
        print(overview())
        return 0
    if name != "all" and name not in BENCHMARKS:
        names = ", ".join(BENCHMARKS)
        print(
            f"error: unknown benchmark {name!r}. Choose from {names}.", file=sys.stderr
        )
        return 2
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    try:
        for chosen in USUAL if name == "all" else (name,):
            import_module(f"benchmarks.{chosen.replace('-', '_')}").main(rest)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def overview() -> str:
    """List the benchmarks, one line each."""
    width = max(map(len, BENCHMARKS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in BENCHMARKS.items()]
    usual = ", ".join(USUAL)
    return "\n".join(
        [
            f"usage: python -m benchmarks [NAME] [arguments]\n\nbenchmarks (default: {usual}):",
            *lines,
            "\n`python -m benchmarks NAME --help` describes the arguments of a benchmark.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
