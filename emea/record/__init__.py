"""Records of runs: the run folder, its provenance, studies and MLflow."""
