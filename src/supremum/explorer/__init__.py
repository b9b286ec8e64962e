"""`explorer_page`, an HTML page for exploring the rule sets."""

from supremum.explorer.data import BINARY as BINARY
from supremum.explorer.data import STEPS as STEPS
from supremum.explorer.page import explorer_page

__all__ = ["explorer_page"]
