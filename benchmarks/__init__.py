"""Measurements of time and memory."""
