"""Suggests which entities to label next, and a page on which a person decides about them."""
