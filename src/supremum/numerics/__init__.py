"""What number formats would do to the values that a JAX function computes."""

from supremum.extras import require

require(__name__, "jax")

from supremum.numerics.history import NumericsHistory, NumericsRecord
from supremum.numerics.history_plot import save_figure as save_figure
from supremum.numerics.named_tallies import NamedTallies as NamedTallies
from supremum.numerics.named_tallies import tallies_of as tallies_of
from supremum.numerics.observed import name_at as name_at
from supremum.numerics.observed import observed as observed
from supremum.numerics.profiling import as_formats as as_formats
from supremum.numerics.profiling import profile
from supremum.numerics.report import Profile, ProfileRow
from supremum.numerics.value_counts import FormatCounts, ValueCounts
from supremum.numerics.watching import FORMATS as FORMATS
from supremum.numerics.watching import Measured as Measured
from supremum.numerics.watching import Measurements as Measurements
from supremum.numerics.watching import Watched, watch
from supremum.public_names import public_names

__all__ = [
    "FormatCounts", "NumericsHistory", "NumericsRecord", "Profile", "ProfileRow", "ValueCounts", "Watched", "profile",
    "watch",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
