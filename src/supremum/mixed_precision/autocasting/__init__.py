"""Autocast: running a JAX function in mixed precision without editing it."""

from supremum.mixed_precision.autocasting.operations import AUTOCAST_OPERATIONS, Row, register_operation
from supremum.mixed_precision.autocasting.report import AutocastReport, AutocastRow
from supremum.mixed_precision.autocasting.skipped_products import ProductCounts, UncastFunction, UncastProductsWarning
from supremum.mixed_precision.autocasting.transform import AutocastFunction, autocast

__all__ = [
    "AUTOCAST_OPERATIONS",
    "AutocastFunction",
    "AutocastReport",
    "AutocastRow",
    "ProductCounts",
    "Row",
    "UncastFunction",
    "UncastProductsWarning",
    "autocast",
    "register_operation",
]
