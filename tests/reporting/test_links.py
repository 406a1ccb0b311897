"""Links to runs."""

from emea.reporting.records import run_links

from .fabricated import made


def test_runs_are_numbered_and_linked_once() -> None:
    links = run_links([made("a"), made("b"), made("a")])
    assert links == "[1](../study/records/a/run.json) [2](../study/records/b/run.json)"
    assert run_links([]) == ""


def test_links_start_where_the_text_lies() -> None:
    links = run_links([made("a")], "experiments")
    assert links == "[1](experiments/study/records/a/run.json)"
