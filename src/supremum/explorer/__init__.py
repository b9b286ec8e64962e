"""One page to explore every rule set in: `explorer_page`."""

from supremum.explorer.data import BINARY as BINARY
from supremum.explorer.data import STEPS as STEPS
from supremum.explorer.page import explorer_page

__all__ = ["explorer_page"]
