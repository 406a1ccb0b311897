import re

from hypothesis import given

from emea.answer.alignment import Alignment
from emea.answer.exporting import owl_triples
from emea.data.names import entity_iri

from .odd_alignments import alignment_of, alignments, answer

IRI = r"<([A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*)>"
TRIPLE = re.compile(rf"{IRI} {IRI} {IRI} \.")
SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"


def test_what_is_written() -> None:
    alignment = alignment_of(["http://a.org/x y", "b"], ["http://b.org/柏", "y"], [0, -1], "zh")
    assert list(owl_triples(alignment)) == [f"<http://a.org/x%20y> <{SAME_AS}> <http://b.org/柏> ."]


@given(alignments())
def test_every_line_is_a_triple_of_the_answer(alignment: Alignment) -> None:
    matches = [TRIPLE.fullmatch(line) for line in owl_triples(alignment)]
    found = [match.groups() for match in matches if match]
    assert len(found) == len(matches)
    name = alignment.pair.name
    assert found == [
        (entity_iri(source, name, "source"), SAME_AS, entity_iri(target, name, "target"))
        for source, target in answer(alignment).items()
        if target is not None and not source.startswith("_:") and not target.startswith("_:")
    ]
