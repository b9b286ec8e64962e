"""Tables, comparisons and diagrams of rule sets, as data and as pages.

It does not decide anything: every cell is a decision of a rule set.
"""

from supremum.analysis.comparison import (
    DIFFERENCES,
    WIDEST,
    Comparison,
    Difference,
    Groupings,
    compare,
    compare_groupings,
)
from supremum.analysis.comparison import difference as difference
from supremum.analysis.diagrams import lattice_dot, lattice_svg
from supremum.analysis.inferred_lattice import NoLattice, Order, order_of
from supremum.analysis.tables import ALL_TYPES, STANDARD_TYPES, RuleTable, rule_table
from supremum.analysis.tables import STYLES as STYLES
from supremum.analysis.tables import result_text as result_text
from supremum.analysis.tables import short_name as short_name
from supremum.analysis.tables import style_of as style_of
from supremum.public_names import public_names

__all__ = [
    "ALL_TYPES",
    "DIFFERENCES",
    "STANDARD_TYPES",
    "WIDEST",
    "Comparison",
    "Difference",
    "Groupings",
    "NoLattice",
    "Order",
    "RuleTable",
    "compare",
    "compare_groupings",
    "lattice_dot",
    "lattice_svg",
    "order_of",
    "rule_table",
]


def __dir__() -> list[str]:
    return public_names(globals())
