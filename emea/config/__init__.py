"""The configuration: composition, checks, and objects made from it."""
