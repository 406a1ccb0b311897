"""Recorded runs and the paper's numbers into tables and figures."""
