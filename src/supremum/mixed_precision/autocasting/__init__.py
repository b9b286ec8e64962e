"""Autocast: run a JAX function in mixed precision without editing it.

It changes the dtypes of operations, and not how parameters are stored.
"""
