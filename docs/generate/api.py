"""The pages of the API reference, one for each public module, in reStructuredText; Sphinx adds the docstrings."""

from __future__ import annotations

import importlib
import inspect
from textwrap import indent
from types import ModuleType

from generate.docstrings import data_docstring, literal
from generate.public import MODULES, Public, homes, names_of
from generate.surprises import SURPRISES
from supremum.rules import RuleSet


def api_pages() -> dict[str, str]:
    """Return the pages by path, with their index."""
    pages = {f"api/{module}.rst": _page(module) for module in MODULES}
    entries = [
        f"* :doc:`{module}`: {_first_line(importlib.import_module(module))}" for module in ("supremum", *MODULES[:-1])
    ]
    tree = "\n".join(f"   {module}" for module in ("supremum", *MODULES[:-1]))
    intro = "All public names with their docstrings. The examples run as tests."
    pages["api/index.rst"] = "\n".join(
        [_heading("Reference"), intro, "", *entries, "", ".. toctree::", "   :hidden:", "", tree, ""]
    )
    return pages


def _page(module: str) -> str:
    names = names_of(module)
    described = [each for each in names if homes().get(each.path) == each.path]
    elsewhere = [each for each in names if each not in described]
    lines = [_heading(f"``{module}``"), f".. module:: {module}", "", _account(importlib.import_module(module))]
    if elsewhere:
        lines += ["", "Also exported here; described with another module:", "", _links(elsewhere)]
    for public in described:
        if _directive(public) is None:
            lines += ["", f".. data:: {public.name}", "", indent(docstring_of(public), "   ")]
        else:
            lines += ["", f".. {_directive(public)}:: {public.path}"]
    return "\n".join(lines) + "\n"


def _links(names: list[Public]) -> str:
    def link(public: Public) -> str:
        if isinstance(public.value, ModuleType):
            return f":doc:`{public.name} <{public.value.__name__}>`"
        return f":py:obj:`{public.name} <{homes()[public.path]}>`"

    return ",\n".join(map(link, names)) + "."


def docstring_of(public: Public) -> str:
    """Return the docstring of a public name; that of a constant, for which Sphinx finds none, as reStructuredText.

    Args:
        public: the name.
    """
    if _directive(public) is not None:
        return public.value.__doc__ or ""
    if isinstance(public.value, RuleSet):
        return _docstring_of_rules(public.name, public.value)
    return literal(data_docstring(public.name, public.value))


def _docstring_of_rules(name: str, rules: RuleSet) -> str:
    surprise = SURPRISES[rules.name][0]
    operands = ", ".join(f'"{each}"' if isinstance(each, str) else repr(each) for each in surprise.operands)
    example = [
        ">>> from supremum import explain, rules",
        f'>>> print(explain({operands}, operation="{surprise.operation}", rules=rules.{name}))',
        str(surprise.decide(rules.name)),
    ]
    page = f":doc:`Its page </generated/rules/{rules.name}>`"
    return f"{literal(f'{rules.summary}.')} {page}.\n\n" + "\n".join(example)


def _directive(public: Public) -> str | None:
    """Return Sphinx's directive for a name; None for a constant, because Sphinx does not find its docstring."""
    if inspect.isclass(public.value) and public.value.__name__ == public.name:  # else it is an alias
        return "autoexception" if issubclass(public.value, BaseException) else "autoclass"
    if type(public.value).__module__.startswith("supremum.") and callable(public.value):
        return "autodata"
    return "autofunction" if inspect.isroutine(public.value) else None


def _first_line(module: ModuleType) -> str:
    return _account(module).partition("\n\n")[0].replace("\n", " ")


def _account(module: ModuleType) -> str:
    first, _, rest = (inspect.getdoc(module) or "").partition("\n\n")
    drawn = f".. code-block:: text\n\n{indent(rest, '   ')}" if "├" in rest else literal(rest)
    return f"{literal(first)}\n\n{drawn}"


def _heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n"
