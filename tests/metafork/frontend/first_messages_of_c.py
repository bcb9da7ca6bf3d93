"""First messages about nests, functions of the host and arrays.

A case has a source with the place marked, the code, a part of the message, and replacements that make it a program that
is accepted.  What is put in stands in the help.
"""

from tests.metafork.frontend.first_programs import LOOP, MARKED, MIX, OPEN, SCALE, one, two, typed

CASES = {
    # nests
    "a lone loop": (
        "void scale(int n, float x[n])\n{\n  meta_schedule {\n    «meta_for» (int i = 0; i < n; i++)\n"
        "      x[i] = 2 * x[i];\n  }\n}\n",
        "MF0101",
        "how its iterations are divided into blocks",
        {"void scale(int n, float x[n])": "void scale(int n, int B, float x[n])"}
        | {"meta_schedule {": "meta_schedule meta_block(B) {"},
    ),
    "a lone loop with a cache": (
        SCALE + "  meta_schedule cache(x)\n    «meta_for» (int i = 0; i < n; i++)\n      x[i] = 2 * x[i];\n}\n",
        "MF0101",
        "how its iterations are divided into blocks",
        {"meta_schedule cache(x)": "meta_schedule meta_block(B) cache(x)"},
    ),
    "a lone loop of a fragment": (
        "int n; float x[n];\nmeta_schedule { «meta_for» (int i = 0; i < n; i++) x[i] = 1; }\n",
        "MF0101",
        "how its iterations are divided into blocks",
        {"meta_schedule {": "meta_schedule meta_block(256) {"},
    ),
    "a size of a block": (
        "void scale(int n, float x[n])\n{\n" + MARKED.replace("(B)", "(«T»)") + "}\n",
        "MF0301",
        "`T` is not declared",
        {"void scale(int n, float x[n])": "void scale(int n, int T, float x[n])"},
    ),
    "an index that nothing declares": (
        SCALE + OPEN + "    meta_for («i» = 0; i < n; i++)\n      x[i] = 1;\n  }\n}\n",
        "MF0301",
        "`i` is not declared",
        {"meta_for (i = 0; i < n; i++)": "meta_for (int i = 0; i < n; i++)"},
    ),
    "a global index": (
        "int i;\n" + SCALE + OPEN + "    meta_for («i» = 0; i < n; i++)\n      x[i] = 1;\n  }\n}\n",
        "MF0103",
        "cannot be global",
        {"meta_for (i = 0; i < n; i++)": "meta_for (int i = 0; i < n; i++)"},
    ),
    "a parameter as an index": (
        "void f(int n, int i, float x[n])\n{\n  meta_schedule meta_block(64) {\n"
        "    meta_for («i» = 0; i < n; i++)\n      x[i] = 1;\n  }\n}\n",
        "MF0103",
        "cannot be a parameter",
        {"meta_for (i = 0; i < n; i++)": "meta_for (int i = 0; i < n; i++)"},
    ),
    "an index that is read afterwards": (
        "int scale(int n, int B, float x[n])\n{\n  int i;\n" + OPEN + "    meta_for («i» = 0; i < n; i++)\n"
        "      x[i] = 1;\n  }\n  return i;\n}\n",
        "MF0304",
        "`i` is the variable of a `meta_for`, and is read after the schedule",
        {"meta_for (i = 0; i < n; i++)": "meta_for (int i = 0; i < n; i++)", "return i": "return n"},
    ),
    "the value of one thread": (
        "int find(int n, int B, const float x[n])\n{\n  int last;\n" + OPEN + LOOP + "      if (x[i] > 0) «last» = i;\n"
        "  }\n  return last;\n}\n",
        "MF0304",
        "a thread writes `last`, and the host reads it after the schedule",
        {"int last;": "int last[1];", "last = i": "last[0] = i", "return last": "return last[0]"},
    ),
    "the head of a Python loop": (
        SCALE + OPEN + "    meta_for («int i in range(n)»)\n      x[i] = 1;\n  }\n}\n",
        "MF0103",
        "the head of a `for` of C",
        {"meta_for (int i in range(n))": "meta_for (int i = 0; i < n; i++)"},
    ),
    "the head of a Python loop in a thread": (
        one("for («j in range(2, n, 3)») x[i] += j;"),
        "MF0010",
        "the head of a `for` of C",
        {"for (j in range(2, n, 3))": "for (int j = 2; j < n; j += 3)"},
    ),
    "commas in a head": (
        one("for («int j = 0, j < 3, j++») x[i] += j;"),
        "MF0010",
        "the head of a `for` of C",
        {"for (int j = 0, j < 3, j++)": "for (int j = 0; j < 3; j++)"},
    ),
    "a range of C++": (
        one("for («auto v : x») x[i] += v;"),
        "MF0010",
        "the head of a `for` of C",
        {
            "for (auto v : x)": "for (int v_index = 0; v_index < n; v_index++)",
            "+= v;": "+= x[v_index];",
        },
    ),
    # functions of the host
    "printing": (one('«printf»("%d", i); x[i] = 1;'), "MF0206", "cannot be called", {'printf("%d", i);': ""}),
    "memory of a thread": (
        one("float *t = «malloc»(4 * sizeof(float)); t[0] = x[i]; x[i] = t[0]; free(t);"),
        "MF0206",
        "`malloc` cannot be called in a schedule",
        {"float *t = malloc(4 * sizeof(float));": "float t[4];", "free(t);": ""},
    ),
    "memory of a thread of another size": (
        one("float *t = (float *)«calloc»(n, sizeof(float)); t[0] = x[i]; x[i] = t[0]; free(t);"),
        "MF0206",
        "`calloc` cannot be called in a schedule",
        {"float *t = (float *)calloc(n, sizeof(float));": "float t[4];", "free(t);": ""},
    ),
    "random numbers": (
        one("x[i] = «rand»() / (float)RAND_MAX;"),
        "MF0206",
        "`rand` cannot be called in a schedule",
        {
            "void scale(": MIX + "void scale(",
            "rand()": "mix(i)",
            "RAND_MAX": "4294967295u",
        },
    ),
    "random numbers of blocks": (
        two("x[b * B + u] = «drand48»();"),
        "MF0206",
        "`drand48` cannot be called in a schedule",
        {
            "void scale(": MIX + "void scale(",
            "drand48()": "mix(b * B + u)",
        },
    ),
    # arrays
    "an array of another file": (
        "extern float «y»[];\n" + one("x[i] = y[i];"),
        "MF0208",
        "it is not known how many elements `y` has",
        {"float y[]": "float y[1000]"},
    ),
    "rows of another file": (
        "extern double «y»[][4];\n" + one("x[i] = y[i][2];"),
        "MF0208",
        "it is not known how many elements `y` has",
        {"double y[][4]": "double y[1000][4]"},
    ),
    "the bits of an element": (
        "#include <string.h>\n" + typed("const float *x, int *y", "y[i] = «*(int *)&x[i]»;"),
        "MF0203",
        "the bits of `x[i]` are read through a pointer to `int`",
        {"y[i] = *(int *)&x[i];": "int bits; memcpy(&bits, &x[i], sizeof bits);"},
    ),
    "a pointer to anything": (
        typed("void *p, float *y", "y[i] = «((float *)p)[i]»;"),
        "MF0203",
        "`p` is read as an array of `float`",
        None,
    ),
    "a pointer as the loop's variable": (
        "void scale(int n, int B, float *x)\n{\n  float *end = x + n;\n  meta_schedule meta_block(B) {\n"
        "    meta_for («float *p = x;» p < end; p++)\n      *p = 2 * *p;\n  }\n}\n",
        "MF0103",
        "the variable of a `meta_for` is an integer, and `p` is a pointer",
        {"meta_for (float *p = x; p < end; p++)": "meta_for (int i = 0; i < n; i++)", "*p": "x[i]"},
    ),
    "bytes as numbers": (
        typed("char *p, float *y", "float «*q = (float *)p»; y[i] = q[i];"),
        "MF0201",
        "`q` is a pointer",
        None,
    ),
    "numbers that the GPU does not have": (
        typed("long double *x, float *y", "y[i] = «x»[i];"),
        "MF0201",
        "`x` leads to numbers of type `long double`",
        {"long double *x": "double *x"},
    ),
    "a table of tables": (
        typed("int m, int k, «float ***x», float *y", "y[i] = x[i][m][k - 1];"),
        "MF0201",
        "`float ***x` is a table of tables",
        None,
    ),
    "a table in two dimensions": (
        typed("float *x[3][2], float *y", "y[i] = «x»[0][1][i];"),
        "MF0201",
        "`x` is a table of pointers with several dimensions",
        None,
    ),
    "rows by pointers": (
        typed("int m, float **x", "for (int j = 0; j < m; j++) «x[i]»[j] = x[(int)x[0][j]][0];"),
        "MF0201",
        "`x` is a table of pointers",
        {"float **x": "float x[n][m]"},
    ),
    "an array of pointers": (
        typed("int m, «const double *a[n]», double *x", "a[i] = a[0]; x[i] = a[i][1];"),
        "MF0201",
        "`const double *a[n]` is a table of pointers",
        None,
    ),
    "a row of a table that is changed": (
        typed("int m, «float *rows[4]», float *x", "rows[3] = rows[0]; x[i] = rows[3][i];"),
        "MF0201",
        "`float *rows[4]` is a table of pointers",
        None,
    ),
    "rows of a pointer": (
        typed("int m, float *x", "for (int j = 0; j < m; j++) «x[i][j]» = 2 * x[i][j];"),
        "MF0302",
        "`x` has one dimension and gets two indices",
        {"float *x": "float x[n][m]"},
    ),
    "rows of a pointer by its places": (
        typed("int m, float *x", "for (int j = 0; j < m; j++) «x[i][j]» = 2;"),
        "MF0302",
        "`x` has one dimension and gets two indices",
        {"x[i][j]": "x[i * m + j]"},
    ),
    "a comma": (
        typed("float x[n][4]", "«x[i, 3]» *= 2;"),
        "MF0302",
        "`x` has two dimensions and gets one index",
        {"x[i, 3]": "x[i][3]"},
    ),
    "two commas": (
        typed("const float y[n][2][3], float x[n]", "x[i] = «y[i, 1, 2]»;"),
        "MF0302",
        "`y` has three dimensions and gets one index",
        {"y[i, 1, 2]": "y[i][1][2]"},
    ),
}
