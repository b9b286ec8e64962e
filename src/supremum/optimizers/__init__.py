"""Optimizers under Keras' names, each an optax transformation."""

from supremum.optimizers.optimizer import SGD, Adam, Optimizer

__all__ = ["SGD", "Adam", "Optimizer"]
