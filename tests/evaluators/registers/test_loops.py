"""Loops of PTX as ``ptxas`` unrolls them."""

import pytest

from metafork.evaluators.registers.loops import (
    UNKNOWN,
    chain_of,
    iterations,
    natural_loops,
    unrolled_whole,
    without_invariants,
)
from metafork.evaluators.registers.pressure import weights
from tests.evaluators.registers.loop_over_blocks import ROLLED, code_of, loop_over_blocks
from tests.evaluators.registers.ptx_modules import code_of_body


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
    code = code_of(loop_over_blocks(bound="5"), pipeline)
    before = weights(code)
    weight = list(before)
    blocks = unrolled_whole(code.blocks, weight)
    assert len(natural_loops(blocks).members) == 1
    assert sum(one.form.loads for block in blocks for one in block.instructions) == 5
    # Each copy's values are registers of their own, which take as much as those that they are copies of.
    (load,) = {one.defines[0] for one in code.instructions() if one.form.loads}
    copies = {one.defines[0] for block in blocks for one in block.instructions if one.form.loads}
    assert len(copies) == 5
    assert {weight[one] for one in copies} == {before[load]}
    long = code_of(loop_over_blocks(bound="60"), pipeline)
    long = unrolled_whole(long.blocks, weights(long))
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


def loop_with(inside, step="\tadd.s32 \t%r1, %r1, 1;\n"):
    """A loop over blocks around a counted loop with this body; its back edge follows ``$LATCH``."""
    head = "\tmov.u32 \t%r0, %ctaid.x;\n\tld.param.b64 \t%rd1, [k_param_0];\n\tld.param.b32 \t%r9, [k_param_1];\n"
    outer = "$OUTER:\n\tmov.u32 \t%r2, %tid.x;\n\tmov.b32 \t%r1, 0;\n\tmov.b32 \t%r5, 0;\n"
    latch = f"$LATCH:\n{step}\tsetp.lt.s32 \t%p1, %r1, %r9;\n\t@%p1 bra \t$INNER;\n"
    end = "\tst.global.b32 \t[%rd1], %r5;\n\tmov.u32 \t%r8, %nctaid.x;\n\tadd.s32 \t%r0, %r0, %r8;\n"
    end += "\tsetp.lt.u32 \t%p2, %r0, %r9;\n\t@%p2 bra \t$OUTER;\n"
    return code_of_body(f"{head}{outer}$INNER:\n{inside}{latch}{end}")


def chain_in(inside):
    code = loop_with(inside)
    blocks = code.blocks
    loops = natural_loops(blocks)
    (header,) = loops.innermost()
    chain = chain_of(blocks, header, loops.members[header])
    return code.names, chain, chain and iterations(blocks, chain)


TEST = "\tsetp.lt.s32 \t%p0, %r2, %r1;\n\t@%p0 bra \t"
LOAD = "\tld.global.b32 \t%r3, [%rd1];\n"
ADD = "\tadd.s32 \t%r5, %r5, %r3;\n"


def test_a_condition_becomes_predicates():
    names, chain, times = chain_in(f"{TEST}$LATCH;\n{LOAD}{ADD}")
    assert times == UNKNOWN
    # The sum stays what it was where the condition does not hold; the value loaded matters nowhere else.
    assert {
        names[one.defines[0]]: one.guarded for one in chain.body if one.form.opcode in ("ld", "add") and one.defines
    } == {
        "%r3": False,
        "%r5": True,
        "%r1": False,
    }
    assert sum(one.form.opcode == "bra" for one in chain.body) == 1


def test_what_a_condition_defines_from_itself_may_stay_what_it_was():
    names, chain, _ = chain_in(f"{TEST}$LATCH;\n\tadd.s32 \t%r6, %r6, 2;\n\tst.global.b32 \t[%rd1], %r6;\n")
    assert any(one.guarded and one.defines == (names.index("%r6"),) for one in chain.body)


def test_both_sides_of_a_condition_become_predicates():
    names, chain, times = chain_in(f"{TEST}$ELSE;\n{LOAD}{ADD}\tbra.uni \t$LATCH;\n$ELSE:\n\tadd.s32 \t%r5, %r5, 7;\n")
    assert times == UNKNOWN
    assert sum(one.guarded and one.defines == (names.index("%r5"),) for one in chain.body) == 2


@pytest.mark.parametrize(
    "inside",
    [
        f"{TEST}$LATCH;\n{LOAD}\tsetp.gt.s32 \t%p3, %r3, 0;\n\t@%p3 bra \t$LATCH;\n{ADD}",
        f"{TEST}$A;\n{LOAD}\tbra.uni \t$B;\n$A:\n\tmov.b32 \t%r3, 1;\n\tsetp.gt.s32 \t%p3, %r2, 9;\n"
        f"\t@%p3 bra \t$LATCH;\n$B:\n{ADD}",
        f"\tsetp.lt.s32 \t%p0, %r2, %r1;\n\t@%p0 bra \t$GONE;\n{LOAD}{ADD}\tbra.uni \t$LATCH;\n$GONE:\n\tret;\n",
    ],
    ids=["a condition in a condition", "ways that cross", "two exits"],
)
def test_other_branches_are_no_predicates(inside):
    assert chain_in(inside)[1:] == (None, None)


def test_what_is_the_same_in_all_iterations_leaves_a_loop():
    code = code_of_body(
        "\tadd.s32 \t%r3, %r2, 1;\n\tmul.wide.s32 \t%rd3, %r3, 4;\n\tadd.s64 \t%rd4, %rd1, %rd3;\n"
        "\tld.global.b32 \t%r4, [%rd4];\n\tadd.s32 \t%r5, %r4, %r1;\n\tadd.s32 \t%r6, %r2, 2;\n"
        "\tadd.s32 \t%r1, %r1, 1;\n\tst.global.b32 \t[%rd4], %r5;\n\tmov.b32 \t%r7, 0;\n\tadd.s32 \t%r7, %r7, %r3;\n"
    )
    left, invariants = without_invariants(code.instructions())
    # No load leaves it, nor what is written twice or depends on either.
    assert [[code.names[name] for name in one.defines] for one in left] == [
        ["%r4"], ["%r5"], ["%r1"], [], ["%r7"], ["%r7"], [],
    ]  # fmt: skip
    # %r6 is not used in the loop, %rd3 only by what left it as well.
    assert {code.names[one] for one in invariants} == {"%rd4", "%r3"}
