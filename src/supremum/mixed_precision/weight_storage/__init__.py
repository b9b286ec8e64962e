"""Weights and moments that are stored in few bits, while the optimizer computes in float32."""
