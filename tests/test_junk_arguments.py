"""Junk in every argument of every public function, class and method raises a short error of this library, or nothing.

New public names are tested automatically. If a new name takes a new kind of argument, add a valid value for it to
`junk_arguments.good_values`.
"""

import contextlib
import io
import itertools
from functools import partial

import numpy as np
import pytest

import supremum
from junk_arguments import (
    ENDLESS,
    JUNK,
    LONGEST_MESSAGE,
    PASSED_ON,
    TAKES_CODE,
    arguments_of,
    good_values,
    objects,
    public_callables,
)
from slowly import slow
from supremum import mixed_precision, tracing
from supremum.errors import SupremumError

CALLABLES = public_callables()
OBJECTS = objects(None)


FEW = 4
"""Fast tests try every nth junk value on an argument, starting from another one for each argument."""


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@contextlib.contextmanager
def restored_settings():
    """Restore global settings."""
    registered = dict(mixed_precision.AUTOCAST_OPERATIONS)
    yield
    supremum.set_default_rules("jax")
    mixed_precision.set_global_policy("float32")
    mixed_precision.set_floatx("float32")
    mixed_precision.AUTOCAST_OPERATIONS.clear()
    mixed_precision.AUTOCAST_OPERATIONS.update(registered)
    tracing.register_adapter("junk", None)


def _valid_value(good, owner, name):
    for key in (f"{owner}.{name}", f"{owner.rpartition('.')[2]}.{name}", name):
        if key in good:
            value = good[key]
            return value() if callable(value) and not isinstance(value, np.generic) else value
    raise LookupError(f"{owner} takes {name}: junk_arguments.good_values has to say what that may be")


def _call(function, owner, arguments, good, junk=None):
    """Call with a valid value for every required argument and junk in one argument."""
    args, kwargs, left_out = [], {}, False
    for name, kind, is_required in arguments:
        if junk is not None and name == junk[0]:
            value = junk[1]
        elif kind is kind.VAR_POSITIONAL:
            args += _valid_value(good, owner, name)
            continue
        elif is_required:
            value = _valid_value(good, owner, name)
        else:
            left_out = True
            continue
        if kind in (kind.POSITIONAL_ONLY, kind.VAR_POSITIONAL) or (kind is kind.POSITIONAL_OR_KEYWORD and not left_out):
            args.append(value)
        else:
            kwargs[name] = value
    return function(*args, **kwargs)


@restored_settings()
def _failures(owner, get_callable, good, every):
    """Call with every nth junk value in each argument; return a line for each foreign error or overlong message."""
    arguments = arguments_of(get_callable())
    with contextlib.suppress(SupremumError, NotImplementedError, LookupError):
        _call(get_callable(), owner, arguments, good)
    found = []
    for place, (name, *_) in enumerate(arguments):
        values = itertools.islice(JUNK.items(), (len(owner) + place) % every, None, every)
        for title, junk in values if (owner, name) not in PASSED_ON else ():
            if (owner, name, title) in ENDLESS or ((owner, name) in TAKES_CODE and callable(junk())):
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    _call(get_callable(), owner, arguments, good, (name, junk()))
            except (SupremumError, NotImplementedError) as error:
                if len(str(error)) > LONGEST_MESSAGE:
                    found.append(f"{owner}: {name}={title}: a message of {len(str(error)):,} characters")
            except Exception as error:
                found.append(f"{owner}: {_line(name, title, error)}")
    return found


def _line(name, title, error):
    try:
        return f"{name}={title}: {type(error).__name__}: {str(error)[:100]}"
    except Exception:
        return f"{name}={title}: {type(error).__name__}"


def _sets(groups, few, some):
    """Return sets of parameters: few names of each group with few values, some with all, and all with all.

    Args:
        groups: lists of names, by a title.
        few: every how many names are fast.
        some: every how many names are slow; the last set of a group is exhaustive.
    """
    sets = []
    for title, names in groups.items():
        sets.append(pytest.param(names[::few], FEW, id=f"{title}-few"))
        if len(names) > few // 2:
            sets.append(slow(names[few // 2 :: some], 1, id=f"{title}-some"))
        sets.append(pytest.param(names, 1, id=f"{title}-all", marks=pytest.mark.exhaustive))
    return sets


BY_PACKAGE = {
    package: [*names] for package, names in itertools.groupby(CALLABLES, lambda name: name.rpartition(".")[0])
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_slow_in(1)
@pytest.mark.parametrize(("names", "every"), _sets(BY_PACKAGE, 8, 120))
def test_functions_and_classes_raise_only_short_errors_of_this_library(names, every, tmp_path):
    good = good_values(tmp_path)
    assert [line for name in names for line in _failures(name, lambda name=name: CALLABLES[name], good, every)] == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_slow_in(1)
@pytest.mark.parametrize(("names", "every"), _sets({"objects": [*OBJECTS]}, 5, 12))
def test_methods_raise_only_short_errors_of_this_library(names, every, tmp_path):
    good, found = good_values(tmp_path), []
    for name in names:
        make, methods = objects(tmp_path)[name]
        for method in methods.split():
            found += _failures(f"{name}.{method}", partial(_bound, make, method), good, every)
    assert found == []


def _bound(make, method):
    return getattr(make(), method)
