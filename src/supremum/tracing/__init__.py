"""What a JAX function does to dtypes: its casts, its weak values, walking its jaxpr, and rewriting it in others."""

from supremum.jaxprs.equations import (
    CALLS,
    CUSTOM_VMAP,
    WITH_RULE,
    Callee,
    LoopOperands,
    aval_of,
    callees,
    line_of,
    loop_operands,
    name_of_call,
    scopes_of,
)
from supremum.jaxprs.mutable_arguments import Adapter, register_adapter
from supremum.jaxprs.positions import Frames, Position, frames_of, user_place
from supremum.jaxprs.rewrite_rules import RewriteAction, RewriteRecord, RewriteRule, Rewritten, Value
from supremum.jaxprs.rewriter import ENTERED, Rewriter
from supremum.jaxprs.walk import Site, walk
from supremum.tracing.carries import CarryMismatch, carry_mismatches
from supremum.tracing.cast import Cast
from supremum.tracing.casts import casts, casts_of
from supremum.tracing.forbid import ForbiddenCastError, forbid_casts
from supremum.tracing.report import CastReport, Explanation, Total
from supremum.tracing.value_types import Place, ValueType
from supremum.tracing.weak_types import WeakReport, WeakValue, weak_types

__all__ = [
    "CALLS",
    "CUSTOM_VMAP",
    "ENTERED",
    "WITH_RULE",
    "Adapter",
    "Callee",
    "CarryMismatch",
    "Cast",
    "CastReport",
    "Explanation",
    "ForbiddenCastError",
    "Frames",
    "LoopOperands",
    "Place",
    "Position",
    "RewriteAction",
    "RewriteRecord",
    "RewriteRule",
    "Rewriter",
    "Rewritten",
    "Site",
    "Total",
    "Value",
    "ValueType",
    "WeakReport",
    "WeakValue",
    "aval_of",
    "callees",
    "carry_mismatches",
    "casts",
    "casts_of",
    "forbid_casts",
    "frames_of",
    "line_of",
    "loop_operands",
    "name_of_call",
    "register_adapter",
    "scopes_of",
    "user_place",
    "walk",
    "weak_types",
]
