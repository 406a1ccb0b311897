"""Literals as evidence: values of both graphs that match, and anchors found from them."""
