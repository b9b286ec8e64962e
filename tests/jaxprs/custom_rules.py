"""A sine with derivative rules of its own, for programs that call it."""

import jax
import jax.numpy as jnp


@jax.custom_jvp
def with_jvp(x):
    return jnp.sin(x)


with_jvp.defjvp(lambda primals, tangents: (jnp.sin(*primals), tangents[0] * jnp.cos(*primals)))


@jax.custom_vjp
def with_vjp(x):
    return jnp.sin(x)


with_vjp.defvjp(lambda x: (jnp.sin(x), x), lambda x, cotangent: (cotangent * jnp.cos(x),))
