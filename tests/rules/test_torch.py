"""Python numbers that PyTorch refuses before it promotes anything, compared with PyTorch if it is installed."""

import pytest

from optional_packages import import_or_skip
from supremum import can_promote, explain


@pytest.mark.parametrize(
    ("dtype", "exponent", "fits"), [("int64", 2**63, False), ("int64", 2**63 - 1, True), ("float32", 2**63, True)]
)
def test_exponents_of_integers_must_fit_int64(dtype, exponent, fits):
    decision = explain(dtype, exponent, operation="pow", rules="torch")
    assert bool(decision) == fits
    assert fits or "the exponent does not fit int64" in str(decision)
    torch = import_or_skip("torch")
    base = torch.ones(2, dtype=getattr(torch, dtype))
    if fits:
        assert str((base**exponent).dtype) == f"torch.{decision.dtype}"
    else:
        with pytest.raises(RuntimeError, match="overflow"):
            base**exponent


def test_ints_beyond_64_bits_are_refused():
    assert not can_promote("float32", 2**64, operation="add", rules="torch")
    assert not can_promote("float32", -(2**63) - 1, operation="add", rules="torch")
    assert can_promote("float32", 2**64 - 1, operation="add", rules="torch")


def test_fixes_prefer_dtypes_that_have_kernels():
    decision = explain("uint16", 1000, 2 - 3j, operation="clip", rules="torch")
    torch = import_or_skip("torch")
    a, b, c = torch.ones(2, dtype=torch.uint16), 1000, 2 - 3j
    bound = {"a": a, "b": b, "c": c}
    operands = [eval(text, {"torch": torch} | bound) for text in decision.fix.expressions().values()]
    assert torch.clip(*operands).tolist() == [2, 2]
    assert str(torch.clip(*operands).dtype) == "torch.int32"
