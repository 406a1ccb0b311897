"""Rules that measure how compatible a candidate is with the beliefs about other entities."""
