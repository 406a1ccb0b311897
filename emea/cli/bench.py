"""``emea bench`` measures speed and memory."""

import logging
import sys
from collections.abc import Sequence
from importlib import import_module

from emea.errors import UserError
from emea.runtime.heartbeat import HEARTBEAT

BENCHMARKS = {
    "compare": "a step, the PARIS rule and searches against other forms, and growth with size",
    "run-parts": "a step, the candidate search and the reasoning of one configuration",
    "whole-run": "time, memory and accuracy of a whole run",
    "overhead": "time that Lightning, MLflow and files add to a run",
    "default-run": "the default run, from the command to its end",
    "start-up": "the import of the package, and two small graphs aligned",
    "hubs": "reasoning with a matched pair of hubs, by their degree",
    "suggested-labels": "Hit@1 after suggested labels and after random ones",
    "growing-graphs": "updates of a run against new runs after its graphs have grown",
    "load-ntriples": "reading large N-Triples files",
}


def main(arguments: Sequence[str]) -> int:
    """Run a benchmark, ``compare`` by default, and return the exit status."""
    if arguments and arguments[0] in ("-h", "--help"):
        width = max(map(len, BENCHMARKS))
        print("usage: emea bench [BENCHMARK] [arguments]\n\nbenchmarks (default: compare):")
        print(*(f"  {name:<{width}}  {text}" for name, text in BENCHMARKS.items()), sep="\n")
        print("\n`emea bench BENCHMARK --help` describes its arguments.")
        return 0
    name, rest = "compare", arguments
    if arguments and not arguments[0].startswith("-"):
        name, rest = arguments[0], arguments[1:]
    if name not in BENCHMARKS:
        raise UserError(f"Unknown benchmark {name!r}. Choose from {', '.join(BENCHMARKS)}.")
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    for reporting in ("benchmarks", "emea.runtime.heartbeat"):
        logging.getLogger(reporting).setLevel(logging.INFO)
    benchmark = import_module(f"benchmarks.{name.replace('-', '_')}")
    with HEARTBEAT.beating(on_terminal=True):
        benchmark.main(rest)
    return 0
