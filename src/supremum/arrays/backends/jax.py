"""JAX's arrays, concrete and traced."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend import source_info_util

from supremum.arrays.backends import kernels
from supremum.arrays.backends.base import Backend, CallPlan, Raw
from supremum.arrays.backends.jax_indexing import elements_at, with_elements
from supremum.arrays.backends.jax_key import for_all_rules
from supremum.arrays.backends.numpy import host_converter
from supremum.arrays.errors import RuntimeDtypeError
from supremum.bounded_cache import Bounded
from supremum.decisions import ResultType
from supremum.errors import OperandError, SupremumError
from supremum.formats import DType, as_format
from supremum.jax_compat import INLINE
from supremum.jax_compat import primitives as p
from supremum.operands import as_operand, weak_name
from supremum.rules import (
    JAX_X32,
    JAX_X64,
    SCOPE,
    held_dtype,
    holds_64_bits,
    is_x64,
)
from supremum.typing import ArrayLike

# Profiles, error messages and compiled code then show the line of the user's program.
source_info_util.register_exclusion(str(Path(__file__).parents[1]))


class JaxBackend(Backend):
    """JAX: an operation is one jitted function, which is inlined where it is traced and leaves no trace there."""

    name = "jax"
    namespace = "jax.numpy"
    mutable = False
    in_jax = True
    passed_through = (jax.errors.JAXTypeError, jax.errors.JAXIndexError)

    def function(self, name: str) -> Callable[..., Any]:
        """As in the base class."""
        return _fillers[name] if name in _fillers else super().function(name)

    def compile_function(
        self, name: str, function: Callable[..., Any], count: int, *, standard: bool
    ) -> Callable[..., Any]:
        """As in the base class; not for shapes that depend on values, or arguments that JAX itself takes as values."""
        if name not in (_COMPILED if count == 1 else _COMPILED_OF_SEVERAL):
            return for_all_rules(function) if standard else function

        def compute(*operands: Any) -> Any:
            return function(*operands)

        compute.__name__ = compute.__qualname__ = name
        return for_all_rules(jax.jit(compute, inline=INLINE))

    def dtype_of(self, raw: Raw) -> DType:
        """As in the base class."""
        try:
            return super().dtype_of(raw)
        except OperandError:
            as_operand(raw)  # its error also names what is not a number, such as keys for random numbers
            raise

    def _key_parts(self, raw: Any, weak: bool) -> tuple[Any, bool, bool, None]:
        aval = raw.aval  # the array itself says whether it is weak
        return aval.dtype, aval.weak_type, not aval.shape, None

    def prepare(self, plan: CallPlan) -> Callable[..., Raw]:
        """One jitted function for all decisions that compute the same."""
        if (comparison := kernels.known_comparison(self, plan)) is not None:
            return comparison
        dtypes = {*plan.compute} if plan.gives_indices else {*plan.compute, plan.result.dtype}
        wide = self._check_representable(plan, dtypes)
        known = kernels.known_int(plan)  # JAX needs the value to multiply the power out
        kernel = self._kernel(plan, known)
        converters = [
            kernels.known_int_wrapper(plan, i) if i == known else self._converter(plan, i)
            for i in range(len(plan.keys))
        ]
        run = kernel if SCOPE.get().is_named else for_all_rules(kernel)
        if lacking := [dtype for dtype in dtypes if as_format(dtype).bits < _LEAST_BITS and not _computes_in(dtype)]:
            run = _only_traced(run, lacking, plan)
        prepared = kernels.compose(run, converters)
        if not wide:
            return prepared
        # With x64 off JAX keeps wide dtypes that are passed by name, and narrows NumPy arrays.
        explicit = [
            None if i == known or key.backend is self else partial(_as_jax_array, host_converter(plan, i), dtype)
            for i, (key, dtype) in enumerate(zip(plan.keys, plan.compute, strict=True))
        ]
        return _with_x64_check(prepared, kernels.compose(run, explicit), plan)

    def _kernel(self, plan: CallPlan, known: int | None) -> Callable[..., Raw]:
        """The jitted function of a plan.

        Args:
            plan: the plan.
            known: the position of the operand that JAX takes as a value.
        """
        keys = tuple(key if key.backend is not None else key.operand.category for key in plan.keys)
        # The text also tells -0.0 from 0.0 and True from 1, which are equal.
        options = tuple((name, value, repr(value)) for name, value in plan.options.items())
        same = plan.operation, keys, plan.compute, plan.result, plan.build, plan.gives_indices, known, options
        plan = replace(plan, rules="", number_steps=(), decision=None)  # a decision would keep its rule set
        try:
            kernel = _kernels.get(same)
        except TypeError:  # an option that cannot be a key, such as a list
            return self._compile(plan, known)
        return kernel or _kernels.setdefault(same, self._compile(plan, known))

    def _compile(self, plan: CallPlan, known: int | None) -> Callable[..., Raw]:
        build = plan.build
        function = kernels.elementwise_function(self, plan, jnp, {}) if build is None else build(self, plan)

        def compute(*operands: Any) -> Any:
            cast = [
                operand if i == known else _cast(operand, target, plan.result.weak)
                for i, (operand, target) in enumerate(zip(operands, plan.compute, strict=True))
            ]
            result = function(*cast)
            return result if plan.gives_indices else _cast_result(result, plan.result)

        compute.__name__ = compute.__qualname__ = plan.operation.name
        return jax.jit(compute, inline=INLINE, static_argnums=() if known is None else (known,))

    def clarify_error(self, plan: CallPlan, error: Exception, operands: Sequence[Any]) -> Exception:
        """A clearer error for missing kernels, and for operands on several devices."""
        if isinstance(error, jax.errors.JaxRuntimeError):
            lacking = [dtype for dtype in dict.fromkeys(plan.compute) if not _computes_in(dtype)]
            return RuntimeDtypeError(_not_computed(lacking), decision=plan.decision) if lacking else error
        if isinstance(error, SupremumError) or not isinstance(error, (TypeError, ValueError, NotImplementedError)):
            return error
        arrays = [each for each in operands if isinstance(each, jax.Array)]
        devices = {frozenset(each.devices()) for each in arrays if not isinstance(each, Tracer)}
        if len(devices) > 1:
            named = sorted(", ".join(sorted(map(str, each))) for each in devices)
            return kernels.different_devices(plan.operation.name, named)
        if _is_computed(self.prepare(plan), operands) or _fails_in_float32(plan, operands):
            return error  # it is about their shapes or values
        return kernels.missing_kernel(self, plan)

    def _converter(self, plan: CallPlan, position: int) -> Callable[[Any], Any] | None:
        key, dtype = plan.keys[position], plan.compute[position]
        if key.backend is self or (key.backend is None and plan.result.weak):
            return None  # JAX takes a number as it is if all operands are weak
        if key.backend is None and key.operand.category == "float" and dtype == _weak_dtype("float"):
            # JAX rounds it as NumPy does, and faster; it would warn about infinities. It rounds other numbers twice.
            row, cast = as_format(dtype), kernels.caster_of(dtype)
            low, high = row.min, row.max
            return lambda value: value if low <= value <= high else cast(value)
        # JAX would narrow 64 bits on the way to the device, and round numbers differently when it traces.
        return host_converter(plan, position)

    def _check_representable(self, plan: CallPlan, dtypes: set[DType]) -> bool:
        """Whether some of the dtypes need x64 on, or explicit 64-bit dtypes allowed.

        Raises:
            RuntimeDtypeError: if JAX does not have one of them.
        """
        absent = sorted(str(dtype) for dtype in dtypes if not _is_known(dtype))
        if absent:
            raise RuntimeDtypeError(
                f"{plan.operation.name}: the rules decide {', '.join(absent)}, which JAX does not have"
            )
        wide = {dtype for dtype in dtypes if _is_wide(dtype)}
        if wide and not holds_64_bits():
            raise _needs_x64_error(plan)
        return bool(wide)

    def check_computes(self, name: str, dtypes: Iterable[DType]) -> None:
        """Refuse formats that XLA does not compute in, and formats of `_CRASHING_BITS`."""
        for dtype in dtypes:
            row = as_format(dtype)
            if row.bits < _LEAST_BITS and dtype != _BOOL and (row.bits in _CRASHING_BITS or not _computes_in(dtype)):
                wide = "cast first, with x.astype('int8')" if _computes_in(dtype) else "compute with NumPy's arrays"
                raise RuntimeDtypeError(f"{name}: {_not_computed([dtype])}", wide)

    def astype(self, raw: Raw, dtype: DType, weak: bool = False, *, copy: bool = True) -> Raw:
        """An array in another dtype."""
        native = self.native_dtype(dtype)
        if native == _BOOL and as_format(raw.dtype).bits < _LEAST_BITS and not _computes_in(raw.dtype):
            raise RuntimeDtypeError(_not_computed([raw.dtype]))  # the cast computes a comparison with zero
        if weak:
            return _convert_weakly(raw, new_dtype=native, weak_type=True, sharding=None)
        return _astype(raw, native)

    def asarray(
        self, data: ArrayLike, dtype: DType | None = None, device: object = None, copy: bool | None = None
    ) -> Raw:
        """An array; a conversion that would lose bits is refused."""
        is_on_device = isinstance(data, jax.Array)
        if is_on_device and dtype is None:
            return _asarray(data, device=device, copy=copy)
        host = data if is_on_device else np.asarray(data)
        target = self.native_dtype(as_format(host.dtype if dtype is None else dtype).dtype)
        keeps_bits = not _is_wide(target) or is_x64()
        is_ready = not is_on_device and host.dtype == target and as_format(target).is_builtin
        if is_ready and keeps_bits and device is None and copy is not False:
            return _moved(host)
        if copy and not keeps_bits and isinstance(host, np.ndarray):
            # JAX would make the copy in 32 bits.
            host, copy = host.copy(), None
        try:
            return _asarray(host, target, device=device, copy=copy)
        except jax.errors.JaxRuntimeError as error:
            raise RuntimeDtypeError(f"JAX does not have {target} on this device", "use a different dtype") from error

    def numpy(self, raw: Raw) -> np.ndarray[Any, Any]:
        """The array on the host."""
        return np.asarray(raw)

    def native_dtype(self, dtype: DType) -> Any:
        """The dtype itself.

        Raises:
            RuntimeDtypeError: if JAX does not have it, or not with its x64 off.
        """
        if not _is_known(dtype):
            raise RuntimeDtypeError(f"JAX does not have {dtype}")
        if held_dtype(dtype) != dtype:
            raise RuntimeDtypeError(
                f"JAX does not have {dtype} while its x64 is off",
                "use jax.config.update('jax_enable_x64', True), or a dtype of at most 32 bits",
            )
        return dtype

    def item(self, raw: Raw, index: object) -> Raw:
        """Elements of an array."""
        return elements_at(raw, index)

    def update(self, raw: Raw, index: object, name: str, value: Raw, options: Mapping[str, Any]) -> Raw:
        """An array with updated elements, by a method of its `at`."""
        return with_elements(raw, index, name, value, options)

    def flags(self) -> Hashable:
        """Whether x64 is on, and whether JAX keeps 64-bit dtypes that are given explicitly."""
        return is_x64(), holds_64_bits()

    def under(self, flags: Any) -> AbstractContextManager[Any]:
        """A block with x64 on or off, as the flags say."""
        return nullcontext() if flags == self.flags() else jax.enable_x64(flags[0])

    def try_out(self, function: Callable[..., Raw], samples: Sequence[Any], dtypes: Sequence[DType]) -> bool:
        """Whether JAX traces a function and XLA computes in the dtypes; the function does not run."""
        result = jax.eval_shape(lambda: function(*samples))
        return result.dtype == dtypes[-1] and all(map(_computes_in, dtypes))

    def is_traced(self, raw: Raw) -> bool:
        """Whether JAX is tracing it."""
        return isinstance(raw, Tracer)

    def device_of(self, raw: Raw) -> Any:
        """The device, or the sharding of an array on several; None while JAX traces it."""
        return None if isinstance(raw, Tracer) else super().device_of(raw)


_kernels: Bounded[Hashable, Callable[..., Raw]] = Bounded(4096)
"""Jitted functions by what they compute. Compiling one takes longer than all decisions of a rule set."""

_COMPILED = {
    "argmax", "argmin", "argsort", "astype", "broadcast_to", "count_nonzero", "expand_dims", "flip", "matrix_transpose",
    "moveaxis", "ones_like", "permute_dims", "reshape", "sort", "squeeze", "tile", "tril", "triu", "unstack",
    "zeros_like",
}  # fmt: skip
_COMPILED_OF_SEVERAL = {"broadcast_arrays", "meshgrid", "take", "take_along_axis"}


def _compiled_filler(name: str) -> Callable[..., Raw]:
    """A function that makes an array of a shape; it is compiled for each shape, as in JAX."""
    plain = getattr(jnp, name)
    fill_on = for_all_rules(plain)
    compiled = lru_cache(maxsize=4096)(
        lambda shape, dtype: for_all_rules(jax.jit(partial(plain, shape, dtype), inline=INLINE))
    )

    def fill(shape: Any, *, dtype: DType, device: Any = None) -> Raw:
        is_known = device is None and {*map(type, shape if isinstance(shape, tuple) else (shape,))} <= {int}
        return compiled(shape, dtype)() if is_known else fill_on(shape, dtype, device=device)

    return fill


_fillers = {name: _compiled_filler(name) for name in ("empty", "ones", "zeros")}


_asarray = for_all_rules(jnp.asarray)
_astype = for_all_rules(jnp.astype)
_convert_weakly = for_all_rules(p.convert_element_type_p.bind)
# This copies an array of NumPy in less time than `jnp.asarray`.
_moved = for_all_rules(jax.jit(lambda array: array, inline=INLINE))


def _cast(operand: Any, target: DType, weak: bool) -> Any:
    aval = jax.typeof(operand)
    if weak and target == _weak_dtype(as_format(target).category):
        if aval.dtype == target:
            return operand
        return p.convert_element_type_p.bind(operand, new_dtype=target, weak_type=True, sharding=None)
    if aval.dtype == target and not (weak and aval.weak_type):
        return operand
    if target == _BOOL and jnp.issubdtype(aval.dtype, jnp.complexfloating):
        return operand != 0  # a conversion would drop the imaginary part
    # Under rules for the other x64 flag JAX's functions would promote weak dtypes that are not JAX's own now.
    # Computations use the strong dtype.
    return jax.lax.convert_element_type(operand, target)


_BOOL = as_format("bool").dtype


def _weak_dtype(category: str) -> DType:
    """The dtype of weak arrays of a category in JAX, under its flags as they are now."""
    rules = JAX_X64 if is_x64() else JAX_X32
    return _BOOL if category == "bool" else rules.decide(None, (as_operand(weak_name(category)),)).dtype


def _cast_result(result: Any, decided: ResultType) -> Any:
    """The result with the dtype and the weak flag of the decision."""
    aval = jax.typeof(result)
    if (aval.dtype, aval.weak_type) == (decided.dtype, decided.weak):
        return result
    return p.convert_element_type_p.bind(result, new_dtype=decided.dtype, weak_type=decided.weak, sharding=None)


@cache
def _is_known(dtype: DType) -> bool:
    try:
        with jax.enable_x64(True):
            jax.eval_shape(lambda: jnp.zeros((), dtype))
    except TypeError:
        return False
    return True


def _is_wide(dtype: DType) -> bool:
    return as_format(dtype).name in JAX_X32.held_as


# XLA computes in all formats of JAX with at least this many bits; for the others `_computes_in` finds out.
_LEAST_BITS = 8
# XLA's compiler for CPUs ends the process when it concatenates formats of two bits (JAX 0.10.2 and 0.12.0).
_CRASHING_BITS = (2,)


def _not_computed(dtypes: Sequence[DType]) -> str:
    return f"JAX has {' and '.join(map(str, dtypes))}, but does not compute in it on this device"


def _needs_x64_error(plan: CallPlan) -> RuntimeDtypeError:
    if (asked := plan.options.get("dtype")) is not None:
        JAX.native_dtype(asked)  # its error has the right fix
    operands = ", ".join(str(key.operand) for key in plan.keys)
    return RuntimeDtypeError(
        f"{plan.operation.name}({operands}): the rules decide {plan.result.dtype}, computed in {plan.compute[0]}, "
        "which JAX does not have while its x64 is off",
        "use jax.config.update('jax_enable_x64', True), or supremum.use_rules('jax-x32')",
    )


def _as_jax_array(cast: Callable[[Any], Any], dtype: DType, value: Any) -> Any:
    """A Python number or NumPy array as an array of JAX, with the dtype given by name."""
    # JAX treats NumPy's scalars as Python numbers, which it first converts to 32 bits.
    return _asarray(np.asarray(cast(value)), dtype)


def _with_x64_check(prepared: Callable[..., Raw], explicit: Callable[..., Raw], plan: CallPlan) -> Callable[..., Raw]:
    """A function that computes in 64 bits and reads JAX's flags at each call.

    Args:
        prepared: what to call with x64 on.
        explicit: what to call with x64 off if explicit 64-bit dtypes are allowed.
        plan: the plan.
    """

    def compute_under_flags(*operands: Any) -> Raw:
        if is_x64():
            return prepared(*operands)
        if not holds_64_bits():
            raise _needs_x64_error(plan)
        return explicit(*operands)

    return compute_under_flags


def _only_traced(run: Callable[..., Raw], lacking: Sequence[DType], plan: CallPlan) -> Callable[..., Raw]:
    """A function of formats that XLA does not compute in: JAX may trace it, and any other call raises.

    Since JAX 0.12 XLA ends the process when it compiles some operations of these formats; before, it raised an error.
    """

    def compute_traced(*operands: Any) -> Raw:
        if any(isinstance(each, Tracer) for each in operands):
            return run(*operands)
        raise RuntimeDtypeError(_not_computed(lacking), decision=plan.decision)

    return compute_traced


@cache
def _computes_in(dtype: DType) -> bool:
    """Whether XLA computes in a dtype, and converts it, on the device that JAX computes on."""
    try:
        # Formats of few bits fail first with several elements that come from the host.
        with jax.ensure_compile_time_eval():
            jax.jit(lambda x: jnp.real(x + x).astype("float32"))(jnp.asarray(np.ones(4, dtype))).block_until_ready()
    except (jax.errors.JaxRuntimeError, ValueError):
        return False
    return True


def _is_computed(prepared: Callable[..., Raw], operands: Sequence[Any]) -> bool:
    """Whether JAX computes a prepared function for operands of these dtypes, whatever their shapes."""
    scalars = [np.zeros((), each.dtype) if isinstance(each, np.ndarray) else each for each in operands]
    places = [position for position, each in enumerate(operands) if isinstance(each, jax.Array)]

    def compute(*arrays: Raw) -> Raw:
        arguments = [*scalars]
        for position, array in zip(places, arrays, strict=True):
            arguments[position] = array
        return prepared(*arguments)

    try:
        jax.eval_shape(compute, *(jax.ShapeDtypeStruct((), operands[position].dtype) for position in places))
    except (TypeError, ValueError, NotImplementedError):
        return False
    return True


def _fails_in_float32(plan: CallPlan, operands: Sequence[Any]) -> bool:
    """Whether JAX does not compute a function that a plan builds for arrays of these shapes in float32 either."""
    if plan.build is None:
        return False
    function = plan.build(JAX, replace(plan, compute=(_FLOAT32,) * len(operands), result=ResultType(_FLOAT32)))
    try:
        jax.eval_shape(function, *(jax.ShapeDtypeStruct(np.shape(each), _FLOAT32) for each in operands))
    except (TypeError, ValueError, NotImplementedError):
        return True
    return False


_FLOAT32 = as_format("float32").dtype
JAX = JaxBackend()
