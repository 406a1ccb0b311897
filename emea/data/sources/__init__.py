"""Where pairs of graphs come from."""
