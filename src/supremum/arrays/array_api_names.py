"""Names and facts of the Python array API standard that libraries do not have as data.

Source: https://data-apis.org/array-api/2024.12/API_specification/index.html
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "2024.12"
"""The version that the namespaces follow."""
VERSIONS: Final = ("2021.12", "2022.12", "2023.12", VERSION)
"""The versions that they support."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLACES = _names(
    "broadcast_arrays broadcast_to concat expand_dims flip matrix_transpose moveaxis permute_dims repeat reshape roll "
    "squeeze stack take take_along_axis tile unstack"
)
FUNCTIONS: Final = _PLACES | _names(
    "__array_namespace_info__ abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan "
    "atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor can_cast "
    "ceil clip conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide empty empty_like "
    "equal exp expm1 eye finfo floor floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag "
    "isdtype isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not "
    "logical_or logical_xor matmul max maximum mean meshgrid min minimum multiply negative nextafter nonzero "
    "not_equal ones ones_like positive pow prod real reciprocal remainder result_type round searchsorted sign "
    "signbit sin sinh sort sqrt square std subtract sum tan tanh tensordot tril triu trunc unique_all unique_counts "
    "unique_inverse unique_values var vecdot where zeros zeros_like"
)
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
"""Functions that move elements of their arguments or make elements of the same type. Results of weak arrays are weak.

If the results have names, only `values` is weak. Computed results of weak arrays, such as sums, are strong, as in JAX.
"""

TAKING_POSITIONS: Final = _names("repeat take take_along_axis")
"""Functions whose second array holds positions or counts, which may be narrowed to the library's dtype of indices."""

GIVING_LISTS: Final = _names("broadcast_arrays meshgrid")
"""Functions that return several results in a list. Later versions return a tuple, and libraries already do."""
