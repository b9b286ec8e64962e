"""Dtype policies: one policy, policies by path, and the global policy."""
