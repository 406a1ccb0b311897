"""What a run leaves behind: its folder is the truth, an MLflow run is a copy of it.

Nothing is imported here, so that the package works where MLflow is not installed.
"""
