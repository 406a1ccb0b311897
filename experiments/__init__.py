"""Studies: sweeps over many runs and what they recorded."""
