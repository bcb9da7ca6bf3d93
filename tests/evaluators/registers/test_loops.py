"""Loops of PTX as ``ptxas`` unrolls them."""

import pytest

from evaluators.registers.code import read_code
from evaluators.registers.loops import UNKNOWN, chain_of, iterations, natural_loops, unrolled_whole
from metafork.ir.ir_strategies import passes_of
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, optimize
from strategies.llvm.register_pressure import PIPELINES
from tests.evaluators.registers.ptx_modules import code_of_body
from tests.metafork.lowering.kernel_reader import read_kernel

ROLLED = PIPELINES[1:]


def code_of(text, *pipelines):
    return read_code(emit_ptx(optimize(module_text(read_kernel(text)), passes_of(pipelines))))


def loop_over_blocks(step="1", bound="n", value="a[k * n + p] * 2.0f"):
    return (
        "void k(int n, const float *a, float *b) { for (unsigned p = blockIdx.x; p < n; p += gridDim.x)"
        f" for (int k = 0; k < {bound}; k += {step}) b[p * n + k] = {value}; }}"
    )


@pytest.mark.parametrize("pipeline", ROLLED)
def test_loops_are_found_in_any_layout(pipeline):
    blocks = code_of(loop_over_blocks(), pipeline).blocks
    loops = natural_loops(blocks)
    (inner,) = loops.innermost()
    assert len(loops.members) == 2
    assert loops.is_inside_another(inner)
    (outer,) = set(loops.members) - {inner}
    assert loops.members[inner] < loops.members[outer]


@pytest.mark.parametrize("pipeline", ROLLED)
@pytest.mark.parametrize(
    ("step", "bound", "expected"),
    [
        ("1", "n", UNKNOWN),
        ("1", "5", 5),
        ("2", "7", 4),
        ("(int)blockDim.x", "n", None),
        ("1", "64", 64),
        ("1", "500", UNKNOWN),
    ],
)
def test_iterations_are_counted_where_they_are_constant(pipeline, step, bound, expected):
    blocks = code_of(loop_over_blocks(step, bound), pipeline).blocks
    loops = natural_loops(blocks)
    (inner,) = loops.innermost()
    assert iterations(blocks, chain_of(blocks, inner, loops.members[inner])) == expected


@pytest.mark.parametrize("pipeline", ROLLED)
def test_a_loop_with_few_iterations_is_unrolled_whole(pipeline):
    blocks = unrolled_whole(code_of(loop_over_blocks(bound="5"), pipeline).blocks)
    assert len(natural_loops(blocks).members) == 1
    assert sum(one.form.loads for block in blocks for one in block.instructions) == 5
    long = unrolled_whole(code_of(loop_over_blocks(bound="60"), pipeline).blocks)
    assert sum(one.form.loads for block in long for one in block.instructions) == 1


def test_a_float_that_grows_by_a_constant_is_no_counter():
    body = "".join(
        [
            "\tmov.b32 \t%r1, 0f00000000;\n",
            "$LOOP:\n\tadd.rn.f32 \t%r1, %r1, 0f40000000;\n",
            "\tsetp.lt.f32 \t%p1, %r1, 0f41000000;\n\t@%p1 bra \t$LOOP;\n",
        ]
    )
    blocks = code_of_body(body).blocks
    loops = natural_loops(blocks)
    (header,) = loops.innermost()
    assert iterations(blocks, chain_of(blocks, header, loops.members[header])) is None
