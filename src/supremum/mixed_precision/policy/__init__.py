"""Dtype policies: one policy, policies by path, and the global policy.

A policy is a value; what casts by it is elsewhere.
"""
