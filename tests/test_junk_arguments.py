"""Junk in every argument of every public function, class and method: a short error of ours that is documented, or none.

A new public name joins by itself. Where it takes something that no other one takes, `junk_arguments.good_values` has to
be told.
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
def as_before(tmp_path, monkeypatch):
    """Whatever a call sets for the whole program is as it was afterwards, and what it writes lies in a folder."""
    monkeypatch.chdir(tmp_path)
    registered = dict(mixed_precision.AUTOCAST_OPERATIONS)
    yield
    supremum.set_default_rules("jax")
    mixed_precision.set_global_policy("float32")
    mixed_precision.set_floatx("float32")
    mixed_precision.AUTOCAST_OPERATIONS.clear()
    mixed_precision.AUTOCAST_OPERATIONS.update(registered)
    tracing.register_adapter("junk", None)


def _good(good, owner, name):
    for key in (f"{owner}.{name}", f"{owner.rpartition('.')[2]}.{name}", name):
        if key in good:
            value = good[key]
            return value() if callable(value) and not isinstance(value, np.generic) else value
    raise LookupError(f"{owner} takes {name}: junk_arguments.good_values has to say what that may be")


def _call(function, owner, arguments, good, junk=None):
    """Call with what every required argument takes, and with junk in one argument."""
    args, kwargs, left_out = [], {}, False
    for name, kind, is_required in arguments:
        if junk is not None and name == junk[0]:
            value = junk[1]
        elif kind is kind.VAR_POSITIONAL:
            args += _good(good, owner, name)
            continue
        elif is_required:
            value = _good(good, owner, name)
        else:
            left_out = True
            continue
        if kind in (kind.POSITIONAL_ONLY, kind.VAR_POSITIONAL) or (kind is kind.POSITIONAL_OR_KEYWORD and not left_out):
            args.append(value)
        else:
            kwargs[name] = value
    return function(*args, **kwargs)


def _sweep(owner, made, good):
    """What junk makes of a callable, beside errors of ours: lines of argument, junk and error."""
    arguments = arguments_of(made())
    with contextlib.suppress(SupremumError, NotImplementedError, LookupError):
        _call(made(), owner, arguments, good)
    found = []
    for name, *_ in arguments:
        for title, junk in JUNK.items():
            if (owner, name, title) in ENDLESS or ((owner, name) in TAKES_CODE and callable(junk())):
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    _call(made(), owner, arguments, good, (name, junk()))
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
def test_functions_and_classes(name, tmp_path):
    assert _sweep(name, lambda: CALLABLES[name], good_values(tmp_path)) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", OBJECTS)
def test_methods(name, tmp_path):
    make, names = objects(tmp_path)[name]
    found = []
    for method in names.split():
        made = partial(_bound, make, method)
        found += [f"{method}: {line}" for line in _sweep(f"{name}.{method}", made, good_values(tmp_path))]
    assert found == []


def _bound(make, method):
    return getattr(make(), method)
