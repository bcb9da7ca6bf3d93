import ctypes
import math
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.ir.arithmetic.exact_constants import floating_value
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.ir_strategies import STANDARD
from metafork.ir.kernel import Kernel
from metafork.ir.program import Cast, Conditional, IntConst, Phase, Var, binary, unary
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.llvm.targets import Nvptx
from metafork.lowering.lowering import lower
from metafork.printing.expressions import expression
from metafork.strategies.llvm.register_pressure import PIPELINES as PRESSURE
from tests.metafork.host_run import CTYPES, run_on_host
from tests.metafork.llvm.matrix_product import MATMUL
from tests.metafork.lowering.kernel_reader import read_kernel
from tests.metafork.programs import program

INT_TYPES = [type_ for type_ in ScalarType if type_.integer and type_ is not ScalarType.BOOL]
ONE = IntConst(1)


def _serial(tmp_path, kernel_source, signature):
    """Compile the same C text with gcc, as the serial program."""
    source, library = tmp_path / "serial.c", tmp_path / "serial.so"
    source.write_text(kernel_source)
    command = [
        "gcc",
        "-std=gnu11",
        "-O1",
        "-fwrapv",
        "-ffp-contract=off",
        "-w",
        "-shared",
        "-fPIC",
        "-o",
        library,
        source,
        "-lm",
    ]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).k
    function.argtypes, function.restype = signature, None
    return function


OPERATIONS = """
void k(int n, signed char c, unsigned char uc, short h, unsigned short uh, int i, unsigned int u, long l,
       unsigned long ul, float f, double d, long *o, double *x)
{
  int q = 0;
  o[q] = c + uc; q++; o[q] = c * uh; q++; o[q] = i / h; q++; o[q] = i % h; q++; o[q] = u / i; q++;
  o[q] = u % h; q++;
  o[q] = l / i; q++; o[q] = l % c; q++; o[q] = ul / i; q++; o[q] = ul >> 3; q++;
  o[q] = l >> 3; q++; o[q] = i << 2; q++;
  o[q] = c >> 1; q++; o[q] = uc << 4; q++; o[q] = ~uc; q++; o[q] = -uh; q++; o[q] = !h; q++;
  o[q] = +c; q++;
  o[q] = i < u; q++; o[q] = l < u; q++; o[q] = ul > i; q++; o[q] = c == uc; q++; o[q] = f < d; q++;
  o[q] = f != f; q++;
  o[q] = (unsigned char)i; q++; o[q] = (short)l; q++; o[q] = (unsigned int)c; q++;
  o[q] = (unsigned long)i; q++;
  o[q] = (int)f; q++; o[q] = (long)d; q++; o[q] = (unsigned char)(unsigned int)f; q++;
  o[q] = (_Bool)f; q++; o[q] = (_Bool)i; q++;
  o[q] = i & u | uc ^ h; q++; o[q] = i && !u || f; q++; o[q] = (i > 3 ? u : c); q++;
  o[q] = f > 0.5f ? i : l; q++;
  o[q] = abs(i) + labs(l); q++;
  x[q] = f + d; x[q] += f * f; x[q] -= 0.1f; x[q] /= 3; q++;
  x[q] = i / 7 + u * 0.5f; q++; x[q] = sqrt(f) + sqrtf(f); q++;
  x[q] = fabs(-d) - floorf(f) + ceil(d) * trunc(d); q++;
  x[q] = fmaxf(f, i) + fmin(d, u); q++; x[q] = ul; q++; x[q] = l * 1.0f; q++;
  x[q] = fma(d, d, f) - rint(d) + round(d); q++;
  x[q] = copysign(d, -1.0) + fdim(d, f) + fdimf(f, 100.0f); q++;
  x[q] = 1e-3 + 0x1.8p1 + 16777217.0f; q++;
  unsigned char wrap = 250; wrap += 10; o[q] = wrap; q++;
  short narrow = 30000; narrow *= 3; o[q] = narrow; q++;
  char neg = -1; unsigned int wide = neg; o[q] = wide; q++; neg <<= 3; o[q] = neg; q++;
  _Bool flag = 7; flag += 1; o[q] = flag; q++;
  for (int a = 0; a < 10; a++) { if (a == 2) continue; if (a == 7) break; o[q] += a * i; }
  q++;
  int w = 20; while (w > 3) { w -= 3; o[q] += w; if (o[q] > 40) break; }
  int a = 1; if (n) { int a = 5; o[n] += a; } else o[n + 1] += a;
}
"""


FOR_PEOPLE_AND_FOR_LLVM = pytest.mark.parametrize("named", [True, False], ids=["named", "once"])


@FOR_PEOPLE_AND_FOR_LLVM
def test_every_operation_computes_what_gcc_computes(named, tmp_path):
    kernel = read_kernel(OPERATIONS)
    argtypes = [CTYPES[scalar.type] for scalar in kernel.scalars] + [ctypes.c_void_p] * 2
    serial = _serial(tmp_path, "#include <math.h>\n#include <stdlib.h>\n" + OPERATIONS, argtypes)
    points = [
        (90, -7, 200, -3, 60000, 12345, 4000000000, -(2**40), 2**63 + 5, 2.75, -1234.5),
        (90, 127, 3, 32767, 2, -9, 7, 2**33, 12, 0.1, 3.5),
        (90, -128, 255, 5, 1, 2**27, 2**31, 1, 0, 0.5, 2.5),
    ]
    for point in points:
        got, want = (np.zeros(100, np.int64), np.zeros(100)), (np.zeros(100, np.int64), np.zeros(100))
        names = dict(zip((scalar.name for scalar in kernel.scalars), point, strict=True))
        run_on_host(kernel, names | {"o": got[0], "x": got[1]}, named=named)
        serial(*point, want[0].ctypes.data, want[1].ctypes.data)
        assert np.array_equal(got[0], want[0])
        assert np.array_equal(got[1].view(np.int64), want[1].view(np.int64))
        assert np.count_nonzero(want[0]) > 30


REGIONS = """
void k(int n, int m, long *o)
{
  for (int i = 0; i < n; i++) {
    const int both = i * m;
    if (both > 6) { o[0] += i * m + 1; if (i == 4) continue; o[1] += i * m + 2; }
    o[2] += both + 2 + (i > 1 && m / (i - 1) > 2 ? m * m : m + i);
    o[3] += m * m + i + (m / (i + 1) > 2 || i % m == 1);
    if (both > 20) { o[4] += m - i; break; }
    o[5] += m - i;
  }
  o[6] = m * m + (n > 2 ? m + n : m - n) + (m + n) + (m - n);
}
"""


@FOR_PEOPLE_AND_FOR_LLVM
def test_what_one_branch_or_iteration_computes_is_not_taken_for_another(named, tmp_path):
    kernel = read_kernel(REGIONS)
    serial = _serial(tmp_path, REGIONS, [ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p])
    for n, m in ((0, 3), (1, 5), (3, -2), (7, 2), (9, 4), (12, 1)):
        got, want = np.zeros(7, np.int64), np.zeros(7, np.int64)
        run_on_host(kernel, {"n": n, "m": m, "o": got}, named=named)
        serial(n, m, want.ctypes.data)
        assert np.array_equal(got, want), (n, m)


def test_an_operation_is_put_once_where_only_llvm_reads_the_text():
    kernel = read_kernel("void k(int n, int m, int *o) { const int q = n * m; o[0] = n * m + 1; o[1] = q - n * m; }")
    plain, once = (module_text(kernel, named=named) for named in (True, False))
    assert (plain.count(" mul "), once.count(" mul ")) == (3, 1)
    assert (plain.count("alloca"), once.count("alloca")) == (3, 0)


LEAVES = [Var(f"v{i}", type_) for i, type_ in enumerate(INT_TYPES)] + [IntConst(v) for v in (-3, 0, 1, 77)]


def _grow(children):
    operators = st.sampled_from(["*", "+", "-", "<", ">=", "==", "!=", "&", "^", "|", "&&", "||"])
    return st.one_of(
        st.builds(binary, operators, children, children),
        st.builds(lambda value, by: binary(">>", value, IntConst(by)), children, st.integers(0, 31)),
        st.builds(unary, st.sampled_from(["+", "-", "!", "~"]), children),
        st.builds(Cast, st.sampled_from([*INT_TYPES, ScalarType.BOOL]), children),
        st.builds(lambda c, t, o: Conditional(c, t, o, common_type(t.type, o.type)), children, children, children),
    )


@FOR_PEOPLE_AND_FOR_LLVM
@pytest.mark.parametrize("pipeline", [(), STANDARD], ids=["plain", "optimized"])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_random_integer_expressions_compute_what_gcc_computes(pipeline, named, data, tmp_path_factory):
    # Small operands keep signed arithmetic from overflowing, which C leaves undefined.
    tree = st.recursive(st.sampled_from(LEAVES), _grow, max_leaves=6)
    exprs = data.draw(st.lists(tree, min_size=20, max_size=20))
    parameters = ", ".join(f"{type_.spelling} v{i}" for i, type_ in enumerate(INT_TYPES))
    body = "\n".join(f"  o[{i}] = {expression(expr)};" for i, expr in enumerate(exprs))
    text = f"void k({parameters}, long *o)\n{{\n{body}\n}}\n"
    point = [data.draw(st.integers(0 if not type_.signed else -9, 9)) for type_ in INT_TYPES]
    kernel = read_kernel(text)
    serial = _serial(tmp_path_factory.mktemp("random"), text, [CTYPES[t] for t in INT_TYPES] + [ctypes.c_void_p])
    got, want = np.zeros(20, np.int64), np.zeros(20, np.int64)
    arguments = {f"v{i}": value for i, value in enumerate(point)} | {"o": got}
    run_on_host(kernel, arguments, pipeline=pipeline, named=named)
    serial(*point, want.ctypes.data)
    assert np.array_equal(got, want), text


@pytest.mark.parametrize("pipeline", [(), STANDARD, *(pipeline.passes for pipeline in PRESSURE)])
def test_blocks_with_barriers_and_shared_memory(pipeline):
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 4, 4), np.float32)
    c = np.zeros((4, 4), np.float32)
    run_on_host(
        read_kernel(MATMUL), {"n": 4, "B": 2, "a": a, "b": b, "c": c}, (2, 2, 1), (2, 2, 1), 48, pipeline=pipeline
    )
    want = np.zeros((4, 4), np.float32)
    for k in range(4):
        want += a[:, k : k + 1] * b[k : k + 1, :]
    assert np.array_equal(c, want)


def test_the_device_reads_arguments_memories_and_special_registers():
    text = module_text(read_kernel(MATMUL))
    assert 'target triple = "nvptx64-nvidia-cuda"' in text
    assert "ptx_kernel" in text
    assert text.count("noalias readonly align 4") == 2
    ptx = emit_ptx(optimize(text))
    assert ".extern .shared .align 16 .b8 metafork_shared[]" in ptx
    for fragment in ("ld.global.nc", "st.shared", "bar.sync", "%ctaid.x", "%tid.y", "%ntid.y"):
        assert fragment in ptx
    assert ptx.index("mm_param_0") < ptx.index("mm_param_1") < ptx.index("mm_param_4")


def test_nothing_is_contracted_and_division_and_roots_are_rounded():
    kernel = read_kernel(
        """
        void k(const float *x, const double *y, float *o, double *p) {
          int i = threadIdx.x;
          o[i] = x[i] * x[i + 1] + x[i + 2] / x[i] + sqrtf(x[i]);
          p[i] = y[i] * y[i + 1] + y[i + 2] / y[i] - sqrt(y[i]);
        }
        """
    )
    ptx = emit_ptx(optimize(module_text(kernel)))
    assert "fma" not in ptx
    for opcode in ("mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32", "mul.rn.f64", "div.rn.f64", "sqrt.rn.f64"):
        assert opcode in ptx


def test_what_the_user_writes_as_fma_is_one():
    kernel = read_kernel("void k(const float *x, float *o) { o[0] = fmaf(x[0], x[1], x[2]); }")
    assert "fma.rn.f32" in emit_ptx(optimize(module_text(kernel)))


def test_loops_that_nvcc_unrolls_are_unrolled_on_request():
    kernel = read_kernel(
        "void k(int n, int s, const float *a, float *b) { for (int i = threadIdx.x; i < n; i += s) b[i] = a[i]; }"
    )
    assert optimize(module_text(kernel)).count("load float") == 1
    assert optimize(module_text(kernel, Nvptx(unroll=4))).count("load float") == 4


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((Phase((), ()),), "no Phase"),
        ((read_kernel("void k(int *o) { o[0] = 1; }").body[0],), "no memory o"),
    ],
)
def test_what_is_no_kernel_is_refused(body, message):
    kernel = Kernel("k", (), (), body, (ONE, ONE, ONE), (ONE, ONE, ONE), ONE)
    with pytest.raises(ValueError, match=message):
        module_text(kernel)


@given(st.fractions(min_value=Fraction(-4), max_value=Fraction(4)).map(float))
def test_constants_round_once(value):
    assert floating_value(repr(value), ScalarType.DOUBLE) == value
    assert floating_value(f"{value!r}f", ScalarType.FLOAT) == float(np.float32(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # Halfway between two floats but for a tail that double precision loses.
        ("1.00000005960464477539062500000000001f", 1.00000011920928955078125),
        ("1.000000059604644775390625f", 1.0),
        ("0x1.8p1f", 3.0),
        ("1e-46f", 0.0),
        ("1e39f", math.inf),
        ("3.4028235e38f", 3.4028234663852886e38),
    ],
)
def test_awkward_constants(text, value):
    assert floating_value(text, ScalarType.FLOAT) == value


@pytest.mark.parametrize("pipeline", [("O3",), ("O1",), ("O3-rolled",)])
def test_llvm_has_nothing_to_say_of_loops_over_an_array_of_a_thread_that_may_end_early(pipeline, capfd):
    kernel = lower(
        program(
            """
void f(int n, int B, int m, const float a[n][5], float c[n]) {
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++) meta_for (int u = 0; u < B; u++) {
      float t[5];
      for (int l = 0; l < 5; l++) t[l] = a[i * B + u][l];
      for (int l = 0; l < 5; l++) { if (l > m) break; t[l] -= t[4 - l]; }
      c[i * B + u] = t[4];
    }
  }
}"""
        ),
        "k",
    )
    text = module_text(kernel)
    assert text.count("!llvm.loop ") == 2
    optimize(text, pipeline)
    assert capfd.readouterr().err == ""
