"""The code of a kernel as it is read, and the registers that live in it."""

import pytest

from evaluators.registers.code import Slow, liveness, read_code
from evaluators.registers.loops import natural_loops
from evaluators.registers.pressure import Accesses, accesses, hoisted, weights
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.ptx.text.source import PtxError
from tests.evaluators.registers.ptx_modules import code_of_body, ptx_module
from tests.metafork.lowering.kernel_reader import read_kernel

PTX = ptx_module("""
	ld.param.b64 	%rd1, [k_param_0];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r9, %ctaid.x;
	mul.wide.s32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
	ld.global.b32 	%r2, [%rd3];
	st.shared.b32 	[%rd5], %r2;
	ld.global.b32 	%r3, [%rd3+4];
	add.s32 	%r4, %r2, %r3;
	setp.lt.s32 	%p1, %r4, %r9;
	@%p1 bra 	$L__BB0_2;
	div.rn.f32 	%r5, %r4, %r3;
	st.global.b32 	[%rd3], %r5;
$L__BB0_2:
	ret;
""")


def test_code_is_read_into_blocks():
    blocks = read_code(PTX).blocks
    assert [block.successors for block in blocks] == [(2, 1), (2,), ()]
    load = next(one for one in blocks[0].instructions if one.form.loads)
    assert (load.form.mnemonic, load.defines, load.uses, load.address) == (
        "ld.global.b32",
        ("%r2",),
        ("%rd3",),
        ("%rd3",),
    )
    branch = blocks[0].instructions[-1]
    assert (branch.guarded, branch.uses) == (True, ("%p1",))
    assert blocks[0].instructions[1].special == ("%tid",)
    assert [one.form.slow for one in blocks[1].instructions] == [Slow.DIVIDE_FLOAT, None]


def test_a_module_with_no_kernel_or_two_is_refused():
    with pytest.raises(ValueError, match="0 kernels"):
        read_code(".version 8.0\n.target sm_80\n")
    second = PTX[PTX.index(".visible") :].replace("k(", "other(")
    with pytest.raises(ValueError, match="2 kernels"):
        read_code(PTX + second)
    with pytest.raises(PtxError, match="11:23"):
        read_code(ptx_module("\tld.param.b64 \t%rd1, [;\n"))
    with pytest.raises(PtxError, match="11:2: no label"):
        read_code(ptx_module("\tbra \t$NOWHERE;\n"))


def test_registers_are_known_by_their_declarations():
    named = PTX.replace("%rd", "%address_").replace("%r", "%value_").replace("%p", "%test_")
    plain, other = read_code(PTX), read_code(named)
    assert sorted(weights(plain).values()) == sorted(weights(other).values())
    assert hoisted(plain) == hoisted(other)


def test_pressure_follows_what_ptxas_does():
    code = read_code(PTX)
    weight = weights(code)
    # The argument and the block index are uniform and take none, nor do predicates; of an address of shared memory
    # nobody needs the upper half.
    assert {name: weight[name] for name in ("%rd1", "%r9", "%p1", "%rd5", "%rd3", "%r2")} == {
        "%rd1": 0, "%r9": 0, "%p1": 0, "%rd5": 1, "%rd3": 2, "%r2": 1,
    }  # fmt: skip
    # The second load comes before the store: both values and the address are live there, and the shared address.
    assert hoisted(code) == 5
    assert accesses(code) == Accesses(2, 2, 1)


def test_a_lane_number_differs_between_threads():
    body = "\tmov.u32 \t%r1, %{};\n\tst.shared.b32 \t[%rd5], %r1;\n"
    by_register = {name: weights(code_of_body(body.format(name)))["%r1"] for name in ("laneid", "tid.x", "nctaid.y")}
    assert by_register == {"laneid": 1, "tid.x": 1, "nctaid.y": 0}


def test_what_a_guard_may_leave_alone_lives_before_it():
    code = code_of_body(
        "\tmov.u32 \t%r1, 1;\n\tbra \t$L;\n$L:\n\t@%p1 mov.u32 \t%r1, 2;\n\tst.shared.b32 \t[%rd1], %r1;\n"
    )
    live_in, _ = liveness(code.blocks)
    assert live_in[1] == {"%r1", "%p1", "%rd1"}
    assert live_in[0] == {"%p1", "%rd1"}


def test_a_branch_by_a_table_goes_where_the_table_says():
    body = "".join(
        [
            "$table: .branchtargets $A, $B;\n",
            "\tbrx.idx \t%r1, $table;\n",
            "$A:\n\tbra \t$C;\n",
            "$B:\n\tbra \t$C;\n",
            "$C:\n",
        ]
    )
    assert [block.successors for block in code_of_body(body).blocks] == [(1, 2), (3,), (3,), ()]


def test_loops_may_be_laid_out_in_any_order():
    # The body of the loop stands after what follows the loop.
    body = "".join(
        [
            "\tmov.u32 \t%r1, 0;\n",
            "$HEAD:\n\tsetp.lt.s32 \t%p1, %r1, %r2;\n\t@%p1 bra \t$BODY;\n",
            "\tret;\n",
            "$BODY:\n\tadd.s32 \t%r1, %r1, 1;\n\tbra \t$HEAD;\n",
        ]
    )
    loops = natural_loops(read_code(ptx_module(body)).blocks)
    assert loops.members == {1: {1, 3}}


def test_loads_of_an_unrolled_loop_are_counted_together():
    kernel = read_kernel(
        "void k(int n, int m, const float *a, float *b) {"
        " for (int i = 0; i < m; i++) b[i * n + threadIdx.x] = a[i * n + threadIdx.x]; }"
    )
    text = module_text(kernel)
    rolled, unrolled = (read_code(emit_ptx(optimize(text, (name,)))) for name in ("O3-rolled", "O3"))
    assert accesses(rolled).loads == 1
    assert accesses(unrolled).loads >= 4
    assert hoisted(unrolled) >= hoisted(rolled) + 4
