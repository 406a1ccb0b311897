"""What a run leaves behind: its folder, its provenance, and MLflow."""
