"""emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)."""

__version__ = "0.1.0"
