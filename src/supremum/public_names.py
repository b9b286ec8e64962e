"""What `dir` of a package shows, and what it answers for a name that it does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def public_names(namespace: Mapping[str, Any]) -> list[str]:
    """The public names of a package, and those with two underscores; the `__dir__` of a package returns them.

    Args:
        namespace: the package's `globals()`.

    >>> public_names(
    ...     {"__all__": ["lazy", "eager"], "__name__": "package", "eager": 1, "np": 2}
    ... )
    ['__all__', '__name__', 'eager', 'lazy']
    """
    return sorted({*namespace["__all__"], *(name for name in namespace if name.startswith("__"))})


# By the place of each thing here: its names in Keras, Flax and PyTorch, and its own name if it is sought elsewhere.
_NAMES_ELSEWHERE = {
    "nn.Conv": "Conv1D Conv2D Conv3D DepthwiseConv1D DepthwiseConv2D Conv1d Conv2d Conv3d",
    "nn.ConvTranspose": "Conv1DTranspose Conv2DTranspose Conv3DTranspose ConvTranspose2d",
    "nn.MaxPool": "MaxPooling1D MaxPooling2D MaxPooling3D MaxPool1D MaxPool2D MaxPool3D MaxPool2d",
    "nn.AvgPool": "AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D AvgPool2d",
    "nn.GlobalAveragePool": "GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D",
    "nn.GlobalMaxPool": "GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D",
    "nn.BatchNorm": "BatchNormalization BatchNorm1d BatchNorm2d",
    "nn.LayerNorm": "LayerNormalization",
    "nn.GroupNorm": "GroupNormalization",
    "nn.RMSNorm": "RMSNormalization",
    "nn.Dense": "Linear",
    "nn.DenseGeneral": "LinearGeneral",
    "nn.Einsum": "EinsumDense",
    "nn.Embedding": "Embed",
    "nn.Input": "InputLayer",
    "nn.LSTMCell": "OptimizedLSTMCell",
    "nn.Layer": "Module",
    "nn.MultiHeadAttention": "MultiHeadDotProductAttention MultiheadAttention",
    "mixed_precision.set_global_policy": "set_dtype_policy set_global_dtype_policy",
    "mixed_precision.global_policy": "dtype_policy get_global_policy",
    "mixed_precision.Policy": "DTypePolicy FloatDTypePolicy",
    "mixed_precision.PolicyMap": "DTypePolicyMap",
    "mixed_precision.FixedLossScale": "StaticLossScale",
    "training.Sequential": "Sequential",
    "training.Model": "Model Functional",
    "optimizers.Adagrad": "Adagrad",
    "optimizers.Adam": "Adam",
    "optimizers.AdamW": "AdamW",
    "optimizers.Lion": "Lion",
    "optimizers.LossScaleOptimizer": "LossScaleOptimizer",
    "optimizers.RMSprop": "RMSprop",
    "optimizers.SGD": "SGD",
}
OUR_NAME = {name: ours for ours, names in _NAMES_ELSEWHERE.items() for name in names.split()}


def missing_name(package: str, name: str) -> AttributeError:
    """The error for a name that a package does not have; the `__getattr__` of a package raises it.

    Args:
        package: the full name of the package.
        name: the name.

    >>> print(missing_name("supremum.nn", "Conv2D"))
    module 'supremum.nn' has no attribute 'Conv2D'; use supremum.nn.Conv
    """
    fix = f"; use supremum.{OUR_NAME[name]}" if name in OUR_NAME else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{fix}")
