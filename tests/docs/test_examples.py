"""Every public name has an example in the reference, and every example runs."""

import doctest
import sys
from functools import cache

import supremum
from generate.api import docstring_of
from generate.coverage import WITHOUT_EXAMPLE, names_without_example
from generate.docstrings import module_of_data
from generate.public import MODULES, homes, names_of


def described():
    return {each.path: each for module in MODULES for each in names_of(module) if homes().get(each.path) == each.path}


def test_every_public_name_has_an_example():
    assert len(described()) > 500
    assert names_without_example() == []


def test_names_without_an_example_are_reported(monkeypatch):
    monkeypatch.setattr(supremum.formats.Format, "__doc__", "A number format.")
    monkeypatch.delitem(WITHOUT_EXAMPLE, "supremum.arrays.DeviceError")
    assert names_without_example() == ["supremum.arrays.DeviceError", "supremum.formats.Format"]


def test_exceptions_are_public_names_that_have_no_example():
    assert [name for name in WITHOUT_EXAMPLE if ">>> " in docstring_of(described()[name])] == []


@cache
def doctests_of(module):
    """Return the docstrings that pytest runs as doctests of a module."""
    is_ours = isinstance(module, str) and module.split(".")[0] == "supremum"
    return {each.docstring for each in doctest.DocTestFinder().find(sys.modules[module])} if is_ours else set()


def examples_outside_of_doctests():
    """Return the docstrings with examples that pytest does not find, each with the names that it uses."""
    found = {}
    for path, public in described().items():
        text = docstring_of(public)
        if ">>> " in text and text not in doctests_of(getattr(public.value, "__module__", None)):
            module = module_of_data(public.name, public.value)
            found[text] = path, {} if module is None else dict(vars(module))
    return [(path, text, names) for text, (path, names) in found.items()]


def test_examples_of_constants_and_rule_sets_run(capsys):
    examples = examples_outside_of_doctests()
    of_rule_sets = [path for path, *_ in examples if path.startswith("supremum.rules.") and path[15:].isupper()]
    public = [name for name in supremum.rules.__all__ if isinstance(getattr(supremum.rules, name), supremum.RuleSet)]
    assert [path.rpartition(".")[2] for path in of_rule_sets] == sorted(public)
    assert len(public) > 20
    assert len([path for path, *_ in examples if path.rpartition(".")[2].isupper()]) > 40
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for path, text, names in examples:
        runner.run(parser.get_doctest(text, names, path, None, None))
    assert runner.failures == 0, capsys.readouterr().out
    assert runner.tries > 80
