"""Names of files that code without a configuration writes."""

ALIGNMENT_FILE = "alignment.tsv"
CHECKPOINT_FILE = "checkpoint.safetensors"
DECISIONS_FILE = "decisions.tsv"
"""The decisions of a person that a run follows."""
