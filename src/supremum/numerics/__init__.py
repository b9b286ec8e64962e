"""What number formats would do to the values that a JAX function computes."""

from supremum.extras import require

require(__name__, "jax")

from supremum.numerics.page import profile_page
from supremum.numerics.profiling import profile
from supremum.numerics.report import Profile, ProfileRow
from supremum.numerics.value_counts import FormatCounts, ValueCounts
from supremum.public_names import public_names

__all__ = ["FormatCounts", "Profile", "ProfileRow", "ValueCounts", "profile", "profile_page"]


def __dir__() -> list[str]:
    return public_names(globals())
