"""Builds, trains, evaluates and records one run."""
