"""What a JAX function does to dtypes: walking its jaxpr, and rewriting it in other dtypes."""

from supremum.tracing.equations import CALLS, Callee, aval_of, callees, line_of, name_of_call, scopes_of
from supremum.tracing.rewriting import ENTERED, Rewriter
from supremum.tracing.treatments import Entry, Judge, Rewritten, Treatment, Value
from supremum.tracing.walk import Site, walk

__all__ = [
    "CALLS",
    "ENTERED",
    "Callee",
    "Entry",
    "Judge",
    "Rewriter",
    "Rewritten",
    "Site",
    "Treatment",
    "Value",
    "aval_of",
    "callees",
    "line_of",
    "name_of_call",
    "scopes_of",
    "walk",
]
