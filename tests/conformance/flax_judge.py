"""Compare our layers with Flax's: outputs, gradients and dtypes, for all dtypes of inputs, parameters and computation.

Both sides run eagerly, because they then share the compiled operations; dtypes are compared under tracing too.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import memory
from supremum.formats import as_format

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64")


class Cell(NamedTuple):
    """One combination: the dtype of the inputs, the dtype of the parameters, and the requested dtype or None."""

    inputs: str
    params: str
    asked: str | None

    @property
    def truncates_in_flax(self) -> bool:
        """Whether Flax drops imaginary parts: the requested dtype is real, and the inputs or parameters are complex."""
        return self.asked is not None and self.asked != "complex64" and "complex64" in (self.inputs, self.params)


CELLS = [Cell(*cell) for cell in itertools.product(DTYPES, DTYPES, (None, *DTYPES))]
"""The full product: 150 cells."""
EXACT = [cell for cell in CELLS if not cell.truncates_in_flax]
TRUNCATED = [cell for cell in CELLS if cell.truncates_in_flax]

gradients_everywhere = pytest.mark.parametrize(
    "everywhere", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["some gradients", "all gradients"]
)
"""Compare gradients where the test asks for it, because they take most of the time, or exhaustively in all cells."""

Layer = Callable[[Any, Any, str | None], Any]
"""A function of parameters, inputs and the requested dtype; parameters and inputs are pytrees."""


def random_like(shapes: Any, dtype: str, seed: int = 0) -> Any:
    """Draw normal numbers of a dtype for a pytree of shapes; complex numbers have both parts.

    All values are exact in float16, so all cells get the same numbers and differ by rounding only.
    """
    rng = np.random.default_rng(seed)
    is_complex = as_format(dtype).category == "complex"

    def draw(shape: tuple[int, ...]) -> jax.Array:
        real, imaginary = rng.normal(size=(2, *shape)).astype("float16").astype("float64")
        return jnp.asarray(real + 1j * imaginary if is_complex else real, dtype)

    return jax.tree.map(
        draw, shapes, is_leaf=lambda leaf: isinstance(leaf, tuple) and all(isinstance(n, int) for n in leaf)
    )


def differences(
    ours: Layer,
    theirs: Layer,
    inputs: Any,
    params: Any,
    *,
    cells: list[Cell] = CELLS,
    ulps: float = 4,
    gradients: bool = True,
) -> Iterator[str]:
    """Describe each difference between two layers in words; yield nothing where they agree.

    Args:
        ours: our layer.
        theirs: Flax's.
        inputs: shapes of the inputs, a pytree.
        params: shapes of the parameters, a pytree.
        cells: which combinations to compare, at least one; the combinations that Flax truncates need a separate test.
        ulps: the allowed difference, in units in the last place of the narrowest dtype involved, relative to the
            largest number.
        gradients: whether to compare the gradients with respect to parameters and inputs too.
    """
    assert cells
    for cell in cells:
        memory.give_back()
        given = random_like(inputs, cell.inputs, 1), random_like(params, cell.params, 2)
        found = [_outcome(layer, cell, *given, gradients=gradients) for layer in (ours, theirs)]
        traced = jax.eval_shape(lambda p, x: ours(p, x, cell.asked), given[1], given[0])  # noqa: B023 (called at once)
        if jax.tree.map(lambda leaf: leaf.dtype, traced) != jax.tree.map(lambda leaf: leaf.dtype, found[0][0]):
            yield f"{cell}: jitted {traced} has different dtypes than eager {found[0][0]}"
        names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(found[0])]
        eps = max(as_format(d).eps for d in (cell.inputs, cell.params, cell.asked) if d is not None)
        for name, a, b in zip(names, jax.tree.leaves(found[0]), jax.tree.leaves(found[1]), strict=True):
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                yield f"{cell} {name}: {a.dtype}{a.shape}, Flax has {b.dtype}{b.shape}"
                continue
            wide = [np.asarray(each, "complex128") for each in (a, b)]
            scale = max(np.abs(wide[1]).max(initial=0), 1)
            error = np.abs(wide[0] - wide[1]).max(initial=0) / scale
            if not error <= ulps * eps:
                yield f"{cell} {name}: differs by {error / eps:.1f} ulp"


def differences_with_some_gradients(
    *layers_and_shapes: Any, cells: list[Cell], with_gradients: list[Cell], everywhere: bool, ulps: float
) -> list[str]:
    """List the differences as `differences` does, with gradients in some of the cells, or everywhere."""
    others = [cell for cell in cells if cell not in with_gradients]
    chosen = [cell for cell in cells if cell in with_gradients]
    return [
        *differences(*layers_and_shapes, cells=chosen, ulps=ulps),
        *differences(*layers_and_shapes, cells=others, ulps=ulps, gradients=everywhere),
    ]


def assert_imaginary_parts_are_kept(layer: Layer, inputs: Any, params: Any, cells: list[Cell] = TRUNCATED) -> None:
    """Assert that a layer promotes a requested real dtype to a complex one where Flax drops imaginary parts."""
    assert cells
    for cell in cells:
        given, weights = random_like(inputs, cell.inputs, 1), random_like(params, cell.params, 2)
        wide = "complex128" if cell.asked == "float64" else "complex64"
        got, want = (jax.tree.leaves(layer(weights, given, dtype)) for dtype in (cell.asked, wide))
        assert any(np.any(np.asarray(leaf).imag) for leaf in want), cell
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype == wide, cell
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), str(cell))


def _outcome(layer: Layer, cell: Cell, inputs: Any, params: Any, *, gradients: bool) -> Any:
    def outputs_of(params: Any, inputs: Any) -> Any:
        return layer(params, inputs, cell.asked)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        if not gradients:
            return (outputs_of(params, inputs),)
        outputs, pull = jax.vjp(outputs_of, params, inputs)
        leaves, structure = jax.tree.flatten(outputs)
        cotangents = [random_like(leaf.shape, str(as_format(leaf.dtype)), 3) for leaf in leaves]
        return outputs, *pull(jax.tree.unflatten(structure, cotangents))
