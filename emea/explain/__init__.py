"""Explains why a finished run matched two entities, as text, JSON or an HTML page."""
