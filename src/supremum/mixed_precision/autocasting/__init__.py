"""Autocast: run a JAX function in mixed precision without editing it."""
