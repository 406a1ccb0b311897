"""Comparison of finished runs: settings, metrics and test links."""
