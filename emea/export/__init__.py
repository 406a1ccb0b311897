"""Alignments as files that others load."""
