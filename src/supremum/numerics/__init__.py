"""What number formats would do to the values that a JAX function computes, and where bad values come from."""

from supremum.extras import require

require(__name__, "jax")

from supremum.numerics.birth_causes import OperandRange
from supremum.numerics.births import BadSource, Birth, Births
from supremum.numerics.first_bad import first_nonfinite
from supremum.numerics.profiling import profile
from supremum.numerics.report import Profile, ProfileRow
from supremum.numerics.value_counts import FormatCounts, ValueCounts
from supremum.public_names import public_names

__all__ = [
    "BadSource", "Birth", "Births", "FormatCounts", "OperandRange", "Profile", "ProfileRow", "ValueCounts",
    "first_nonfinite", "profile",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
