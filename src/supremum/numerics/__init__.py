"""What number formats and devices would do to the values that a JAX function computes."""

from supremum.extras import require

require(__name__, "jax")

from supremum.numerics.attribution import attribute
from supremum.numerics.attribution_pages import attribution_page
from supremum.numerics.attribution_report import Attribution, AttributionRow, AttributionTotal, Change
from supremum.numerics.devices import DEVICES, Arithmetic, Device
from supremum.numerics.emulation import on
from supremum.numerics.page import profile_page
from supremum.numerics.product_report import ProductRow, Products, products
from supremum.numerics.profiling import profile
from supremum.numerics.report import Profile, ProfileRow
from supremum.numerics.value_counts import FormatCounts, ValueCounts
from supremum.public_names import public_names

__all__ = [
    "DEVICES", "Arithmetic", "Attribution", "AttributionRow", "AttributionTotal", "Change", "Device", "FormatCounts",
    "ProductRow", "Products", "Profile", "ProfileRow", "ValueCounts", "attribute", "attribution_page", "on", "products",
    "profile", "profile_page",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(globals())
