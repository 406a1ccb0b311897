"""Ranks, metrics and what else is measured on test links."""
