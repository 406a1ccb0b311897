"""Similarity of entities, candidate search, beliefs and matchings."""
