"""Names MLflow accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name

from emea.record.mlflow_store import cut, metric_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hit@1", "hit_at_1"),
        ("final/all_targets/hit@10", "final/all_targets/hit_at_10"),
        ("mrr", "mrr"),
        ("em.k", "em.k"),
        ("/a//../b:c", "a/b_c"),
        ("", "_"),
    ],
)
def test_known_names(name: str, expected: str) -> None:
    assert metric_name(name) == expected


@given(st.text())
def test_mlflow_takes_every_name(name: str) -> None:
    _validate_metric_name(metric_name(name))
    assert metric_name(metric_name(name)) == metric_name(name)


def test_cut() -> None:
    assert cut(None, 10) == "None"
    assert cut("x" * 10, 10) == "x" * 10
    assert cut("x" * 11, 10) == "x" * 9 + "…"
