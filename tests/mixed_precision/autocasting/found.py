"""Find the dtypes of operations in a traced program."""

import jax

from supremum.jaxprs import walk

W = jax.random.normal(jax.random.key(0), (8, 8)) * 0.3
X = jax.random.normal(jax.random.key(1), (4, 8))


def dtypes(function, primitive, *args):
    """Return the dtype of the first operand of each equation of a primitive."""
    sites = walk(jax.make_jaxpr(function)(*args))
    return [str(s.equation.invars[0].aval.dtype) for s in sites if s.equation.primitive.name == primitive]


def products(function, *args):
    """Return the dtype of the first operand of each product."""
    sites = walk(jax.make_jaxpr(function)(*args))
    names = ("dot_general", "conv_general_dilated")
    return [str(s.equation.invars[0].aval.dtype) for s in sites if s.equation.primitive.name in names]
