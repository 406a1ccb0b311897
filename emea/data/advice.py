"""Advice that errors in several places give."""

GIVE_LINKS = "Give known links (data.links=FILE, or --links FILE)"
IRI_NAMES = "If IRIs contain names, data.iri_names=true makes literals of them."
USE_LITERALS = "use the literals of the graphs as evidence (literals=similar)"
NO_SEEDS = f"{GIVE_LINKS}, or {USE_LITERALS}. {IRI_NAMES}"
