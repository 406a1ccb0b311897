"""Entities that occur several times: inside one graph, or in several graphs."""
