"""What formats and devices do to values of a JAX program: ranges, errors, and where NaNs and infinities come from.

It measures programs and does not change how they train.
"""

from supremum.extras import require

require(__name__, "jax")

from supremum.numerics.attribution import attribute
from supremum.numerics.attribution_pages import attribution_page
from supremum.numerics.attribution_report import Attribution, AttributionRow, AttributionTotal, Change
from supremum.numerics.devices import DEVICES, Arithmetic, Device
from supremum.numerics.emulation import on
from supremum.numerics.history import NumericsHistory, NumericsRecord
from supremum.numerics.history_plot import save_figure as save_figure
from supremum.numerics.named_tallies import NamedTallies as NamedTallies
from supremum.numerics.named_tallies import tallies_of as tallies_of
from supremum.numerics.nonfinite_causes import OperandRange
from supremum.numerics.nonfinite_origins import NonfiniteOrigins
from supremum.numerics.nonfinite_page import nonfinite_page
from supremum.numerics.nonfinite_rows import BadSource, NonfiniteOrigin
from supremum.numerics.nonfinite_search import first_nonfinite
from supremum.numerics.observed import name_at as name_at
from supremum.numerics.observed import observe as observe
from supremum.numerics.page import profile_page
from supremum.numerics.product_report import ProductRow, Products, products
from supremum.numerics.profiling import as_formats as as_formats
from supremum.numerics.profiling import profile
from supremum.numerics.report import Profile, ProfileRow
from supremum.numerics.undone_promotions import promotion_costs
from supremum.numerics.value_counts import FormatCounts, ValueCounts
from supremum.numerics.watching import FORMATS as FORMATS
from supremum.numerics.watching import Measured as Measured
from supremum.numerics.watching import Measurements as Measurements
from supremum.numerics.watching import Watched, watch
from supremum.public_names import public_names

__all__ = [
    "DEVICES", "Arithmetic", "Attribution", "AttributionRow", "AttributionTotal", "BadSource", "Change", "Device",
    "FormatCounts", "NonfiniteOrigin", "NonfiniteOrigins", "NumericsHistory", "NumericsRecord", "OperandRange",
    "ProductRow", "Products", "Profile", "ProfileRow", "ValueCounts", "Watched", "attribute", "attribution_page",
    "first_nonfinite", "nonfinite_page", "on", "products", "profile", "profile_page", "promotion_costs", "watch",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
