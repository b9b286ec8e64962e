"""What the Python array API standard has: names and facts that no library can be asked for.

Source: https://data-apis.org/array-api/2024.12/API_specification/index.html
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "2024.12"
"""The version that the namespaces follow."""
VERSIONS: Final = ("2021.12", "2022.12", "2023.12", VERSION)
"""Those that they have all of."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CREATION = _names(
    "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros "
    "zeros_like"
)
_DTYPES = _names("astype can_cast finfo iinfo isdtype result_type __array_namespace_info__")
_ELEMENTS = _names(
    "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or "
    "bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide "
    "greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and "
    "logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real "
    "reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc"
)
_PLACES = _names(
    "broadcast_arrays broadcast_to concat expand_dims flip matrix_transpose moveaxis permute_dims repeat reshape roll "
    "squeeze stack take take_along_axis tile unstack"
)
_THE_REST = _names(
    "all any argmax argmin argsort count_nonzero cumulative_prod cumulative_sum diff matmul max mean min nonzero prod "
    "searchsorted sort std sum tensordot unique_all unique_counts unique_inverse unique_values var vecdot where"
)
FUNCTIONS: Final = _CREATION | _DTYPES | _ELEMENTS | _PLACES | _THE_REST
LINALG: Final = _names(
    "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer "
    "pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
)
FFT: Final = _names("fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn")
CONSTANTS: Final = _names("e inf nan newaxis pi")

OF_THE_ELEMENTS: Final = (_PLACES - _names("concat stack")) | _names(
    "diagonal empty_like fftshift full_like ifftshift meshgrid ones_like sort tril triu unique_all "
    "unique_counts unique_inverse unique_values zeros_like"
)
"""Functions whose results are elements of their arguments in another place, or others of that type, and so as weak.

Of results with names those called `values` are.

What is computed of weak arrays, such as a sum, has a dtype of its own, as in JAX.
"""

GIVING_LISTS: Final = _names("broadcast_arrays meshgrid")
"""Functions of several results in a list: in later versions they are in a tuple, and libraries are ahead."""
