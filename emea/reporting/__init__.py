"""Tables and figures of recorded runs, compared with the paper's numbers."""
