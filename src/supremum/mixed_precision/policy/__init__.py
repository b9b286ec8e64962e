"""Dtype policies: of one layer, by path, and the global one."""
