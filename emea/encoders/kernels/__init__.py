"""Sparse and fused kernels below the encoders."""
