"""The products that autocast left as they were though nobody asked for that, and what would cast them."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn

from supremum.bounded_cache import Bounded
from supremum.formats import DType, Kind, as_format
from supremum.jax_compat import function_name, function_place, open_jaxpr
from supremum.jaxprs import ENTERED, Rewritten, callees, frames_of, name_of_call, scopes_of, user_place
from supremum.mixed_precision.autocasting.castable_dtypes import castable, foreign
from supremum.mixed_precision.autocasting.equation_rules import (
    DECIDED_SCOPE,
    DISABLED_SCOPE,
    WRITTEN_FOR_DTYPES,
    AutocastRule,
)
from supremum.mixed_precision.autocasting.operations import COMPUTE, DECLARED, INSIDE
from supremum.mixed_precision.policy.global_policy import PolicyWarning
from supremum.user_frame import warn_user

_SHOWN = 3
_FLOAT32 = as_format("float32")


class UncastProductsWarning(PolicyWarning):
    """Autocast left products as they were, inside a function that it does not rewrite without being asked to."""


@dataclass(frozen=True, slots=True)
class UncastFunction:
    """A function in which autocast left products.

    Args:
        function: its name; that of the primitive where it has none, and empty for products of the program itself.
        defined: where it is written, as `file:line`; empty where JAX does not know.
        called: the user's line that calls it, likewise.
        dtype: the name of the dtype that its products were left in.
        enter: the names that `ops={name: "inside"}` needs for these products to be cast; empty where nothing does it.
        leave: the name that `ops={name: "declared"}` needs for them to be left on purpose.
        primitive: the primitive that is in the way.
    """

    function: str
    defined: str
    called: str
    dtype: str
    enter: tuple[str, ...]
    leave: str
    primitive: str

    def __str__(self) -> str:
        places = [self.defined, f"called at {self.called}" if self.called else ""]
        where = ", ".join(place for place in places if place)
        return f"{self.function!r}{f' ({where})' if where else ''}"


@dataclass(frozen=True, slots=True)
class ProductCounts:
    """How many products a program has, and how many autocast left in which functions.

    Args:
        count: how many there are, on floats that autocast casts.
        left: the functions in which some were left though nobody asked for it, each with their number.
        compute_dtype: the dtype they would run in.
    """

    count: int
    left: tuple[tuple[UncastFunction, int], ...]
    compute_dtype: str

    def describe(self) -> str:
        """What was left, and what to type; empty if nothing was.

        A float64 program has no products that are cast at all, which is said as well.
        """
        if not self.left:
            return ""
        number = sum(count for _, count in self.left)
        dtypes = " and ".join(sorted({left.dtype for left, _ in self.left}))
        start = f"autocast left {number} of {self.count} products in {dtypes}"
        if not self.left[0][0].function:
            return f"{start}, which is never cast: give it arguments in float32, as in x.astype('float32')"
        shown = [f"{left}" if len(self.left) == 1 else f"{left}: {count}" for left, count in self.left[:_SHOWN]]
        more = f" and {len(self.left) - _SHOWN} more" if len(self.left) > _SHOWN else ""
        return f"{start}, inside {'; '.join(shown)}{more}. {' '.join(self._fixes())}"

    def _fixes(self) -> Iterable[str]:
        opened = [left for left, _ in self.left if left.enter]
        closed = [left for left, _ in self.left if not left.enter]
        if opened:
            inside = dict.fromkeys((name for left in opened for name in left.enter), INSIDE)
            yield (
                f"ops={inside!r} casts them too (compare the results: adaptive solvers may need many more steps); "
                f"ops={_leaving(opened)!r} leaves them without this warning."
            )
        if closed:
            primitives = " and ".join(map(repr, dict.fromkeys(left.primitive for left in closed)))
            yield (
                f"autocast does not rewrite what {primitives} runs: put autocast around the function that it is given, "
                f"or cast its operands with x.astype({self.compute_dtype!r}); ops={_leaving(closed)!r} leaves them "
                "without this warning."
            )


def _leaving(left: Iterable[UncastFunction]) -> dict[str, str]:
    return {each.leave: DECLARED for each in left}


def count_products(rewritten: Rewritten, rule: AutocastRule) -> ProductCounts:
    """The products of a rewritten program.

    Args:
        rewritten: the program.
        rule: what decided the dtypes.
    """
    found = _Search(rule).rewritten(rewritten, ())
    compute = str(rule.settings.compute_dtype(()))
    given = open_jaxpr(rewritten.function).invars
    if not found.count and found.wide and any(_is_wide(foreign(var.aval)) for var in given):
        left = [(UncastFunction("", "", "", dtype, (), "", ""), count) for dtype, count in found.wide.items()]
        return ProductCounts(found.wide.total(), tuple(left), compute)
    return ProductCounts(found.count, tuple(found.left.items()), compute)


_said: Bounded[tuple[object, str], None] = Bounded(1024)


def warn_of_left(function: Callable[..., Any], products: ProductCounts) -> None:
    """Warn of products that were left, once for each function that is written somewhere and what is said about it.

    Args:
        function: the function that was traced.
        products: its products.
    """
    message = products.describe()
    if not message:
        return
    # By code, of which there is one for all the functions and methods that are made of it in a loop.
    code = getattr(inspect.unwrap(function), "__code__", type(function))
    if (code, message) not in _said:
        _said[code, message] = None
        warn_user(message, UncastProductsWarning)


@dataclass(frozen=True, slots=True)
class _Found:
    """How many products there are, how many of them were left in which functions, and those of wider floats."""

    count: int
    left: Counter[UncastFunction]
    wide: Counter[str]


class _Search:
    """Counts products; a function that is called often is looked through once."""

    def __init__(self, rule: AutocastRule) -> None:
        self.rule = rule
        self._known: dict[Any, _Found] = {}

    def rewritten(self, function: Rewritten, scopes: tuple[str, ...]) -> _Found:
        """The products of a function that autocast went through."""
        key = id(function), scopes
        if key not in self._known:
            self._known[key] = self._sum([self._entry(entry, scopes) for entry in function.record])
        return self._known[key]

    def _entry(self, entry: Any, scopes: tuple[str, ...]) -> _Found:
        equation, note = entry.equation, entry.action.note
        inner = self._within(scopes, note.scopes)
        if entry.functions:
            found = self._sum([self.rewritten(function, inner) for function in entry.functions])
        elif self._is_product(equation):
            found = _product(equation)
        else:
            found = self._sum([self._left(callee.jaxpr, inner, equation, ()) for callee in callees(equation)])
            if not note.unasked:
                found = replace(found, left=Counter())
        # What JAX traced once for many callers has no line of the user's.
        if any(not left.called for left in found.left):
            place = user_place(equation)
            left = Counter({replace(each, called=each.called or place): n for each, n in found.left.items()})
            found = replace(found, left=left)
        return found

    def _left(
        self,
        function: Jaxpr,
        scopes: tuple[str, ...],
        outermost: JaxprEqn,
        callers: tuple[JaxprEqn, ...],
        of_jax: bool = True,
    ) -> _Found:
        """The products of a function that autocast did not go through.

        Args:
            function: the function.
            scopes: the named scopes around it.
            outermost: the call that autocast left alone.
            callers: the calls in it that led to the function.
            of_jax: whether JAX wrote what was called there.
        """
        path = (outermost, *callers)
        enter = tuple(dict.fromkeys(name_of_call(each) for each in path if each.primitive.name in WRITTEN_FOR_DTYPES))
        closed = next((each for each in path if each.primitive.name not in ENTERED), None)
        key = id(function), scopes, id(outermost), enter, id(closed), of_jax
        if key in self._known:
            return self._known[key]
        found: list[_Found] = []
        for equation in function.eqns:
            inner = self._within(scopes, scopes_of(equation))
            positions = frames_of(equation).positions[:1]
            # Solvers of JAX have products of their own, which run in float32 like all linear algebra.
            made_by_jax = positions == frames_of(closed or outermost).positions[:1] or (not positions and of_jax)
            if self._is_product(equation):
                product = _product(equation)
                if self._is_left(equation, inner) and not (closed is not None and made_by_jax):
                    left = _uncast_function(outermost, closed, enter, equation)
                    product = replace(product, left=Counter({left: 1}))
                found.append(product)
            elif self._asked(equation) == DECLARED:
                below = [self._left(each.jaxpr, inner, outermost, callers) for each in callees(equation)]
                found += [replace(each, left=Counter()) for each in below]
            else:
                is_closing = closed is None and equation.primitive.name not in ENTERED
                called = (*callers, equation)
                found += [
                    self._left(each.jaxpr, inner, outermost, called, is_closing or made_by_jax)
                    for each in callees(equation)
                ]
        self._known[key] = self._sum(found)
        return self._known[key]

    def _is_product(self, equation: JaxprEqn) -> bool:
        row = self.rule.rows.get(equation.primitive.name)
        return row is not None and row.rule == COMPUTE

    def _is_left(self, equation: JaxprEqn, scopes: tuple[str, ...]) -> bool:
        dtype = _castable(equation)
        if dtype is None or DISABLED_SCOPE in scopes or DECIDED_SCOPE in scopes:
            return False
        return dtype.itemsize > self.rule.settings.compute_dtype(scopes).itemsize

    def _asked(self, equation: JaxprEqn) -> str:
        ops = self.rule.settings.ops
        return ops.get(name_of_call(equation), "") or ops.get(equation.primitive.name, "")

    def _within(self, outer: tuple[str, ...], scopes: tuple[str, ...]) -> tuple[str, ...]:
        if self.rule.settings.by_path:
            return (*outer, *scopes)
        # Only what the scopes say to autocast matters, so that a function is looked through once for all of them.
        marks = {DISABLED_SCOPE, DECIDED_SCOPE}
        return tuple(dict.fromkeys(each for each in (*outer, *scopes) if each in marks))

    def _sum(self, found: Sequence[_Found]) -> _Found:
        left, wide = Counter[UncastFunction](), Counter[str]()
        for each in found:
            left.update(each.left)
            wide.update(each.wide)
        return _Found(sum(each.count for each in found), left, wide)


def _castable(equation: JaxprEqn) -> DType | None:
    return next((dtype for atom in equation.invars if (dtype := castable(atom.aval)) is not None), None)


def _product(equation: JaxprEqn) -> _Found:
    dtypes = [dtype for atom in equation.invars if (dtype := foreign(atom.aval)) is not None]
    wide = [str(dtype) for dtype in dtypes if _is_wide(dtype)]
    return _Found(int(not dtypes and _castable(equation) is not None), Counter(), Counter(wide[:1]))


def _is_wide(dtype: DType | None) -> bool:
    row = None if dtype is None else as_format(dtype)
    return row is not None and row.kind is Kind.FLOAT and row.bits > _FLOAT32.bits


def _uncast_function(
    outermost: JaxprEqn, closed: JaxprEqn | None, enter: tuple[str, ...], product: JaxprEqn
) -> UncastFunction:
    call = closed or outermost
    primitive = call.primitive.name
    function = callees(call)[0].jaxpr
    name = name_of_call(call) or function_name(function)
    known = outermost.primitive.name in WRITTEN_FOR_DTYPES
    return UncastFunction(
        function=name if closed is None else f"{primitive} of {name}",
        defined=function_place(function),
        called=user_place(call),
        dtype=str(_castable(product)),
        enter=() if closed is not None else enter,
        leave=name_of_call(outermost) if known else outermost.primitive.name,
        primitive=primitive,
    )
