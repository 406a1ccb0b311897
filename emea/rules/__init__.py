"""Rules that measure compatibility."""
