"""The configuration: composition, checks, and the objects built from it."""
