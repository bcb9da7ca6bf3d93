"""Reading LLVM's PTX by lines says what the parser of PTX says, or leaves the text to it."""

import pytest

from evaluators.registers.code import read_code
from evaluators.registers.ptx_lines import code_of_lines
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import parsed, ptx_of, run_pipeline
from tests.evaluators.registers.ptx_modules import ptx_module
from tests.metafork.lowering.kernel_reader import read_kernel

KERNELS = {
    "loops": """
        void k(int n, const double *a, double *b) {
          for (unsigned p = blockIdx.x; p < n; p += gridDim.x)
            for (int k = 0; k < n; k += 1) if (a[k] / b[p] > 1.0) b[p * n + k] = a[k * n + p] * 2.0 + sqrt(a[p]); }""",
    "memories": """
        void k(int n, const float *a, float *b) {
          extern float tile[blockDim.x]; float kept[7]; int t = threadIdx.x;
          tile[t] = a[t]; __syncthreads();
          for (int i = 0; i < n; i += 1) kept[(i * n) % 7] = tile[i] - a[i];
          b[t] = kept[n % 7]; b[t + 1] = kept[t % 7]; }""",
}


def made(text, level):
    return ptx_of(run_pipeline(parsed(module_text(read_kernel(text))), ("O3",)), level=level)


@pytest.fixture(scope="module", params=[(name, level) for name in KERNELS for level in (0, 3)], ids=str)
def ptx(request):
    name, level = request.param
    return made(KERNELS[name], level)


def test_lines_say_what_the_parser_says(ptx):
    assert code_of_lines(ptx) == read_code(ptx)


def test_calls_are_left_to_the_parser():
    ptx = made("void k(int n, float *b) { b[n] = erff(b[n]); }", 3)
    assert "call" in ptx
    assert code_of_lines(ptx) is None


def test_text_of_others_is_left_to_the_parser():
    assert code_of_lines(ptx_module("\tret;\n")) is None


ODD_LINES = [
    "\tmov.b32 \t%r1, %nowhere;",
    "\tmov.b64 \t{%r1, %r2}, %rd1;",
    "\tmov.b64 \t%rd1, {%r1, %r2};",
    "\tmov.b32 \t%tid, %r1;",
    "\tld.global.v4.b32 \t{%r1, %r2, %r1, %r2}, [%rd1+-16];",
    "\tst.global.v2.b32 \t[%rd1+8], {%r1, %r2};  // a comment",
    "\t@!%p1 mov.b32 \t%r1, 0f3F800000;",
    "\tsetp.lt.s32 \t%p1|%p2, %r1, -4;",
    "\tselp.b32 \t%r1, 1, 0, !%p1;",
    "\tatom.global.add.u32 \t%r1, [%rd1], %r2;",
    "\tred.global.add.u32 \t[%rd1], %r2;",
    "\tbar.sync \t0;",
    "\tbar.red.popc.u32 \t%r1, 0, %p1;",
    "\tbarrier.sync \t0;",
    "\tshfl.sync.idx.b32 \t%r1, %r2, 3, 31, -1;",
    "\tunheard.of.b32 \t%r1, %r2;",
    "\tbra.uni \t$L_nowhere;",
    "\t@%p1 bra \t$L_end;",
    "\tbra.uni \t$L_end;",
    "\texit;",
    "\ttrap;",
    '\t.pragma "nounroll";',
    "\t.reg .b32 \t%r<3>;",
    "\t.reg .b32 \t%other;",
    "\t{",
    "\t}",
    "\t{ .reg .b32 %r1; mov.b32 %r1, 5; }",
    "\tmov.b32 \t%r1",
    "\tmov.b32 \t%r1, %r2; mov.b32 \t%r2, %r1;",
    "\tmov.b32 \t%r1, table+16;",
    "\tld.param.b32 \t%r1, [k_param_0+4];",
    "$L_end: // twice",
    "$L_more:",
    "\tnonsense",
]


def test_nothing_is_read_otherwise_than_by_the_parser():
    """A line of any kind in LLVM's text: what the parser refuses is not read, and what is read is what it reads."""
    ptx = made("void k(int n, const float *a, float *b) { if (n > 3) b[n] = a[n] + a[threadIdx.x]; }", 3)
    head, body, end = ptx.partition("\tret;\n")
    begin = head.index("\n\n", head.index(".reg"))
    understood = 0
    for odd in ODD_LINES:
        for text in (f"{head[:begin]}\n{odd}{head[begin:]}$L_end:\n{body}{end}", f"{head}{odd}\n$L_end:\n{body}{end}"):
            found = code_of_lines(text)
            if found is not None:
                assert found == read_code(text), odd
                understood += 1
    assert understood > len(ODD_LINES)
    for more in ("\n.visible .entry other()\n{\n\tret;\n}\n", "}", ".visible .func f();\n"):
        assert code_of_lines(ptx + more) is None
