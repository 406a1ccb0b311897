"""Formats of graphs and links that a user adds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO

from emea.data.formats.graph_file import from_rows
from emea.data.formats.input_file import (
    FORMATS,
    OPENERS,
    InputFile,
    byte_stream,
    format_suffixes,
)
from emea.data.formats.rows import Row, name_problem
from emea.data.formats.settings import INPUT_FORMATS, InputFormat
from emea.data.formats.triple_collector import TripleCollector
from emea.data.links import LinkListing
from emea.errors import ConfigError, DataError

TripleReader = Callable[[IO[bytes]], Iterable[Sequence[str]]]
"""Yields a head, a relation and a tail for each triple of a file."""

LinkReader = Callable[[IO[bytes]], Iterable[Sequence[str]]]
"""Yields a source and a target entity for each link of a file."""

FAILURES = (ValueError, LookupError, SyntaxError, TypeError, AttributeError)
"""What parsers raise if the content of a file is not what they expect."""


def register_format(
    name: str,
    suffixes: Sequence[str] = (),
    *,
    read_triples: TripleReader | None = None,
    read_links: LinkReader | None = None,
) -> None:
    """Add a format of your own, which everything that reads graphs or links then accepts.

    Files are recognised by their suffix, or with ``data.format`` and ``data.links_format``. They
    may be compressed, such as ``.json.gz``. The format is known in this process only: call the
    function in each program that reads such files.

    Args:
        name: The name of the format. The name of a format of emea cannot be used. If you have
            registered the name before, the format is replaced.
        suffixes: Ends of file names, such as ``.graphml``, without that of a compression.
        read_triples: Reads a graph: takes the open file, as decompressed bytes from its beginning,
            and yields triples of strings. Tails of the relations in ``data.attributes``, or in the
            argument ``attributes`` of ``read_graph``, are literals.
        read_links: Reads links in the same way, as pairs of a source and a target entity.

    Raises:
        ConfigError: If the name or a suffix belongs to another format, or no reader is given.

    Example:
        >>> import json, tempfile
        >>> from emea import read_graph
        >>> def read_edges(file):
        ...     for edge in json.load(file):
        ...         yield edge["from"], edge["type"], edge["to"]
        >>> register_format("edges", [".edges"], read_triples=read_edges)
        >>> with tempfile.NamedTemporaryFile(suffix=".edges") as file:
        ...     _ = file.write(b'[{"from": "anna", "type": "knows", "to": "ben"}]')
        ...     file.flush()
        ...     graph = read_graph(file.name)
        >>> graph.all_entity_names
        ['anna', 'ben']
    """
    _check(name, suffixes)
    if read_triples is None and read_links is None:
        raise ConfigError(
            f"The format {name} has no reader. Give read_triples or read_links."
        )
    FORMATS[name] = InputFormat(
        name,
        tuple(suffix.lower() for suffix in suffixes),
        None if read_triples is None else _graph_reader(read_triples),
        None if read_links is None else _link_reader(read_links),
        # files with a suffix of their own may contain XML, or lines like those of N-Triples
        begins_like=tuple(one.name for one in INPUT_FORMATS),
        unit="statement",
    )


def _check(name: str, suffixes: Sequence[str]) -> None:
    """Refuse names and suffixes that cannot be used.

    Raises:
        ConfigError: A name or suffix is not text of the right form, or belongs to another format.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ConfigError(
            f"The name of a format must consist of letters, digits and _, got {name!r}."
        )
    if name in {one.name for one in INPUT_FORMATS}:
        raise ConfigError(f"emea already reads {name}. Choose another name.")
    if isinstance(suffixes, str):
        raise ConfigError(f"suffixes must be a list, such as [{suffixes!r}].")
    owners = {**dict.fromkeys(OPENERS, "a compression"), **format_suffixes()}
    for suffix in suffixes:
        if not isinstance(suffix, str) or not suffix[1:] or suffix.rfind("."):
            raise ConfigError(
                f"A suffix begins with its only dot, such as .graphml, got {suffix!r}."
            )
        if owners.get(suffix.lower(), name) != name:
            raise ConfigError(
                f"The suffix {suffix} belongs to {owners[suffix.lower()]}. Leave it out, and set "
                f"data.format={name} for such files."
            )


def _graph_reader(read: TripleReader) -> Callable[[InputFile], TripleCollector[str]]:
    """Return the reader of a graph that `InputFormat` needs."""

    def collected(file: InputFile) -> TripleCollector[str]:
        rows = _checked(file, read, ("head", "relation", "tail"))
        return from_rows(rows, frozenset(file.attributes), file.keep_literals)

    return collected


def _link_reader(read: LinkReader) -> Callable[[InputFile], LinkListing]:
    """Return the reader of links that `InputFormat` needs."""

    def listed(file: InputFile) -> LinkListing:
        rows = list(_checked(file, read, ("source", "target")))
        links = [(row.cells[0], row.cells[1]) for row in rows]
        places = [row.line for row in rows]
        num_bad = file.bad.num_lines
        return LinkListing(file.path.name, links, places, "link", num_bad=num_bad)

    return listed


def _checked(
    file: InputFile, read: TripleReader, names: Sequence[str]
) -> Iterator[Row]:
    """Yield what a reader of a user yields, if each value is text that can be a name.

    Raises:
        DataError: The reader fails, or yields something else and ``on_error`` is ``stop``.
    """
    failed = f"{file.path.name} cannot be read as {file.format}"
    with byte_stream(file.path, has_lines=False) as stream:
        try:
            for number, values in enumerate(read(stream), 1):
                problem = _problem(values, names)
                if problem is None:
                    yield Row(number, list(values))
                else:
                    file.bad.add(number, problem)
        except FAILURES as error:
            reason = f"{type(error).__name__}: {error}"
            raise DataError(f"{failed}: {reason}") from error


def _problem(values: object, names: Sequence[str]) -> str | None:
    """Return why values are not a triple or a link, or ``None``."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        return f"{values!r} is not a tuple of {', '.join(names)}"
    if len(values) != len(names):
        return f"{tuple(values)!r} does not consist of {', '.join(names)}"
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, str):
            return f"the {name} {value!r} is not a text"
        if (problem := name_problem(value)) is not None:
            return f"the {name} {problem}"
    return None
