"""Similarity, candidates, beliefs and answers."""
