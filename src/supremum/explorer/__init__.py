"""`explorer_page`, an HTML page for exploring the rule sets."""

from supremum.explorer.page import BINARY as BINARY
from supremum.explorer.page import STEPS as STEPS
from supremum.explorer.page import explorer_page
from supremum.explorer.page import finished_page as finished_page

__all__ = ["explorer_page"]
