"""`explorer_page`, an HTML page for exploring the rule sets."""

from supremum.explorer.page import BINARY as BINARY
from supremum.explorer.page import STEPS as STEPS
from supremum.explorer.page import explorer_data as explorer_data
from supremum.explorer.page import explorer_page
from supremum.explorer.page import finished_data as finished_data
from supremum.explorer.page import finished_page as finished_page
from supremum.explorer.page import packed_data as packed_data
from supremum.explorer.page import page_of as page_of
from supremum.explorer.page import unpacked_data as unpacked_data
from supremum.public_names import public_names

__all__ = ["explorer_page"]


def __dir__() -> list[str]:
    return public_names(globals())
