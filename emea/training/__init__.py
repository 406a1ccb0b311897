"""Callbacks of a fit: self-training, early stopping and saved training state."""
