"""The paper's report: recorded runs as tables and figures next to published numbers."""
