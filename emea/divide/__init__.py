"""One alignment in parts: cuts a pair of graphs, and joins the runs of its parts."""
