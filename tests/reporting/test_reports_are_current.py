"""What stands in the README and the reports is what the records say."""

from pathlib import Path

from emea.reporting import dual, models, table1
from emea.reporting.__main__ import DUAL, MODELS, ROOT, TABLE1, readme_with_results


def test_the_readme_holds_the_recorded_results() -> None:
    readme = (Path(ROOT) / "README.md").read_text(encoding="utf-8")
    assert readme_with_results(readme) == readme, "run python -m emea.reporting"


def test_the_reports_hold_the_recorded_results() -> None:
    assert (TABLE1 / "results.md").read_text(encoding="utf-8") == table1.report(TABLE1)
    assert (MODELS / "results.md").read_text(encoding="utf-8") == models.report(MODELS, [TABLE1])
    assert (DUAL / "results.md").read_text(encoding="utf-8") == dual.report(DUAL, TABLE1)
