"""emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)."""

import os

# A thread that waits for another should soon sleep instead of spinning on: beside other work on
# the machine it keeps the one it waits for off its core, which made steps twenty times slower.
# Sleeping at once costs a third on an idle machine. OpenMP reads this when torch loads.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

__version__ = "0.1.0"
