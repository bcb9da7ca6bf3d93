"""Members of structures that a function is given: parameters to its schedules where nothing changes them."""

import pytest

from metafork.comprehensive.emit.host.members import flat_function, is_flattened
from metafork.comprehensive.emit.outputs import rendered_files
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.reading import parse
from metafork.comprehensive.verification import Options, verify
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source

LOOPS = "meta_for (int i = 0; i < ({0} + B - 1) / B; i++) meta_for (int t = 0; t < B; t++)"
GRID = "typedef struct { int nx, ny; float h; struct { int left; } pad; } Grid;\n"
MATRIX = "struct matrix { int rows, cols; const char *name; float *data; };\n"

PROGRAMS = {
    "by value, with a pointer": MATRIX
    + "void scaled(struct matrix a, const struct matrix b, int B, float w)\n{\n"
    + "  int n = a.rows * a.cols;\n  meta_schedule { "
    + LOOPS.format("n")
    + "\n    { int p = i * B + t; if (p < n) b.data[p] = w * a.data[p]; } }\n}\n",
    "arrays that members size": GRID
    + "void smooth(Grid g, int B, const float u[g.ny][g.nx], float v[g.ny][g.nx])\n{\n  assert(g.nx > 2);\n"
    + "  meta_schedule { "
    + LOOPS.format("(g.nx - 2)")
    + "\n    for (int r = 0; r < g.ny; r++) { int c = i * B + t + 1;"
    + "\n      if (c < g.nx - 1) v[r][c] = (u[r][c - 1] + u[r][c + 1]) / (g.h * g.h); } }\n}\n",
    "behind pointers": MATRIX
    + "static int blocks(int n, int B) { return (n + B - 1) / B; }\n"
    + "void added(const struct matrix *a, struct matrix *b, int B)\n{\n"
    + "  if (!a || b == NULL) return;\n  int n = (*a).rows, m = a->cols;\n"
    + "  meta_schedule { meta_for (int i = 0; i < blocks(n, B); i++) meta_for (int t = 0; t < B; t++)\n"
    + "    if (i * B + t < n) for (int k = 0; k < m; k++)\n"
    + "      b->data[(i * B + t) * m + k] += a->data[(i * B + t) * m + k]; }\n"
    + "}\n",
    "by macros, of the lesser size": "#define AT(v, i) ((v))->data[(i) * (v)->cols]\n"
    + MATRIX
    + "void moved(const struct matrix *a, struct matrix *b, int B)\n{\n"
    + "  int n = a->rows < b->rows ? a->rows : b->rows;\n  assert(a->cols > 0 && b->cols > 0);\n"
    + "  meta_schedule { "
    + LOOPS.format("n")
    + "\n    if (i * B + t < n) AT(b, i * B + t) = AT(a, i * B + t); }\n}\n",
    "in a structure, a name that is taken, a copy of the whole": GRID
    + "static int far(Grid g) { return g.nx + 5; }\n"
    + "void shifted(Grid g, int g_pad_left, int n, int B, const float *u, float *v)\n{\n"
    + "  if (far(g) < 0) return;\n  Grid copy = g;\n  copy.nx = 3;\n  assert(g.pad.left >= 0 && g_pad_left >= 0);\n"
    + "  meta_schedule { "
    + LOOPS.format("n")
    + "\n    { int p = i * B + t; if (p < n) v[p + g.pad.left] = u[p + g_pad_left]; } }\n}\n",
    "handed to functions that return an expression": GRID
    + "static inline int at(const Grid g, int r, int c) { return r * g.nx + c; }\n"
    + "static int down(Grid g, int r, int c) { return at(g, r + 1, c); }\n"
    + "static float scaled(const Grid *g, float v) { return v / ((*g).h * g->h); }\n"
    + "static double twice(double v) { return v + v; }\n"
    + "void shifted(Grid g, int B, const float *u, float *v)\n{\n  assert(g.nx > 0 && g.h > 0);\n  meta_schedule { "
    + LOOPS.format("g.nx")
    + "\n    { int c = i * B + t; if (c < g.nx) for (int r = 0; r < g.ny - 1; r++)"
    + "\n      v[at(g, r, c)] = twice(scaled(&g, u[down(g, r, c)])) + at(g, 0.75, 0); } }\n}\n",
    "a promise": "struct box { int n, m; };\n#pragma metafork extents(a[d.n * d.m])\n"
    + "void filled(struct box d, int B, float *a)\n{\n  assert(d.n > 0);\n  meta_schedule { "
    + LOOPS.format("d.m")
    + "\n    if (i * B + t < d.m) a[(i * B + t) * d.n] = (d.n & 1) - 2; }\n}\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.slow
def test_a_member_is_a_parameter(name):
    text = "#include <assert.h>\n#include <stddef.h>\n" + PROGRAMS[name]
    options = Options(points=6, jobs=1, dataflow_seconds=0, optimization="-O0")
    found = verify(
        Source("input.mf", text), counters=("threads_per_block",), strategies=(), options=options, machine="all"
    )
    assert found.passed, found.table()
    assert "not checked" not in found.table()
    assert all(row.points for row in found.rows)


@pytest.mark.slow
def test_members_are_filled_by_a_function_that_is_given_them(tmp_path):
    (tmp_path / "init.c").write_text(
        "void scaled_init(int a_rows, int a_cols, float *a_data, float *b_data, int B, float w)\n"
        "{ for (int i = 0; i < a_rows * a_cols; i++) a_data[i] = b_data[i] = w; }\n"
    )
    source = Source("input.mf", PROGRAMS["by value, with a pointer"])
    options = Options(points=3, jobs=1, dataflow_seconds=0, optimization="-O0", init=tmp_path / "init.c")
    found = verify(source, counters=("threads_per_block",), strategies=(), options=options, machine="all")
    assert found.passed, found.table()
    assert all(row.points for row in found.rows)


def test_parameters_are_named_after_members():
    unit = parse(Source("input.mf", PROGRAMS["in a structure, a name that is taken, a copy of the whole"]))
    (program,) = (one.program for one in unit.schedules)
    assert {one.name for one in program.parameters} >= {"g_pad_left", "g_pad_left_2", "n", "B"}
    (function,) = unit.functions
    assert [(one.name, one.member) for one in function.parameters[0].parts] == [
        ("g_nx", "g.nx"),
        ("g_pad_left_2", "g.pad.left"),
    ]


def test_the_host_declares_members_and_keeps_its_text():
    result = optimize(Source("input.mf", PROGRAMS["behind pointers"]), counters=("threads_per_block",), strategies=())
    files = rendered_files(result)
    host = files["input_host.c"]
    assert "const __typeof__(a->cols) a_cols __attribute__((unused)) = a ? a->cols : 0;" in host
    assert "if (!a || b == NULL) return;" in host
    assert "metafork_unchanged((a ? a->rows : 0) == a_rows && " in host
    # Without the input's types there is nothing that the header can declare.
    assert "added(" not in files["input.h"]


CHANGED = {
    "assigned": "g.nx = 3;",
    "assigned in parentheses": "(g.nx) = 3;",
    "counted": "g.nx++;",
    "counted in front": "--g.nx;",
    "counted in parentheses": "++(g.nx);",
    "its address": "int *p = &g.nx; *p = 3;",
    "its address in another type": "read((void *)&g.nx);",
    "in assembly": '__asm__("" : "+r"(g.nx));',
    "its address in parentheses": "read(&(g.nx));",
    "the address of the whole": "read(&g);",
    "assigned as a whole": "g = other;",
    "a structure in it": "g.pad = other.pad;",
    "perhaps by a macro": "UPDATE(g.nx);",
    "perhaps by a macro, somewhere in it": "UPDATE(1 + f(g.nx, 2));",
    "another variable of its name": "{ int g = 3; use(g); }",
}


def by_value(statement, value="g.nx"):
    """A function whose schedule uses a structure that it is given, behind a statement of the host."""
    return Source(
        "input.mf",
        f"{GRID}void read(void *);\nint f(int, int);\nvoid use(int);\n"
        f"void smooth(Grid g, Grid other, int n, int B, float v[n])\n{{\n  {statement}\n"
        f"  meta_schedule {{ {LOOPS.format('n')} if (i * B + t < n) v[i * B + t] = {value}; }}\n}}\n",
    )


@pytest.mark.parametrize("how", CHANGED)
def test_a_member_that_changes_is_none(how):
    with pytest.raises(DiagnosticsError) as refused:
        parse(by_value(CHANGED[how]))
    assert {one.code for one in refused.value.diagnostics} == {"MF0205"}


CALLED = {
    "static int at(Grid g, int i) { return i * g.nx; }": True,
    "static int at(Grid g, int i) { return i * g.nx + m; }": False,  # another `m`, perhaps
    "static int at(Grid g, int i) { g.nx++; return i * g.nx; }": False,
    "static int at(Grid g, int i) { return i * g.nx++; }": False,
    "int at(Grid g, int i);": False,
    "static int at(Grid g, int i) { return i * rand(); }": False,
    "static int at(Grid g, int *i) { return *i * g.nx; }": False,
    "static Grid at(Grid g, int i) { return g; }": False,
    "#define TIMES *\nstatic int at(Grid g, int i) { return i TIMES g.nx; }": True,
}


@pytest.mark.parametrize("function", CALLED)
def test_a_function_that_is_given_a_structure_is_written_out_where_it_returns_an_expression(function):
    given = by_value("", "at(g, 2)")
    source = Source("input.mf", given.text.replace("void read", f"#include <stdlib.h>\nint m;\n{function}\nvoid read"))
    if CALLED[function]:
        (schedule,) = parse(source).schedules
        assert [one.name for one in schedule.program.values] == ["g_nx"]
    else:
        with pytest.raises(DiagnosticsError) as refused:
            parse(source)
        assert {one.code for one in refused.value.diagnostics} <= {"MF0205", "MF0206", "MF0223"}


def test_whatever_leaves_members_as_they_are_is_no_change():
    harmless = (
        "int a = (g.nx), b = n & g.nx, c = f(n, g.nx); use(b == g.nx); int k = -g.nx; use(sizeof(g)); int *p = &c;"
    )
    (schedule,) = parse(by_value(harmless)).schedules
    assert [one.name for one in schedule.program.values] == ["g_nx"]


BEHIND = {
    "assigned": "g->nx = 3;",
    "by another pointer": "other->nx = 3;",
    "in parentheses": "(*other).nx = 3;",
    "by a pointer to a number": "*numbers = 3;",
    "in a branch": "if (n > 3) *numbers = 3;",
    "in the other branch": "if (n > 3) n = 2; else *numbers = 3;",
    "counted": "other->nx++;",
    "counted in front": "++other->nx;",
    "counted behind a pointer": "(*numbers)++;",
    "by a function": "change();",
    "as a whole": "*other = *g;",
    "as a whole, by an index": "other[0] = *g;",
    "by an index": "other[0].nx = 3;",
    "counted by an index": "++other[0].nx;",
    "by a pointer of its own": "Grid *own = other; own[0] = *g;",
    "a variable of the file": "here.nx = 3;",
    "a variable of the file as a whole": "here = (Grid){0};",
    "an array of the file": "there[1] = (Grid){0};",
    "by a union": "union { Grid *g; int *n; } u; u.g[0].nx = 3;",
    "it leads elsewhere": "g = other;",
    "it is handed on": 'printf("%p", g);',
}


def behind_a_pointer(statement):
    """The same with a pointer to the structure."""
    return Source(
        "input.mf",
        f"{GRID}Grid here, there[2];\nvoid change(void);\n"
        "void smooth(Grid *g, Grid *other, int n, int *numbers, int B, float *v)\n{\n"
        f"  {statement}\n  int m = g->nx;\n"
        f"  meta_schedule {{ {LOOPS.format('m')} if (i * B + t < m) v[(i * B + t) * 2] = 1; }}\n}}\n",
    )


@pytest.mark.parametrize("how", BEHIND)
def test_a_member_behind_a_pointer_that_may_change_is_none(how):
    # So `m` is no expression in parameters, and tells no extent of `v` but at the schedule.
    function = next(one for one in parse(behind_a_pointer(BEHIND[how])).functions if one.accesses or one.values)
    assert [one.array for one in function.values if one.name == "v"] == [None]


@pytest.mark.parametrize("statement", ["", "v[0] = 3; n = m_of(n) + 1;", "if (g != NULL && !other) numbers[2]++;"])
def test_without_such_changes_it_is_one(statement):
    source = behind_a_pointer(statement)
    source = Source(
        "input.mf", source.text.replace("void change", "static int m_of(int k) { return k + 1; }\nvoid change")
    )
    (function,) = parse(source).functions
    assert [one.member for one in function.values if one.member] == ["g->nx"]


def test_a_flat_function_puts_structures_together():
    (function,) = parse(Source("input.mf", PROGRAMS["by value, with a pointer"])).functions
    assert is_flattened(function)
    assert flat_function(function, "serial_") == (
        "void metafork_flat_scaled(int a_rows, int a_cols, void *a_data, void *b_data, int B, float w)"
        ' __asm__("serial_scaled_metafork_flat");\n'
        "void metafork_flat_scaled(int a_rows, int a_cols, void *a_data, void *b_data, int B, float w)"
        " { struct matrix a = {.rows = a_rows, .cols = a_cols, .data = a_data};"
        " const struct matrix b = {.data = b_data}; return scaled(a, b, B, w); }\n"
    )


def test_pointers_that_are_assigned_to_stay_parameters_but_beside_another_structure():
    """By the other one the same members may be known, as they were when the function began."""
    text = """
    typedef struct { int n; float *a, *b; } two;
    #pragma metafork extents(s->a[s->n], s->b[s->n])
    void run(two *sOTHER, int steps) {
      for (int t = 0; t < steps; t++) {
        meta_schedule meta_block(32) meta_for (int i = 0; i < s->n; i++) s->b[i] = s->a[i];
        float *p = s->a; s->a = s->b; s->b = p;
      }
    }"""
    (function,) = parse(Source("input.mf", text.replace("OTHER", ""))).functions
    assert {one.name: one.moved for one in function.values if one.member} == {"s_n": False, "s_a": True, "s_b": True}
    for changed in (text.replace("OTHER", ", two *other"), text.replace("OTHER", "").replace("s->b = p", "s->n = 3")):
        with pytest.raises(DiagnosticsError):
            parse(Source("input.mf", changed))


def test_members_have_one_order():
    """The members of a structure stand at one place: by name they are in the same order each time."""
    names = ["e", "b", "f", "a", "d", "c"]
    sizes = " + ".join(f"g.{name}" for name in names)
    text = f"struct sizes {{ int {', '.join(names)}; }};\nvoid zero(struct sizes g, int B, float *x)\n{{\n"
    text += (
        f"  int n = {sizes};\n  meta_schedule {{ {LOOPS.format('n')} if (i * B + t < n) x[i * B + t] = 0.0f; }}\n}}\n"
    )
    program = parse(Source("zero.mf", text)).schedules[0].program
    assert [one.name for one in program.parameters] == [*(f"g_{name}" for name in sorted(names)), "B"]
