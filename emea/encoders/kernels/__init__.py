"""Sparse and fused kernels that the encoders use."""
