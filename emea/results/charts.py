"""How charts look."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
"""The Okabe-Ito palette, which people with colour blindness can tell apart."""
