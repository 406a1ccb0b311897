"""Ranks, metrics, calibration and compatibility on test links."""
