"""The archive of recorded runs: studies of two files each, and measurements."""
