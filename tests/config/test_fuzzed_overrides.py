"""Any command line is either accepted or rejected with a one-sentence error."""

from collections.abc import Iterator

import pytest
from hypothesis import strategies as st

from emea.config.command_line import check_overrides, sweep_flag_first
from emea.config.composition import quote_numeric_choices, search_also

from ..mutated_files import few_or_many, fuzz, mutated

TYPED = (
    "data=zh",
    "-m",
    "data=dbp15k_zh,fr",
    "ratio=0.01,0.30",
    "ratio.value=0.07",
    "seed=range(0,3)",
    "em.ridge=interval(0.1,1)",
    "em=dual",
    "em.two_way.features=[similarity,evidence]",
    "+model.encoder.extra=3",
    "~em.ridge",
    "model.early_stopping={every:10,patience:2}",
    "export.formats=[nt,jsonl]",
    "rule._target_=emea.rules.paris.PARIS",
    "study='a \"quoted\" name'",
    "--config-dir=conf",
    "hydra.run.dir=elsewhere",
)
KEYS = (
    "seed",
    "ratio",
    "data",
    "em",
    "em.iterations",
    "em.name",
    "method.uses",
    "rule",
    "trust",
)
SIGNS = ("", "+", "++", "~")
VALUES = (
    *(
        "",
        "0",
        "-1",
        "9" * 40,
        "9" * 5000,
        "nan",
        "inf",
        "1e999",
        "null",
        "???",
        "true",
        "'x",
        "x",
    ),
    *(
        "[]",
        "{}",
        "[[1]]",
        "[{a:1}]",
        "{a:[1]}",
        "[" * 400,
        "${seed}",
        "${nope}",
        "${",
        "${data}",
    ),
    *(
        "range(0,1,0)",
        "range(3,0)",
        "range(0,1e12)",
        f"range(0.5,{'9' * 400})",
        "choice(1,2)",
        "glob(*)",
        "interval(0,nan)",
    ),
    *(
        "sort(3,1)",
        "shuffle(range(2))",
        "int(x)",
        "extend_list(1)",
        "a=b",
        "1,",
        ",",
        "\x00",
        "\n",
    ),
    *("\ud800", "é\u2028"),
)


def decoded(argument: bytes) -> str:
    """As Python hands over what is typed."""
    return argument.decode(errors="surrogateescape")


ARGUMENTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(TYPED).flatmap(lambda text: mutated(text.encode())).map(decoded),
    st.builds("{}{}={}".format, *map(st.sampled_from, (SIGNS, KEYS, VALUES))),
)


@pytest.fixture(autouse=True)
def _own_options() -> Iterator[None]:
    yield
    search_also([])


@few_or_many(6, 400)
def test_command_lines(num_examples: int) -> None:
    def read(arguments: list[str]) -> None:
        check_overrides(sweep_flag_first(quote_numeric_choices(arguments)))

    others = st.lists(st.sampled_from(TYPED), max_size=2)
    fuzz(
        st.tuples(ARGUMENTS, others).map(lambda drawn: [drawn[0], *drawn[1]]),
        read,
        num_examples,
    )
