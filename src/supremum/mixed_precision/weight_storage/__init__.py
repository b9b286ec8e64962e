"""Weights and moments that are stored in few bits, while the optimizer computes in float32.

It rounds what is stored, and does not change what an optimizer computes.
"""
