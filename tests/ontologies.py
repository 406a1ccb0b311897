"""Two small ontologies about conferences. Most of their names are in their IRIs only."""

from pathlib import Path

PREFIXES = """@prefix : <http://{side}.org#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix obo: <http://www.geneontology.org/formats/oboInOwl#> .
"""

SOURCE = """<http://a.org> a owl:Ontology ; rdfs:comment "conferences" .
:Person a owl:Class . :Document a owl:Class . :Email a owl:Class .
:Author a owl:Class ; rdfs:subClassOf :Person ,
  [ a owl:Restriction ; owl:onProperty :writesPaper ; owl:someValuesFrom :ConferencePaper ] .
:ConferencePaper a owl:Class ; rdfs:subClassOf :Document ; obo:hasRelatedSynonym :note1 ;
  rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :hasAuthor ; owl:allValuesFrom
    [ a owl:Class ; owl:unionOf ( :Author :Chair ) ] ] .
:note1 a obo:Synonym ; rdfs:label "article" .
:Chair a owl:Class ; rdfs:subClassOf :Person ; rdfs:label "session_chair" .
:OldPaper a owl:Class ; owl:deprecated true ; rdfs:subClassOf :ConferencePaper .
:writesPaper a owl:ObjectProperty ; rdfs:domain :Author ; rdfs:range :ConferencePaper .
:hasAuthor a owl:ObjectProperty ; owl:inverseOf :writesPaper ; rdfs:domain :ConferencePaper .
:email a owl:DatatypeProperty ; rdfs:domain [ a owl:Class ; owl:unionOf ( :Person :Email ) ] ;
  rdfs:range xsd:string .
:seeAlsoPage a owl:AnnotationProperty .
:Document :seeAlsoPage <http://pages.org/document> .
:emea2022 a owl:NamedIndividual , :ConferencePaper ; rdfs:label "EMEA" ; :hasAuthor :liu .
:liu a owl:NamedIndividual , :Author .
"""
TARGET = """<http://b.org> a owl:Ontology .
:Person a owl:Class . :Document a owl:Class . :E-mail a owl:Class .
:Author a owl:Class ; rdfs:subClassOf :Person .
:Conference_Paper a owl:Class ; rdfs:label "Article" ; rdfs:subClassOf :Document .
:SessionChair a owl:Class ; rdfs:subClassOf :Person .
:Old_Paper a owl:Class ; rdfs:subClassOf :Conference_Paper .
:writes_paper a owl:ObjectProperty ; rdfs:domain :Author ; rdfs:range :Conference_Paper .
:has_author a owl:ObjectProperty ; rdfs:domain :Conference_Paper .
:email a owl:DatatypeProperty ; rdfs:domain :Person ; rdfs:range xsd:string .
:author a owl:DatatypeProperty ; rdfs:domain :Document .
:x17 a owl:NamedIndividual , :Conference_Paper ; rdfs:label "EMEA" .
"""
GOLD = {
    *(
        ("Person", "Person"),
        ("Document", "Document"),
        ("Email", "E-mail"),
        ("Author", "Author"),
    ),
    *(
        ("ConferencePaper", "Conference_Paper"),
        ("Chair", "SessionChair"),
        ("email", "email"),
    ),
    *(
        ("writesPaper", "writes_paper"),
        ("hasAuthor", "has_author"),
        ("emea2022", "x17"),
    ),
}
"""The local names of the terms that mean the same."""


def write_ontologies(folder: Path) -> tuple[Path, Path]:
    """Write both ontologies in Turtle and return their files."""
    files = folder / "a.ttl", folder / "b.ttl"
    for file, text in zip(files, (SOURCE, TARGET), strict=True):
        file.write_text(PREFIXES.replace("{side}", file.stem) + text)
    return files
