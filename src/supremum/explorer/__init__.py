"""`explorer_page`, an HTML page for exploring the rule sets.

It contains answers and no rules, so that the page decides nothing by itself.
"""

from supremum.explorer.page import BINARY as BINARY
from supremum.explorer.page import COMMON as COMMON
from supremum.explorer.page import STEPS as STEPS
from supremum.explorer.page import explorer_page
from supremum.public_names import public_names

__all__ = ["explorer_page"]


def __dir__() -> list[str]:
    return public_names(globals())
