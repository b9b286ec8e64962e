"""The programs that commands look at: a function and its arguments, or a script."""

from __future__ import annotations

import importlib
import itertools
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from supremum.atomic_files import is_file
from supremum.cli.output import STANDARD_OUTPUT
from supremum.errors import ArgumentError, UnknownNameError, shortened, shown

Target = Annotated[
    str, typer.Argument(help="A script, or module:function, whose arguments --args describes.", show_default=False)
]
ScriptArguments = Annotated[
    list[str] | None, typer.Argument(help="Arguments of the script, after --.", show_default=False)
]
ArgsOption = Annotated[
    str | None,
    typer.Option(
        help="Arguments of the function, such as 'f32[8,128], {\"w\": bf16[128]}, key[], 0.5'; or a function "
        "that makes them, as module:make_args."
    ),
]


Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""The user's function, and its arguments; arrays described by dtype and shape are `jax.ShapeDtypeStruct`."""


def call_of(target: str, args: str) -> tuple[Call | None, BaseException | None]:
    """Import a function and make its arguments.

    Args:
        target: `module:function`.
        args: the arguments; see `ArgsOption`.

    Returns:
        The call, or the error that the user's code raised.

    Raises:
        ArgumentError: for a wrong target or wrong arguments.
        UnknownNameError: for an unknown function.
    """
    from supremum.tracing import arguments_maker, check_call, parse_arguments

    module_name, _, path = target.partition(":")
    if not path or not all(name.isidentifier() for name in (*module_name.split("."), *path.split("."))):
        raise ArgumentError(
            f"With --args, the target must be module:function, such as train:loss, got {shown(target)}."
        )
    make = arguments_maker(args)
    arguments = parse_arguments(args) if make is None else ()
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    function, error = tried(lambda: importlib.import_module(module_name))
    if isinstance(error, ModuleNotFoundError) and module_name.startswith(error.name or "\0"):
        raise ArgumentError(f"There is no module {shortened(module_name)} here; run the command in its folder.")
    for name in path.split(".") if error is None else ():
        inside = function
        function, error = tried(partial(getattr, inside, name))
        if isinstance(error, AttributeError):
            raise UnknownNameError("function", name, [each for each in dir(inside) if not each.startswith("_")])
    if error is not None:
        return None, error
    if make is not None:
        arguments, error = tried(make)
        if error is not None:
            return None, error
    check_call(path, function, arguments)
    return (function, arguments), None


def with_values(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments for a function that is run: each array that is only described gets values.

    Floating-point arrays have values of the standard normal distribution, all other arrays zeros, and random keys those
    of a fixed seed.
    """
    import jax
    import jax.numpy as jnp

    from supremum.formats import as_format

    numbers = itertools.count()

    def filled(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        key = jax.random.fold_in(jax.random.key(0), next(numbers))
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.split(key, leaf.shape)
        if not as_format(leaf.dtype).is_inexact:
            return jax.lax.full(leaf.shape, 0, leaf.dtype)
        return jax.random.normal(key, leaf.shape).astype(leaf.dtype)

    return jax.tree.map(filled, arguments)


def run_script(script: str, arguments: Sequence[str]) -> BaseException | None:
    """Run a script as `python script` does. Return the error that it raises, unless it exits with success.

    Raises:
        ArgumentError: if there is no such file.
        KeyboardInterrupt: for Ctrl-C.
    """
    path = Path(script)
    if not is_file(path):
        raise ArgumentError(f"There is no file {shortened(script)}; give a script, or module:function with --args.")
    argv, paths = sys.argv, list(sys.path)
    sys.argv, sys.path[:] = [script, *arguments], [str(path.parent.resolve()), *paths]
    try:
        _, error = tried(lambda: runpy.run_path(str(path.resolve()), run_name="__main__"))
    finally:
        sys.argv, sys.path[:] = argv, paths
    is_success = isinstance(error, SystemExit) and error.code in (None, 0)
    return None if is_success else error


def tried(run: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Run the user's program. Return its result, or the error that it raises, even `SystemExit`.

    Raises:
        KeyboardInterrupt: for Ctrl-C.
    """
    try:
        return run(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error


@contextmanager
def program_output(form: str, output: Path | None) -> Generator[None]:
    """Send what a program prints to standard error in the block, also from C libraries and child processes.

    It stays on standard output if the report is for people, or goes to a file.

    Args:
        form: the format of the report.
        output: the file of the report; None for standard output.
    """
    if form == "terminal" or output not in (None, STANDARD_OUTPUT):
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def shown_error(error: BaseException) -> str:
    """The user's error as Python would print it, without the frames between this command and the user's program."""
    if isinstance(error, SystemExit):
        return f"supremum: the program called sys.exit({shown(error.code)})"
    ours = (str(Path(__file__).parents[1]), "<frozen", runpy.__file__, importlib.__file__)
    first = error.__traceback__
    while first is not None and first.tb_frame.f_code.co_filename.startswith(ours):
        first = first.tb_next
    lines = traceback.format_exception(type(error), error, first or error.__traceback__)
    return "".join(lines).removesuffix("\n")
