"""The flow of widened values through a program: which casts follow from which, and which promotions others hide."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from supremum.formats import CATEGORIES, DType, as_format
from supremum.jax_compat import parameter
from supremum.jax_compat import primitives as p
from supremum.jaxprs import USER, Site, aval_of, callees, is_backward, loop_operands
from supremum.tracing.cast import DELIBERATE, Cast
from supremum.tracing.expressions import known_dtype
from supremum.tracing.origins import RESHAPES, CallOrigin


@dataclass(frozen=True, slots=True)
class _Width:
    """Why a value is as wide as it is.

    Args:
        cast: the number of the cast that widened it, or widened first what it was computed from; None if it was not
            widened.
        fresh: whether it is the result of that cast, at most reshaped.
        joined: whether it was just computed from several such results, such as the product of inputs and weights that a
            layer casts to the dtype of its bias.
        stored: whether it is computed from an argument or a constant of this dtype, so that it would be as wide
            without any cast.
        source: for a value that is as wide as the user made it, the input of the program that it is computed from, or
            the place of the expression that made it; None for values that a library makes or casts.
    """

    cast: int | None = None
    fresh: bool = False
    joined: bool = False
    stored: bool = False
    source: Hashable = None


_OF_LITERAL = _Width(stored=True)
_OF_NUMBER = _Width()


@dataclass(slots=True)
class _Frame:
    """One run of a function of the program.

    Args:
        caller: the equation that calls it; None for the program itself.
        jaxpr: the function.
        backward: whether it belongs to a backward pass.
        last: the last site that was visited in it.
        widths: what is known about its values.
    """

    caller: Site | None
    jaxpr: Jaxpr
    backward: bool
    last: Site | None = None
    widths: dict[Var, _Width] = field(default_factory=dict[Var, _Width])


class WideningFlow:
    """Follows widened values through one program. Visit its equations in the order of `walk`.

    If an operation takes a value that was widened before, the casts of its other operands to that dtype follow from
    the cast that widened first. A narrowing cast follows from the cast that widened its operand. Casts that the user
    asked for start nothing and follow from nothing. Nor do bools and integers that become floats: a program of floats
    makes them everywhere, and the float that they meet is as wide as it was.

    Args:
        origin_of: finds where an equation comes from.

    Attributes:
        asked_for: casts that met a value which the user widened on purpose, each with the cast that widened it.
        handed: steps of libraries that widen a float because the user's code hands them a wider one, each with the
            sources of the narrow and of the wide value.
        met: the casts whose results the equation that was visited last combines with other values.
    """

    def __init__(self, origin_of: Callable[[Site], CallOrigin]) -> None:
        self._origin_of = origin_of
        self._frames: list[_Frame] = []
        self._casts: list[Cast] = []
        self._settled = set[int]()
        self._causes: dict[int, int] = {}
        self.asked_for: dict[int, int] = {}
        self.handed: dict[int, tuple[Hashable, Hashable]] = {}
        self._sources: dict[int, Hashable] = {}
        self.met: tuple[int, ...] = ()
        self._forward: dict[Any, int] = {}

    def visit(self, site: Site, casts: Sequence[Cast]) -> int | None:
        """Visit an equation.

        Args:
            site: the equation.
            casts: the casts that it makes, in the order of its operands.

        Returns:
            The number of the cast that widened an operand whose partner would be as wide without it: without that
            cast, this equation would widen. None if there is none.
        """
        frame = self._frame_of(site)
        self.met = ()
        first = len(self._casts)
        self._casts += casts
        hidden: int | None = None
        if frame.backward or is_backward(site.equation):
            self._fold_into_forward(first)
        elif not (called := callees(site.equation)):
            hidden = self._compute(frame, site, first)
        else:
            for callee in called:
                if not callee.jaxpr.eqns:  # `walk` yields nothing of it
                    self._frames.append(_Frame(site, callee.jaxpr, False, widths=self._inputs(site, callee.jaxpr)))
                    self._leave()
        frame.last = site
        return hidden

    def cause(self, number: int) -> int:
        """The number of the cast that a cast follows from; its own number if it follows from none."""
        while number in self._causes:
            number = self._causes[number]
        return number

    def widened_results(self, site: Site) -> Iterator[tuple[int, Any]]:
        """The results of an equation that was just visited and that are wider because of a cast.

        Yields:
            The number of the cast, and the type of the result. Results of calls are those of the called function, and
            what the user widened on purpose does not count.
        """
        if callees(site.equation):
            return
        for out in site.equation.outvars:
            number = self._frames[-1].widths.get(out, _OF_NUMBER).cast
            if number is None or self._is_deliberate(number):
                continue
            if getattr(aval_of(out), "dtype", None) == self._casts[number].target:
                yield number, aval_of(out)

    def is_widened(self, atom: Var | Literal) -> bool:
        """Whether a value that is in use now was widened by a cast."""
        return isinstance(atom, Var) and self._width(atom).cast is not None

    def _fold_into_forward(self, first: int) -> None:
        """Gradients have the dtypes of the forward pass: their casts follow from those of the same expression."""
        for number in range(first, len(self._casts)):
            forward = self._forward.get(self._casts[number].place)
            if forward is not None and self._casts[number].kind not in DELIBERATE:
                self._causes[number] = forward

    def _compute(self, frame: _Frame, site: Site, first: int) -> int | None:
        equation = site.equation
        widths = [self._width(atom) for atom in equation.invars]
        for number in range(first, len(self._casts)):
            if not self._casts[number].converts:  # which has no cast in the backward pass
                self._forward.setdefault(self._casts[number].place, number)
        if equation.primitive is p.convert_element_type_p:
            if first < len(self._casts):
                result = self._of_cast(first, widths[0], is_strong=not aval_of(equation.outvars[0]).weak_type)
            else:  # only the weak flag changes
                result = widths[0] if aval_of(equation.invars[0]).dtype == aval_of(equation.outvars[0]).dtype else None
            frame.widths[equation.outvars[0]] = result or _OF_NUMBER
            return None
        dtypes = self._convert_operands(equation, first, widths)
        hidden: int | None = None
        for out in equation.outvars:
            dtype_of_result = getattr(aval_of(out), "dtype", None)
            if dtype_of_result is None or known_dtype(dtype_of_result) is None:
                continue
            pairs = zip(widths, dtypes, strict=True)
            alike = [width for width, dtype in pairs if dtype is not None and dtype == dtype_of_result]
            frame.widths[out], hidden_here = self._meet(alike, site)
            hidden = hidden_here if hidden is None else hidden
            if (place := self._maker_of(site, out)) is not None:
                frame.widths[out] = _Width(stored=True, source=place)
        return hidden

    def _convert_operands(self, equation: JaxprEqn, first: int, widths: list[_Width]) -> list[DType | None]:
        """Update the widths of the operands that an equation casts itself, as products and powers do.

        Args:
            equation: the equation.
            first: the number of its first cast.
            widths: the widths of its operands.

        Returns:
            The dtypes of the operands after the casts; None for an operand without a dtype.
        """
        dtypes: list[DType | None] = [getattr(aval_of(atom), "dtype", None) for atom in equation.invars]
        number = first
        for place, dtype in enumerate(dtypes):
            if number < len(self._casts) and dtype is not None and dtype == self._casts[number].source:
                widths[place], dtypes[place] = self._of_cast(number, widths[place]), self._casts[number].target
                number += 1
        return dtypes

    def _maker_of(self, site: Site, out: Any) -> Hashable:
        """The user's expression that makes a float of no other of its dtype, as `jnp.ones(3)` does; None if none."""
        result = aval_of(out)
        variables = (aval_of(atom) for atom in site.equation.invars if isinstance(atom, Var))
        if result.weak_type or not as_format(result.dtype).is_inexact:
            return None
        if any(getattr(aval, "dtype", None) == result.dtype for aval in variables):
            return None
        maker = self._origin_of(site).maker
        return maker if maker is not None and maker.owner == USER else None

    def _of_cast(self, number: int, operand: _Width, *, is_strong: bool = False) -> _Width:
        cast = self._casts[number]
        if cast.converts and cast.kind not in DELIBERATE:
            is_made = is_strong and cast.kind == "conversion"
            return _Width(stored=True, source=cast.place) if is_made else _OF_NUMBER
        if _starts_widening(cast):
            self._sources[number] = operand.source
            return _Width(number, fresh=True, source=cast.place if cast.kind == "explicit" else None)
        if operand.cast is not None:
            root = self.cause(operand.cast)
            before = self._casts[root]
            # A library that brings the result back to its own dtype widens on purpose.
            if (cast.kind, cast.place, cast.target) == (before.kind, before.place, before.source):
                self.handed.pop(root, None)
        if operand.cast is not None and cast.kind not in DELIBERATE and not self._is_deliberate(operand.cast):
            self._causes[number] = operand.cast
        return _OF_NUMBER

    def _meet(self, widths: Sequence[_Width], site: Site) -> tuple[_Width, int | None]:
        """The width of a result, and the cast that hides that this operation would widen.

        Args:
            widths: those of the operands with the dtype of the result.
            site: the equation.
        """
        if site.equation.primitive in RESHAPES and widths:  # still the same value
            return widths[0], None
        asked, started, fresh = self._causes_of(widths)
        self.met += tuple(fresh)
        earlier = min(map(self.cause, started), default=None)
        self._settle(fresh, earlier, asked)
        cause = min(map(self.cause, (*started, *fresh)), default=asked)
        source = next((width.source for width in widths if width.source is not None), None)
        joined = [width.cast for width in widths if width.cast is not None and width.joined]
        for number in (*fresh, *joined) if source is not None else ():
            self._hand(number, source, site)
        stored = any(width.stored for width in widths)
        hidden = earlier if stored and not fresh else None
        is_of_user = cause is None or self._is_deliberate(cause)
        is_joined, is_stored = len({*fresh}) > 1, stored and cause is None
        return _Width(cause, joined=is_joined, stored=is_stored, source=source if is_of_user else None), hidden

    def _causes_of(self, widths: Sequence[_Width]) -> tuple[int | None, list[int], list[int]]:
        """The casts that widened values: the first that the user asked for, the earlier ones, and those of results."""
        widened = [(width.cast, width.fresh) for width in widths if width.cast is not None]
        asked = min((number for number, _ in widened if self._is_deliberate(number)), default=None)
        others = [(number, is_fresh) for number, is_fresh in widened if not self._is_deliberate(number)]
        started = [number for number, is_fresh in others if not is_fresh]
        return asked, started, [number for number, is_fresh in others if is_fresh]

    def _settle(self, fresh: Sequence[int], earlier: int | None, asked: int | None) -> None:
        """Find what the casts follow from whose results meet other values here for the first time.

        Args:
            fresh: the casts.
            earlier: the first cast that widened the other values; None if none did.
            asked: the cast with which the user widened them on purpose; None if there is none.
        """
        for number in fresh:
            if number in self._settled:
                continue
            self._settled.add(number)
            if earlier is not None and self.cause(number) != earlier:
                self._causes[number] = earlier
            elif earlier is None and asked is not None:
                self.asked_for[number] = asked

    def _hand(self, number: int, source: Hashable, site: Site) -> None:
        """Note that a value which a library just widened meets one that came as wide into the same call."""
        cast = self._casts[number]
        if cast.kind != "library" or number in self._causes or source == cast.place:
            return
        if self._origin_of(site).user == cast.place:
            self.handed[number] = self._sources.get(number), source

    def _is_deliberate(self, number: int) -> bool:
        return self._casts[number].kind in DELIBERATE

    def _width(self, atom: Any) -> _Width:
        if isinstance(atom, Literal):
            return _OF_NUMBER if aval_of(atom).weak_type else _OF_LITERAL
        for frame in reversed(self._frames):
            if atom in frame.widths:
                return frame.widths[atom]
        return _OF_NUMBER

    def _frame_of(self, site: Site) -> _Frame:
        """The frame of the function that contains an equation; leaves and enters functions as needed."""
        while self._frames:
            frame = self._frames[-1]
            if site.index == 0 and site.caller is not None and frame.last is site.caller:
                break
            if site.index > 0 and frame.caller is site.caller and frame.jaxpr is site.function:
                return frame
            self._leave()
        outer = self._frames[-1].backward if self._frames else False
        backward = outer or (site.caller is not None and is_backward(site.caller.equation))
        frame = _Frame(site.caller, site.function, backward)
        if site.caller is None:
            inputs = (*site.function.constvars, *site.function.invars)
            frame.widths = {
                var: _OF_NUMBER if getattr(var.aval, "weak_type", False) else _Width(stored=True, source=var)
                for var in inputs
            }
        else:
            frame.widths = self._inputs(site.caller, site.function)
        self._frames.append(frame)
        return frame

    def _inputs(self, caller: Site, function: Jaxpr) -> dict[Var, _Width]:
        return {own: self._width(operand) for own, operand in _arguments(caller, function)}

    def _leave(self) -> None:
        left = self._frames.pop()
        if left.caller is None or not self._frames:
            return
        results, outside = left.jaxpr.outvars, left.caller.equation.outvars
        if len(results) != len(outside):  # the condition of a loop
            return
        for inner, out in zip(results, outside, strict=True):
            width = left.widths.get(inner, _OF_NUMBER) if isinstance(inner, Var) else _OF_NUMBER
            known = self._frames[-1].widths.get(out)  # from another branch
            if known is None or known.cast is None:
                self._frames[-1].widths[out] = width


def _arguments(caller: Site, function: Jaxpr) -> Iterator[tuple[Var, Any]]:
    """The inputs of a called function, each with the operand that it is called with."""
    operands, equation = caller.equation.invars, caller.equation
    if equation.primitive is p.while_p and function is parameter(equation, "cond_jaxpr").jaxpr:
        loop = loop_operands(equation)
        operands = [*operands[: loop.condition], *operands[loop.first_carry :]]
    # The index of a cond comes before the operands of its branches.
    count = min(len(function.invars), len(operands))
    return zip(function.invars[len(function.invars) - count :], operands[len(operands) - count :], strict=True)


def _starts_widening(cast: Cast) -> bool:
    """Whether a cast goes to a higher category or to more bits."""
    before, after = as_format(cast.source), as_format(cast.target)
    return (CATEGORIES.index(after.category), after.bits) > (CATEGORIES.index(before.category), before.bits)
