"""emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)."""

import os

# A thread that waits for another must sleep, not spin: beside any other work on the machine,
# spinning threads keep the one they wait for off its core, which made steps ten times slower.
# OpenMP reads this once, when torch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
