"""Who caused a cast: the class of every conversion in a program, and why it is in that class.

A class is read off the user's own source: an operator promotes, a call that names a dtype casts on purpose. For other
calls the operands decide: what the rules make of them, if they mix, is a promotion. What neither says is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from jax.extend.core import Literal as Number

from supremum.decisions import Decision
from supremum.errors import ArgumentError, OperandError
from supremum.formats import DType
from supremum.jax_compat import primitives as p
from supremum.jaxprs import EXPLICIT_ENTRIES, OURS, USER, Position, Site, Sources, aval_of, is_of_autocast
from supremum.operands import Operand, as_operand
from supremum.rules import get_rules
from supremum.tracing.expression_operands import Functions
from supremum.tracing.fixes import fix_of
from supremum.tracing.origins import Origin
from supremum.tracing.source_intent import NOTHING, SourceIntent, source_intent

CastClass: TypeAlias = Literal["promotion", "explicit", "library", "autocast", "unknown"]
CLASSES: tuple[CastClass, ...] = ("promotion", "explicit", "library", "autocast", "unknown")
"""The user's expression mixed dtypes; it asks for the cast; it is in JAX or a library; autocast has put it there; none
of these can be told."""


_BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
_METHODS = frozenset(
    f"__{name}__"
    for name in (
        *(f"{side}{name}" for name in _BINARY for side in ("", "r", "i")),
        *("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert"),
    )
)


@dataclass(frozen=True, slots=True)
class Classification:
    """Why there is a cast.

    Args:
        kind: its class.
        reason: why it is in that class.
        operands: what met in the expression, each as `"text: dtype[shape]"`.
        fix: for a promotion, what to write instead.
        decision: for a promotion, what the rules say about those operands; None where they do not say it.
    """

    kind: CastClass
    reason: str
    operands: tuple[str, ...]
    fix: str = ""
    decision: Decision | None = None


class CastClassifier:
    """Judges the casts of one program, forward passes before their backward passes.

    Args:
        functions: the functions of the program.
        sources: the files it is written in.
    """

    def __init__(self, functions: Functions, sources: Sources) -> None:
        self._functions = functions
        self._sources = sources
        self._intents: dict[Position, SourceIntent] = {}
        self._forward: dict[Position, CastClass] = {}

    def classify(self, site: Site, origin: Origin, source: DType, target: DType) -> Classification:
        """Why there is a cast from one dtype to another.

        Args:
            site: the equation that casts.
            origin: where it comes from.
            source: the dtype before.
            target: the dtype after.
        """
        if is_of_autocast(site.equation):
            reason = "the gradient of a cast by autocast" if origin.backward else f"autocast brings it to {target} here"
            return Classification("autocast", reason, ())
        atoms = self._functions.of(origin.site).operands(origin.site.index)
        maker, said = origin.maker, NOTHING
        if origin.user is not None and maker is not None and maker.owner != USER:
            # An operator is the user's, whatever container forwards it to its array.
            said = self._said(origin.user)
            maker, said = (origin.user, said) if self._is_forwarded(said, origin) else (maker, NOTHING)
            origin = replace(origin, maker=maker)
        elif maker is not None:
            said = self._said(maker)
        called = origin.site.equation.primitive is p.jit_p
        decision = _decision(said, atoms, source, target, literals=called)
        number = any(
            isinstance(atom, Number) and aval_of(atom).weak_type and _dtype_of(atom) == source for atom in atoms
        )
        kind, reason = self._class(origin, said, decision, source, target, number=number)
        if not origin.backward and origin.maker is not None and self._forward.get(origin.maker) != "promotion":
            self._forward[origin.maker] = kind
        if kind != "promotion":
            return Classification(kind, reason, _shown(said, atoms))
        fix = fix_of(decision, said.operands, source, target)
        return Classification(kind, reason, _shown(said, atoms), fix, decision)

    def _is_forwarded(self, said: SourceIntent, origin: Origin) -> bool:
        """Whether what casts is the user's operator, which the operands' own methods only hand on.

        What an operator of a library's object computes in itself, such as the product of two poses, has operands of
        its own. It hands them on where all calls on the way are methods of operators, of which Python calls the
        outermost itself, and the innermost writes that operator, or calls a method or a function that is one.
        """
        if said.kind != "operator" or not all(map(_is_operator_method, origin.between[:-1])):
            return False
        if all(position.owner == OURS for position in origin.between):
            return True  # our arrays have no operands of their own
        inner = self._said(origin.between[0])
        if inner.kind in ("operator", ""):
            return inner.kind == "" or inner.operation == said.operation
        name = inner.called.rpartition(".")[2]
        # getattr(self.value, name)(other)
        is_looked_up = name.endswith(")")
        is_same = inner.operation == said.operation and (inner.operation is not None or name in ("matmul", "dot"))
        return inner.kind == "call" and (name in _METHODS or is_looked_up or is_same)

    def _said(self, position: Position) -> SourceIntent:
        if position not in self._intents:
            source = self._sources.source(position.file)
            self._intents[position] = source_intent(self._sources.node(position), source)
        return self._intents[position]

    def _class(
        self,
        origin: Origin,
        said: SourceIntent,
        decision: Decision | None,
        source: DType,
        target: DType,
        *,
        number: bool,
    ) -> tuple[CastClass, str]:
        maker = origin.maker
        if maker is not None and maker.owner != USER:
            return "library", f"{maker.owner} casts at {maker}: {self._sources.text(maker)}"
        if origin.in_custom_rule and not said.of_jax:
            return "unknown", "in a derivative rule by jax.custom_jvp or custom_vjp, of which JAX keeps no position"
        if said.names_dtype and (said.dtype is None or said.dtype in (source, target)):
            named = "a dtype" if said.dtype is None else str(said.dtype)
            return "explicit", f"the call asks for {named}"
        if origin.entry in EXPLICIT_ENTRIES and not said.of_jax and said.kind != "operator":
            return "explicit", "the function that is called casts, and does nothing else"
        if decision is not None:
            return "promotion", "; ".join(decision.reason)
        if origin.backward and maker is not None and maker in self._forward:
            return self._forward[maker], f"the backward pass of a cast there: its gradient goes back to {target}"
        if said.kind == "operator" and number:
            return "library", f"JAX hands on the number as {source}, and gives it there the dtype of the other operand"
        if said.kind == "operator":
            return "unknown", "its operands do not explain it: a transformation may have put it there"
        if said.kind == "index":
            return "library", "JAX casts indices to the dtype it indexes with"
        return _inside(origin, said)


def _is_operator_method(position: Position) -> bool:
    return position.owner == OURS or position.function.rpartition(".")[2] in _METHODS


def _inside(origin: Origin, said: SourceIntent) -> tuple[CastClass, str]:
    if origin.maker is None:
        return "library", "inside JAX; no line of the user's led there"
    if said.kind == "":
        return "unknown", "the source of this line cannot be read, and its operands are not mixed"
    if said.of_jax or origin.entry:
        return "library", f"a step inside {said.called or 'JAX'}, whose operands are not mixed"
    return "unknown", "what is called here cannot be told from its source, and its operands are not mixed"


def _decision(
    said: SourceIntent, atoms: Sequence[Any], source: DType, target: DType, *, literals: bool
) -> Decision | None:
    """What the rules say about the operands, if it is this cast.

    Args:
        said: what is written there.
        atoms: the operands.
        source: the dtype before.
        target: the dtype after.
        literals: whether literals are what was passed, as to a jitted function, where they keep their weakness.
    """
    if not any(_dtype_of(atom) == source for atom in atoms):
        return None
    if said.operation == "where" and len(atoms) == 3:
        atoms = atoms[1:]  # the condition promotes nothing
    # A literal is a number of Python's or an array without dimensions; of a call also something JAX itself put there.
    plain = [atom for atom in atoms if not isinstance(atom, Number)]
    seen, numbers = (atoms, said.numbers) if said.kind == "operator" or said.operation or literals else (plain, ())
    try:
        choices = [_operands(seen, numbers, weak=not literals), _operands(seen, numbers, weak=False)]
    except OperandError:  # a key, a token: nothing that is promoted
        return None
    rules = get_rules("jax")
    for operands in choices:
        for operation in (said.operation, None) if said.operation else (None,):
            try:
                decision = rules.decide(operation, operands)
            except ArgumentError:
                continue
            if any(cast.source == source and cast.target == target for cast in decision.casts):
                return decision
    return None


def _dtype_of(atom: Any) -> DType | None:
    return getattr(atom.aval, "dtype", None)


def _operands(atoms: Sequence[Any], numbers: Sequence[Operand | None], *, weak: bool) -> tuple[Operand, ...]:
    numbers = numbers if len(numbers) == len(atoms) else (None,) * len(atoms)
    return tuple(_operand(atom, number, weak=weak) for atom, number in zip(atoms, numbers, strict=True))


def _operand(atom: Any, number: Operand | None, *, weak: bool) -> Operand:
    if isinstance(atom, Number):
        if number is not None:
            return number
        if weak or aval_of(atom).weak_type:
            return as_operand(np.asarray(atom.val).item())
    return as_operand(atom.aval)


def _shown(said: SourceIntent, atoms: Sequence[Any]) -> tuple[str, ...]:
    texts = said.operands if len(said.operands) == len(atoms) else ("",) * len(atoms)
    shown: list[str] = []
    for atom, text in zip(atoms, texts, strict=True):
        if isinstance(atom, Number):
            shown.append(text or str(np.asarray(atom.val)))
        else:
            kind = f"{atom.aval.str_short()}{' (weak)' if getattr(atom.aval, 'weak_type', False) else ''}"
            shown.append(f"{text}: {kind}" if text else kind)
    return tuple(shown)
