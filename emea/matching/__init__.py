"""Similarity, candidates, beliefs and decoding."""
