"""The registers that live in the code of a kernel."""

from metafork.evaluators.registers.code import liveness
from metafork.evaluators.registers.loops import natural_loops
from metafork.evaluators.registers.pressure import Accesses, accesses, weights
from metafork.evaluators.registers.reading import read_code
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, optimize
from tests.evaluators.registers.ptx_modules import code_of_body, ptx_module
from tests.evaluators.registers.small_kernel import PTX
from tests.metafork.lowering.kernel_reader import read_kernel


def test_registers_are_known_by_their_declarations():
    named = PTX.replace("%rd", "%address_").replace("%r", "%value_").replace("%p", "%test_")
    plain, other = read_code(PTX), read_code(named)
    assert weights(plain) == weights(other)


def test_pressure_follows_what_ptxas_does():
    code = read_code(PTX)
    weight = dict(zip(code.names, weights(code), strict=True))
    # The argument and the block index are uniform and take none, nor do predicates; of an address of shared memory
    # nobody needs the upper half.
    assert {name: weight[name] for name in ("%rd1", "%r9", "%p1", "%rd5", "%rd3", "%r2")} == {
        "%rd1": 0, "%r9": 0, "%p1": 0, "%rd5": 1, "%rd3": 2, "%r2": 1,
    }  # fmt: skip
    assert accesses(code) == Accesses(2, 2, 1)


def test_a_lane_number_differs_between_threads():
    body = "\tmov.u32 \t%r1, %{};\n\tst.shared.b32 \t[%rd5], %r1;\n"
    codes = {name: code_of_body(body.format(name)) for name in ("laneid", "tid.x", "nctaid.y")}
    by_register = {name: weights(code)[code.names.index("%r1")] for name, code in codes.items()}
    assert by_register == {"laneid": 1, "tid.x": 1, "nctaid.y": 0}


def test_what_a_guard_may_leave_alone_lives_before_it():
    code = code_of_body(
        "\tmov.u32 \t%r1, 1;\n\tbra \t$L;\n$L:\n\t@%p1 mov.u32 \t%r1, 2;\n\tst.shared.b32 \t[%rd1], %r1;\n"
    )
    live_in, _ = liveness(code.blocks)
    assert [{code.names[one] for one in live} for live in live_in] == [{"%p1", "%rd1"}, {"%r1", "%p1", "%rd1"}]


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
