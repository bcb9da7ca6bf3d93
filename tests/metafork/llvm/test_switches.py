"""Each of gpucc's eight optimizations in the PTX of a kernel of its own, with and without; both compute the same."""

import re

import pytest

from metafork.llvm.ptx_target import TargetError
from metafork.llvm.switches import EVERY, STRENGTH, ptx_without
from tests.metafork.llvm.switched_kernels import ALL, PRODUCTS, result


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.optimization)
def test_an_optimization_is_seen_in_the_ptx_of_a_kernel(one):
    with_it, without = one.texts()
    assert tuple(len(re.findall(one.pattern, text)) for text in (with_it, without)) == one.times
    results = [(result(with_it, one.ir, call), result(without, one.ir, call)) for call in one.calls]
    assert all(left == right for left, right in results)
    assert all(any(left) for left, _ in results)


def test_every_optimization_is_seen():
    assert {one.optimization for one in ALL} == set(EVERY)


def test_what_llvm_cannot_do_is_an_error_and_the_next_request_is_answered():
    with pytest.raises(TargetError, match="expected top-level entity"):
        ptx_without((STRENGTH,), "no IR")
    with pytest.raises(KeyError, match="no optimization is called vectorization"):
        ptx_without(("vectorization",), "")
    with pytest.raises(TargetError, match="no exact PTX without the CUDA device library: sinf"):
        ptx_without(
            (STRENGTH,),
            "declare float @sinf(float)\n"
            "define float @f(float %x) {\n  %y = call float @sinf(float %x)\n  ret float %y\n}",
        )
    assert "mul" in ptx_without((STRENGTH,), f'target triple = "nvptx64-nvidia-cuda"\n{PRODUCTS}')
