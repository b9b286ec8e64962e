"""The class of every cast in a program, and why it is in that class.

The class follows from the user's source: an operator promotes, and a call that names a dtype casts on purpose. For
other calls the operands decide: it is a promotion if they mix dtypes and the rules explain the cast. Otherwise the
class is unknown. Where there is no source, the compiled instruction tells an operator from a call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Literal as Number
from numpy.lib.mixins import NDArrayOperatorsMixin

from supremum.decisions import Decision
from supremum.errors import ArgumentError, OperandError
from supremum.formats import DType, Kind, as_format
from supremum.jax_compat import primitives as p
from supremum.jax_compat import type_text
from supremum.jaxprs import BETWEEN, CAST_SCOPE, EXPLICIT_ENTRIES, OURS, USER, Position, Site, aval_of, scopes_of
from supremum.operands import Operand, as_operand
from supremum.rules import get_rules
from supremum.tracing.cast import OR, Cast, CastClass, HiddenPromotion, converts
from supremum.tracing.expressions import NO_SOURCE, UNRESOLVED, SourceIntent, Sources, literal_of
from supremum.tracing.origins import CallOrigin, Carry, Origins

T = TypeVar("T")
_MAY_PROMOTE = "; its operands mix dtypes, so it may be a promotion"
_IN_CUSTOM_RULE = "in a derivative rule of jax.custom_jvp or custom_vjp, for which JAX keeps no position"
# Expressions that need no parentheses before a method call.
_PLAIN = re.compile(r"[A-Za-z_][\w.]*(\([^()]*\)|\[[^\[\]]*\])*")
# The methods of all operators, with the reflected ones and those in place.
_METHODS = frozenset(name for name, value in vars(NDArrayOperatorsMixin).items() if callable(value))


class CastClassifier:
    """Classifies the casts of one program. Forward passes must come before their backward passes."""

    def __init__(self) -> None:
        self._origins = Origins()
        self.origin_of = self._origins.of
        self._sources = Sources()
        self._forward: dict[Position, CastClass] = {}

    def classify(self, site: Site, operand: ShapedArray, target: DType, times: int | None) -> Cast:
        """Find out why there is a cast.

        Args:
            site: the equation that casts.
            operand: the abstract value that it casts.
            target: the dtype after.
            times: how often the cast runs.
        """
        source, origin = operand.dtype, self._origins.of(site)
        place = origin.place
        intent, atoms, texts, decision, carry = NO_SOURCE, (), (), None, None
        kind: CastClass = "autocast"
        reason = "the gradient of a cast by autocast" if origin.backward else f"autocast brings it to {target} here"
        if CAST_SCOPE not in scopes_of(site.equation):
            carry = self._origins.carry(site)
            atoms = self._origins.operands(origin.site) if carry is None else carry.operands
            intent, origin = self._intent_of(origin)
            texts = _texts(intent, atoms) if carry is None else (carry.name, "")
            called = origin.site.equation.primitive is p.jit_p
            decision = _decision(intent, atoms, source, target, literals=called)
            numbers = [atom for atom in atoms if isinstance(atom, Number) and aval_of(atom).weak_type]
            weak = any(aval_of(atom).dtype == source for atom in numbers)
            kind, reason = self._class(origin, intent, decision, weak, source, target)
            # The gradient of a float is a float, so that a conversion has no cast in the backward pass.
            maker = None if origin.backward or kind == "conversion" else origin.maker
            if maker is not None and self._forward.get(maker) != "promotion":
                self._forward[maker] = kind
        return Cast(
            source=source,
            target=target,
            shape=operand.shape,
            weak=operand.weak_type,
            times=times,
            kind=kind,
            reason=reason,
            file="" if place is None else place.file,
            line=0 if place is None else place.line,
            expression="" if place is None else self._sources.text(place),
            path=tuple((position, self._sources.text(position)) for position in origin.path),
            operands=_described(texts, atoms),
            scope=site.path,
            operation=site.equation.primitive.name,
            fix=_fix(intent, carry, decision, texts, operand, target) if kind in ("promotion", "conversion") else "",
            decision=decision if kind in ("promotion", "conversion", "unknown") else None,
            library=_library(origin, kind),
        )

    def hidden(self, site: Site, widened: Callable[[Any], bool], source: DType) -> HiddenPromotion | None:
        """Find out whether the user's expression would promote if its operands had not been widened before.

        Args:
            site: the equation.
            widened: tells whether an operand was widened.
            source: the dtype that the widened operands would have.
        """
        origin = self._origins.of(site)
        maker = origin.maker
        if maker is None or maker.owner != USER:
            return None
        intent = self._sources.intent(maker)
        atoms = self._origins.operands(origin.site)
        texts = _promoted(intent, _texts(intent, atoms))
        atoms = _promoted(intent, atoms)
        if not texts or not any(map(widened, atoms)):
            return None
        target = next(aval_of(atom).dtype for atom in atoms if widened(atom))
        # A number in the program was a Python number, unless the source shows that it has a dtype.
        arrays = _promoted(intent, intent.makes_arrays)
        is_number = [isinstance(atom, Number) and not array for atom, array in zip(atoms, arrays, strict=True)]
        rows = [(atom, text) for atom, text, skip in zip(atoms, texts, is_number, strict=True) if not skip]
        operands = [
            replace(as_operand(atom.aval), dtype=source) if widened(atom) else as_operand(atom.aval) for atom, _ in rows
        ]
        try:
            decision = get_rules("jax").decide(intent.operation, operands)
        except (ArgumentError, OperandError):
            return None
        if not has_cast(decision, source, target):
            return None
        fix = fix_of(decision, [text for _, text in rows], source, target, in_place=intent.in_place)
        return HiddenPromotion(maker, self._sources.text(maker), fix)

    def argument(self, position: Position, value: str, *, is_array: bool) -> str:
        """The source text of the argument of a call that passes on an input of the program; empty if unclear.

        Args:
            position: the position of the call.
            value: the input as Python would write it, such as `"batch['x']"`; its name may be unknown at the call.
            is_array: whether it is an argument of the program by itself, and not in a container.
        """
        node = self._sources.node(position)
        if not isinstance(node, ast.Call) or _mentions(node.func, value.partition("[")[0].partition(".")[0]):
            return ""
        values = (*node.args, *(each.value for each in node.keywords))
        candidates = [each for each in values if literal_of(each) is UNRESOLVED]
        arguments = [each for each in candidates if _mentions(each, value)] or (candidates if is_array else [])
        return self._sources.source(position.file).text(arguments[0]) if len(arguments) == 1 else ""

    def _intent_of(self, origin: CallOrigin) -> tuple[SourceIntent, CallOrigin]:
        """What the expression that casts says; an operator that a library only forwards belongs to the user."""
        maker, user = origin.maker, origin.user
        if maker is None:
            return NO_SOURCE, origin
        if maker.owner == USER or user is None:
            return self._sources.intent(maker), origin
        # An operator belongs to the user even if a container forwards it to the array that it holds.
        of_user = self._sources.intent(user)
        return (of_user, replace(origin, maker=user)) if self._is_forwarded(of_user, origin) else (NO_SOURCE, origin)

    def _is_forwarded(self, intent: SourceIntent, origin: CallOrigin) -> bool:
        """Whether the user's operator causes the cast, and the methods of the operands only forward it.

        If the operator of a library's object computes something itself, such as the product of two poses, that
        computation has separate operands. An operator is forwarded if all calls on the way are operator methods, of
        which Python calls the outermost itself, and the innermost uses the same operator, or calls a method or a
        function for it.
        """
        outer = origin.between[:-1]
        is_of_methods = all(each.owner == OURS or each.function.rpartition(".")[2] in _METHODS for each in outer)
        if intent.kind != "operator" or not is_of_methods:
            return False
        if all(position.owner == OURS for position in origin.between):
            return True  # our arrays forward every operator
        inner = self._sources.intent(origin.between[0])
        if inner.kind in ("operator", ""):
            return inner.kind == "" or inner.operation == intent.operation
        name = inner.called.rpartition(".")[2]
        # getattr(self.value, name)(other)
        is_looked_up = name.endswith(")")
        is_same = inner.operation == intent.operation and (inner.operation is not None or name in ("matmul", "dot"))
        return inner.kind == "call" and (name in _METHODS or is_looked_up or is_same)

    def _class(
        self,
        origin: CallOrigin,
        intent: SourceIntent,
        decision: Decision | None,
        weak: bool,
        source: DType,
        target: DType,
    ) -> tuple[CastClass, str]:
        """The class of a cast and the reason; `weak` tells whether an operand is a weak number of the source dtype."""
        maker = origin.maker
        if maker is not None and maker.owner != USER:
            return "library", f"{maker.owner} casts at {maker}: {self._sources.text(maker)}"
        if origin.in_custom_rule and not intent.of_jax:
            mixes = decision is not None and not converts(source, target)
            return "unknown", f"{_IN_CUSTOM_RULE}{_MAY_PROMOTE if mixes else ''}"
        if intent.names_dtype and (intent.dtype is None or intent.dtype in (source, target)):
            return "explicit", f"the call asks for {'a dtype' if intent.dtype is None else intent.dtype}"
        if origin.entry in EXPLICIT_ENTRIES and not intent.of_jax and intent.kind != "operator":
            return "explicit", "the called function only casts"
        if decision is not None:
            return "conversion" if converts(source, target) else "promotion", "; ".join(decision.reason)
        if origin.backward and maker is not None and maker in self._forward:
            return self._forward[maker], f"the backward pass of a cast: its gradient goes back to {target}"
        return _unexplained(origin, intent, weak, source)


def _unexplained(origin: CallOrigin, intent: SourceIntent, weak: bool, source: DType) -> tuple[CastClass, str]:
    """The class of a cast that neither a dtype in the source nor the operands explain, and the reason."""
    if intent.kind == "operator":
        if weak:
            return "library", f"JAX passes the number as {source} and then casts it to the other operand's dtype"
        return "unknown", "its operands do not explain it: a transformation may have inserted it"
    if intent.kind == "index":
        return "library", "JAX casts indices to the dtype that it indexes with"
    if origin.maker is None:
        return "library", "inside JAX; none of the user's lines led there"
    if intent.kind == "":
        return "unknown", "the source of this line cannot be read, and its operands do not mix dtypes"
    if intent.of_jax or origin.entry:
        return "library", f"a step inside {intent.called or 'JAX'}, whose operands do not mix dtypes"
    return "unknown", "the source does not tell which function is called, and its operands do not mix dtypes"


def _decision(
    intent: SourceIntent, atoms: Sequence[Any], source: DType, target: DType, *, literals: bool
) -> Decision | None:
    """What the rules decide about the operands, if that explains the cast.

    Args:
        intent: what the source says.
        atoms: the operands.
        source: the dtype before.
        target: the dtype after.
        literals: whether literals are arguments, as of a jitted function, where they stay weak.
    """
    if not any(getattr(atom.aval, "dtype", None) == source for atom in atoms):
        return None
    atoms = _promoted(intent, atoms)
    # A literal is a Python number or a 0-d array. In a call, JAX itself may also have put it there, but its own numbers
    # never widen a float.
    is_clear = intent.kind == "operator" or intent.operation or literals
    promoting, numbers = atoms, intent.numbers
    if not is_clear:
        numbers = ()
        widens = as_format(source).kind is Kind.FLOAT and as_format(target).bits > as_format(source).bits
        promoting = [atom for atom in atoms if not isinstance(atom, Number) or (widens and not aval_of(atom).weak_type)]
    try:
        choices = [_operands(promoting, numbers, weak=weak) for weak in (not literals, False)]
    except OperandError:  # a key or a token, which is never promoted
        return None
    rules = get_rules("jax")
    for operands in choices:
        for operation in dict.fromkeys((intent.operation, None)):
            with suppress(ArgumentError):
                decision = rules.decide(operation, operands)
                if has_cast(decision, source, target):
                    return decision
    return None


def _mentions(node: ast.AST, text: str) -> bool:
    """Whether an expression has a name, or an element such as `batch['x']`, in it."""
    return any(ast.unparse(each) == text for each in ast.walk(node) if isinstance(each, ast.expr))


def promotion_of_caller(cast: Cast) -> Cast:
    """A cast of a library as a promotion of the user's call, which hands the library floats of two dtypes.

    Args:
        cast: the cast.
    """
    operands = as_operand(cast.source), as_operand(cast.target)
    reason = f"the call hands {cast.library} values of {cast.source} and {cast.target}; {cast.reason}"
    return replace(cast, kind="promotion", reason=reason, decision=get_rules("jax").decide(None, operands))


def has_cast(decision: Decision, source: DType, target: DType) -> bool:
    """Whether a decision casts an operand from one dtype to another."""
    return any((cast.source, cast.target) == (source, target) for cast in decision.casts if cast.source is not None)


def _operands(atoms: Sequence[Any], numbers: Sequence[Operand | None], *, weak: bool) -> tuple[Operand, ...]:
    operands: list[Operand] = []
    for atom, number in zip(atoms, numbers if len(numbers) == len(atoms) else (None,) * len(atoms), strict=True):
        is_number = isinstance(atom, Number)
        if is_number and number is not None:
            operands.append(number)
        else:
            is_weak = is_number and (weak or aval_of(atom).weak_type)
            operands.append(as_operand(np.asarray(atom.val).item() if is_weak else aval_of(atom)))
    return tuple(operands)


def _library(origin: CallOrigin, kind: CastClass) -> str:
    if kind != "library":
        return ""
    return BETWEEN if origin.maker is None or origin.maker.owner == USER else origin.maker.owner


def _promoted(intent: SourceIntent, operands: Sequence[T]) -> Sequence[T]:
    """The operands that promote; the condition of a `where` does not."""
    return operands[1:] if intent.operation == "where" and len(operands) == 3 else operands


def _texts(intent: SourceIntent, atoms: Sequence[Any]) -> tuple[str, ...]:
    """The source text of each operand; empty if they are unknown."""
    return intent.operands if len(intent.operands) == len(atoms) else ()


def _described(texts: Sequence[str], atoms: Sequence[Any]) -> tuple[str, ...]:
    described: list[str] = []
    for atom, text in zip(atoms, texts or ("",) * len(atoms), strict=True):
        if isinstance(atom, Number):
            described.append(text or str(np.asarray(atom.val)))
        else:
            kind = f"{type_text(atom.aval)}{' (weak)' if getattr(atom.aval, 'weak_type', False) else ''}"
            described.append(f"{text}: {kind}" if text else kind)
    return tuple(described)


def _fix(
    intent: SourceIntent,
    carry: Carry | None,
    decision: Decision | None,
    texts: Sequence[str],
    value: Any,
    target: DType,
) -> str:
    if carry is None:
        return fix_of(decision, _promoted(intent, texts), value.dtype, target, in_place=intent.in_place)
    name = carry.name or "the carry"
    number = f"a number such as {np.zeros((), target).item()}{OR}with " if converts(value.dtype, target) else ""
    return f"start {name} with {number}jnp.asarray({name}, '{target}')"


def fix_of(
    decision: Decision | None, texts: Sequence[str], source: DType, target: DType, *, in_place: bool = False
) -> str:
    """What to write instead of a promotion: an explicit cast, or casts of the other operands to the narrower dtype.

    Args:
        decision: what the rules decide about the operands; None if they do not explain the cast.
        texts: the source text of each operand; a different number of texts means that they are unknown.
        source: the dtype that is promoted.
        target: the dtype that it is promoted to.
        in_place: whether the result is written into the first operand, whose cast then needs a statement of its own.

    >>> from supremum import explain
    >>> decided = explain("bfloat16", "float32", rules="jax")
    >>> fix_of(
    ...     decided, ("x", "w + 1"), *(operand.dtype for operand in decided.operands)
    ... )
    "x.astype('float32') to compute in float32, or (w + 1).astype('bfloat16') to stay in bfloat16"
    """
    operands = () if decision is None else decision.operands
    texts = texts if len(texts) == len(operands) else [""] * len(operands)
    arrays = [pair for pair in zip(texts, operands, strict=True) if not pair[1].is_python_scalar]
    stored = texts[0] if in_place and texts else None
    cast = [(text, operand) for text, operand in arrays if operand.dtype == source]
    strong = [(text, operand) for text, operand in cast if not operand.weak]
    widen = _join_casts(strong or cast, target, stored) or as_method("", target, source)
    # A weak operand follows the others, and widens none of them.
    others = [(text, operand) for text, operand in arrays if operand.dtype != source and not operand.weak]
    # A cast to another category would drop fractions.
    same_category = all(operand.category == as_format(source).category for operand in operands)
    stay = (
        f"{OR}{_join_casts(others, source, stored)} to stay in {source}" if strong and others and same_category else ""
    )
    return f"{widen} to compute in {target}{stay}"


def _join_casts(operands: Iterable[tuple[str, Operand]], target: DType, stored: str | None) -> str:
    """The casts of some operands to a dtype; that of the operand that an operator writes to is a statement."""
    casts = ((text, as_method(text, target, operand.dtype)) for text, operand in operands)
    return " and ".join(dict.fromkeys(f"{text} = {cast}" if text and text == stored else cast for text, cast in casts))


def as_method(text: str, target: DType, source: DType | None = None) -> str:
    """The source text of a cast.

    Args:
        text: the source text of the operand; empty if unknown.
        target: the dtype to cast to.
        source: the dtype of the operand, to name it if its text is unknown.
    """
    if not text:
        return f".astype('{target}') on the {source} operand"
    return f"{text if _PLAIN.fullmatch(text) else f'({text})'}.astype('{target}')"
