"""The report of autocast: which operations run in which dtype, and why, and which products it left alone."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jax.extend.core import Jaxpr, JaxprEqn

from supremum import jaxprs
from supremum.bounded_cache import Bounded
from supremum.errors import near_names
from supremum.formats import FORMATS, DType, Kind, as_format
from supremum.jax_compat import function_name, function_place, open_jaxpr
from supremum.mixed_precision.autocasting import operations
from supremum.mixed_precision.autocasting.equation_rules import WRITTEN_FOR_DTYPES, AutocastRule
from supremum.mixed_precision.autocasting.settings import Settings, castable, foreign
from supremum.mixed_precision.policy.policy import PolicyWarning
from supremum.mixed_precision.policy.policy_map import PolicyMap, UnmatchedPatternWarning
from supremum.render import aligned
from supremum.reports import Report, plain_data, plain_fields, plural
from supremum.user_frame import warn_user

_SHOWN = 3
_WIDE = frozenset(row.dtype for row in FORMATS if row.kind is Kind.FLOAT and row.bits > as_format("float32").bits)


class UncastProductsWarning(PolicyWarning):
    """Autocast left products alone, inside a function that it rewrites only on request, or it found nothing to cast.

    >>> import warnings, jax, jax.numpy as jnp
    >>> from supremum.mixed_precision import autocast
    >>> square = jax.custom_vjp(lambda x: x @ x)
    >>> square.defvjp(lambda x: (x @ x, x), lambda x, g: (g @ x.T + x.T @ g,))
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = autocast(square)(jnp.ones((2, 2)))
    >>> caught[0].category.__name__, str(caught[0].message)[:41]
    ('UncastProductsWarning', 'autocast left 1 of 1 products in float32,')
    """


@dataclass(frozen=True, slots=True)
class UncastFunction:
    """A function in which autocast left products alone.

    Args:
        function: its name, or the name of the primitive if it has none; empty for products of the program itself.
        defined: the place of its definition, as `file:line`; empty if JAX does not know.
        called: the user's line that calls it; empty if JAX does not know.
        dtype: the name of the dtype of its products.
        enter: the names to put into `ops={name: "inside"}` to have the products cast; empty if `ops` cannot do it.
        leave: the name to put into `ops={name: "declared"}` to leave the products alone on purpose.
        primitive: the primitive that autocast does not enter.

    >>> import warnings, jax, jax.numpy as jnp
    >>> from supremum.mixed_precision import autocast
    >>> cube = jax.custom_vjp(lambda x: x @ x @ x)
    >>> cube.defvjp(lambda x: (x @ x @ x, x), lambda x, g: (3 * x.T @ x.T @ g,))
    >>> with warnings.catch_warnings(record=True, action="always"):
    ...     ((function, count),) = autocast(cube).report(jnp.ones((2, 2))).products.left
    >>> function.dtype, function.primitive, function.enter, count
    ('float32', 'custom_vjp_call', ('<lambda>',), 2)
    """

    function: str
    defined: str
    called: str
    dtype: str
    enter: tuple[str, ...]
    leave: str
    primitive: str

    def __str__(self) -> str:
        where = ", ".join(filter(None, [self.defined, f"called at {self.called}" if self.called else ""]))
        return f"{self.function!r}{f' ({where})' if where else ''}"


@dataclass(frozen=True, slots=True)
class ProductCounts:
    """The number of products in a program, and the products that autocast left alone, by function.

    Args:
        count: the number of products of floats that autocast casts.
        left: the functions with products that were left alone without a request, each with the number of products.
        compute_dtype: the name of the dtype in which the products would run.
        casts_nothing: whether there are no products, and autocast casts nothing else either.

    >>> import jax.numpy as jnp
    >>> from supremum.mixed_precision import autocast
    >>> x = w = jnp.ones((2, 2))
    >>> autocast(lambda x, w: x @ w @ w).report(x, w).products
    ProductCounts(count=2, left=(), compute_dtype='bfloat16')
    """

    count: int
    left: tuple[tuple[UncastFunction, int], ...]
    compute_dtype: str
    casts_nothing: bool = field(default=False, repr=False)

    def describe(self) -> str:
        """Describe the products that were left alone, with a fix; empty if there are none.

        The products of a float64 program are reported too: autocast never casts them. So is a program in which autocast
        casts nothing, because it has no products.
        """
        if self.casts_nothing:
            return (
                f"autocast casts nothing: it runs products of real floats in {self.compute_dtype}, and the function "
                "has none; report(...) says why its operations keep their dtypes. Remove it, or pass enabled=False."
            )
        if not self.left:
            return ""
        number = sum(count for _, count in self.left)
        dtypes = " and ".join(sorted({left.dtype for left, _ in self.left}))
        start = f"autocast left {number} of {self.count} products in {dtypes}"
        if not self.left[0][0].function:
            return f"{start}, which is never cast: pass float32 arguments, as in x.astype('float32')"
        shown = [f"{left}" if len(self.left) == 1 else f"{left}: {count}" for left, count in self.left[:_SHOWN]]
        more = f" and {len(self.left) - _SHOWN} more" if len(self.left) > _SHOWN else ""
        return f"{start}, inside {'; '.join(shown)}{more}. {' '.join(self._fixes())}"

    def _fixes(self) -> Iterable[str]:
        opened = [left for left, _ in self.left if left.enter]
        closed = [left for left, _ in self.left if not left.enter]
        if opened:
            inside = dict.fromkeys((name for left in opened for name in left.enter), operations.INSIDE)
            yield (
                f"ops={inside!r} casts them too (compare the results: adaptive solvers may need many more steps); "
                f"ops={_leave_declared(opened)!r} leaves them without this warning."
            )
        if closed:
            primitives = " and ".join(map(repr, dict.fromkeys(left.primitive for left in closed)))
            yield (
                f"autocast does not rewrite the function that {primitives} runs: apply autocast to that function, or "
                f"cast its operands with x.astype({self.compute_dtype!r}); ops={_leave_declared(closed)!r} leaves them "
                "without this warning."
            )


def _leave_declared(left: Iterable[UncastFunction]) -> dict[str, str]:
    return {each.leave: operations.DECLARED for each in left}


def count_products(rewritten: jaxprs.Rewritten, rule: AutocastRule) -> ProductCounts:
    """Count the products of a rewritten program.

    Args:
        rewritten: the program.
        rule: the rule by which it was rewritten.
    """
    search = _Search(rule)
    products = search.rewritten(rewritten, ())
    compute = str(rule.settings.compute_dtype(()))
    inputs = open_jaxpr(rewritten.function).invars
    if not products.count and products.wide and any(foreign(var.aval) in _WIDE for var in inputs):
        left = [(UncastFunction("", "", "", dtype, (), "", ""), count) for dtype, count in products.wide.items()]
        return ProductCounts(products.wide.total(), tuple(left), compute)
    nothing = not products.count and not products.left and _casts_nothing(rewritten, search)
    return ProductCounts(products.count, tuple(products.left.items()), compute, nothing)


def _casts_nothing(rewritten: jaxprs.Rewritten, search: _Search) -> bool:
    """Whether a program keeps all its dtypes, although it has floats that are wider than the compute dtype.

    A product in a dtype that the program asks for is what it is about, so that there is nothing to cast.
    """
    entries = list(_entries(rewritten))
    if any(_casts(entry) or search.is_asked_for(entry.equation) for entry, *_ in entries):
        return False
    return any(search.is_left(entry.equation, scopes) for entry, scopes, *_ in entries)


def _casts(entry: jaxprs.RewriteRecord) -> bool:
    pairs = zip(entry.action.operands, entry.equation.invars, strict=False)
    return any(dtype is not None and dtype != castable(jaxprs.aval_of(atom)) for dtype, atom in pairs)


_said: Bounded[tuple[object, str], None] = Bounded(1024)


def warn_of_left(function: Callable[..., Any], products: ProductCounts) -> None:
    """Warn about products that were left alone, once for each function definition and message.

    Args:
        function: the function that was traced.
        products: its products.
    """
    message = products.describe()
    # The code object is the same for all functions and methods that a loop makes of one definition.
    code = getattr(inspect.unwrap(function), "__code__", type(function))
    if message and (code, message) not in _said:
        _said[code, message] = None
        warn_user(message, UncastProductsWarning)


@dataclass(frozen=True, slots=True)
class _ProductCount:
    """The number of products, the products left alone by function, and the products of wider floats by dtype."""

    count: int
    left: Counter[UncastFunction]
    wide: Counter[str]


class _Search:
    """Counts products; a function that is called often is searched once."""

    def __init__(self, rule: AutocastRule) -> None:
        self.rule = rule
        self._known: dict[Any, _ProductCount] = {}

    def rewritten(self, function: jaxprs.Rewritten, scopes: tuple[str, ...]) -> _ProductCount:
        """Count the products of a function that autocast rewrote."""
        key = id(function), scopes
        if key not in self._known:
            self._known[key] = _sum([self._entry(entry, scopes) for entry in function.record])
        return self._known[key]

    def _entry(self, entry: Any, scopes: tuple[str, ...]) -> _ProductCount:
        equation, note = entry.equation, entry.action.note
        inner = self._within(scopes, note.scopes)
        if entry.functions:
            products = _sum([self.rewritten(function, inner) for function in entry.functions])
        elif self._is_product(equation):
            products = _product(equation)
        else:
            products = _sum([self._left(callee.jaxpr, inner, (equation,)) for callee in jaxprs.callees(equation)])
            if not note.unasked:
                products = replace(products, left=Counter())
        # A function that JAX traces once for many callers has no line in user code.
        if any(not left.called for left in products.left):
            place = jaxprs.user_place(equation)
            left = Counter({replace(each, called=each.called or place): n for each, n in products.left.items()})
            products = replace(products, left=left)
        return products

    def _left(
        self, function: Jaxpr, scopes: tuple[str, ...], path: tuple[JaxprEqn, ...], of_jax: bool = True
    ) -> _ProductCount:
        """Count the products of a function that autocast did not rewrite.

        Args:
            function: the function.
            scopes: the named scopes around it.
            path: the call that autocast left alone, and the calls within it that lead to the function.
            of_jax: whether the called function is JAX's own code.
        """
        enter = tuple(
            dict.fromkeys(jaxprs.name_of_call(each) for each in path if each.primitive.name in WRITTEN_FOR_DTYPES)
        )
        closed = next((each for each in path if each.primitive.name not in jaxprs.ENTERED), None)
        key = id(function), scopes, id(path[0]), enter, id(closed), of_jax
        if key in self._known:
            return self._known[key]
        products: list[_ProductCount] = []
        for equation in function.eqns:
            inner = self._within(scopes, jaxprs.scopes_of(equation))
            positions = jaxprs.frames_of(equation).positions[:1]
            # Products inside JAX's solvers run in float32, like all linear algebra.
            made_by_jax = positions == jaxprs.frames_of(closed or path[0]).positions[:1] or (not positions and of_jax)
            if self._is_product(equation):
                product = _product(equation)
                if self.is_left(equation, inner) and not (closed is not None and made_by_jax):
                    product = replace(product, left=Counter({_uncast_function(path, enter, equation): 1}))
                products.append(product)
                continue
            inside = made_by_jax or (closed is None and equation.primitive.name not in jaxprs.ENTERED)
            below = [self._left(each.jaxpr, inner, (*path, equation), inside) for each in jaxprs.callees(equation)]
            if self._asked(equation) == operations.DECLARED:
                below = [replace(each, left=Counter()) for each in below]
            products += below
        self._known[key] = _sum(products)
        return self._known[key]

    def _is_product(self, equation: JaxprEqn) -> bool:
        row = self.rule.rows.get(jaxprs.operation_of(equation))
        return row is not None and row.rule == operations.COMPUTE

    def is_asked_for(self, equation: JaxprEqn) -> bool:
        """Whether an equation is a product in a dtype that the program asks for: of integers, 8 bits or float64."""
        dtypes = [dtype for atom in equation.invars if (dtype := foreign(atom.aval)) is not None]
        return self._is_product(equation) and not any(as_format(each).kind is Kind.COMPLEX for each in dtypes)

    def is_left(self, equation: JaxprEqn, scopes: tuple[str, ...]) -> bool:
        """Whether an equation declares a wider float than the compute dtype, and no scope asks for it."""
        dtype = _declared_dtype(equation)
        if dtype is None or operations.DISABLED_SCOPE in scopes or operations.DECIDED_SCOPE in scopes:
            return False
        return dtype.itemsize > self.rule.settings.compute_dtype(scopes).itemsize

    def _asked(self, equation: JaxprEqn) -> str:
        ops = self.rule.settings.ops
        return ops.get(jaxprs.name_of_call(equation), "") or ops.get(equation.primitive.name, "")

    def _within(self, outer: tuple[str, ...], scopes: tuple[str, ...]) -> tuple[str, ...]:
        if self.rule.settings.by_path:
            return (*outer, *scopes)
        # Other scopes do not matter; without them a function is searched once for all of its callers.
        marks = {operations.DISABLED_SCOPE, operations.DECIDED_SCOPE}
        return tuple(dict.fromkeys(each for each in (*outer, *scopes) if each in marks))


def _sum(counts: Sequence[_ProductCount]) -> _ProductCount:
    left = sum((each.left for each in counts), Counter[UncastFunction]())
    return _ProductCount(sum(each.count for each in counts), left, sum((each.wide for each in counts), Counter[str]()))


def _declared_dtype(equation: JaxprEqn) -> DType | None:
    return next((dtype for atom in equation.invars if (dtype := castable(atom.aval)) is not None), None)


def _product(equation: JaxprEqn) -> _ProductCount:
    dtypes = [dtype for atom in equation.invars if (dtype := foreign(atom.aval)) is not None]
    wide = [str(dtype) for dtype in dtypes if dtype in _WIDE]
    return _ProductCount(int(not dtypes and _declared_dtype(equation) is not None), Counter(), Counter(wide[:1]))


def _uncast_function(path: tuple[JaxprEqn, ...], enter: tuple[str, ...], product: JaxprEqn) -> UncastFunction:
    outermost, closed = path[0], next((each for each in path if each.primitive.name not in jaxprs.ENTERED), None)
    call = closed or outermost
    primitive = call.primitive.name
    function = jaxprs.callees(call)[0].jaxpr
    name = jaxprs.name_of_call(call) or function_name(function)
    known = outermost.primitive.name in WRITTEN_FOR_DTYPES
    return UncastFunction(
        function=name if closed is None else f"{primitive} of {name}",
        defined=function_place(function),
        called=jaxprs.user_place(call),
        dtype=str(_declared_dtype(product)),
        enter=() if closed is not None else enter,
        leave=jaxprs.name_of_call(outermost) if known else outermost.primitive.name,
        primitive=primitive,
    )


@dataclass(frozen=True, slots=True)
class AutocastRow:
    """Operations of one primitive, on one line, that run in the same dtype for the same reason.

    Args:
        operation: the name of the primitive.
        dtype: the name of the dtype in which it runs.
        declared: the name of the dtype in which it would run without autocast.
        why: the reason.
        path: the named scopes around it, such as `"encoder/norm"`.
        line: its line in the program.
        count: the number of operations.
        runs: how often they run in one run of the program; None if that depends on values.

    >>> import jax.numpy as jnp
    >>> from supremum.mixed_precision import autocast
    >>> row = (
    ...     autocast(lambda x: jnp.exp(x @ x), "mixed_bfloat16")
    ...     .report(jnp.ones((2, 2)))
    ...     .rows[1]
    ... )
    >>> row.operation, row.dtype, row.declared, row.why
    ('exp', 'float32', 'float32', 'its result soon leaves the range of float16')
    """

    operation: str
    dtype: str
    declared: str
    why: str
    path: str
    line: str
    count: int
    runs: int | None


@dataclass(frozen=True, slots=True, repr=False)
class AutocastReport(Report):
    """The report of autocast about a program.

    Args:
        rows: the operations of the program in order, without operations that have no castable floats.
        products: the number of products, and the products that autocast left alone without a request.

    >>> import jax.numpy as jnp
    >>> from supremum.mixed_precision import autocast
    >>> half = autocast(lambda x: jnp.exp(x @ x).sum(), "mixed_bfloat16")
    >>> report = half.report(jnp.ones((2, 2)))
    >>> print(report.summary())
    bfloat16  1 x dot_general
    float32   1 x exp, 1 x reduce_sum
    """

    rows: tuple[AutocastRow, ...]
    products: ProductCounts

    @property
    def title(self) -> str:
        """The number of operations, and of products."""
        operations = sum(row.count for row in self.rows)
        return f"{plural(operations, 'operation')}, {plural(self.products.count, 'product')}"

    def summary(self) -> str:
        """List the operations of each dtype on one line, then the products that were left alone."""
        counts: dict[str, Counter[str]] = {}
        for row in self.rows:
            counts.setdefault(row.dtype, Counter())[row.operation] += row.count
        width = max(map(len, counts), default=0)
        lines = [
            f"{dtype:{width}}  " + ", ".join(f"{count} x {name}" for name, count in sorted(counts[dtype].items()))
            for dtype in sorted(counts)
        ]
        return "\n".join([*lines, *filter(None, [self.products.describe()])])

    def to_dict(self) -> dict[str, Any]:
        """Convert the report to plain data for JSON."""
        left = [plain_fields(left) | {"count": count} for left, count in self.products.left]
        return {"rows": plain_data(self.rows), "products": {"count": self.products.count, "left": left}}

    def __str__(self) -> str:
        lines = [("runs", "operation", "in", "instead of", "path", "line", "why")]
        for row in self.rows:
            runs = "?" if row.runs is None else str(row.runs)
            declared = "" if row.declared == row.dtype else row.declared
            lines.append((runs, row.operation, row.dtype, declared, row.path, row.line, row.why))
        return "\n".join([aligned(lines), *filter(None, [self.products.describe()])])


def report_of(rewritten: jaxprs.Rewritten, products: ProductCounts) -> AutocastReport:
    """Make the report about a rewritten program."""
    merged: dict[tuple[str, ...], list[int | None]] = {}
    for entry, scopes, calls, trips in _entries(rewritten):
        note = entry.action.note
        declared = _declared_dtype(entry.equation) or note.dtype
        if note.dtype is None or entry.functions or (entry.action.vanishes and declared == note.dtype):
            continue
        # A function that JAX traces once for many callers, such as the body of jnp.where, has no line in user code.
        line = next(filter(None, map(jaxprs.line_of, (entry.equation, *reversed(calls)))), "")
        key = (entry.equation.primitive.name, str(note.dtype), str(declared), note.reason, "/".join(scopes), line)
        merged.setdefault(key, []).append(trips)
    rows = (
        AutocastRow(*key, count=len(trips), runs=None if None in trips else sum(filter(None, trips)))
        for key, trips in merged.items()
    )
    return AutocastReport(tuple(rows), products)


def warn_of_unmatched(settings: Settings, rewritten: jaxprs.Rewritten) -> None:
    """Warn about names in `ops` and patterns that match nothing in the program, which are probably misspelt."""
    unknown = settings.ops.keys() - operations.AUTOCAST_OPERATIONS.keys()
    if not unknown and not settings.by_path:
        return
    entries = list(_entries(rewritten))
    if isinstance(settings.policy, PolicyMap):
        settings.policy.check(dict.fromkeys("/".join(scopes) for _, scopes, *_ in entries))
    equations = [entry.equation for entry, *_ in entries]
    names = {name for each in equations for name in (each.primitive.name, jaxprs.name_of_call(each))}
    for name in sorted(unknown - names):
        near = near_names(name, {*operations.AUTOCAST_OPERATIONS, *names} - {""})
        hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
        message = f"ops has {name!r}, which is not a known primitive and not a function called here{hint}"
        warn_user(message, UnmatchedPatternWarning)


def _entries(
    rewritten: jaxprs.Rewritten, scopes: tuple[str, ...] = (), calls: tuple[JaxprEqn, ...] = (), trips: int | None = 1
) -> Iterator[tuple[jaxprs.RewriteRecord, tuple[str, ...], tuple[JaxprEqn, ...], int | None]]:
    """Iterate over the equations of a program: record, named scopes, the calls around it, and how often it runs."""
    for entry in rewritten.record:
        inner = (*scopes, *entry.action.note.scopes)
        yield entry, inner, calls, trips
        own = jaxprs.callees(entry.equation)[0].trips if entry.functions else 1
        each = None if trips is None or own is None else trips * own
        for function in entry.functions:
            yield from _entries(function, inner, (*calls, entry.equation), each)
