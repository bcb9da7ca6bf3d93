"""One test for each construct that is refused: code, line, column and the exact text of the span."""

import pytest

from tests.metafork.frontend.marked import assert_refused, block, diagnostics_of, loops, small, thread


def static(text):
    """A function with a schedule of program parameters ``s`` and ``B``, and something in front of it."""
    return (
        "void f(int n, int s, int B, float t, float a[n]) { int blocks = n / (s * B); "
        + text
        + " meta_schedule { meta_for (int i = 0; i < blocks; i++) meta_for (int j = 0; j < B; j++) "
        "a[i * s * B + j] = t; } }"
    )


def blocks(clause):
    """A function with a schedule of one dimension that has this clause beside its block size."""
    loop = "meta_for (int i = 0; i < n; i++) a[i] = 1;"
    return f"void f(int n, float a[n]) {{ meta_schedule meta_block(64) {clause} {{ {loop} }} }}"


CASES = {
    # unions that are no bits of one number
    "union of two sizes": ("MF0205", thread("union { float f; double d; } «u»; u.d = 1; a[i] = u.f;")),
    "array of unions": ("MF0205", thread("union { float f; int u; } «u[2]»; u[0].u = 1; a[i] = u[0].f;")),
    "element of a value": ("MF0205", thread("struct { int v[3]; } s = {{1}}; a[i] = «(i > 2 ? s : s).v[i]»;")),
    "element behind the end of a value": (
        "MF0205",
        thread("struct { int v[3]; } s = {{1}}; a[i] = «(i > 2 ? s : s).v[3]»;"),
    ),
    "no member of a union": ("MF0205", thread("union { float f; int u; } u; «u.x» = 1;")),
    "number for a union": ("MF0205", thread("union { float f; int u; } u; u = «1.0f»; a[i] = u.f;")),
    "braces of a union": ("MF0221", thread("union { float f; int u; } u = «{1, 2}»; a[i] = u.f;")),
    # complex numbers
    "division by a complex number": ("MF0306", thread("float _Complex z = i; z = «1 / z»; a[i] = crealf(z);")),
    "a function of complex numbers": ("MF0206", thread("float _Complex z = i; a[i] = «cabsf(z)»;")),
    "a power of a complex number": ("MF0206", thread("float _Complex z = i; z = «cpowf(z, 2)»; a[i] = crealf(z);")),
    "a real number or a complex one": ("MF0205", thread("float _Complex z; z = «i > 3 ? z : 1»; a[i] = crealf(z);")),
    "one complex number of the host": (
        "MF0205",
        "void f(int n, float _Complex z, float a[n]) { meta_schedule meta_block(64) "
        "{ meta_for (int i = 0; i < n; i++) a[i] = crealf(«z»); } }",
    ),
    # the text
    "no schedule": ("MF0002", "«int» f(void) { return 0; }\n"),
    "comment without end": ("MF0003", "int x;\n «/*» meta_schedule\n"),
    "open brace": ("MF0004", "void f(int n, int a[n])\n{\n  meta_schedule { }«»\n"),
    "closing bracket": ("MF0004", "void f(int n, int a[n]) { meta_schedule { a[1«)» = 2; } }\n"),
    "if without endif": ("MF0004", "«#if A»\n" + thread("a[i] = 1;")),
    "deep expression": ("MF0005", thread("  «a[i] = " + "- " * 150 + "1.0f;»")),
    "deep parentheses": ("MF0005", thread("  «a[i] = " + "(" * 3000 + "1.0f" + ")" * 3000 + ";»")),
    "long sum": ("MF0005", thread("  «a[i] = " + "1.0f + " * 2000 + "1.0f;»")),
    "deep blocks": ("MF0005", thread("{" * 75 + "«{»" + "}" * 76)),
    "ifdef around": ("MF0006", "«#ifdef A»\n" + thread("a[i] = 1;") + "#endif\n"),
    "ifdef inside": ("MF0006", thread("«#ifdef A»\na[i] = 1;\n#endif\n")),
    "define inside": ("MF0007", thread("«#define X 1»\na[i] = X;\n")),
    "include inside": ("MF0007", thread('«#include "body.inc"»\n')),
    "macro under a condition": ("MF0008", "#ifndef _N\n#define _N 4\n#endif\n" + thread("a[i] = «_N»;")),
    "quoting macro": ("MF0008", "#define J(x, y) #x\n" + thread("a[i] = «J»(alp, ha);")),
    "pasted to nothing": ("MF0008", "#define J(x, y) x##y\n" + thread("a[i] = «J(alpha, +)» 1;")),
    "variadic macro": ("MF0008", "#define V(x...) x\n" + thread("a[i] = «V»(1);")),
    "schedule in a macro that gives more": (
        "MF0017",
        "#define S(x) do { meta_schedule { x } } while (0)\n"
        + small("1;").replace("meta_schedule", f"«S({loops('ij')} a[i] = j;)»;"),
    ),
    "two schedules in a macro": (
        "MF0017",
        "#define S meta_schedule { "
        + loops("ij")
        + " a[i] = j; }\n#define TWO S S\nvoid f(int n, int a[n]) { «TWO» }\n",
    ),
    "schedule in a macro that is an argument": (
        "MF0017",
        "#define S meta_schedule { " + loops("ij") + " a[i] = j; }\n#define ID(x) x\n"
        "void f(int n, int a[n]) { ID(«S») }\n",
    ),
    "schedule in a macro outside of functions": (
        "MF0017",
        "#define F(name) void name(int n, int a[n]) { meta_schedule { " + loops("ij") + " a[i] = j; } }\n«F»(f)\n",
    ),
    "schedule in a macro under a condition": (
        "MF0017",
        "#ifdef A\n#define S meta_schedule\n#else\n#define S\n#endif\n" + small("1;").replace("meta_schedule", "«S»"),
    ),
    "condition around a macro with a schedule": (
        "MF0006",
        "#define S meta_schedule { "
        + loops("ij")
        + " a[i] = j; }\nvoid f(int n, int a[n]) {\n«#ifdef A»\nS\n#endif\n}\n",
    ),
    "schedule as an argument": (
        "MF0017",
        "#define TWICE(s) s s\n"
        + thread("a[i] = 1;").replace("meta_schedule {", "«TWICE(meta_schedule {").replace("  }\n}\n", "  })»\n}\n"),
    ),
    "schedule that ends in a macro": (
        "MF0017",
        "#define DO {\n#define DONE } a[0] = 2;\n"
        + thread("a[i] = 1;").replace("meta_schedule {", "meta_schedule DO").replace("  }\n}\n", "  «DONE»\n}\n"),
    ),
    "moved": ("MF0316", thread("a[i] = 1;", "  a += 2;\n").replace("float a[n]", "float «a»[n]")),
    "moved after a schedule in a loop": (
        "MF0316",
        thread("a[i] = 1;", "  for (int t = 0; t < 3; t++) {\n").replace("float a[n]", "float «a»[n]")[:-2]
        + "  a++;\n  }\n}\n",
    ),
    "moved through its address": (
        "MF0316",
        thread("a[i] = 1;", "  place(&a);\n").replace("float a[n]", "float «a»[n]"),
    ),
    "exchanged with another shape": (
        "MF0316",
        thread("a[i] = 1;", "  float *t = a; a = c; c = t;\n").replace("float a[n]", "float c[m], float «a»[n]"),
    ),
    "moved to a character": (
        "MF0316",
        thread("a[i] = s[i];", "  s = 'x';\n").replace("float a[n]", "char «s»[n], float a[n]"),
    ),
    "declaration without a name": ("MF0010", thread("a[i] = 1;", "  int «=» n / m;\n")),
    "expression without an operand": ("MF0010", thread("a[i] = 1;", "  alpha = 1 +* «;»\n")),
    "macro by the name of a variable": (
        "MF0008",
        thread("a[i] = 1;", "\n#define n m\n").replace("f(int n", "f(int «n»").replace("i < n", "i < 4"),
    ),
    "array declared under a condition": (
        "MF0008",
        "#ifdef _A\nfloat table[8];\n#else\nfloat table[16];\n#endif\n" + thread("a[i] = «table»[i];"),
    ),
    "type declared under a condition": (
        "MF0315",
        "#ifdef _A\ntypedef double real;\n#else\ntypedef float real;\n#endif\n"
        + thread("a[i] = «c»[i];").replace("float a[n]", "real c[n], float a[n]"),
    ),
    "pointer to a type declared under a condition": (
        "MF0315",
        "#ifdef _A\ntypedef double real;\n#else\ntypedef float real;\n#endif\n"
        + thread("a[i] = «c»[i];").replace("float a[n]", "real *c, float a[n]"),
    ),
    "local of a type declared under a condition": (
        "MF0216",
        "#ifdef _A\ntypedef double real;\n#else\ntypedef float real;\n#endif\n" + thread("real «c = 1»; a[i] = c;"),
    ),
    "element of a type that is an array": (
        "MF0302",
        "typedef float mat4[4][4];\n" + thread("a[i] = «c[0]»;").replace("float a[n]", "mat4 c, float a[n]"),
    ),
    "structure that a function returns as a number": (
        "MF0205",
        "struct s { int x; };\nstatic struct s one(void) { struct s r = {1}; return r; }\n"
        + thread("idx[i] = «one()»;"),
    ),
    "compound literal of another structure": (
        "MF0205",
        "struct s { int x; };\nstruct r { float x; };\n"
        + thread("struct s t = {1}; t = «(struct r){2}»; idx[i] = t.x;"),
    ),
    "designator of no member": (
        "MF0221",
        "struct s { int x; };\n" + thread("struct s t = {.y = «1»}; idx[i] = t.x;"),
    ),
    "member of a value that is assigned": (
        "MF0311",
        "struct s { int x; };\n" + thread("«(struct s){2}.x» = 1;"),
    ),
    "scalar for a structure": (
        "MF0205",
        "struct s { int x; };\n" + thread("struct s t = {1}; t = «n»; idx[i] = t.x;"),
    ),
    "macro arguments": ("MF0009", "#define ADD(x, y) ((x) + (y))\n" + thread("a[i] = «ADD(1)»;")),
    "syntax error": ("MF0010", thread("a[i] = 1 +* «;»")),
    "missing semicolon": ("MF0010", thread("a[i] = 1«»\n      a[j] = 2;")),
    "missing last semicolon": ("MF0010", thread("a[i] = 1«»")),
    "missing condition": ("MF0010", thread("if «()» a[i] = 1;")),
    "do without while": ("MF0010", thread("«do» a[i] = 1;")),
    "cache clause": (
        "MF0010",
        "void f(int n, int a[n]) { meta_schedule cache(a «+» 1) { "
        + loops("i")
        + "meta_for (int j = 0; j < 1; j++) a[i] = 1; } }",
    ),
    "misspelled meta_schedule": ("MF0011", "void f(int n) {\n  «meta_schedul» { }\n}\n"),
    "misspelled meta_for": (
        "MF0011",
        "void f(int n, int a[n]) {\n  meta_schedule { «meta_fro» (int i = 0; i < n; i++) "
        + loops("j")
        + "a[i] = 1; }\n}\n",
    ),
    "misspelled for": ("MF0011", thread("«fro» (int k = 0; k < n; k++) a[k] = 1;")),
    "misspelled if": ("MF0011", thread("«fi» (i < 3) { a[i] = 1; }")),
    "misspelled while": ("MF0011", thread("«whlie» (i < 3) a[i] = 1;")),
    "misspelled else": ("MF0011", thread("if (i) a[i] = 1; «esle» { a[i] = 2; }")),
    "misspelled cache": (
        "MF0011",
        "void f(int n, int a[n]) { meta_schedule «cahce»(a) { "
        + loops("i")
        + "meta_for (int j = 0; j < 1; j++) a[i] = 1; } }",
    ),
    "meta_for outside": (
        "MF0012",
        thread("a[i] = 1;").replace("  meta_schedule {", "  «meta_for» (int k = 0; k < n; k++) ;\n  meta_schedule {"),
    ),
    "declaration as a body": ("MF0010", thread("for (int k = 0; k < n; k++) «int l = k;» a[i] = 1;")),
    "meta_for in another function": (
        "MF0012",
        thread("a[i] = 1;") + "void g(int n) { «meta_for» (int i = 0; i < n; i++) ; }",
    ),
    "meta_for in what is not understood": ("MF0012", thread("a[i] = 1;", "weird y z { «meta_for» (;;) ; };\n")),
    "meta_for in a file without schedules": ("MF0012", "void f(int n) { «meta_for» (int i = 0; i < n; i++) ; }"),
    "nested schedule": ("MF0013", thread("«meta_schedule» { a[i] = 1; }")),
    "empty schedule": ("MF0014", "void f(int n) { «meta_schedule» { } }"),
    "nothing after meta_schedule": ("MF0014", "void f(int n) { meta_schedule «;» }"),
    "schedule outside a function": (
        "MF0015",
        "int g(void) { return 1; }\nint n;\n«meta_schedule» { " + loops("i") + "; }\n",
    ),
    # the nest
    "one meta_for": ("MF0101", small("«meta_for» (int i = 0; i < n; i++) a[i] = 1;")),
    "four dimensions": (
        "MF0101",
        small("«" + loops("i") + "» " + loops("jkl") + "if (i > 1) " + loops("v") + "a[i] = 1;"),
    ),
    "four dimensions of a block": (
        "MF0101",
        small("«" + loops("i") + "» { int x = 2 * i; " + loops("jklv") + "a[x] = 1; }"),
    ),
    "two declarations in an odd nest": (
        "MF0101",
        small("«" + loops("i") + "» { int x = i; " + loops("j") + "{ int y = j; " + loops("k") + "a[x] = y; } }"),
    ),
    "all loops for the grid": (
        "MF0101",
        "void f(int n, float a[n]) { meta_schedule «meta_grid(2)» " + loops("ij") + "a[i] = 1; }",
    ),
    "a grid of four": (
        "MF0010",
        "void f(int n, float a[n]) { meta_schedule «meta_grid(4)» " + loops("ijk") + "a[i] = 1; }",
    ),
    "a grid of n": (
        "MF0010",
        "void f(int n, float a[n]) { meta_schedule «meta_grid(n)» " + loops("ijk") + "a[i] = 1; }",
    ),
    "two grids": (
        "MF0010",
        "void f(int n, float a[n]) { meta_schedule meta_grid(1) «meta_grid»(2) " + loops("ijk") + "a[i] = 1; }",
    ),
    "misspelled grid": (
        "MF0011",
        "void f(int n, float a[n]) { meta_schedule «metagrid»(2) { " + loops("ijkl") + "a[i] = 1; } }",
    ),
    "no number of blocks": ("MF0115", blocks("«meta_min_blocks()»")),
    "two numbers of blocks": ("MF0115", blocks("«meta_min_blocks(1, 2)»")),
    "no blocks": ("MF0115", blocks("meta_min_blocks(«0»)")),
    "more blocks than a multiprocessor has": ("MF0115", blocks("meta_min_blocks(«32 + 1»)")),
    "blocks that are no constant": ("MF0115", blocks("meta_min_blocks(«n»)")),
    "blocks that are no integer": ("MF0115", blocks("meta_min_blocks(«2.0»)")),
    "a second number of blocks": ("MF0010", blocks("meta_min_blocks(2) «meta_min_blocks»(2)")),
    "a misspelled number of blocks": ("MF0011", blocks("«meta_min_block»(2)")),
    "values of nothing": ("MF0226", static("«meta_static()»")),
    "values without a name": ("MF0226", static("«meta_static(1, 2)»")),
    "a name without values": ("MF0226", static("meta_static(«s»:)")),
    "a value that is missing": ("MF0226", static("meta_static(«s»: 1,, 2)")),
    "a value behind a comma": ("MF0226", static("meta_static(«s»: 1, 2,)")),
    "a value below one": ("MF0226", static("meta_static(s: 4, «0»)")),
    "a negative value": ("MF0226", static("meta_static(s: «-1»)")),
    "a value beyond its type": ("MF0226", static("meta_static(s: «2147483648»)")),
    "a value that is no constant": ("MF0226", static("meta_static(s: «n», 2)")),
    "a value that is no integer": ("MF0226", static("meta_static(s: «2.5»)")),
    "a value that divides by zero": ("MF0226", static("meta_static(s: «1 / 0»)")),
    "a value of bad syntax": ("MF0010", static("meta_static(s: 1 «+»)")),
    "a value twice": ("MF0226", static("meta_static(s: 1, 4, «2 + 2»)")),
    "a parameter twice": ("MF0226", static("meta_static(s: 1, B: 2) meta_static(«s»: 4)")),
    "values of a data parameter": ("MF0226", static("meta_static(«n»: 64)")),
    "values of a derived scalar": ("MF0226", static("meta_static(«blocks»: 64)")),
    "values of a value": ("MF0226", static("meta_static(«t»: 64)")),
    "values of an array": ("MF0226", static("meta_static(«a»: 64)")),
    "values of a stranger": ("MF0226", static("meta_static(«bb»: 64)")),
    "values of what a loop changes": (
        "MF0226",
        static("for (int k = 0; k < n; k++) meta_static(s: 1, «k»: 2)").replace("j++) a[", "j++) if (k < j) a["),
    ),
    "many combinations": (
        "MF0226",
        static(f"«meta_static(s: {', '.join(map(str, range(1, 34)))}; B: {', '.join(map(str, range(1, 34)))})»"),
    ),
    "values behind meta_schedule": ("MF0226", static("").replace("meta_schedule", "meta_schedule «meta_static(s: 1)»")),
    "values before a block": ("MF0226", static("«meta_static(s: 1)» { int k;").replace("} }", "} } }")),
    "values in a schedule": ("MF0226", small("«meta_static(m: 1)» " + loops("ij") + "a[i] = 1;")),
    "values at the end of a block": ("MF0226", thread("a[i] = 1;").replace("{", "{ { «meta_static(m: 1)» }", 1)),
    "values in another function": ("MF0226", thread("a[i] = 1;") + "void g(int s) { «meta_static»(s: 1) ; }"),
    "values from a macro with more": (
        "MF0226",
        "#define TUNED t++; meta_static(s: 1)\n" + static("«TUNED»"),
    ),
    "values under a condition": ("MF0006", static("meta_static(s: 1\n«#ifdef FEW»\n, 2\n#endif\n)")),
    "misspelled values": ("MF0011", static("«meta_statik»(s: 1)")),
    "code within the grid": (
        "MF0106",
        "void f(int n, float a[n]) { meta_schedule meta_grid(2) { "
        + loops("i")
        + "{ «n < 2;» "
        + loops("jk")
        + "a[i] = 1; } } }",
    ),
    "three meta_fors": ("MF0101", small("«" + loops("i") + "» " + loops("jk") + "a[i] = 1;")),
    "uneven": (
        "MF0102",
        block(
            "«meta_for (int u = 0; u < m; u++)» a[u] = 1;\n"
            "meta_for (int v = 0; v < m; v++) meta_for (int w = 0; w < m; w++) a[v] = 1;"
        ),
    ),
    "start": ("MF0103", thread("a[i] = 1;").replace("int j = 0", "int j = «i»")),
    "no start": ("MF0103", thread("a[i] = 1;").replace("int j = 0;", "«int j;»")),
    "variable declared before": ("MF0103", thread("a[i] = 1;").replace("int j = 0; j", "«m» = 0; m")),
    "condition": ("MF0103", thread("a[i] = 1;").replace("j < m", "«j & m»")),
    "condition of another": ("MF0103", thread("a[i] = 1;").replace("j < m", "«i < m»")),
    "step": ("MF0103", thread("a[i] = 1;").replace("j++", "«j *= 2»")),
    "step down": ("MF0103", thread("a[i] = 1;").replace("j++", "«j--»")),
    "head": (
        "MF0103",
        thread("a[i] = 1;").replace("meta_for (int j = 0; j < m; j++)", "«meta_for (int j = 0; j < m)»"),
    ),
    "floating variable": ("MF0103", thread("a[i] = 1;").replace("int j = 0;", "«float j = 0;»")),
    "floating extent": ("MF0104", thread("a[i] = 1;").replace("j < m", "j < «2 * alpha»")),
    "extent of a grid variable": ("MF0105", thread("a[i] = 1;").replace("j < m", "j < «i» + 1")),
    "extent of a block's scalar": ("MF0105", block("int e = n - i;\nmeta_for (int j = 0; j < «e»; j++) a[j] = 1;")),
    "extent of an array": ("MF0105", thread("a[i] = 1;").replace("j < m", "j < «idx[0]»")),
    "extent of a call": ("MF0105", thread("a[i] = 1;").replace("j < m", "j < «abs(m)»")),
    "statement before the grid": ("MF0106", small("«a[0] = 1;» " + loops("ij") + "a[i] = 1;")),
    "loop around the grid": ("MF0106", small("«for (int t = 0; t < n; t++)» " + loops("ij") + "a[i] = 1;")),
    "if between threads": (
        "MF0106",
        small(loops("i") + "if (i > 1) " + loops("j") + "«if» (j > 1) " + loops("k") + "a[i] = 1;"),
    ),
    "read between grid loops": ("MF0106", small(loops("i") + "{ «int x = a[i];» " + loops("jkl") + "a[i] = x; }")),
    "two nests": ("MF0107", small(loops("ij") + "a[i] = 1;\n «" + loops("i") + "» " + loops("j") + "a[i] = 1;")),
    "write at block level": ("MF0108", block("«a[i]» = 0; meta_for (int j = 0; j < m; j++) a[j] = 1;")),
    "block scalar written by threads": (
        "MF0109",
        block("int e = 0;\nmeta_for (int j = 0; j < m; j++) { «e» += j; a[j] = e; }"),
    ),
    "scalar between thread loops": (
        "MF0109",
        small(loops("ijk") + "{ int x = 0; " + loops("l") + "a[i] = «x»++; }").replace(
            "a[i] = «x»++;", "{ «x»++; a[i] = x; }"
        ),
    ),
    "uniform read of what is written": (
        "MF0110",
        block("for (int k = 0; k < «idx[0]»; k++) meta_for (int j = 0; j < m; j++) idx[j] = 1;"),
    ),
    "break": ("MF0111", thread("if (j > 3) «break;»")),
    "no meta_for": ("MF0112", "void f(int n, int a[n]) { meta_schedule { «for» (int i = 0; i < n; i++) a[i] = 1; } }"),
    "thread index written": ("MF0113", thread("«j» = 3;")),
    "grid index written": ("MF0113", thread("«i»++;")),
    # constructs
    "pointer declared": ("MF0201", thread("float «*p»;")),
    "pointer parameter": (
        "MF0201",
        "void f(int n, int *p) { meta_schedule { " + loops("i") + "meta_for (int j = 0; j < 1; j++) «p»[i] = 1; } }",
    ),
    "pointer cast": ("MF0201", thread("a[i] = ((«int *»)a)[0];").replace("((«int *»)a)[0]", "(long)(«int *»)n")),
    "address": ("MF0202", thread("a[i] = «&alpha»;")),
    "dereference": ("MF0203", thread("a[i] = «*alpha»;")),
    "store through a pointer": ("MF0203", thread("«*alpha» = 1;")),
    "pointer without an extent": (
        "MF0201",
        thread("«p»[i] = 1;").replace("float alpha", "float alpha, float *p"),
    ),
    "pointer behind another word": (
        "MF0201",
        thread("*a = 1; if («p») a[i] = 1;").replace("float alpha", "float alpha, float *p"),
    ),
    "result that moves": (
        "MF0316",
        thread("*p = 1;", "  p++;\n").replace("float alpha", "float alpha, float *«p»"),
    ),
    "extent of a scalar": ("MF0321", "«#pragma metafork extents(n[4])»\n" + thread("a[i] = 1;")),
    "extents of another function's pointer": (
        "MF0321",
        thread("p[0] = 1;", "  «#pragma metafork extents(q[n])»\n").replace("float alpha", "float alpha, float *p"),
    ),
    "extents without an extent": (
        "MF0321",
        "«#pragma metafork extents(p)»\n" + thread("a[i] = 1;").replace("float alpha", "float alpha, float *p"),
    ),
    "extents that are no expression": (
        "MF0321",
        "«#pragma metafork extents(p[n +])»\n" + thread("a[i] = 1;").replace("float alpha", "float alpha, float *p"),
    ),
    "goto": ("MF0204", thread("«goto end;»")),
    "label": ("MF0204", thread("«again»: a[i] = 1;")),
    "struct variable": ("MF0205", thread("struct p «q»;")),
    "struct definition": ("MF0205", thread("«struct p { int x; };»")),
    "member": (
        "MF0205",
        "struct s { int x; };\nvoid f(int n, struct s q, int a[n]) { q.x++; meta_schedule { "
        + loops("i")
        + "meta_for (int j = 0; j < 1; j++) a[i] = «q».x; } }",
    ),
    "unknown function": ("MF0206", thread("a[i] = «foo»(alpha);")),
    "printf": ("MF0206", thread('«printf»("%d", i);')),
    "function that C lacks": ("MF0206", thread("a[i] = «rsqrtf»(alpha);")),
    "misspelled function": ("MF0206", thread("a[i] = «sqrft»(alpha);")),
    "function without a body": ("MF0206", "float g(float);\n" + thread("a[i] = «g»(alpha);")),
    "recursion": ("MF0222", "int g(int x) { return x < 2 ? 1 : x * «g(x - 1)»; }\n" + thread("a[i] = g(i);")),
    "recursion through another": (
        "MF0222",
        "int h(int);\nint g(int x) { if (x > 1) { return h(x); } x++; return x; }\n"
        "int h(int x) { return «g(x - 1)»; }\n" + thread("a[i] = g(i);"),
    ),
    "fault in a function": (
        "MF0211",
        "int g(int x) { «switch» (x++) {} return x; }\n" + thread("a[i] = g(i) + g(j);"),
    ),
    "static in a function": ("MF0217", "int g(int x) { static int «k = 1»; return x; }\n" + thread("a[i] = g(i);")),
    "name that only the caller has": ("MF0301", "int g(int x) { return x + «n»; }\n" + thread("a[i] = g(i);")),
    "name that the caller hides": (
        "MF0223",
        "int alpha;\nint g(int x) { return x + «alpha»; }\n" + thread("a[i] = g(i);"),
    ),
    "write in an expression": (
        "MF0223",
        "float g(float *p) { p[0] = 1; return 2; }\n" + thread("a[i] = a[i] + «g(b[i])»;"),
    ),
    "write through a const pointer": (
        "MF0305",
        "void g(const float *p) { «p[1]» = 2; }\n" + thread("g(a);"),
    ),
    "write to a const array": (
        "MF0305",
        "const float t[2] = {1, 2};\nvoid g(float *p) { «p[1]» = 2; }\n" + thread("g(t);"),
    ),
    "elements of another type": ("MF0223", "int g(int *p) { return p[0]; }\n" + thread("a[i] = g(«a»);")),
    "array of another rank": ("MF0223", "float g(float *p) { return *p; }\n" + thread("a[i] = g(«b»);")),
    "array of another row": (
        "MF0223",
        "float g(int k, float p[][k]) { return p[0][0]; }\n" + thread("a[i] = g(n, «b»);"),
    ),
    "address of a value argument": ("MF0202", "void g(float *p) { *p = 1; }\n" + thread("g(«&alpha»);")),
    "value of a void function": ("MF0223", "void g(int x) { }\n" + thread("a[i] = «g(i)»;")),
    "arguments of a function": ("MF0207", "int g(int x) { return x; }\n" + thread("a[i] = «g(i, j)»;")),
    "function with a schedule": (
        "MF0223",
        thread("a[i] = 1;").replace("void f", "void «g»") + thread("g(n, m, alpha, a, b, idx);"),
    ),
    "function under a condition": (
        "MF0008",
        "#ifdef _A\nint «g»(int x) { return x; }\n#else\nint g(int x) { return 2; }\n#endif\n" + thread("a[i] = g(i);"),
    ),
    "step of several statements": (
        "MF0223",
        "int g(int x) { x++; return x; }\n" + thread("for (int k = 0; k < 3; «k = g(k)») a[i] = k;"),
    ),
    "step without effect": (
        "MF0223",
        "void g(int x) { }\n" + thread("for (int k = 0; k < 3; «g(k)») { a[i] = k; break; }"),
    ),
    "too many calls": (
        "MF0223",
        "int g(int x) { return x; }\n" + thread("int k = 0;\n" + "k = g(k);\n" * 500 + "a[i] = «g(k)»;"),
    ),
    "arguments": ("MF0207", thread("a[i] = «sqrtf(alpha, 2)»;")),
    "array without extent": (
        "MF0208",
        "void f(int n, int a[]) { meta_schedule { " + loops("i") + "meta_for (int j = 0; j < 1; j++) «a»[i] = 1; } }",
    ),
    "block array without extent": ("MF0208", block("float «t[]»; meta_for (int j = 0; j < m; j++) a[j] = 1;")),
    "own array of an extent that varies": ("MF0209", thread("float t[«m»]; t[0] = 1;")),
    "own array of a thread's extent": ("MF0209", thread("int k = 3; float t[2][«k + i»]; t[0][0] = 1;")),
    "own array without elements": ("MF0209", thread("float t[«2 - 2»]; a[i] = 1;")),
    "own array too large": ("MF0209", thread("double «t[64][64]»; t[0][0] = 1; a[i] = t[0][0];")),
    "own array without extent": ("MF0208", thread("float «t[]»; a[i] = 1;")),
    "own array with names of members": ("MF0221", thread("int t[4] = {.x = «1»}; a[i] = t[0];")),
    "designator behind the end": ("MF0221", thread("int t[4] = {[«4»] = 1}; a[i] = t[0];")),
    "own array from a string": ("MF0221", thread('char «t[4] = "abc"»; a[i] = t[0];')),
    "too many values": ("MF0221", thread("int t[2] = {1, 2, «3»}; a[i] = t[0];")),
    "row of braces in a row": ("MF0221", thread("int t[2] = {1, «{2, 3}»}; a[i] = t[0];")),
    "atomic update in a condition": ("MF0224", thread("if («meta_atomic» idx[0]++ > 3) a[i] = 1;")),
    "atomic update of a scalar": ("MF0224", thread("int k = 0; «meta_atomic k += i;» a[i] = k;")),
    "atomic update of an own array": ("MF0224", thread("int k[2] = {0}; «meta_atomic k[1] += i;» a[i] = k[1];")),
    "atomic update of floating elements": ("MF0224", thread("«meta_atomic a[0] += 1;»")),
    "atomic update by a floating value": ("MF0224", thread("«meta_atomic idx[0] += alpha;»")),
    "atomic quotient": ("MF0224", thread("«meta_atomic idx[0] /= 2;»")),
    "atomic store": ("MF0224", thread("«meta_atomic idx[0] = 2;»")),
    "atomic difference the other way round": ("MF0224", thread("«meta_atomic idx[0] = i - idx[0];»")),
    "atomic maximum in another type": (
        "MF0224",
        thread("«meta_atomic idx[0] = idx[0] < 3u ? 3u : idx[0];»").replace("3u", "n * 3u"),
    ),
    "atomic maximum of an unsigned number": (
        "MF0224",
        thread("«meta_atomic idx[0] = idx[0] < 3u ? 3u : idx[0];»"),
    ),
    "atomic maximum of another element": ("MF0224", thread("«meta_atomic idx[0] = idx[1] < i ? i : idx[1];»")),
    "atomic declaration": ("MF0224", thread("«meta_atomic int k = 3;» a[i] = k;")),
    "atomic update used": ("MF0224", thread("int k = «meta_atomic» idx[0]++;")),
    "atomic update at block level": (
        "MF0108",
        block("meta_atomic «idx[0]» += 1; meta_for (int j = 0; j < m; j++) a[j] = 1;"),
    ),
    "own array of a scalar that is no constant": ("MF0209", thread("const int k = m; float t[«k»]; t[0] = 1;")),
    "constant number written": ("MF0305", thread("const int k = 3; «k» = 4; a[i] = k;")),
    "own constant array written": ("MF0305", thread("const int t[2] = {1}; «t[1]» = 2; a[i] = t[0];")),
    "switch": ("MF0211", thread("«switch» ((int)sinf(i)) { case 1: a[i] = 1; break; }")),
    "label in a statement": ("MF0211", thread("«switch» (i) { case 1: if (j) { case 2: a[i] = 1; } }")),
    "return": ("MF0212", thread("if (i) «return;»")),
    "assignment inside": ("MF0213", thread("a[i] = -(«a[j] = 2»);")),
    "increment inside": ("MF0213", thread("a[i] = «idx[0]++»;")),
    "prefix increment inside": ("MF0213", thread("a[«++idx[0]»] = 1;")),
    "comma inside": ("MF0214", thread("a[i] = («n, m»);")),
    "string": ("MF0215", thread('a[i] = «"x"»;')),
    "long double": ("MF0216", thread("long double «x = 1»;")),
    "cast to long double": ("MF0216", thread("a[i] = («long double») 1;")),
    "atomic update of a truth value": (
        "MF0224",
        thread("«meta_atomic t[0] |= i;»").replace("float a[n]", "_Bool t[n], float a[n]"),
    ),
    "static local": ("MF0217", thread("static int «k»; a[i] = k;")),
    "local with a handler": ("MF0217", thread("int k __attribute__((«cleanup»(f))); a[i] = 1;")),
    "handler of a macro": (
        "MF0217",
        "#define END __attribute__((__cleanup__(f)))\n" + thread("int k «END»; a[i] = 1;"),
    ),
    "handler in a function": (
        "MF0217",
        "int g(int x) { int k __attribute__((«cleanup»(f))); return x; }\n" + thread("a[i] = g(i);"),
    ),
    "volatile local": ("MF0217", thread("volatile int «k = 0»; a[i] = k;")),
    "braced initialiser": ("MF0218", thread("int k = {1}; a[i] = 1;").replace("k = {1}", "«k = {1}»")),
    "no effect": ("MF0219", thread("«a[i];»")),
    "comparison as statement": ("MF0219", thread("«a[i] == 1;»")),
    "typedef inside": ("MF0220", thread("typedef int «t»; a[i] = 1;")),
    "function declared inside": ("MF0220", thread("int «g(int)»; a[i] = 1;")),
    "initialised block array": ("MF0221", block("int «t[1] = {1}»; meta_for (int j = 0; j < m; j++) a[j] = 1;")),
    # names and types
    "undeclared": ("MF0301", thread("a[i] = «beta»;")),
    "undeclared array": ("MF0301", thread("«c»[i] = 1;")),
    "too few indices": ("MF0302", thread("a[i] = «b[i]»;")),
    "too many indices": ("MF0302", thread("«a[i][j]» = 1;")),
    "no index": ("MF0302", thread("a[i] = «a» + 1;")),
    "floating index": ("MF0303", thread("a[«alpha»] = 1;")),
    "parameter written": ("MF0304", thread("«n» = 3; a[i] = 1;")),
    "parameter incremented": ("MF0304", thread("«m»++; a[i] = 1;")),
    "value argument written": ("MF0304", thread("«alpha» += a[i];")),
    "const array": ("MF0305", thread("«a[i]» = 1;").replace("float a[n]", "const float a[n]")),
    "const local": ("MF0305", thread("const int k = 1; «k» = 2; a[i] = k;")),
    "floating remainder": ("MF0306", thread("a[i] = «alpha % 2»;")),
    "floating shift": ("MF0306", thread("a[i] = «alpha << 2»;")),
    "floating complement": ("MF0306", thread("a[i] = «~alpha»;")),
    "floating remainder assigned": ("MF0306", thread("«a[i] %= 2;»")),
    "declared twice": ("MF0307", thread("int k = 1; int «k» = 2; a[i] = k;")),
    "cached scalar": ("MF0308", thread("a[i] = 1;").replace("meta_schedule", "meta_schedule cache(«n»)")),
    "cached unknown": ("MF0308", thread("a[i] = 1;").replace("meta_schedule", "meta_schedule cache(a, «bb»)")),
    "cached but not used": ("MF0308", thread("a[i] = 1;").replace("meta_schedule", "meta_schedule cache(«b»)")),
    "extent changed": ("MF0309", thread("a[i] = 1;", "  n = n / 2;\n").replace("float a[n]", "float a[«n»]")),
    "scalar indexed": ("MF0310", thread("a[i] = «n[i]»;")),
    "sum assigned": ("MF0311", thread("«i + 1» = 2;")),
    "call assigned": ("MF0311", thread("«sqrt(2.0)» = 2;")),
    "extent of a call on the host": ("MF0312", thread("a[i] = 1;").replace("float a[n]", "float a[«size(n)»]")),
    "word of the dispatch": (
        "MF0313",
        thread("metafork_touch[i] = 1;").replace("float a[n]", "float «metafork_touch»[n]"),
    ),
    "octal": ("MF0010", thread("a[i] = «089»;")),
    "huge constant": ("MF0314", thread("a[i] = «99999999999999999999»;")),
    "long double constant": ("MF0314", thread("a[i] = «1.0L»;")),
    "unknown type": (
        "MF0315",
        "void f(int n, FILE g, int a[n]) { meta_schedule { "
        + loops("i")
        + "meta_for (int j = 0; j < 1; j++) a[i] = «g»; } }",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    codes, marked = CASES[name]
    codes = codes.split()
    if len(codes) > 1:
        marked = marked.replace("«", "«" * len(codes)).replace("»", "»" * len(codes))
    assert_refused(marked, *codes)


@pytest.mark.parametrize(("name", "meant"), [("sqrft", "sqrtf"), ("printf", ""), ("puts", ""), ("rand", "")])
def test_what_is_spelled_right_has_no_other_spelling(name, meant):
    (one,) = diagnostics_of(thread(f"a[i] = {name}(alpha);"))
    assert one.message.partition("did you mean ")[2] == (f"`{meant}`?" if meant else "")


def test_messages_about_types_say_what_they_are():
    for name, said in (
        ("type declared under a condition", "`c` has type `real`, which is declared under a condition"),
        ("pointer to a type declared under a condition", "`c` has type `real`, which is declared under a condition"),
    ):
        codes, marked = CASES[name]
        (found,) = assert_refused(marked, codes)
        assert said in (found.message, found.way_out) or said in found.way_out
        assert "copy its value" not in found.way_out
