"""What a JAX function does to dtypes: walking its jaxpr, finding its casts, and rewriting it in other dtypes."""

from supremum.tracing.cast import Cast
from supremum.tracing.cast_report import CastReport, Explanation, Total
from supremum.tracing.casts import casts, casts_of
from supremum.tracing.equations import CALLS, Callee, aval_of, callees, line_of, name_of_call, scopes_of
from supremum.tracing.rewriting import ENTERED, Rewriter
from supremum.tracing.treatments import Entry, Judge, Rewritten, Treatment, Value
from supremum.tracing.walk import Site, walk

__all__ = [
    "CALLS",
    "ENTERED",
    "Callee",
    "Cast",
    "CastReport",
    "Entry",
    "Explanation",
    "Judge",
    "Rewriter",
    "Rewritten",
    "Site",
    "Total",
    "Treatment",
    "Value",
    "aval_of",
    "callees",
    "casts",
    "casts_of",
    "line_of",
    "name_of_call",
    "scopes_of",
    "walk",
]
