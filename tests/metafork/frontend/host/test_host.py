"""What is derived, what is a parameter, what is assumed: the host code around a schedule."""

import pytest

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import binary
from metafork.printing.expressions import expression
from tests.metafork.frontend.marked import assert_refused, diagnostics_of, program_of

INT = ScalarType.INT
SCHEDULE = "meta_schedule { meta_for (int i = 0; i < d; i++) meta_for (int j = 0; j < 1; j++) a[i] = 1; }"


def around(before, after="", parameters="int n, int B", schedule=SCHEDULE):
    return f"int g;\nvoid use(int);\nint f({parameters}, int a[100])\n{{\n{before}\n{schedule}\n{after}\n}}\n"


def derived(program):
    return [one.name for one in program.derived]


def names(program):
    return [one.name for one in program.parameters]


@pytest.mark.parametrize(
    "before",
    [
        "int d = n / B;",
        "int d; d = n / B;",
        "int d = 0; d = n / B;",
        "int e = 1, d = n / B;",
        "const int d = n / B;",
        "int d = n / B; { int n = 7; use(n); }",
        'if (n > 3) puts("large"); int d = n / B;',
        "int c = n; c += 4; int d = n / B;",
        "my_type before = start(n, B); int d = n / B; other_type *p = (other_type *)calloc(n, 1);",
        'int d = n / B; struct s v = { n, B }; v.x = n; fprintf(stderr, "%d", d);',
        "int d = n / B; double t[4]; t[0] = n; t[d % 4]++;",
        "int d __attribute__((unused)) = n / B;",
        'int d = n / B; __asm__("nop");',
    ],
)
def test_derived(before):
    program = program_of(around(before))
    assert program.derived == (ir.Derived("d", INT, binary("/", ir.Var("n"), ir.Var("B"))),)
    assert names(program) == ["n", "B"]


QUOTIENT = "static int over(int a, int b) { return a / b; }\n"


def test_derived_by_functions_that_only_return_an_expression():
    program = program_of(
        QUOTIENT + "int both(int n, int b) { return over(n + 1, b) * 2; }\n" + around("int d = both(n, B) - 1;")
    )
    upper = binary("/", binary("+", ir.Var("n"), ir.IntConst(1)), ir.Var("B"))
    value = binary("-", binary("*", upper, ir.IntConst(2)), ir.IntConst(1))
    assert program.derived == (ir.Derived("d", INT, value),)
    narrow = program_of("int cut(short x) { return x; }\n" + around("int d = cut(n);"))
    assert narrow.derived == (ir.Derived("d", INT, ir.Cast(INT, ir.Cast(ScalarType.SHORT, ir.Var("n")))),)


@pytest.mark.parametrize(
    "text",
    [
        "int over(int a, int b) { a++; return a / b; }\n" + around("int d = over(n, B);"),
        "int over(int a, int b) { return a / b + g; }\n" + around("int d = over(n, B);"),
        "int over(int a, int b) { return over(a, b); }\n" + around("int d = over(n, B);"),
        "int over(int a, int b) { switch (a) { } return a / b; }\n" + around("int d = over(n, B);"),
        "#ifdef A\nint over(int a, int b) { return a / b; }\n#else\nint over(int a, int b) { return 0; }\n#endif\n"
        + around("int d = over(n, B);"),
        QUOTIENT + around("int (*over)(int, int) = other; int d = over(n, B);"),
        QUOTIENT + around("int d = over(n, B); n = 7;"),
    ],
)
def test_functions_that_derive_nothing(text):
    assert derived(program_of(text)) == []


@pytest.mark.parametrize(
    "before",
    [
        "int d = n / B; n = 4;",
        "int d = n / B; n++;",
        "int d = n / B; if (B) B -= 1;",
        "int d = n / B; for (int k = 0; k < 2; k++) n += k;",
        "int d = 3; if (n) d = n / B;",
        "int d; if (n) { d = n / B; }",
        "int d; if (n) d = n / B; else d = n;",
        "int d = count();",
        'int d; scanf("%d", &d);',
        "int d = n / B; change(&d);",
        "int d = n / B; register_it(&n); step();",
        "int d = n / B; register_it(&n); int *p = where(); *p = 3;",
        "int d = a[0];",
        "_Bool d = n / B;",
        "int d = (int)sqrt(n);",
        "int d; switch (n) { case 1: d = n / B; break; default: d = 4; }",
        "int d; switch (n) { case 1: d = n / B; }",
        "int d = n / B; goto end; end: ;",
        "int d; while (n > 3) { d = n / B; break; }",
        "int d = n / B, e = 4; unknown_t x = d ++ y;",
        "int d = n / B; weird ( d = 3 } ;".replace("}", ""),
        'int d = n / B; asm volatile ("" : "+r"(d));',
        "static int d = 5; d = d + n;",
        "\n#ifdef A\nint d = n / B;\n#else\nint d = n;\n#endif\n",
        "int d = g / B; step();",
    ],
)
def test_not_derived(before):
    text = around(before)
    if "weird" in before:
        text = text.replace("weird ( d = 3  ;", "weird y z (d = 3);")
    program = program_of(text)
    assert derived(program) == []
    assert names(program) == ["d"]


def test_a_write_later_in_an_enclosing_loop_undoes_a_definition_outside_it():
    loop = "for (int t = 0; t < 3; t++) { INSIDE " + SCHEDULE + " n--; }"
    outside = program_of(around("int d = n / B;", schedule=loop.replace("INSIDE", "")))
    assert derived(outside) == []
    inside = program_of(around("", schedule=loop.replace("INSIDE", "int d = n / B;")))
    assert derived(inside) == ["d"]


def test_chains_and_types():
    program = program_of(around("long e = n + 1; int c = e * 2, d = c - B;"))
    assert [(one.name, one.type) for one in program.derived] == [("e", ScalarType.LONG), ("c", INT), ("d", INT)]
    assert names(program) == ["n", "B"]
    assert program.derived[1].definition.type is ScalarType.LONG


def test_a_hidden_operand_is_not_confused_with_the_one_that_hides_it():
    nested = "int d = n / B; { int n = 5; " + SCHEDULE.replace("a[i] = 1", "a[n] = 1") + " }"
    program = program_of(around(nested, schedule=""))
    assert names(program) == ["d"]
    assert program.derived == (ir.Derived("n", INT, ir.IntConst(5)),)


def test_globals():
    program = program_of(around("g = 4; int d = n + g;"))
    assert (names(program), derived(program)) == (["g", "n"], ["d"])
    program = program_of(
        "float t[8];\nint size;\n" + around("int d = n; t[0] = 1;", schedule=SCHEDULE.replace("= 1", "= t[i]"))
    )
    assert [one.name for one in program.arrays] == ["t", "a"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("int d = n; assert(n > 3);", [binary(">", ir.Var("n"), ir.IntConst(3))]),
        (
            "int d = n / B; assert(n > 3 && B <= n && B % 2 == 0);",
            [
                binary(">", ir.Var("n"), ir.IntConst(3)),
                binary("<=", ir.Var("B"), ir.Var("n")),
                binary("==", binary("%", ir.Var("B"), ir.IntConst(2)), ir.IntConst(0)),
            ],
        ),
        (
            "int d = n; assert(n > 3 || n == 1);",
            [binary("||", binary(">", ir.Var("n"), ir.IntConst(3)), binary("==", ir.Var("n"), ir.IntConst(1)))],
        ),
        ("int d = n; assert(a != 0 && n > 3);", [binary(">", ir.Var("n"), ir.IntConst(3))]),
        ("int d = n; assert(B > 3);", []),
        ("int d = n; assert(n > 3.5);", []),
        ("int d = n; assert(check(n));", []),
        ("int d = n; if (B) assert(n > 3);", []),
        ("assert(n > 3); n = 2 * B + get(); int d = n;", []),
        ("int d = n;\n#ifdef CHECKED\nassert(n > 3);\n#endif\n", []),
        ("int d = n; assert(0);", []),
    ],
)
def test_assumptions(before, expected):
    assert list(program_of(around(before)).assumptions) == expected


STEP = "meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) a[k + i * m] = j; }"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (f"for (int k = 0; k < n; k++) {STEP}", ["k < n"]),
        (f"for (int k = 0; k < n && a[k] > 0; k++) {{ {STEP} }}", ["k < n"]),
        (f"int e = n / 2; for (int k = n; k > e; k--) {STEP}", ["k > e"]),
        (f"for (int k = 0; k < n; k++) {{ k++; {STEP} }}", []),
        (f"for (int k = 0; k < n; k++) {{ for (int t = 0; t < 3; t++) {{ {STEP} k++; }} }}", []),
        (f"int k = m; while (k < n) {{ {STEP} k++; }}", ["k < n"]),
        (f"int k = m; while (k-- > 0) {{ {STEP} }}", []),
        (f"int k = m; while (k > 5 && (k = get()) > 2) {{ {STEP} }}", []),
        (f"int k = m; if (k > 5 && k++ < n) {{ {STEP} }}", []),
        (f"int k = m; if (k > 5 && get() > 2) {{ {STEP} }}", ["k > 5"]),
        (f"for (int k = 9; k > 5 && --k; k--) {{ {STEP} }}", []),
        (f"int k = 3; do {{ {STEP} k = get(); }} while (k < n);", []),
        (f"int k = get(); if (k < n) {{ {STEP} }}", ["k < n"]),
        (f"int k = get(); if (k < n) ; else {{ {STEP} }}", []),
        (f"int k = get(); if (k < n) {{ n = 3; {STEP} }}", []),
        (f"int k = get(), *p = &k; if (k < n) {{ *p = 9; {STEP} }}", []),
        (f"int k = get(); if (k < n) {{ again: {STEP} k++; if (k < 9) goto again; }}", []),
        (f"int k = get(); switch (m) {{ for (; k < n; k++) {{ case 0: {STEP} }} }}", []),
        (f"int k = get(); if (k < n) switch (m) {{ case 0: {STEP} }}", ["k < n"]),
    ],
)
def test_conditions_in_which_a_schedule_stands_are_assumptions(host, expected):
    program = program_of(f"int get(void); void f(int n, int m, float a[100]) {{ {host} }}")
    assert [expression(one) for one in program.assumptions] == expected


def test_an_assumption_brings_its_derived_scalars():
    program = program_of(around("int d = n / B, rest = n % B; assert(rest == 0);"))
    assert derived(program) == ["d", "rest"]
    assert program.assumptions == (binary("==", ir.Var("rest"), ir.IntConst(0)),)


@pytest.mark.parametrize(
    "before",
    ["n = n / 2;", "if (B) n--;", "int *p = &n; step(p);", 'scanf("%d", &n);', "for (int k = 0; k < 3; k++) n += k;"],
)
def test_an_extent_must_keep_its_value(before):
    text = "void f(int n, int B, int a[«n»])\n{\n" + before + "\n" + SCHEDULE.replace("i < d", "i < 4") + "\n}\n"
    (found,) = assert_refused(text, "MF0309")
    assert "may change" in found.message
    assert found.related[0][0].line == 3


def test_local_arrays_take_the_value_of_their_declaration():
    program = program_of(around("n = get(); int b[n]; int d = n;", schedule=SCHEDULE.replace("a[i] = 1", "b[i] = 1")))
    assert [one.name for one in program.arrays] == ["b"]
    assert [(one.name, one.kind.value) for one in program.parameters] == [("n", "data")]


def test_extents_that_are_derived():
    program = program_of(
        around("int d = n; int m = n * B; int b[m][2];", schedule=SCHEDULE.replace("a[i] = 1", "b[i][0] = 1"))
    )
    assert derived(program) == ["d", "m"]
    assert [(one.name, one.kind.value) for one in program.parameters] == [("n", "data"), ("B", "data")]
    assert program.arrays[0].extents == (ir.Var("m"), ir.IntConst(2))


def test_host_code_that_is_not_understood_does_not_matter():
    text = (
        "#include <stdio.h>\ntypedef struct { int x; } pair;\ntypedef int (*callback)(void);\n"
        "static int odd(pair *p) { return ({ int q = p->x; q; }); }\n"
        "__attribute__((noinline)) int f(int n, callback back, int a[n]) __attribute__((cold));\n"
        "int f(int n, callback back, int a[n])\n{\n"
        '  FILE *log = fopen("x", "w"); struct timespec begin, end; size_t bytes = sizeof(a); pair p = {.x = 1};\n'
        '  _Static_assert(sizeof(int) == 4, "int"); typeof(n) other = 3; int (*g)(void) = back; auto_t z = {1, 2};\n'
        "  clock_gettime(CLOCK_MONOTONIC, &begin); p.x = (pair){2}.x; for (;;) { break; } label: g();\n"
        "  meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 1; j++) a[i] = 1; }\n"
        "  switch (n) { case 1 ... 3: return 1; default: { return (int)other; } }\n}\n"
    )
    assert diagnostics_of(text) == ()
    assert names(program_of(text)) == ["n"]


def test_types_of_the_file():
    program = program_of(
        "typedef float real; typedef unsigned int uint, word; typedef struct s s_t;\n"
        "void f(uint n, real alpha, real a[n]) { typedef long wide; wide d = n; meta_schedule {\n"
        "  meta_for (int i = 0; i < d; i++) meta_for (int j = 0; j < 1; j++) { real x = alpha; a[i] = (wide)x; } } }"
    )
    assert program.arrays[0].element is ScalarType.FLOAT
    assert program.parameters[0].type is ScalarType.UNSIGNED_INT
    assert program.derived[0].type is ScalarType.LONG
    assert program.body[0].body[1].value.type is ScalarType.LONG
