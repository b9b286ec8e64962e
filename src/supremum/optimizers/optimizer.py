"""Optimizers: optax transformations under Keras' names."""

from __future__ import annotations

from typing import Any

import optax  # pyright: ignore[reportMissingTypeStubs] (it ships no types)


class Optimizer:
    """An optax transformation as an optimizer.

    Args:
        transformation: any `optax.GradientTransformation`; it does the learning rate and the sign too.
    """

    def __init__(self, transformation: optax.GradientTransformation) -> None:
        self.transformation = transformation

    def init(self, variables: Any) -> Any:
        """The state before the first step, moments in the dtypes of the variables."""
        return self.transformation.init(variables)

    def apply(self, gradients: Any, state: Any, variables: Any) -> tuple[Any, Any]:
        """One step, as a pure function.

        Args:
            gradients: as the variables, in the same dtypes.
            state: the state before.
            variables: their values before.

        Returns:
            Variables and state after the step.
        """
        updates, state = self.transformation.update(gradients, state, variables)
        return optax.apply_updates(variables, updates), state


class SGD(Optimizer):
    """Stochastic gradient descent.

    Args:
        learning_rate: a number or an optax schedule.
        momentum: share of the last step that is repeated.
        nesterov: whether to look ahead by that step.
    """

    def __init__(
        self, learning_rate: optax.ScalarOrSchedule = 0.01, *, momentum: float = 0.0, nesterov: bool = False
    ) -> None:
        super().__init__(optax.sgd(learning_rate, momentum=momentum or None, nesterov=nesterov))


class Adam(Optimizer):
    """Adaptive moments (Kingma and Ba, 2014).

    Args:
        learning_rate: a number or an optax schedule.
        beta_1: decay of the mean of gradients.
        beta_2: decay of the mean of their squares.
        epsilon: added to the root of the latter.
    """

    def __init__(
        self,
        learning_rate: optax.ScalarOrSchedule = 0.001,
        *,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
    ) -> None:
        super().__init__(optax.adam(learning_rate, b1=beta_1, b2=beta_2, eps=epsilon))
