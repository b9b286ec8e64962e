"""The machinery that tracing and autocast share: walking a jaxpr, source positions, liveness, and rewriting it."""
