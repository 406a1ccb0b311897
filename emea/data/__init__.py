"""Graphs, links, splits, readers, download and synthetic pairs."""
