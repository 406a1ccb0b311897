"""Variational EM: the normaliser, the M-step, the E-step and the callback that runs them."""
