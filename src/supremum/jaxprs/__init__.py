"""Tools for JAX programs that tracing, autocast and numerics share: walking, positions, rewriting and interpreting.

They know the structure of programs, and nothing about dtype rules.
"""

from supremum.extras import require

require(__name__, "jax")

from supremum.jax_compat import CALLS, CUSTOM_VMAP, WITH_RULE
from supremum.jaxprs.array_leaves import call_key as call_key
from supremum.jaxprs.array_leaves import has_tracers as has_tracers
from supremum.jaxprs.array_leaves import if_hashable as if_hashable
from supremum.jaxprs.array_leaves import is_array as is_array
from supremum.jaxprs.array_leaves import split_arrays as split_arrays
from supremum.jaxprs.equations import CAST_SCOPE as CAST_SCOPE
from supremum.jaxprs.equations import ON_DEVICE as ON_DEVICE
from supremum.jaxprs.equations import (
    Callee,
    LoopOperands,
    Site,
    aval_of,
    callees,
    line_of,
    loop_operands,
    name_of_call,
    scopes_of,
    walk,
)
from supremum.jaxprs.equations import is_backward as is_backward
from supremum.jaxprs.equations import operation_of as operation_of
from supremum.jaxprs.evaluation import evaluate as evaluate
from supremum.jaxprs.interpreter import Instrument as Instrument
from supremum.jaxprs.interpreter import Outcome as Outcome
from supremum.jaxprs.interpreter import Records as Records
from supremum.jaxprs.interpreter import enter as enter
from supremum.jaxprs.interpreter import interpret as interpret
from supremum.jaxprs.interpreter import on_each_device as on_each_device
from supremum.jaxprs.mutable_arguments import Adapter, register_adapter
from supremum.jaxprs.mutable_arguments import lift_objects as lift_objects
from supremum.jaxprs.plans import CALLED as CALLED
from supremum.jaxprs.plans import LOOPS_AND_BRANCHES as LOOPS_AND_BRANCHES
from supremum.jaxprs.plans import Plan as Plan
from supremum.jaxprs.plans import Step as Step
from supremum.jaxprs.plans import plan_of as plan_of
from supremum.jaxprs.positions import BETWEEN as BETWEEN
from supremum.jaxprs.positions import EXPLICIT_ENTRIES as EXPLICIT_ENTRIES
from supremum.jaxprs.positions import OURS as OURS
from supremum.jaxprs.positions import USER as USER
from supremum.jaxprs.positions import Frames, Position, frames_of, user_place
from supremum.jaxprs.positions import installed_file as installed_file
from supremum.jaxprs.positions import owner_of as owner_of
from supremum.jaxprs.positions import position_of as position_of
from supremum.jaxprs.rewrite_rules import RewriteAction, RewriteRecord, RewriteRule, Rewritten, Value
from supremum.jaxprs.rewriter import ENTERED, Rewriter
from supremum.jaxprs.segments import Segment as Segment
from supremum.jaxprs.segments import inlined as inlined
from supremum.jaxprs.segments import run_segments as run_segments
from supremum.jaxprs.segments import segments_of as segments_of
from supremum.jaxprs.traced_calls import TracedCall as TracedCall
from supremum.jaxprs.traced_calls import traced_call as traced_call
from supremum.public_names import public_names

__all__ = [
    "CALLS", "CUSTOM_VMAP", "ENTERED", "WITH_RULE", "Adapter", "Callee", "Frames", "LoopOperands", "Position",
    "RewriteAction", "RewriteRecord", "RewriteRule", "Rewriter", "Rewritten", "Site", "Value", "aval_of", "callees",
    "frames_of", "line_of", "loop_operands", "name_of_call", "register_adapter", "scopes_of", "user_place", "walk",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
