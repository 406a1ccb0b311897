"""Links to runs."""

from emea.reporting.records import run_links

from .fabricated import line_of, made


def test_runs_are_numbered_and_linked_once() -> None:
    links = run_links([made("a"), made("b"), made("a")])
    assert (
        links
        == f"[1](../study/runs.jsonl#L{line_of('a')}) [2](../study/runs.jsonl#L{line_of('b')})"
    )
    assert run_links([]) == ""


def test_links_start_where_the_text_lies() -> None:
    links = run_links([made("a")], "experiments")
    assert links == f"[1](experiments/study/runs.jsonl#L{line_of('a')})"
