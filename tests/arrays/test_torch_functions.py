"""PyTorch's functions on an `Array`: they call the namespace of its library, or raise an error with a fix."""

import itertools
import operator
import pickle
import re

import pytest

from optional_packages import import_or_skip
from slowly import slow
from supremum import PromotionError, use_rules
from supremum.arrays import Array, ComputationError, InPlaceError, RuntimeDtypeError, TensorInPlaceError, asarray
from supremum.errors import ArgumentError, OperandError, SupremumError

torch = import_or_skip("torch")
F = torch.nn.functional
DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64,
)  # fmt: skip


def _words(text):
    return text.split()


# The results are exact in every dtype, so that the order of sums makes no difference.
OF_ONE = _words("""
torch.sum(x) torch.sum(x,0,True) torch.sum(x,dim=(0,1)) torch.sum(input=x,dim=1,dtype=torch.float64) torch.prod(x)
torch.prod(x,1) torch.mean(x,(0,1)) torch.mean(x,dim=1,keepdim=True) torch.amax(x,1) torch.amin(x,dim=0,keepdim=True)
torch.max(x) torch.min(x) torch.all(x) torch.any(x,0,True) torch.argmax(x) torch.argmin(x,1,keepdim=True)
torch.count_nonzero(x,dim=0) torch.std(x) torch.std(x,0) torch.var(x,dim=1,correction=0) torch.var(x,1,False)
torch.cumsum(x,0) torch.cumsum(x,dim=1,dtype=torch.float32) torch.cumprod(input=x,dim=1) torch.neg(x)
torch.exp(input=x) torch.abs(x) torch.sqrt(x) torch.log(x+1) torch.round(x) torch.round(x,decimals=1)
torch.clamp(x,1,2) torch.clamp(x,max=1) torch.clamp_min(x,min=2) torch.clamp_max(x,1) torch.reshape(x,(3,2))
torch.permute(x,(1,0)) torch.transpose(x,0,1) torch.swapaxes(x,axis0=0,axis1=1) torch.t(x)
torch.flatten(x[None],start_dim=1) torch.flatten(x,0,1) torch.ravel(x) torch.squeeze(x[None])
torch.squeeze(x[None],dim=0) torch.squeeze(x,0) torch.unsqueeze(x,1) torch.movedim(x,0,1) torch.flip(x,(0,))
torch.roll(x,1) torch.roll(x,1,dims=0) torch.tile(x,(2,1)) torch.broadcast_to(x[0],(2,3))
torch.broadcast_tensors(x,x[0]) torch.unbind(x) torch.unbind(x,dim=1) torch.tril(x) torch.triu(x,diagonal=1)
torch.index_select(x,1,torch.tensor([0,2])) torch.take_along_dim(x,torch.tensor([[0,1]]),1)
torch.take_along_dim(x,torch.tensor([0,1])) torch.repeat_interleave(x,2) torch.repeat_interleave(x,2,dim=1)
torch.diff(x) torch.diff(x,n=2,dim=1) torch.argsort(x[:,:1],dim=0,descending=True) torch.nonzero(x)
torch.nonzero(x,as_tuple=True) torch.where(x>1) torch.numel(x) torch.clone(x) torch.zeros_like(x)
torch.zeros_like(x,dtype=torch.int8) torch.full_like(x,True) torch.inverse(x[:,:2]) torch.linalg.det(x[:,:2])
torch.sum(x,0,out=torch.zeros(3)) torch.pow(x,exponent=2) torch.where(x>1,x,1)
""")
OF_TWO = _words("""
torch.add(x,other=y) torch.add(x,y,alpha=2) torch.sub(x,y,alpha=3) torch.subtract(input=x,other=y,alpha=1)
torch.Tensor.add(raw,y,alpha=2) torch.mul(input=x,other=y) torch.div(x,y+1) torch.div(x,y+1,rounding_mode="floor")
torch.maximum(x,y) torch.max(x,y) torch.min(x,y) torch.eq(x,other=y) torch.atan2(input=x,other=y) torch.cat([x,y])
torch.cat((x,y),dim=1) torch.cat(tensors=[x,y,x]) torch.stack([x,y],1) torch.where(x>1,x,y)
torch.where(condition=x>1,input=x,other=y) torch.clamp(x,y) torch.clamp(x,min=y,max=y) torch.lerp(x,y,0.5)
torch.lerp(x,end=y,weight=1) torch.isin(elements=x,test_elements=y) torch.isin(x,y,invert=True) torch.inner(x,y)
torch.tensordot(x,y,dims=2) torch.matmul(x,other=y.mT) torch.mm(x,y.mT) torch.mv(x,vec=y[0]) torch.dot(x[0],y[0])
torch.vdot(x[0],y[0]) torch.outer(x[0],vec2=y[0]) torch.bmm(x[None],y.mT[None]) torch.linalg.cross(x,y)
torch.addmm(x[:,:2],x,y.mT) torch.addmm(x[:,:2],x,y.mT,beta=2,alpha=3) torch.addmm(x[:,:2],x,y.mT,beta=0)
torch.addmv(x[:,0],x,y[0]) torch.baddbmm(x[None,:,:2],x[None],y.mT[None]) torch.addr(x[:2,:],x[:,0],y[0])
torch.addcmul(x,y,y) torch.addcmul(x,x,y,value=2) torch.addcdiv(x,y,y+1,value=4) torch.diff(x,prepend=y)
F.mse_loss(x,y) F.l1_loss(x,y,reduction="sum") F.huber_loss(x,y,delta=0.5) torch.add(x,y,out=torch.zeros(2,3))
torch.zeros(2,3).add_(y,alpha=2) torch.zeros(2,3).lerp_(y,0.5) torch.zeros(2,2).addmm_(x,y.mT)
""")
OURS = (SupremumError, NotImplementedError)


def _raw(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(_raw, value))
    return value.unwrap() if isinstance(value, Array) else value


def _called(call, names):
    return eval(call, {"torch": torch, "F": F} | names)


def _is_same(theirs, ours):
    if isinstance(theirs, (tuple, list)):
        return len(theirs) == len(ours) and all(map(_is_same, theirs, ours))
    if not isinstance(theirs, torch.Tensor):
        return theirs == ours
    same = theirs.dtype == ours.dtype and theirs.shape == ours.shape
    return same and torch.allclose(theirs, ours, rtol=1e-2 if theirs.itemsize == 2 else 1e-6, equal_nan=True)


def _differences(calls, operands):
    """Calls with a result of PyTorch that are different or refused with an `Array`, and the number of results."""
    different, compared = [], 0
    for call, (x, y) in itertools.product(calls, operands):
        try:
            theirs = _called(call, {"x": x, "y": y, "raw": x})
        except (RuntimeError, TypeError, IndexError):
            continue
        compared += 1
        try:
            ours = _raw(_called(call, {"x": Array(x), "y": Array(y), "raw": x}))
        except OURS as error:
            different.append((call, x.dtype, y.dtype, str(error)))
            continue
        if not _is_same(theirs, ours):
            different.append((call, x.dtype, y.dtype, theirs, ours))
    return different, compared


def _made(dtype, values=((0, 1, 2), (2, 1, 1))):
    return torch.tensor(values).to(dtype)


@pytest.mark.parametrize(
    ("calls", "pairs", "least"),
    [
        (OF_ONE[::4] + OF_TWO[::4], [(torch.int8, torch.int8)], 20),
        (OF_ONE[::4] + OF_TWO[::4], [(torch.float16, torch.float16)], 20),
        slow(OF_ONE, [(dtype, dtype) for dtype in DTYPES], 600),
        slow(OF_TWO, [*itertools.product(DTYPES, DTYPES)], 3000),
    ],
    ids=["int8", "float16", "one array", "two arrays"],
)
def test_functions_give_the_results_of_torch(calls, pairs, least):
    with use_rules("torch"):
        different, compared = _differences(calls, [(_made(a), _made(b, ((1, 1, 0), (2, 0, 1)))) for a, b in pairs])
    # PyTorch has no mean of integers.
    refused = {'F.l1_loss(x,y,reduction="sum")': {*DTYPES[1:6]}} if calls is OF_TWO else {}
    assert [each for each in different if {*each[1:3]} - refused.get(each[0], set())] == []
    assert {each[0] for each in different} == refused.keys()
    assert compared > least


ALPHAS = (1, 2, 0.5, True)


def test_alpha_multiplies_in_the_dtype_of_the_decision_in_every_library():
    with use_rules("torch"):
        for a, b, alpha in itertools.product(DTYPES, DTYPES, ALPHAS):
            x, y = _made(a), _made(b)
            try:
                theirs = torch.add(x, y, alpha=alpha)
            except RuntimeError:
                continue
            if "bfloat16" in f"{a} {b}":
                ours = torch.add(Array(x), Array(y), alpha=alpha).unwrap()
            else:  # the operands are NumPy's
                ours = torch.as_tensor(torch.add(Array(x.numpy()), Array(y.numpy()), alpha=alpha).unwrap())
            assert _is_same(theirs, ours), (a, b, alpha)
        jitted = asarray([1.0, 2.0], library="jax", dtype="float16")
        assert torch.sub(jitted, jitted, alpha=0.5).tolist() == [0.5, 1.0]
        small = Array(_made(torch.int8))
        with pytest.raises(ArgumentError, match=r"alpha must be a whole number for int8, got 2.5") as error:
            torch.add(small, small, alpha=2.5)
        fix = re.search("use (.*)", str(error.value))[1]
        assert _called(fix, {"input": small, "other": small, "alpha": 2.5}).dtype == "float32"


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_torch_functions_take_arrays_of_other_libraries(library):
    x = asarray([[1.0, 2.0], [3.0, 5.0]], dtype="float32", library=library)
    half = x.astype("bfloat16")
    with use_rules("jax-x32"):
        assert torch.sum(x, dim=0).tolist() == [4.0, 7.0]
        assert torch.cat([x, half], dim=1).dtype == "float32"
        assert torch.lerp(x, half, 0.25).tolist() == x.tolist()
        assert torch.addmm(x, half, half, alpha=2).tolist() == [[15.0, 26.0], [39.0, 67.0]]
        assert torch.clamp(x, max=2).backend.name == library


def test_lerp_decides_the_common_dtype_of_all_operands():
    a, b = Array(torch.ones(2, dtype=torch.float16)), Array(torch.zeros(2, dtype=torch.int8))
    with use_rules("torch"):
        assert torch.lerp(a, b, 0.25).tolist() == [0.75, 0.75]
        assert torch.lerp(a, b, 0.25).dtype == "float16"
    with use_rules("numpy"):
        assert torch.lerp(a, b.astype("int16"), 0.25).dtype == "float32"
        assert torch.where(torch.ones(2, dtype=torch.bool), a, torch.ones(2, dtype=torch.int32)).dtype == "float64"
    with use_rules("tf-rfc-none"), pytest.raises(PromotionError):
        torch.lerp(a, b, 0.25)


IN_PLACE_OPERATORS = (
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow,
)  # fmt: skip


def test_out_is_a_store_that_the_rules_decide():
    a, b = Array(torch.ones(2)), Array(torch.full((2,), 3, dtype=torch.int8))
    with use_rules("torch"):
        out = torch.zeros(2, dtype=torch.float16)
        assert torch.add(a, b, alpha=2, out=out) is out
        assert out.tolist() == [7.0, 7.0]
        ours = Array(torch.zeros(4))
        assert torch.cat([a, b], out=ours) is ours
        assert ours.tolist() == [1.0, 1.0, 3.0, 3.0]
        for error, call in (
            (InPlaceError, lambda out: torch.add(a, b, out=out)),
            (InPlaceError, lambda out: torch.add(a, b, alpha=2, out=out)),
            (InPlaceError, lambda out: torch.lerp(a, b, 1, out=out)),
            # PyTorch would hide a TypeError of these, and Python would bind the name to a new array.
            (TensorInPlaceError, lambda out: out.add_(a, alpha=2)),
            (TensorInPlaceError, lambda out: out.clamp_(a)),
            *((TensorInPlaceError, lambda out, each=each: each(out, a)) for each in IN_PLACE_OPERATORS),
        ):
            kept = torch.zeros(2, dtype=torch.int8)
            with pytest.raises(error, match=r"float.*into=int8") as caught:
                call(kept)
            assert kept.tolist() == [0, 0]
            assert type(pickle.loads(pickle.dumps(caught.value))) is error
            assert issubclass(error, PromotionError if error is InPlaceError else ValueError)
        assert not issubclass(TensorInPlaceError, TypeError)
        assert out.add_(b) is out
        assert (out.dtype, out.tolist()) == (torch.float16, [10.0, 10.0])
        with pytest.raises(ArgumentError, match="shape"):
            out.add_(Array(torch.ones((3, 2))))


REFUSED = _words("""
torch.sort torch.median torch.sigmoid torch.special.expit torch.logsumexp torch.linalg.norm torch.unique torch.numel_
torch.nn.functional.relu torch.isreal torch.frac torch.trace torch.fmod
""")


def test_refused_functions_name_a_call_that_works():
    x = Array(_made(torch.float32))
    refused = 0
    for path in REFUSED:
        function = torch
        for part in path.split(".")[1:]:
            function = getattr(function, part, None)
        if function is None:
            continue
        extra = {"torch.logsumexp": (0,), "torch.fmod": (2,)}.get(path, ())
        with pytest.raises(OperandError, match="does not support an Array") as error:
            function(x, *extra)
        fix = re.search(r"(torch\.[\w.]+)\(x\.unwrap\(\)\)", str(error.value))
        assert fix, error.value
        _called(fix[1], {})(x.unwrap(), *extra)
        refused += 1
    assert refused == len(REFUSED) - 1


def test_refused_options_name_a_call_that_works():
    x = Array(_made(torch.float32))
    with pytest.raises(OperandError, match=r"torch.mean with dtype .*torch.mean\(x.unwrap\(\), dtype=\.\.\.\)"):
        torch.mean(x, dtype=torch.float64)
    with pytest.raises(TypeError, match="does not support an Array"):
        torch.equal(x, x)
    for call, fixes in (
        (lambda: torch.max(x, 0), ("torch.amax(input, dim)", "torch.argmax(input, dim)")),
        (lambda: torch.min(x, dim=0), ("torch.amin(input, dim)", "torch.argmin(input, dim)")),
        (lambda: torch.div(x, x, rounding_mode="trunc"), ("torch.trunc(torch.div(input, other))",)),
    ):
        with pytest.raises(OperandError, match="does not support an Array") as error:
            call()
        for fix in fixes:
            assert fix in str(error.value)
            assert isinstance(_called(fix, {"input": x, "other": x, "dim": 0}), Array)


def test_wrong_arguments_raise_errors_of_the_library():
    x = Array(_made(torch.float32))
    with pytest.raises(ComputationError, match=r"torch.squeeze\(float32\[2, 3\], 9\) failed"):
        torch.squeeze(x, 9)
    for call in (lambda: torch.reshape(x, (4, 4)), lambda: torch.cat([x, x.T]), lambda: torch.addmm(x, x, x)):
        with pytest.raises((ComputationError, RuntimeDtypeError)):
            call()
