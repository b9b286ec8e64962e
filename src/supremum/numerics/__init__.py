"""What number formats would do to the values that a JAX function computes."""

from supremum.extras import require

require(__name__, "jax")
