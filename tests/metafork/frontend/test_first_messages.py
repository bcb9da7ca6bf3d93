"""First messages: what people write who come from C, CUDA, OpenMP, C++ and Python, and that the help can be followed.

A case has a source with the place marked, the code, a part of the message, and replacements that make it a program that
is accepted.  What is put in stands in the help.
"""

import pytest

from comprehensive.reading import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from tests.metafork.frontend.marked import unmark

SCALE = "void scale(int n, int B, float x[n])\n{\n"
LOOP = "    meta_for (int i = 0; i < n; i++)\n"
OPEN = "  meta_schedule meta_block(B) {\n"
MARKED = "  meta_schedule meta_block(B) {\n    meta_for (int i = 0; i < n; i++)\n      x[i] = 2 * x[i];\n  }\n"
MIX = "static unsigned mix(unsigned v) { v ^= v >> 16; v *= 0x7feb352du; v ^= v >> 15; return v; }\n"


def one(code, head=SCALE):
    """A function whose threads run the code, one for each element."""
    return head + OPEN + LOOP.replace("++)", "++) {") + f"      {code}\n    }}\n  }}\n}}\n"


def two(code, between="", head=SCALE):
    """A function with a loop of blocks and one of threads."""
    return (
        head
        + f"  meta_schedule {{\n    meta_for (int b = 0; b < n / B; b++) {{\n      {between}\n"
        + f"      meta_for (int u = 0; u < B; u++) {{\n        {code}\n      }}\n    }}\n  }}\n}}\n"
    )


def typed(type_, code="x[i] = 1;", top=""):
    """A function with an array of a type."""
    return one(code, f"{top}void scale(int n, int B, {type_})\n{{\n")


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
    # files without a schedule
    "a pragma": (
        SCALE + "«#pragma meta_schedule»\n  for (int i = 0; i < n; i++)\n    x[i] = 2 * x[i];\n}\n",
        "MF0002",
        "`meta_schedule` is a keyword, not a pragma",
        {"#pragma meta_schedule\n  for (int i = 0; i < n; i++)\n    x[i] = 2 * x[i];\n": MARKED},
    ),
    "a pragma with clauses": (
        SCALE + "«#pragma metafork meta_schedule meta_block(64)»\n  for (int i = 0; i < n; i++) {\n"
        "    x[i] = 2 * x[i];\n  }\n}\n",
        "MF0002",
        "is a keyword, not a pragma",
        {
            "#pragma metafork meta_schedule meta_block(64)\n  for (int i = 0; i < n; i++) {\n": "meta_schedule "
            "meta_block(64) {\nmeta_for (int i = 0; i < n; i++) {\n",
            "  }\n}\n": "  }\n}\n}\n",
        },
    ),
    "a pragma in front of a block": (
        SCALE + "  «#pragma meta_schedule meta_block(B)»\n  {\n" + LOOP + "      x[i] = 2 * x[i];\n  }\n}\n",
        "MF0012",
        "`meta_schedule` is a keyword, not a pragma",
        {"#pragma meta_schedule meta_block(B)\n  {": "meta_schedule meta_block(B) {"},
    ),
    "a pragma in front of a loop": (
        SCALE + "  «#pragma meta_schedule meta_block(B)»\n" + LOOP + "      x[i] = 2 * x[i];\n}\n",
        "MF0012",
        "`meta_schedule` is a keyword, not a pragma",
        {"#pragma meta_schedule meta_block(B)": "meta_schedule meta_block(B)"},
    ),
    "OpenMP": (
        "void scale(int n, float *x)\n{\n«#pragma omp parallel for»\n  for (int i = 0; i < n; i++)\n"
        "    x[i] = 2 * x[i];\n}\n",
        "MF0002",
        "this file has no `meta_schedule`",
        {
            "void scale(int n, float *x)\n{\n#pragma omp parallel for\n  for (int i = 0; i < n; i++)\n"
            "    x[i] = 2 * x[i];\n": "void scale(int n, int B, float *x)\n{\n" + MARKED
        },
    ),
    "OpenMP with a sum": (
        "int count(int n, const float x[n])\n{\n  int sum = 0, i;\n  «#pragma omp parallel for reduction(+:sum)»\n"
        "  for (i = 0; i < n; i++) {\n    sum++;\n  }\n  return sum;\n}\n",
        "MF0002",
        "this file has no `meta_schedule`",
        {
            "int count(int n, const float x[n])": "int count(int n, int B, const float x[n])",
            "#pragma omp parallel for reduction(+:sum)\n  for": "meta_schedule meta_block(B) {\n"
            "meta_reduction(+: sum) meta_for",
            "  }\n  return": "}\n}\n  return",
        },
    ),
    "OpenACC": (
        "void scale(int n, float *x)\n{\n«#pragma acc parallel loop copy(x[0:n])»\n  for (int i = 0; i < n; i++)\n"
        "    x[i] = 2 * x[i];\n}\n",
        "MF0002",
        "this file has no `meta_schedule`",
        {
            "void scale(int n, float *x)\n{\n#pragma acc parallel loop copy(x[0:n])\n  for (int i = 0; i < n; i++)\n"
            "    x[i] = 2 * x[i];\n": "void scale(int n, int B, float *x)\n{\n" + MARKED
        },
    ),
    "a kernel of CUDA": (
        "«__global__» void scale(int n, float *x)\n{\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) x[i] = 2 * x[i];\n}\nvoid run(int n, float *x)\n{\n  scale<<<(n + 255) / 256, 256>>>(n, x);\n}\n",
        "MF0002",
        "this is a CUDA file",
        {
            "__global__ void scale(int n, float *x)": "void scale(int n, int B, float *x)",
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] = 2 * x[i];\n": MARKED,
            "void run(int n, float *x)\n{\n  scale<<<(n + 255) / 256, 256>>>(n, x);\n}\n": "",
        },
    ),
    "a kernel of CUDA that returns": (
        "«__global__» void move(const float *a, float *b, int n)\n{\n"
        "  const int k = threadIdx.x + blockDim.x * blockIdx.x;\n  if (k >= n) return;\n"
        "  float t = a[k];\n  b[k] = t;\n}\n",
        "MF0002",
        "this is a CUDA file",
        {
            "__global__ void move(const float *a": "void move(int B, const float *a",
            "  const int k = threadIdx.x + blockDim.x * blockIdx.x;\n  if (k >= n) return;\n": "meta_schedule "
            "meta_block(B) {\nmeta_for (int k = 0; k < n; k++) {\n",
            "b[k] = t;\n": "b[k] = t;\n}\n}\n",
        },
    ),
    "a Python file": ("# it's a loop\n«import» torch as t\nx = t.zeros(3)\n", "MF0002", "this is a Python file", None),
    "a Python function": ("«def» f(x):\n    return x['a'] /* 3\n", "MF0002", "this is a Python file", None),
    "a decorator": ("«@cuda».jit\ndef f(x): pass\n", "MF0002", "a Python file", None),
    # words and functions of CUDA
    "indices of CUDA": (
        two("x[«blockIdx».x * blockDim.x + threadIdx.x] *= 2;"),
        "MF0301",
        "`blockIdx` is a word of CUDA",
        {"blockIdx.x * blockDim.x + threadIdx.x": "b * B + u"},
    ),
    "an index of CUDA in a cut loop": (
        one("x[«threadIdx».x] = 1;"),
        "MF0301",
        "`threadIdx` is a word of CUDA",
        {"threadIdx.x": "i"},
    ),
    "an index of OpenCL": (
        one("x[«get_global_id»(0)] = 1;"),
        "MF0206",
        "`get_global_id` is a word of OpenCL",
        {"get_global_id(0)": "i"},
    ),
    "shared memory": (
        two("t[u] = x[b * B + u];", "«__shared__» float t[256];"),
        "MF0217",
        "`__shared__` is a word of CUDA",
        {"__shared__ float": "float"},
    ),
    "a variable of the device": (
        "«__device__» float y[100];\n" + one("x[i] = y[i];"),
        "MF0217",
        "`__device__` is a word of CUDA",
        {"__device__ float": "float"},
    ),
    "a barrier": (
        two(
            "t[u] = x[b * B + u];\n        «__syncthreads»();\n        x[b * B + u] = t[B - 1 - u];",
            "float t[B];",
        ),
        "MF0206",
        "`__syncthreads` is a function of CUDA",
        {"__syncthreads();": "}\nmeta_for (int u = 0; u < B; u++) {"},
    ),
    "an atomic sum": (
        one("«atomicAdd»(&bin[x[i]], 1);", "void f(int n, int B, const int x[n], int bin[256])\n{\n"),
        "MF0206",
        "`atomicAdd` is a function of CUDA",
        {"atomicAdd(&bin[x[i]], 1);": "meta_atomic bin[x[i]] += 1;"},
    ),
    "an atomic maximum": (
        one("«atomicMax»(most, i);", "void f(int n, int B, int most[1])\n{\n"),
        "MF0206",
        "`atomicMax` is a function of CUDA",
        {"atomicMax(most, i);": "meta_atomic most[0] = most[0] > i ? most[0] : i;"},
    ),
    "a fast function": (one("x[i] = «__expf»(x[i]);"), "MF0206", "a function of CUDA", {"__expf(x[i])": "expf(x[i])"}),
    "a reciprocal root": (
        one("x[i] = «rsqrtf»(x[i]);"),
        "MF0206",
        "a function of CUDA",
        {"rsqrtf(x[i])": "1.0f / sqrtf(x[i])"},
    ),
    "a read by the other cache": (one("x[i] = «__ldg»(&x[i]);"), "MF0206", "of CUDA", {"__ldg(&x[i])": "x[i]"}),
    # functions of the host
    "printing": (one('«printf»("%d", i); x[i] = 1;'), "MF0206", "cannot be called", {'printf("%d", i);': ""}),
    "an assertion": (one("«assert»(x[i] > 0); x[i] = 1;"), "MF0206", "cannot be called", {"assert(x[i] > 0);": ""}),
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
    # types
    "half": (typed("«half» x[n]"), "MF0216", "elements of type `half`", {"half x[n]": "float x[n]"}),
    "bfloat16": (typed("«__nv_bfloat16» *x"), "MF0216", "`__nv_bfloat16`", {"__nv_bfloat16 *x": "float *x"}),
    "half of the file": (
        "«_Float16» y[100];\n" + one("x[i] = y[i];"),
        "MF0216",
        "elements of type `_Float16`",
        {"_Float16 y[100]": "float y[100]"},
    ),
    "a cast to half": (one("x[i] = («__half»)x[i];"), "MF0010", "elements of type `__half`", {"__half": "float"}),
    "long double": (
        typed("«long double» x[n]"),
        "MF0216",
        "elements of type `long double`",
        {"long double x[n]": "double x[n]"},
    ),
    "a vector of CUDA": (
        typed("«float4» x[n]", "x[i].w = 2 * x[i].w;"),
        "MF0216",
        "`float4` is a type of CUDA",
        {"void scale(": "typedef struct { float x, y, z, w; } quad;\nvoid scale(", "float4 x[n]": "quad x[n]"},
    ),
    "a vector of two numbers": (
        typed("«uint2» *x", "x[i].y = 1;"),
        "MF0216",
        "`uint2` is a type of CUDA",
        {"void scale(": "typedef struct { unsigned int x, y; } pair;\nvoid scale(", "uint2 *x": "pair *x"},
    ),
    "complex numbers": (
        typed("«double complex» x[n]", "x[i] = 2 * x[i];", "#include <complex.h>\n"),
        "MF0216",
        "elements of type `double complex`",
        {
            "void scale(": "typedef struct { double re, im; } pair;\nvoid scale(",
            "double complex x[n]": "pair x[n]",
            "x[i] = 2 * x[i];": "x[i].re *= 2; x[i].im *= 2;",
        },
    ),
    # C++
    "a template": (
        typed("T *x", top="«template» <typename T>\n"),
        "MF0010",
        "`template` is C++",
        {"template <typename T>": "typedef float T;"},
    ),
    "a template with a number": (
        typed("T *x", top="«template»<class T, int N = 3>\n"),
        "MF0010",
        "`template` is C++",
        {"template<class T, int N = 3>": "typedef float T;\n#define N 16\n"},
    ),
    "a vector": (
        one("x[i] = 1;", "#include <vector>\nvoid f(«std::vector<float> &x», int B)\n{\n  int n = x.size();\n"),
        "MF0010",
        "`std::vector<float> &x` is C++",
        {"std::vector<float> &x, int B": "int n, float *x, int B", "  int n = x.size();\n": ""},
    ),
    "an array of C++": (
        typed("«std::array<float, 16> &x»"),
        "MF0010",
        "`std::array<float, 16> &x` is C++",
        {"std::array<float, 16> &x": "float *x"},
    ),
    "a reference": (
        typed("float x[n], «const float &t»", "x[i] = t;"),
        "MF0010",
        "`const float &t` is C++",
        {"const float &t": "const float *t", "= t;": "= t[0];"},
    ),
    "auto": (
        one("«auto» t = 2.5f; x[i] = t;"),
        "MF0010",
        "`auto` does not name a type in C",
        {"auto t = 2.5f": "float t = 2.5f"},
    ),
    "auto in a head": (
        SCALE + OPEN + "    meta_for («auto» i = 0; i < n; i++)\n      x[i] = 1;\n  }\n}\n",
        "MF0010",
        "`auto` does not name a type in C",
        {"auto i = 0": "int i = 0"},
    ),
    "the greater of two": (
        one("x[i] = «std::max»(x[i], 0.0f);"),
        "MF0010",
        "`std::max` is C++",
        {"std::max(x[i], 0.0f)": "fmaxf(x[i], 0.0f)"},
    ),
    "the smaller of two integers": (
        one("x[i] = «std::min»(i, n - 1);"),
        "MF0010",
        "`std::min` is C++",
        {"std::min(i, n - 1)": "i < n - 1 ? i : n - 1"},
    ),
    "a root of C++": (one("x[i] = «std::sqrt»(x[i]);"), "MF0010", "is C++", {"std::sqrt(x[i])": "sqrt(x[i])"}),
    "printing of C++": (one("«std::cout» << i; x[i] = 1;"), "MF0010", "is C++", {"std::cout << i;": ""}),
    "a cast of C++": (one("x[i] = «static_cast»<int>(x[i]);"), "MF0010", "is C++", {"static_cast<int>(": "(int)("}),
    # Python
    "a power": (one("x[i] = x[i] «**» 2;"), "MF0010", "C has no operator `**`", {"x[i] ** 2": "x[i] * x[i]"}),
    "a power of a sum": (
        one("x[i] = (x[i] + 1) «**» 2;"),
        "MF0010",
        "C has no operator `**`",
        {"(x[i] + 1) ** 2": "(x[i] + 1) * (x[i] + 1)"},
    ),
    "a root as a power": (one("x[i] = x[i] «**» 0.5;"), "MF0010", "C has no", {"x[i] ** 0.5": "pow(x[i], 0.5)"}),
    "and": (one("if (i > 1 «and» i < 3) x[i] = 1;"), "MF0010", "`and` is no operator of C", {"and": "&&"}),
    "True": (one("x[i] = «True»;"), "MF0301", "`True` is not declared", {"True": "1"}),
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
    "a gathered pointer": (
        typed("const int *at, const float *y, float *x", "x[i] = «y»[at[i]];"),
        "MF0201",
        "it is not known how many elements `y` has",
        {"void scale": "#pragma metafork extents(y[n])\nvoid scale"},
    ),
    "rows by pointers": (
        typed("int m, «float **x»", "for (int j = 0; j < m; j++) x[i][j] = 1;"),
        "MF0201",
        "`float **x` is a table of pointers",
        {"float **x": "float x[n][m]"},
    ),
    "an array of pointers": (
        typed("int m, «const double *a[n]», double *x", "for (int j = 0; j < m; j++) x[i] = a[i][j];"),
        "MF0201",
        "`const double *a[n]` is a table of pointers",
        {"const double *a[n]": "const double a[n][m]"},
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

OF_THE_PROGRAM = {
    "x[i].re *= 2; x[i].im *= 2;",
    "+= x[v_index];",
    "int n, float *x, int B",
    "last[0] = i",
    "return last[0]",
    "= t[0];",
    "return n",
    "&&",
    "1",
    "i",
}
"""What is put in because of the help, and does not stand in it as a whole."""


@pytest.mark.parametrize("case", CASES)
def test_one_message_with_a_help_that_can_be_followed(case):
    marked, code, message, replacements = CASES[case]
    text, ((start, end),) = unmark(marked)
    with pytest.raises(DiagnosticsError) as refused:
        parse(Source("case.mf", text))
    (found,) = refused.value.diagnostics
    assert (found.code, text[found.span.start : found.span.end]) == (code, text[start:end]), found.message
    assert (found.span.line, found.span.start) == (text.count("\n", 0, start) + 1, start)
    assert message in found.message
    assert found.reason
    assert found.way_out
    for old, new in (replacements or {}).items():
        assert old in text
        for line in new.splitlines():
            shown = line.strip() in found.way_out or line.strip() in text or line.strip() in OF_THE_PROGRAM
            assert shown, (line, found.way_out)
        text = text.replace(old, new)
    if replacements:
        assert parse(Source("case.mf", text)).schedules


def test_what_is_no_fault_of_theirs_is_taken():
    text = one("x[i] = x[i] **p;", "void f(int n, int B, float x[n], const float *p)\n{\n")
    assert parse(Source("power.mf", text)).schedules
    host = "#pragma omp parallel for\n  for (int j = 0; j < n; j++) x[j] = 1;\n"
    assert parse(Source("omp.mf", SCALE + host + MARKED + "}\n")).schedules
    python = "/*\nimport numpy\n*/\n" + SCALE + MARKED + "}\n"
    assert parse(Source("comment.mf", python)).schedules


def test_a_header_that_is_not_found_is_told_with_what_needs_it(tmp_path):
    text = '#include "types.h"\n' + one("x[i] = 1;", "void scale(int n, int B, real x[n])\n{\n")
    with pytest.raises(DiagnosticsError) as refused:
        parse(Source(str(tmp_path / "a.mf"), text))
    (found,) = refused.value.diagnostics
    assert (found.code, found.span.line, found.span.column) == ("MF0018", 1, 10)
    assert [span.line for span, _ in found.related] == [6]
    assert "-I DIRECTORY" in found.way_out
