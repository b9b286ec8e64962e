"""What a JAX program does to dtypes: its casts, its weak values, and the carries of its loops.

It traces programs and does not run them; what happens to values is measured by `numerics`.
"""

from __future__ import annotations

from supremum.extras import require

require(__name__, "jax")

from supremum.jaxprs import Adapter, register_adapter
from supremum.public_names import public_names
from supremum.tracing.annotations import github_annotations as github_annotations
from supremum.tracing.arguments import arguments_maker as arguments_maker
from supremum.tracing.arguments import check_call as check_call
from supremum.tracing.arguments import parse_arguments as parse_arguments
from supremum.tracing.baseline import Baseline
from supremum.tracing.carries import CarryMismatch, carry_mismatches
from supremum.tracing.cast import Cast, ErrorChange, HiddenPromotion
from supremum.tracing.causes import Cause
from supremum.tracing.find_casts import Recorded as Recorded
from supremum.tracing.find_casts import casts, casts_of
from supremum.tracing.find_casts import find_widened as find_widened
from supremum.tracing.forbid import Forbidden as Forbidden
from supremum.tracing.forbid import ForbiddenCastError, forbid_casts
from supremum.tracing.jitted_calls import JittedCall as JittedCall
from supremum.tracing.jitted_calls import watch_jitted as watch_jitted
from supremum.tracing.page import casts_page
from supremum.tracing.report import CastReport, CastTotal, Explanation
from supremum.tracing.row_fields import RowFields as RowFields
from supremum.tracing.value_types import SourcePlace, ValueType
from supremum.tracing.weak_types import WeakReport, WeakValue, weak_types

__all__ = [
    "Adapter", "Baseline", "CarryMismatch", "Cast", "CastReport", "CastTotal", "Cause", "ErrorChange", "Explanation",
    "ForbiddenCastError", "HiddenPromotion", "SourcePlace", "ValueType", "WeakReport", "WeakValue", "carry_mismatches",
    "casts", "casts_of", "casts_page", "forbid_casts", "register_adapter", "weak_types",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
