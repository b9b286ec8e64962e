"""Tools for jaxprs that tracing and autocast share: walking, source positions, liveness and rewriting."""

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
from supremum.jaxprs.equations import CAST_SCOPE as CAST_SCOPE
from supremum.jaxprs.equations import is_backward as is_backward
from supremum.jaxprs.equations import is_of_autocast as is_of_autocast
from supremum.jaxprs.expressions import UNRESOLVED as UNRESOLVED
from supremum.jaxprs.expressions import Node as Node
from supremum.jaxprs.expressions import Source as Source
from supremum.jaxprs.expressions import Sources as Sources
from supremum.jaxprs.expressions import literal_of as literal_of
from supremum.jaxprs.expressions import value_of as value_of
from supremum.jaxprs.frame_owner import BETWEEN as BETWEEN
from supremum.jaxprs.frame_owner import OURS as OURS
from supremum.jaxprs.frame_owner import USER as USER
from supremum.jaxprs.frame_owner import owner_of as owner_of
from supremum.jaxprs.liveness import Liveness as Liveness
from supremum.jaxprs.mutable_arguments import Adapter, register_adapter
from supremum.jaxprs.mutable_arguments import lifted as lifted
from supremum.jaxprs.positions import EXPLICIT_ENTRIES as EXPLICIT_ENTRIES
from supremum.jaxprs.positions import Frames, Position, frames_of, user_place
from supremum.jaxprs.positions import position_of as position_of
from supremum.jaxprs.programs import program_of as program_of
from supremum.jaxprs.rewrite_rules import RewriteAction, RewriteRecord, RewriteRule, Rewritten, Value
from supremum.jaxprs.rewriter import ENTERED, Rewriter
from supremum.jaxprs.sites import Site, walk
from supremum.jaxprs.symbolic_sizes import largest_first as largest_first
from supremum.jaxprs.symbolic_sizes import plain as plain
from supremum.jaxprs.symbolic_sizes import shown as shown

__all__ = [
    "CALLS",
    "CUSTOM_VMAP",
    "ENTERED",
    "WITH_RULE",
    "Adapter",
    "Callee",
    "Frames",
    "LoopOperands",
    "Position",
    "RewriteAction",
    "RewriteRecord",
    "RewriteRule",
    "Rewriter",
    "Rewritten",
    "Site",
    "Value",
    "aval_of",
    "callees",
    "frames_of",
    "line_of",
    "loop_operands",
    "name_of_call",
    "register_adapter",
    "scopes_of",
    "user_place",
    "walk",
]
