"""The papers' programs as Python structures, and what each part of the language becomes."""

from pathlib import Path

import pytest

from metafork.frontend import parse, read_source
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source
from metafork.ir.program import ParameterKind, binary
from tests.metafork.frontend.marked import block, diagnostics_of, program_of, thread

EXAMPLES = Path(__file__).parents[3] / "examples"
T = ScalarType


def var(name, type_=T.INT):
    return ir.Var(name, type_)


def example(name):
    return parse(read_source(EXAMPLES / name))


def shape(program):
    return [(one.name, one.kind.value, one.of_serial_loop) for one in program.parameters]


def test_matmul():
    unit = example("matmul.mf")
    (schedule,) = unit.schedules
    program = schedule.program
    assert (unit.name, program.name, program.function) == ("matmul", "matmul_k0", "matmul")
    assert shape(program) == [
        ("n", "data", False),
        ("B0", "program", False),
        ("ub1", "program", False),
        ("s", "program", False),
    ]
    n, ub1, s = var("n"), var("ub1"), var("s")
    assert program.derived == (
        ir.Derived("dim0", T.INT, binary("/", n, var("B0"))),
        ir.Derived("dim1", T.INT, binary("/", n, binary("*", ub1, s))),
    )
    assert program.assumptions == (binary("<=", var("B0"), binary("*", ub1, s)),)
    assert [(one.name, one.element, one.extents) for one in program.arrays] == [
        (name, T.FLOAT, (n, n)) for name in "abc"
    ]
    assert program.grid == (ir.MetaFor("i", var("dim0")), ir.MetaFor("j", var("dim1")))
    (loop,) = program.body
    assert loop.init == ir.Declare("k", T.INT, ir.IntConst(0))
    assert loop.condition == binary("<", var("k"), binary("/", n, var("B0")))
    assert loop.step == ir.Assign(var("k"), "+", ir.IntConst(1))
    (phase,) = loop.body
    assert phase.threads == (ir.MetaFor("v", var("B0")), ir.MetaFor("u", ub1))
    assert [type(one) for one in phase.body] == [ir.Declare, ir.Declare, ir.For]
    (inner,) = phase.body[2].body
    declare, assign = inner.body
    assert declare == ir.Declare("x", T.INT, binary("*", var("w"), ub1))
    assert assign.op == "+"
    column = binary("+", var("q"), var("x"))
    middle = binary("+", binary("*", var("B0"), var("k")), var("z"))
    assert assign.target == ir.Element("c", (var("p"), column), T.FLOAT)
    assert assign.value == binary(
        "*", ir.Element("a", (var("p"), middle), T.FLOAT), ir.Element("b", (middle, column), T.FLOAT)
    )
    assert not program.mapping.decided
    assert program.mapping.cached == ()
    assert unit.transfers == ()


def test_matadd():
    program = example("matadd.mf").schedules[0].program
    assert shape(program) == [("N", "data", False), ("B0", "program", False), ("B1", "program", False)]
    assert [one.name for one in program.derived] == ["dim0", "dim1"]
    (phase,) = program.body
    assert [one.var for one in phase.threads] == ["u", "q"]
    test = phase.body[2]
    assert test.condition.op == "&&"
    assert [one.target.array for one in test.then] == ["c", "c"]
    half = binary("/", var("N"), ir.IntConst(2))
    assert test.then[1].target.indices == (var("i"), binary("+", var("j"), half))


def test_jacobi1d():
    unit = example("jacobi1d.mf")
    program = unit.schedules[0].program
    assert shape(program) == [
        ("N", "data", False),
        ("s", "program", False),
        ("B", "program", False),
        ("t", "program", True),
    ]
    assert program.arrays[0].extents == (binary("*", ir.IntConst(2), var("N")),)
    (phase,) = program.body
    (loop,) = phase.body
    assert [one.name for one in loop.body[:6]] == ["p", "p1", "p2", "np", "np1", "np2"]
    assert loop.body[6].condition == binary("%", var("t"), ir.IntConst(2))
    (transfer,) = unit.transfers
    assert transfer.schedules == (0,)
    assert transfer.arrays == ("a",)
    assert unit.source.text[transfer.span.start :].startswith("for (int t = 0;")
    assert [one.name for one in unit.functions[0].parameters] == ["T", "N", "s", "B", "a"]


def test_transpose():
    unit = example("transpose.mf")
    assert [one.program.name for one in unit.schedules] == ["transpose_k0", "transpose_k1"]
    assert [one.function for one in unit.schedules] == ["transpose", "transpose_true"]
    linear, true = (one.program for one in unit.schedules)
    assert linear.mapping.decided
    assert linear.mapping.cached == ("a", "c")
    n = var("N")
    assert [one.extents for one in linear.arrays] == [(n, n), (binary("*", n, n),)]
    store = linear.body[0].body[0].body[2]
    assert store.target.indices == (binary("+", binary("*", var("i"), n), var("j")),)
    store = true.body[0].body[0].body[2]
    assert store.target.indices == (var("j"), var("i"))
    assert unit.functions[1].span.start > unit.functions[0].span.end


def statements(code, declarations=""):
    (phase,) = program_of(thread(code, declarations)).body
    return phase.body


def test_thread_statements():
    body = statements(
        "int k = 3, l; float x = alpha; l = k; x *= 2; k++; --l; if (k) x = 1; else if (l) x = 2;"
        " while (k < 4) { k += 1; if (k == 2) continue; break; } for (;;) break; a[i] = x; (void)k; ;"
    )
    assert body[:3] == (
        ir.Declare("k", T.INT, ir.IntConst(3)),
        ir.Declare("l", T.INT, None),
        ir.Declare("x", T.FLOAT, var("alpha", T.FLOAT)),
    )
    assert body[3] == ir.Assign(var("l"), "", var("k"))
    assert body[4] == ir.Assign(var("x", T.FLOAT), "*", ir.IntConst(2))
    assert body[5] == ir.Assign(var("k"), "+", ir.IntConst(1))
    assert body[6] == ir.Assign(var("l"), "-", ir.IntConst(1))
    assert isinstance(body[7].otherwise[0], ir.If)
    assert body[8].body[1].then == (ir.Continue(),)
    assert body[8].body[2] == ir.Break()
    assert body[9] == ir.For(None, None, None, (ir.Break(),))
    assert len(body) == 11


def test_several_declarators_in_a_loop_stand_before_it():
    first, second = statements("for (int k = 0, l = k + 1; k < l; l--) a[k] = l;")
    assert first == ir.Declare("k", T.INT, ir.IntConst(0))
    assert second.init == ir.Declare("l", T.INT, binary("+", var("k"), ir.IntConst(1)))


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", T.INT),
        ("'a'", T.INT),
        ("1u", T.UNSIGNED_INT),
        ("1L", T.LONG),
        ("1ull", T.UNSIGNED_LONG_LONG),
        ("2147483648", T.LONG),
        ("0x80000000", T.UNSIGNED_INT),
        ("1.0", T.DOUBLE),
        ("1.f", T.FLOAT),
        (".5e-3f", T.FLOAT),
        ("0x1p3", T.DOUBLE),
        ("sizeof(double)", T.UNSIGNED_LONG),
        ("(short)3", T.SHORT),
        ("(short)3 + (char)1", T.INT),
        ("n + 1u", T.UNSIGNED_INT),
        ("n < 2.0", T.INT),
        ("!alpha", T.INT),
        ("~(char)1", T.INT),
        ("1L << 2", T.LONG),
        ("1 << 2L", T.INT),
        ("n ? 1 : 2.0f", T.FLOAT),
        ("sqrt(alpha)", T.DOUBLE),
        ("sqrtf(alpha)", T.FLOAT),
        ("labs(n)", T.LONG),
        ("lround(alpha)", T.LONG),
        ("M_PI", T.DOUBLE),
        ("(size_t)n", T.UNSIGNED_LONG),
        ("(unsigned long int)n", T.UNSIGNED_LONG),
        ("idx[i] * a[i]", T.FLOAT),
    ],
)
def test_types(text, type_):
    (assign,) = statements(f"a[i] = {text};")
    assert assign.value.type is type_


@pytest.mark.parametrize(
    ("text", "value"),
    [("0x10", 16), ("010", 8), ("0", 0), ("0b11", 3), (r"'\n'", 10), ("sizeof(short)", 2), ("sizeof n", 4)],
)
def test_integer_constants(text, value):
    (assign,) = statements(f"a[i] = {text};")
    assert assign.value.value == value


def test_functions_are_called_as_written():
    (assign,) = statements("a[i] = pow(alpha, 2) + fmaxf(alpha, a[j]);")
    power, largest = assign.value.left, assign.value.right
    assert power == ir.Call("pow", (var("alpha", T.FLOAT), ir.IntConst(2)), T.DOUBLE)
    assert largest == ir.Call("fmaxf", (var("alpha", T.FLOAT), ir.Element("a", (var("j"),), T.FLOAT)), T.FLOAT)


def test_a_function_that_returns_in_branches_needs_no_variable_that_says_so():
    least = "static int least(int x, int y) { if (x < y) { y = x; return y; } y += 1; return y; }\n"
    program = program_of(least + thread("a[i] = least(j, 3);"))
    declared = [stmt.name for stmt in ir.walk_statements(program.body) if isinstance(stmt, ir.Declare)]
    assert "returned" not in " ".join(declared)


def test_parameters_and_values():
    program = program_of(
        "void f(int n, int k, int beta, int gamma, int delta, double alpha, long m, int unused, float a[n][m])\n"
        "{ int eps = beta - 3;\n"
        "  meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) {\n"
        "    int q = j + k; int r = gamma * q;\n"
        "    if (delta > 3) a[i][q] = alpha * beta + r + eps; } } }"
    )
    assert shape(program) == [
        ("n", "data", False),
        ("k", "program", False),
        ("delta", "program", False),
        ("m", "data", False),
    ]
    assert [(one.name, one.type) for one in program.values] == [
        ("beta", T.INT),
        ("gamma", T.INT),
        ("alpha", T.DOUBLE),
        ("eps", T.INT),
    ]
    assert program.derived == ()
    assert program.parameters[3].type is T.LONG


def test_control_flows_through_locals():
    program = program_of(
        "void f(int n, int k, int l, int m, int a[n]) { meta_schedule {\n"
        "  meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 1; j++) {\n"
        "    int p = k; int q = 0; q = p; q += l; int v = m; a[q] = v; } } }"
    )
    assert [one.name for one in program.parameters] == ["n", "k", "l"]
    assert [one.name for one in program.values] == ["m"]


def test_one_name_one_variable():
    program = program_of(
        "void f(int n, int t, int a[n]) { int unrelated = 1; int u_1 = n; meta_schedule {\n"
        "  meta_for (int i = 0; i < n; i++) {\n"
        "    int unrelated = i;\n"
        "    meta_for (int u = 0; u < u_1; u++) { int x = t; { int x = u, t = 1; a[x] = t; } a[u] = x + unrelated; }\n"
        "    meta_for (int u = 0; u < u_1; u++) { for (int x = 0; x < 2; x++) a[u] = x; } } } }"
    )
    declared = []
    for one in ir.walk_statements(program.body):
        match one:
            case ir.Declare(name=name):
                declared.append(name)
            case ir.Phase(threads=threads):
                declared += [loop.var for loop in threads]
    assert declared == ["unrelated", "u", "x", "x_1", "t_1", "u_2", "x_2"]
    taken = [one.name for one in (*program.parameters, *program.derived, *program.values, *program.arrays)]
    assert taken == ["n", "u_1", "t", "a"]
    inner = program.body[1].body[3]
    assert inner == ir.Assign(ir.Element("a", (var("x_1"),), T.INT), "", var("t_1"))


def test_block_level():
    program = program_of(
        block(
            "float tile[m][4]; int base = i * m; int step;\n"
            "for (int k = 0; k < n; k++) { step = k; if (k % 2) {\n"
            "  meta_for (int u = 0; u < m; u++) tile[u][0] = a[base + u];\n"
            "  meta_for (int v = 0; v < m; v++) a[base + v] = tile[v][0] + step + idx[0]; } }\n"
            "while (base < idx[i]) base++;"
        )
    )
    tile, base, step, loop, wait = program.body
    assert tile == ir.BlockArray(ir.Array("tile", T.FLOAT, (var("m"), ir.IntConst(4))))
    assert (base.name, step.name, step.value) == ("base", "step", None)
    first, second = loop.body[1].then
    assert isinstance(first, ir.Phase)
    assert isinstance(second, ir.Phase)
    assert isinstance(wait, ir.While)
    assert [one.name for one in program.arrays] == ["a", "idx"]
    assert program.array("tile").element is T.FLOAT


def test_declarations_between_loops_of_one_half_move_inwards():
    program = program_of(
        "void f(int n, int a[n][n]) { meta_schedule {\n"
        "  meta_for (int i = 0; i < n; i++) { int x = i * 2;\n"
        "    meta_for (int j = 0; j < n; j++)\n"
        "      meta_for (int u = 0; u < n; u++) { int y = x + u;\n"
        "        meta_for (int v = 0; v < n; v++) a[y][v] = x; } } } }"
    )
    declared, phase = program.body
    assert declared == ir.Declare("x", T.INT, binary("*", var("i"), ir.IntConst(2)))
    assert phase.body[0] == ir.Declare("y", T.INT, binary("+", var("x"), var("u")))
    assert [one.var for one in program.grid] == ["i", "j"]


def test_six_dimensions():
    heads = " ".join(f"meta_for (int {one} = 0; {one} < n; {one}++)" for one in "pqruvw")
    program = program_of("void f(int n, char a[n][n][n]) { meta_schedule { " + heads + " a[p][q][r] = u + v + w; } }")
    assert [one.var for one in program.grid] == ["p", "q", "r"]
    assert [one.var for one in program.body[0].threads] == ["u", "v", "w"]


def test_serial_loop_variables_come_last():
    program = program_of(
        "void f(int n, int a[n], int z) { int y; for (y = 0; y < 4; y++) { int c = y + z; for (int t = 0; t < 9; t++)\n"
        "  meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < c; j++) a[y] = a[t + z]; } } }"
    )
    assert shape(program) == [
        ("n", "data", False),
        ("z", "program", False),
        ("y", "program", True),
        ("t", "program", True),
    ]
    assert program.derived == (ir.Derived("c", T.INT, binary("+", var("y"), var("z"))),)
    assert program.parameters[0].kind is ParameterKind.DATA


def test_words_of_the_language_are_names_elsewhere():
    body = statements(
        "int cache = 1, meta_schedule = 2; cache += meta_schedule; a[cache] = 1;", "  int meta_for = n;\n"
    )
    assert [one.name for one in body[:2]] == ["cache", "meta_schedule"]


def test_names_of_c_that_cuda_keeps_are_renamed():
    body = statements("int threadIdx = 1, class = 2; a[threadIdx] = class;")
    assert [one.name for one in body[:2]] == ["threadIdx_1", "class_1"]


def test_several_schedules_in_one_function():
    text = (
        thread("a[i] = 1;").rstrip().removesuffix("}")
        + "  n = pick();\n"
        + ("  meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) idx[0] = 2; }\n}\n")
    )
    text = text.replace("int idx[n]", "int idx[m]")
    unit = parse(read_text(text))
    assert [one.number for one in unit.schedules] == [0, 1]
    assert [one.program.name for one in unit.schedules] == ["test_k0", "test_k1"]
    for one in unit.schedules:
        assert text[one.span.start : one.span.end].startswith("meta_schedule {")
        assert text[one.span.start : one.span.end].endswith("}")
    assert [one.kind.value for one in unit.schedules[1].program.parameters] == ["program", "data"]


def read_text(text, name="test.mf"):
    return Source(name, text)


def test_the_function_around():
    text = (
        "/* before */ static inline const float *best(const int n, float x[restrict n], struct s *q, char **v, ...)\n"
        "{ meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 1; j++) x[i] = 1; } return 0; }\n"
        "int after(void) { return 1; }\n"
    )
    (function,) = parse(read_text(text)).functions
    assert function.name == "best"
    assert function.returns == "const float *"
    assert function.static
    assert not function.fragment
    assert text[function.span.start : function.span.end].startswith("static inline")
    assert text[function.span.start : function.span.end].endswith("return 0; }")
    assert text[function.body.start : function.body.end].startswith("{ meta_schedule")
    assert [(one.name, one.declaration) for one in function.parameters] == [
        ("n", "const int n"),
        ("x", "float x[restrict n]"),
        ("q", "struct s *q"),
        ("v", "char **v"),
        ("", "..."),
    ]
    n, x, q, *_ = function.parameters
    assert n.type is T.INT
    assert n.const
    assert x.array == ir.Array("x", T.FLOAT, (var("n"),))
    assert not x.const
    assert (q.type, q.array) == (None, None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b/matmul.mf", "matmul"),
        ("my-kernel.v2.mf", "my_kernel_v2"),
        ("2d.mf", "program_2d"),
        ("for.mf", "program_for"),
        ("<text>", "text"),
        ("math.mf", "program_math"),
        ("String.mf", "program_String"),
        ("cuda_runtime.mf", "program_cuda_runtime"),
        ("metafork_runtime.mf", "program_metafork_runtime"),
        ("maths.mf", "maths"),
        ("", "program"),
        ("é.mf", "program"),
    ],
)
def test_unit_names(name, expected):
    assert parse(read_text(thread("a[i] = 1;"), name)).name == expected


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ("min(i, n - 1)", "`a < b ? a : b`"),
        ("MAX(i, 3)", "`a > b ? a : b`"),
        ("min(alpha, a[i])", "`fminf(a, b)`"),
        ("max(alpha, 1.0)", "`fmax(a, b)`"),
    ],
)
def test_what_to_write_for_min_and_max(call, written):
    (found,) = diagnostics_of(thread(f"a[i] = {call};"))
    assert found.code == "MF0206"
    assert written in found.message
    assert written in found.way_out
