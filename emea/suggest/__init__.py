"""Suggests which entities to label next."""
