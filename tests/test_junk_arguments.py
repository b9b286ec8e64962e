"""Junk in every argument of every public function, class and method raises a short error of this library, or nothing.

New public names are tested automatically. If a new name takes a new kind of argument, add a valid value for it to
`junk_arguments.good_values`.
"""

import contextlib
import io
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
from supremum import mixed_precision, tracing
from supremum.errors import SupremumError

CALLABLES = public_callables()
OBJECTS = objects(None)


@pytest.fixture(autouse=True)
def restored_settings(tmp_path, monkeypatch):
    """Restore global settings after each test, and run it in a temporary folder."""
    monkeypatch.chdir(tmp_path)
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


def _failures(owner, get_callable, good):
    """Call with junk in each argument; return a line for each foreign error or overlong message."""
    arguments = arguments_of(get_callable())
    with contextlib.suppress(SupremumError, NotImplementedError, LookupError):
        _call(get_callable(), owner, arguments, good)
    found = []
    for name, *_ in arguments:
        for title, junk in JUNK.items() if (owner, name) not in PASSED_ON else ():
            if (owner, name, title) in ENDLESS or ((owner, name) in TAKES_CODE and callable(junk())):
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    _call(get_callable(), owner, arguments, good, (name, junk()))
            except (SupremumError, NotImplementedError) as error:
                if len(str(error)) > LONGEST_MESSAGE:
                    found.append(f"{name}={title}: a message of {len(str(error)):,} characters")
            except Exception as error:
                found.append(_line(name, title, error))
    return found


def _line(name, title, error):
    try:
        return f"{name}={title}: {type(error).__name__}: {str(error)[:100]}"
    except Exception:
        return f"{name}={title}: {type(error).__name__}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_in(10)
@pytest.mark.parametrize("name", [name for name in CALLABLES if name not in ("training.initialize_processes",)])
def test_functions_and_classes_raise_only_short_errors_of_this_library(name, tmp_path):
    assert _failures(name, lambda: CALLABLES[name], good_values(tmp_path)) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", OBJECTS)
def test_methods_raise_only_short_errors_of_this_library(name, tmp_path):
    make, names = objects(tmp_path)[name]
    found = []
    for method in names.split():
        get_callable = partial(_bound, make, method)
        found += [f"{method}: {line}" for line in _failures(f"{name}.{method}", get_callable, good_values(tmp_path))]
    assert found == []


def _bound(make, method):
    return getattr(make(), method)
