from pathlib import Path

import pytest

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.limits import reading_limits
from emea.data.formats.rdf_guards import TurtleGuard
from emea.data.formats.settings import ReadingLimits
from emea.errors import DataError

SHORT_DECOYS = r"""<http://a/it's#x> "<< \" << \\" "" # <<( " ' << """
TURTLE_DECOYS = (
    r"""ex:a\#b ex:it\'s '<< \' " <<' "" '' "\\" """
    '"""<<\n<< "" << \\""" << .\n \\\\""" '
    "'''<< ' '' << \n'''"
)


def nested(depth: int) -> bytes:
    """Return a statement with quoted triples in quoted triples."""
    return b"<a><b>" + b"<<(<a><b>" * depth + b"<o>" + b")>>" * depth + b".\n"


def is_refused(content: bytes, size: int, has_lines: bool) -> bool:
    """Return whether the guard refuses a file that it sees in blocks of a given size."""
    with reading_limits(ReadingLimits(depth=3)):
        guard = TurtleGuard(Path("a"), has_lines)
    try:
        for start in range(0, len(content), size):
            guard.check(content[start : start + size])
    except DataError:
        return True
    return False


@pytest.mark.parametrize("has_lines", [False, True])
@pytest.mark.parametrize("depth", [3, 4])
def test_the_size_of_blocks_does_not_matter(has_lines: bool, depth: int) -> None:
    decoys = SHORT_DECOYS if has_lines else f"{SHORT_DECOYS}\n{TURTLE_DECOYS}"
    content = (
        f"{decoys}\n".encode() * 2
        + nested(depth).replace(b".\n", b" ")
        + decoys.encode()
    )
    for size in range(1, len(content) + 1):
        assert is_refused(content, size, has_lines) == (depth > 3), size


def test_closed_brackets_count_in_blocks_of_any_size() -> None:
    content = nested(3).replace(b".\n", b" ") * 3
    for size in range(1, len(content) + 1):
        assert not is_refused(content, size, has_lines=False), size


@pytest.mark.parametrize("mark", ['"""', "'''"])
def test_a_string_over_two_blocks_does_not_hide_brackets(mark: str) -> None:
    string = f"<a> <b> {mark}x\ny{mark} .\n".encode()
    content = string + nested(4) + string
    for size in range(1, len(content) + 1):
        assert is_refused(content, size, has_lines=False), size


@pytest.mark.parametrize("mark", ['"""', "'''"])
def test_ntriples_have_no_strings_of_several_lines(mark: str) -> None:
    assert is_refused(
        f"<a> <b> {mark} .\n".encode() + nested(4), 1 << 10, has_lines=True
    )


def context_file(path: Path, terms: str, items: str = '{"@id": "http://b"}') -> Path:
    path.write_text(
        '{"@context": {"p0": "http://x/", '
        + terms
        + '}, "@id": "http://a", "http://p": ['
        + items
        + "]}"
    )
    return path


def chain(length: int, form: str = '"p{}": "p{}:a"', is_reversed: bool = False) -> str:
    numbers = range(1, length + 1)
    return ", ".join(
        form.format(number, number - 1)
        for number in (reversed(numbers) if is_reversed else numbers)
    )


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize(
    "form", ['"p{}": "p{}:a"', '"p{}": {{"@id": "p{}:a"}}', '"p{}":"p{}"']
)
def test_a_chain_of_prefixes_is_limited(
    tmp_path: Path, form: str, is_reversed: bool
) -> None:
    """The parser resolves prefixes recursively, and would end the process."""
    path = context_file(tmp_path / "a.jsonld", chain(20, form, is_reversed))
    assert read_graph_file(path)[0].num_entities == 2
    context_file(path, chain(20_000, form, is_reversed))
    with pytest.raises(
        DataError, match="prefixes that are defined by each other exceeds"
    ):
        read_graph_file(path)


def test_what_contexts_expand_to_is_limited(tmp_path: Path) -> None:
    terms = ", ".join(f'"t{number}": "long:x"' for number in range(3000))
    path = context_file(
        tmp_path / "a.jsonld", f'"long": "http://x/{"y" * 9000}", ' + terms
    )
    with pytest.raises(
        DataError, match="its contexts expand to far more than the file"
    ):
        read_graph_file(path)
    # each context in an object copies the terms around it
    terms = ", ".join(f'"t{number}": "http://x/{number}"' for number in range(3000))
    items = ", ".join(
        '{"@context": {"q": "http://z/"}, "@id": "http://b"}' for _ in range(3000)
    )
    context_file(path, terms, items)
    with pytest.raises(
        DataError, match="its contexts expand to far more than the file"
    ):
        read_graph_file(path)


def test_usual_contexts_are_read(tmp_path: Path) -> None:
    terms = ", ".join(f'"t{number}": "p0:{number}"' for number in range(40))
    context = (
        f'{{"p0": "http://x/", "is": {{"@id": "p0:is", "@type": "@id"}}, {terms}}}'
    )
    items = ", ".join(
        f'{{"@context": {context}, "@id": "p0:n{n}", "t3": "a: b", "is": "p0:n{n + 1}"}}'
        for n in range(300)
    )
    (tmp_path / "a.jsonld").write_text(f"[{items}]")
    assert len(read_graph_file(tmp_path / "a.jsonld")[0].triples) == 300
