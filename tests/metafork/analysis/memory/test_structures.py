"""Arrays of structures: which are found, and that their kernels compute what the serial program does."""

import numpy as np
import pytest

from metafork.analysis.memory.block_memory import block_memory
from metafork.analysis.memory.lane_transpose import WARP, LaneTranspose
from metafork.ir.ir_strategies import SHUFFLE
from metafork.ir.kernel import SHUFFLE as SHUFFLE_CALL
from metafork.ir.program import Call, parts_of
from metafork.llvm.leaf_ptx import leaf_ptx
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx
from metafork.llvm.targets import Nvptx
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse as parse_ptx
from metafork.strategies.llvm.register_pressure import PIPELINES as PRESSURE
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import program
from tests.sampling import sampled

SIZES = [{"N": 250, "B": 100}, {"N": 96, "B": 32}, {"N": 64, "B": 31}, {"N": 3, "B": 1}]


def transposed(text, *names):
    subject = program(text)
    return subject.mapped(cached=(), transposed=names or tuple(array.name for array in subject.arrays))


def case(text, points, *names):
    return Case(text, points, program=transposed(text, *names))


def reasons(text, *names):
    return {one.array: one.reason for one in block_memory(transposed(text, *names)).left_out}


def nest(name, arguments, body, extent="N / B"):
    return f"""void {name}(int N, int B, {arguments}) {{
  int dim = {extent};
  meta_schedule {{
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {{
        int p = i * B + j;
        {body}
      }}
  }}
}}"""


def of_stride(stride):
    """Every field is read, and changed in place; a second array is only written, a third partly read by a loop."""
    half = (stride + 1) // 2
    total = " + ".join(f"a[{stride} * p + {k}] * {k + 1}" for k in range(stride))
    body = f"int total = {total};"
    body += " ".join(f"a[{stride} * p + {k}] = total - a[{stride} * p + {k}];" for k in range(stride))
    body += f"int some = 0; for (int k = 0; k < {half}; k++) some ^= c[{stride} * p + {stride - half} + k] * (k + 3);"
    body += f"for (int k = 0; k < {stride}; k++) b[{stride} * p + k] = some + k;"
    return nest(f"stride_{stride}", f"int a[{stride} * N], long b[{stride} * N], const short c[{stride} * N]", body)


@pytest.mark.parametrize("stride", range(2, 32))
def test_the_closed_form_is_a_transposition_for_every_stride(stride):
    transpose = LaneTranspose(stride)
    memory = [[WARP * register + lane for register in range(stride)] for lane in range(WARP)]
    structures = [[stride * lane + field for field in range(stride)] for lane in range(WARP)]
    received = [[0] * stride for _ in range(WARP)]
    returned = [[0] * stride for _ in range(WARP)]
    for turn in range(stride):
        for lane in range(WARP):
            source = (stride * lane + (turn + lane // transpose.period) % stride) % WARP
            sent = memory[source][transpose.order[(turn - source) % stride]]
            received[lane][(turn + lane // transpose.period) % stride] = sent
            back = (lane - turn) % transpose.turns
            rest = (lane - (turn + back) % stride) // transpose.turns
            giver = transpose.period * back + transpose.inverse * rest % transpose.period
            given = structures[giver][(turn + giver // transpose.period) % stride]
            returned[lane][transpose.order[(turn - lane) % stride]] = given
    assert received == structures
    assert returned == memory


@pytest.mark.parametrize("stride", [0, 1, 32])
def test_other_strides_have_no_transposition(stride):
    with pytest.raises(ValueError, match=f"stride of {stride}"):
        LaneTranspose(stride)


@pytest.mark.parametrize("strides", sampled([range(first, 32, 5) for first in range(2, 7)], 1))
@pytest.mark.slow
def test_every_stride_runs_as_the_serial_program_does(strides, tmp_path):
    cases = [case(of_stride(stride), SIZES) for stride in strides]
    for one in cases:
        assert block_memory(one.program).left_out == ()
        assert "METAFORK_SHUFFLE" in kernel_text(lower(one.program, "k"))
    assert run(cases, tmp_path) == {}


@pytest.mark.slow
def test_in_any_order_of_threads_and_with_the_portable_switch(tmp_path, monkeypatch):
    cases = [case(of_stride(6), SIZES)]
    monkeypatch.setenv("METAFORK_CPU_ORDER", "reverse")
    assert run(cases, tmp_path / "reverse", grid_limit=2) == {}
    portable = run(cases, tmp_path / "portable", flags=["-DMETAFORK_CPU_UCONTEXT"])
    assert {text.splitlines()[-1] for text in portable.values()} <= {"ok"}  # AddressSanitizer warns of the switch


# Awkward ones; each is fully transposed where no array is named.
GUARDED = nest("guarded", "const float a[3 * N], float b[N]", "if (p < N) b[p] = a[3*p] * a[3*p + 1] - a[3*p + 2];",
               "(N + B - 1) / B")  # fmt: skip
NEIGHBOURS = nest("neighbours", "const double a[2 * N + 2], double b[N]",
                  "b[p] = a[2*p] * a[2*p + 3] - a[2*p + 1] * a[2*p + 2];")  # fmt: skip
ROWS = nest("rows", "const unsigned char a[N][3], unsigned char b[N][3]",
            "unsigned char gray = (a[p][0] * 2 + a[p][1] * 5 + a[p][2]) / 8; b[p][0] = gray; b[p][1] = 255 - gray;"
            "b[p][2] = a[p][2];")  # fmt: skip
TWO_WAYS = nest("two_ways", "const float a[4 * N], float b[4 * N]",
                "if (a[4*p] > a[4*p + 1]) b[4*p] = a[4*p + 3]; else b[4*p] = 1; b[4*p + 1] = b[4*p] + a[4*p + 2];"
                "b[4*p + 2] = 0; b[4*p + 3] = 5; b[4*p] = 7;")  # fmt: skip
TILE = """void tile(int N, int M, int B0, int B1, const float a[N][3 * M], float b[N][2 * M]) {
  assert(1 <= B0 && 1 <= B1);
  int dim0 = N / B0, dim1 = M / B1;
  meta_schedule {
    meta_for (int v = 0; v < dim0; v++)
      meta_for (int q = 0; q < dim1; q++)
        meta_for (int u = 0; u < B0; u++)
          meta_for (int w = 0; w < B1; w++) {
            int r = v * B0 + u, c = q * B1 + w;
            b[r][2 * c] = a[r][3 * c] + a[r][3 * c + 1];
            b[r][2 * c + 1] = a[r][3 * c + 2];
          }
  }
}"""
PHASES = """void phases(int N, int B, float a[5 * N], float b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      for (int t = 0; t < 3; t++) {
        meta_for (int j = 0; j < B - 1; j++) {
          int p = i * B + j;
          for (int k = 0; k < 5; k++) a[5 * p + k] = a[5 * p + k] * 0.5f + t + k;
        }
        meta_for (int j = 0; j < B; j++) {
          int p = i * B + B - 1 - j;
          b[p] = a[5 * (i * B + j)] + a[5 * (i * B + j) + 2] + a[5 * (i * B + j) + 4];
        }
      }
    }
  }
}"""


def test_awkward_structures_run_as_the_serial_program_does(tmp_path):
    cases = [
        case(GUARDED, [{"N": n, "B": b} for n, b in [(250, 100), (33, 32), (1, 40), (128, 64), (70, 33)]], "a"),
        case(NEIGHBOURS, SIZES, "a"),
        case(ROWS, SIZES),
        case(TWO_WAYS, SIZES),
        case(
            TILE,
            [
                {"N": 4, "M": m, "B0": b0, "B1": b1}
                for m, b0, b1 in [(64, 2, 32), (66, 2, 33), (64, 1, 64), (40, 4, 8), (128, 4, 32)]
            ],
        ),
        case(PHASES, [{"N": n, "B": b} for n, b in [(256, 64), (99, 33), (128, 32), (2, 2)]], "a"),
    ]
    for one in cases:
        assert block_memory(one.program).left_out == ()
    assert run(cases, tmp_path) == {}


def test_loads_that_may_leave_the_array_are_guarded_and_others_are_not():
    guarded, plain = (kernel_text(lower(transposed(text, "a"), "k")) for text in (GUARDED, NEIGHBOURS))
    assert "< (long long)(3 * N)" in guarded
    assert "0 <=" not in guarded
    assert "2 * N" not in plain


def test_a_structure_that_is_read_in_part_loads_nothing_behind_its_last_field(tmp_path):
    text = nest("part", "const int a[4 * N - 1], int b[N]", "b[p] = a[4*p] - a[4*p + 2];")
    assert "lane < 31 ?" in kernel_text(lower(transposed(text, "a"), "k"))
    assert run([case(text, SIZES, "a")], tmp_path) == {}


ONE = "b[p] = a[3*p] + a[3*p + 1];"


@pytest.mark.parametrize(
    ("arguments", "body", "reason"),
    [
        ("const float a[3 * N], float b[N]", "b[p] = a[p] + a[p];", "at a constant distance"),
        ("const float a[40 * N], float b[N]", "b[p] = a[32*p] + a[32*p + 1];", "at a constant distance"),
        ("const float a[3 * N], const int m[N], float b[N]", "b[p] = a[3 * m[p]];", "no known polynomial"),
        ("const float a[5 * N], float b[N]", "b[p] = a[5*p] + a[5*p + 1];", "uses 2 of 5 fields"),
        ("float a[3 * N], float b[N]", ONE + "a[3*p] = 1;", "not every thread is proved to write all 3 fields"),
        ("float a[3 * N], float b[N]", ONE + "if (p > 4) { a[3*p] = 1; a[3*p + 1] = 2; a[3*p + 2] = 3; }",
         "not every thread is proved to write all 3 fields"),
        ("float a[3 * N + 3], float b[N]", "a[3*p] = 1; a[3*p + 1] = 2; a[3*p + 2] = a[3*p + 3];",
         "touch more of it than one structure"),
        ("const float a[3 * N], float b[N]", "for (int k = 0; k < 4; k++) b[p] += a[3*p + k];", "more elements"),
        ("const float a[3 * N], float b[N]", "for (int k = 0; k < B; k++) b[p] += a[3*p + k];", "is not known"),
    ],
)  # fmt: skip
def test_why_an_array_is_left_alone(arguments, body, reason):
    text = nest("left", arguments, body)
    assert reason in reasons(text, "a")["a"]
    assert "METAFORK_SHUFFLE" not in kernel_text(lower(transposed(text, "a"), "k"))


IN_PLACE = {
    stride: nest(f"in_place_{stride}", f"{element} a[{stride} * N]",
                 f"{element} s = 0; for (int k = 0; k < {stride}; k++) s += a[{stride}*p + k] * (k + 1);"
                 f"for (int k = 0; k < {stride}; k++) a[{stride}*p + k] -= s;")
    for stride, element in ((2, "float"), (3, "int"), (5, "double"), (12, "float"))
}  # fmt: skip


@pytest.mark.parametrize("ir_strategies", [(), PRESSURE[:1], PRESSURE[2:], (SHUFFLE,)])
@pytest.mark.parametrize("stride", IN_PLACE)
@pytest.mark.sampled(5)
def test_the_device_code_computes_the_same(stride, ir_strategies):
    kernel = lower(transposed(IN_PLACE[stride]), "k")
    code = parse_ptx(leaf_ptx(kernel, ir_strategies).text)
    for blocks, threads in ((2, 100), (3, 32), (2, 7)):
        n = blocks * threads
        element = {4: np.float32, 8: np.float64}[kernel.memories[0].element.size]
        if not kernel.memories[0].element.floating:
            element = np.int32
        values = np.random.default_rng(n).integers(-9, 9, stride * n).astype(element)
        memory = GlobalMemory()
        a = memory.upload(values)
        numbers = {"N": n, "B": threads, "dim": blocks}
        arguments = [*(numbers[scalar.name] for scalar in kernel.scalars), a]
        done = run_kernel(code, "k", (blocks,), (threads,), arguments, memory=memory)
        rows = values.reshape(n, stride)
        expected = rows - (rows * np.arange(1, stride + 1)).sum(axis=1, keepdims=True)
        np.testing.assert_array_equal(memory.read(a, stride * n, element).reshape(n, stride), expected.astype(element))
        if threads == 32:  # every access of a whole warp is to 32 neighbouring elements
            assert done.lanes["ld.global"] == done.lanes["st.global"] == stride * n


def test_the_device_code_shuffles_without_a_cast_through_memory():
    for text, halves in ((NEIGHBOURS, 2), (GUARDED, 1)):
        kernel = lower(transposed(text, "a"), "k")
        ptx = emit_ptx(module_text(kernel, Nvptx()))
        rounds = sum(isinstance(part, Call) and part.name == SHUFFLE_CALL for part in parts_of(kernel.body))
        assert ptx.count("shfl.sync.idx.b32") == rounds * halves
        assert ".local" not in ptx
