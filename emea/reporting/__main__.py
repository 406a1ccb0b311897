"""Writes reports from recorded runs: ``python -m emea.reporting``."""

import sys
from pathlib import Path

from emea.errors import UserError
from emea.reporting import dual, models
from emea.reporting.speed import speed_tables
from emea.reporting.table1 import report, summary
from emea.tracking.atomic import write_atomic

ROOT = Path(__file__).resolve().parents[2]
TABLE1 = ROOT / "experiments" / "table1"
MODELS = ROOT / "experiments" / "models"
DUAL = ROOT / "experiments" / "dual"
MEASUREMENTS = ROOT / "benchmarks" / "results"


def readme_with_results(readme: str) -> str:
    """The README with its generated blocks written anew."""
    readme = with_block(readme, "table1", summary(TABLE1))
    readme = with_block(readme, "dual", dual.summary(DUAL, TABLE1))
    readme = with_block(readme, "models", models.summary(MODELS, [TABLE1]))
    return with_block(readme, "speed", speed_tables(MEASUREMENTS))


def with_block(text: str, name: str, content: str) -> str:
    """A text with what stands between a block's two marks replaced."""
    begin, end = f"<!-- {name}: written by python -m emea.reporting -->", f"<!-- /{name} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{content}\n{end}{after}"


def main() -> int:
    """Write the report and the README's block; the exit status."""
    try:
        write_atomic(TABLE1 / "results.md", report(TABLE1))
        write_atomic(MODELS / "results.md", models.report(MODELS, [TABLE1]))
        write_atomic(DUAL / "results.md", dual.report(DUAL, TABLE1))
        readme = ROOT / "README.md"
        write_atomic(readme, readme_with_results(readme.read_text(encoding="utf-8")))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    names = ", ".join(folder.name for folder in (TABLE1, MODELS, DUAL))
    print(f"wrote results.md of {names}, and the results in README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
