"""What is computed from rule sets: tables, comparisons, distances, inferred lattices and diagrams."""

from supremum.analysis.clustering import alike_together
from supremum.analysis.comparison import (
    DIFFERENCES,
    WIDEST,
    Comparison,
    Difference,
    Groupings,
    compare,
    compare_groupings,
    difference,
    groupings,
    refuse_namesakes,
    told,
)
from supremum.analysis.diagrams import lattice_dot, lattice_png, lattice_svg
from supremum.analysis.distance import Distances, distances
from supremum.analysis.inferred_lattice import NoLattice, Order, in_words, order_of
from supremum.analysis.tables import (
    ALL_TYPES,
    STANDARD_TYPES,
    RuleTable,
    is_number,
    rule_table,
    short_name,
    type_names,
)

__all__ = [
    "ALL_TYPES",
    "DIFFERENCES",
    "STANDARD_TYPES",
    "WIDEST",
    "Comparison",
    "Difference",
    "Distances",
    "Groupings",
    "NoLattice",
    "Order",
    "RuleTable",
    "alike_together",
    "compare",
    "compare_groupings",
    "difference",
    "distances",
    "groupings",
    "in_words",
    "is_number",
    "lattice_dot",
    "lattice_png",
    "lattice_svg",
    "order_of",
    "refuse_namesakes",
    "rule_table",
    "short_name",
    "told",
    "type_names",
]
