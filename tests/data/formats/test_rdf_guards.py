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
    "form",
    [
        '"p{}": "p{}:a"',
        '"p{}": {{"@id": "p{}:a"}}',
        '"p{}":"p{}"',
        '"\\u0070{}": "p{}:a"',
        '"p{}": "p{}\\u003aa"',
        '"p{}": {{"\\u0040id": "p{}:a"}}',
        '"p{}": {{"@id": "http://x/a", "@type": "p{}"}}',
    ],
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"@context"', '"\\u0040context"'),
        ('{"@context": ', '{"a": 1, "@context": '),
        ('{"@context": {', '{"@context": [null, {'),
    ],
)
def test_a_context_is_recognised_in_each_form(
    tmp_path: Path, before: str, after: str
) -> None:
    path = context_file(tmp_path / "a.jsonld", chain(20_000))
    content = path.read_text().replace(before, after)
    if "[null" in after:
        content = content.replace('}, "@id"', '}], "@id"', 1)
    path.write_text(content)
    with pytest.raises(DataError, match="prefixes that are defined by each other"):
        read_graph_file(path)


def test_a_chain_of_reverse_properties_is_limited(tmp_path: Path) -> None:
    terms = chain(20_000, '"p{}": {{"@reverse": "p{}:a"}}')
    with pytest.raises(DataError, match="prefixes that are defined by each other"):
        read_graph_file(context_file(tmp_path / "a.jsonld", terms))


def test_terms_cannot_be_defined_in_a_circle(tmp_path: Path) -> None:
    path = context_file(tmp_path / "a.jsonld", '"a": "b:x", "b": "a:y"')
    with pytest.raises(DataError, match="defined by each other in a circle"):
        read_graph_file(path)
    # a term may repeat itself, and a scheme is not a prefix
    terms = '"p0:a": {"@id": "p0:a"}, "http": "p0:h", "is": {"@id": "p0:is", "@type": "@id"}'
    assert (
        read_graph_file(context_file(tmp_path / "b.jsonld", terms))[0].num_entities == 2
    )


@pytest.mark.parametrize(
    ("term", "item"),
    [
        ("C", '{"@type": "C", "@id": "http://b"}'),
        ("p", '{"@id": "http://b", "p": {"@id": "http://c"}}'),
    ],
)
def test_each_use_of_a_term_with_its_own_context_counts(
    tmp_path: Path, term: str, item: str
) -> None:
    own = f'"{term}": {{"@id": "http://x/C", "@context": {{"z": "http://x/z"}}}}, '
    numbers = range(3000)
    terms = own + ", ".join(f'"t{number}": "http://x/{number}"' for number in numbers)
    few = context_file(tmp_path / "a.jsonld", terms, ", ".join([item] * 30))
    assert read_graph_file(few)[0].num_triples > 0
    many = context_file(tmp_path / "b.jsonld", terms, ", ".join([item] * 3000))
    with pytest.raises(DataError, match="contexts expand to far more than the file"):
        read_graph_file(many)


def test_a_long_string_with_escapes_is_followed_over_blocks(tmp_path: Path) -> None:
    """The end of a cut string must not begin within an escape."""
    quotes = '\\"' * 200_000
    for shift in range(2):
        item = f'{{"@id": "http://b", "http://t": "{"x" * shift}{quotes}"}}'
        path = context_file(tmp_path / "a.jsonld", chain(20_000), item)
        # the chain follows the long string
        content = path.read_text().replace("{", '{"http://t": "' + quotes + '", ', 1)
        path.write_text(content)
        with pytest.raises(DataError, match="prefixes that are defined by each other"):
            read_graph_file(path)


def test_attributes_and_namespaces_of_an_element_are_limited(tmp_path: Path) -> None:
    """The parser compares each of them with all others."""
    begin = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"'
    path = tmp_path / "a.rdf"

    def write(num_attributes: int, num_namespaces: int) -> None:
        attributes = " ".join(f'e:a{number}="x"' for number in range(num_attributes))
        spaces = [f'xmlns:n{n}="http://n/{n}"' for n in range(num_namespaces)]
        half = num_namespaces // 2
        path.write_text(
            f"{begin} {' '.join(spaces[:half])}><rdf:Description rdf:about='http://a' "
            f"{' '.join(spaces[half:])} {attributes}><e:r rdf:resource='http://b'/>"
            "</rdf:Description></rdf:RDF>"
        )

    write(500, 500)
    assert read_graph_file(path)[0].num_triples == 1
    for counts in ((3000, 0), (0, 3000)):
        write(*counts)
        with pytest.raises(DataError, match="more than 2,000 attributes or namespaces"):
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
