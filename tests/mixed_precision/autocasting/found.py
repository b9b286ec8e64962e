"""What autocast left in a program."""

import jax

from supremum.jaxprs import walk

W = jax.random.normal(jax.random.key(0), (8, 8)) * 0.3
X = jax.random.normal(jax.random.key(1), (4, 8))


def dtypes(function, primitive, *args):
    """The dtype of the first operand of every equation with a primitive."""
    sites = walk(jax.make_jaxpr(function)(*args))
    return [str(s.equation.invars[0].aval.dtype) for s in sites if s.equation.primitive.name == primitive]


def products(function, *args):
    """The dtype of the first operand of every product."""
    sites = walk(jax.make_jaxpr(function)(*args))
    names = ("dot_general", "conv_general_dilated")
    return [str(s.equation.invars[0].aval.dtype) for s in sites if s.equation.primitive.name in names]
