"""One page to explore every rule set in: `explorer_page`."""

from supremum.explorer.page import explorer_page

__all__ = ["explorer_page"]
