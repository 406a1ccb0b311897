"""Variational EM: normaliser, M-step, E-step and the callback that carries them out."""
