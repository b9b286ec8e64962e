"""Calls of NumPy's functions beyond the standard, for the functions of a library and for ours, and their answers."""

import itertools
import warnings

import jax
import numpy as np

REAL = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]
COMPLEX = ["complex64", "complex128"]
AXES = [None, 0, 1, 2, -1, -2, (0, 1), (2, 0), (-1, 1), (0, 1, 2)]
KEPT = [{"axis": axis, "keepdims": kept} for axis, kept in itertools.product(AXES, (False, True))]
ALONG = [{"axis": axis} for axis in (None, 0, 1, 2, -1)]
MODES = ["full", "same", "valid"]


def cube(dtype):
    """An array of three dimensions, with several equal elements."""
    values = np.random.default_rng(0).integers(0, 9, (3, 2, 5)).astype(dtype)
    return values + dtype(0.5j) if values.dtype.kind == "c" else values


def line(dtype, length=7):
    """A vector."""
    return np.random.default_rng(length).integers(0, 5, length).astype(dtype)


def holed(dtype):
    """An array with NaNs, if the dtype has them."""
    values = cube(dtype)
    if values.dtype.kind in "fc":
        values[0, 1, 2] = values[2, :, 3] = np.nan
    return values


def _on(name, options, make=cube, *more):
    """Calls of a function on an array, one for each dictionary of options."""
    return [lambda f, wrap, dtype, each=each: getattr(f, name)(wrap(make(dtype)), *more, **each) for each in options]


VECTOR_NORMS = [*itertools.product((0, -1), (None, 0, 1, 2, 3, np.inf), (False, True))]
MATRIX_NORMS = [*itertools.product(((0, 2), (2, 1)), (None, 1, -1, np.inf), (False, True))]
POINTS = np.array([0, 1, 3, 4, 9])
TABLES = {
    "mean(dtype=)": _on("mean", [{**each, "dtype": dtype} for each in KEPT[:6] for dtype in ("float32", "float64")]),
    "median": _on("median", KEPT) + _on("median", KEPT, holed),
    "nansum": _on("nansum", KEPT) + _on("nansum", KEPT, holed),
    "nansum(dtype=)": _on("nansum", [{"axis": axis, "dtype": "float64"} for axis in AXES], holed),
    "nanmean": _on("nanmean", KEPT) + _on("nanmean", KEPT, holed),
    "quantile": _on("quantile", KEPT, cube, 0.3) + _on("quantile", KEPT, holed, 0.3) + _on("quantile", [{}], cube, 1.0),
    "quantile of an array": _on("quantile", KEPT, cube, np.array([[0.1, 0.9], [1.0, 0.0]])),
    "quantile by an element": [
        call for way in ("lower", "higher", "nearest") for call in _on("quantile", [{"method": way}], cube, 0.3)
    ],
    "quantile by a midpoint": _on("quantile", [{"method": "midpoint", "axis": axis} for axis in (0, 2)], cube, 0.3),
    "percentile": _on("percentile", KEPT, cube, 65.0) + _on("percentile", KEPT[:4], cube, [5.0, 100.0]),
    "unique": _on(
        "unique",
        [
            dict(zip(("return_index", "return_inverse", "return_counts"), flags, strict=True))
            for flags in itertools.product((False, True), repeat=3)
        ],
    ) + _on("unique", [{}, {"equal_nan": False, "return_counts": True}], holed),
    "hstack": [
        lambda f, wrap, dtype: f.hstack([wrap(cube(dtype)), wrap(cube(dtype)[:, :1])]),
        lambda f, wrap, dtype: f.hstack((wrap(line(dtype)), wrap(line(dtype)[0, ...]))),
    ],
    "vstack": [
        lambda f, wrap, dtype: f.vstack([wrap(cube(dtype)), wrap(cube(dtype)[:1])]),
        lambda f, wrap, dtype: f.vstack((wrap(line(dtype)), wrap(cube(dtype)[:, 0, :2].reshape(1, 6)[:, [0] * 7]))),
    ],
    "isclose": [
        lambda f, wrap, dtype: f.isclose(wrap(holed(dtype)), wrap(cube(dtype))),
        lambda f, wrap, dtype: f.isclose(wrap(holed(dtype)), wrap(holed(dtype)[..., ::-1]), rtol=0.3, equal_nan=True),
        lambda f, wrap, dtype: f.isclose(wrap(cube(dtype)), 3, atol=1.5),
        lambda f, wrap, dtype: f.isclose(3.0, wrap(cube(dtype)), atol=1.5),
    ],
    "allclose": [
        lambda f, wrap, dtype: f.logical_not(f.allclose(wrap(cube(dtype)), wrap(cube(dtype)), rtol=0)),
        lambda f, wrap, dtype: f.logical_not(f.allclose(wrap(holed(dtype)), wrap(holed(dtype)))),
    ],
    "einsum": [
        lambda f, wrap, dtype: f.einsum("abc,dbc->ad", wrap(cube(dtype)), wrap(cube(dtype))),
        lambda f, wrap, dtype: f.einsum("i,i", wrap(line(dtype)), wrap(line(dtype))),
        lambda f, wrap, dtype: f.einsum("...c,c->...", wrap(cube(dtype)), wrap(line(dtype, 5))),
        lambda f, wrap, dtype: f.einsum("abc->ba", wrap(cube(dtype))),
        lambda f, wrap, dtype: f.einsum("...c,c,...b", wrap(cube(dtype)), wrap(line(dtype, 5)), wrap(line(dtype, 2))),
        lambda f, wrap, dtype: f.einsum("ab,c d,be->cad e".replace(" ", ""), *[wrap(cube(dtype)[:, 0, :3])] * 3),
    ],
    "einsum with lists": [lambda f, wrap, dtype: f.einsum(wrap(cube(dtype)), [0, 1, 2], wrap(line(dtype, 5)), [2])],
    "pad": _on("pad", [{}, {"constant_values": 1}], cube, 2) + _on("pad", [{}], cube, ((0, 1), (2, 0), (3, 3)))
    + _on("pad", [{"mode": mode} for mode in ("edge", "reflect", "symmetric", "wrap")], cube, ((0, 7), (1, 0), (3, 3)))
    + _on("pad", [{"constant_values": (1, 0)}], line, (2, 1)),
    "histogram": _on("histogram", [{}, {"bins": 4}, {"range": (1, 6), "bins": 3}, {"bins": [0, 2, 5]}]),
    "histogram(density=)": _on("histogram", [{"bins": 4, "density": True}]),
    "histogram(weights=)": [
        lambda f, wrap, dtype: f.histogram(wrap(cube("float64")), bins=4, weights=wrap(cube(dtype)))
    ],
    "bincount": _on("bincount", [{}, {"minlength": 9}], line),
    "bincount(weights=)": [lambda f, wrap, dtype: f.bincount(wrap(line("int64")), weights=wrap(line(dtype)))],
    "interp": [
        lambda f, wrap, dtype: f.interp(wrap(cube(dtype)), wrap(POINTS.astype(dtype)), wrap(line(dtype, 5))),
        lambda f, wrap, dtype: f.interp(
            wrap(cube(dtype)), wrap(POINTS[1:-1].astype(dtype)), wrap(line(dtype, 3)), left=2.0, right=1.0
        ),
    ],
    "gradient": _on("gradient", [*ALONG, {"axis": (0, 2)}, {"axis": 2, "edge_order": 2}])
    + _on("gradient", [{"axis": 0, "edge_order": 2}], cube, 2.0)
    + [lambda f, wrap, dtype: f.gradient(wrap(cube(dtype)[:, 0]), 0.5, wrap(POINTS.astype("float16")), edge_order=2)],
    "convolve": [
        call
        for mode in MODES
        for call in (
            lambda f, wrap, dtype, mode=mode: f.convolve(wrap(line(dtype)), wrap(line(dtype, 3)), mode=mode),
            lambda f, wrap, dtype, mode=mode: f.convolve(wrap(line(dtype, 4)), wrap(line(dtype)), mode),
        )
    ],
    "linalg.norm": [
        lambda f, wrap, dtype, each=each: f.linalg.norm(wrap(cube(dtype)), **each)
        for each in [
            *({"axis": axis, "ord": order, "keepdims": kept} for axis, order, kept in VECTOR_NORMS),
            *({"axis": axis, "ord": order, "keepdims": kept} for axis, order, kept in MATRIX_NORMS),
            {}, {"keepdims": True},
        ]
    ],
    "linalg.norm by singular values": [
        lambda f, wrap, dtype, order=order: f.linalg.norm(wrap(cube(dtype)), order, axis=(1, 2))
        for order in (2, -2, "nuc")
    ],
}  # fmt: skip


def leaves(value):
    """The arrays in a result, which may be a tuple."""
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (tuple, list)) else [value]


def answer(call, functions, wrap, dtype):
    """The results of a call as arrays of NumPy, or the class of its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(leaf) for leaf in leaves(call(functions, wrap, np.dtype(dtype).type))]
        except (TypeError, ValueError, RuntimeError) as error:
            return error


def jitted(call, functions, wrap, dtype):
    """The same call as one that JAX compiles, of the arrays that it wraps.

    Args:
        call: the call.
        functions: the functions of JAX or ours.
        wrap: makes the array of a call from one of JAX.
        dtype: the dtype.
    """
    arrays = []
    answer(call, np, lambda array: (arrays.append(np.asarray(array)), array)[1], dtype)

    def compiled(f, _, dtype):
        def traced(*given):
            rest = iter(given)
            return call(f, lambda _: wrap(next(rest)), dtype)

        return jax.jit(traced)(*arrays)

    return answer(compiled, functions, None, dtype)


def difference(ours, theirs, ulps):
    """How two answers differ: `"error"`, `"refused"`, `"dtype"`, `"shape"` or `"values"`; None if they agree."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        same = isinstance(ours, Exception) and isinstance(theirs, Exception)
        return None if same else "refused" if isinstance(ours, Exception) else "accepted"
    if len(ours) != len(theirs) or [each.shape for each in ours] != [each.shape for each in theirs]:
        return "shape"
    for found, wanted in zip(ours, theirs, strict=True):
        if found.dtype != wanted.dtype:
            return f"{found.dtype} for {wanted.dtype}"
        if not found.size or found.dtype.kind in "biu":
            if not np.array_equal(found, wanted):
                return "values"
            continue
        epsilon = float(np.finfo(found.dtype).eps)
        scale = np.nanmax(np.abs(wanted.astype("complex128"))) if not np.isnan(wanted).all() else 0
        if not np.allclose(found, wanted, rtol=ulps * epsilon, atol=ulps * epsilon * scale, equal_nan=True):
            return "values"
    return None
