"""First messages for those who come from OpenMP, OpenACC, CUDA, C++ and Python.

A case has a source with the place marked, the code, a part of the message, and replacements that make it a program that
is accepted.  What is put in stands in the help.
"""

from tests.metafork.frontend.first_programs import LOOP, MARKED, OPEN, SCALE, one, two, typed

CASES = {
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
    "a function of the device": (
        "«__device__» __forceinline__ float twice(float x) { return 2 * x; }\n" + one("x[i] = twice(x[i]);"),
        "MF0217",
        "`__device__` is a word of CUDA",
        {"__device__": "", "__forceinline__": ""},
    ),
    "a kernel with a schedule": (
        one("x[i] = 1;", "«__global__» void f(int n, int B, float x[n])\n{\n"),
        "MF0217",
        "`__global__` is a word of CUDA",
        {"__global__": ""},
    ),
    "a function of CUDA's host": (
        one("x[i] = 1; «cudaDeviceSynchronize»();"),
        "MF0206",
        "of CUDA",
        {"cudaDeviceSynchronize();": ""},
    ),
    "a fast function": (one("x[i] = «__expf»(x[i]);"), "MF0206", "a function of CUDA", {"__expf(x[i])": "expf(x[i])"}),
    "a reciprocal root": (
        one("x[i] = «rsqrtf»(x[i]);"),
        "MF0206",
        "a function of CUDA",
        {"rsqrtf(x[i])": "1.0f / sqrtf(x[i])"},
    ),
    "a read by the other cache": (one("x[i] = «__ldg»(&x[i]);"), "MF0206", "of CUDA", {"__ldg(&x[i])": "x[i]"}),
    # types
    "two halves": (typed("«half2» x[n]"), "MF0216", "`half2` is a type of CUDA", {"half2 x[n]": "half x[n]"}),
    "two bfloat16s": (typed("«__nv_bfloat162» *x"), "MF0216", "162`", {"__nv_bfloat162 *x": "bfloat16 *x"}),
    "a number of 8 bits": (
        "«__nv_fp8_e4m3» y[100];\n" + one("x[i] = y[i];"),
        "MF0216",
        "elements of type `__nv_fp8_e4m3`",
        {"__nv_fp8_e4m3 y[100]": "half y[100]"},
    ),
    "a cast to two halves": (one("x[i] = («__half2»)x[i];"), "MF0010", "`__half2`", {"__half2": "float"}),
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
        typed("«cuDoubleComplex» x[n]", "x[i] = 2 * x[i];"),
        "MF0216",
        "elements of type `cuDoubleComplex`",
        {"void scale(": "#include <complex.h>\nvoid scale(", "cuDoubleComplex x[n]": "double complex x[n]"},
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
        typed("float x[n], «float &t»", "x[i] = t;"),
        "MF0010",
        "`float &t` is C++",
        {"float &t": "float *t", "= t;": "= t[0];"},
    ),
    "a reference to a constant": (
        typed("float x[n], «const float &t»", "x[i] = t;"),
        "MF0010",
        "`const float &t` is C++",
        {"const float &t": "const float t"},
    ),
    "a reference in a schedule": (
        one("«const auto &v» = x[i]; x[i] = 2 * v;"),
        "MF0010",
        "`const auto &v` is C++",
        {"const auto &v = x[i]; ": "", "2 * v": "2 * x[i]"},
    ),
    "a template that is called": (
        "«template» <typename T> T twice(T x) { return x + x; }\n" + one("x[i] = twice(x[i]);"),
        "MF0010",
        "`template` is C++",
        {"template <typename T>": "typedef float T;\n"},
    ),
    "a namespace": (
        "«namespace» a {\n" + SCALE + MARKED + "}\n}\n",
        "MF0010",
        "`namespace` is C++",
        {"namespace a {\n": "", "}\n}\n}\n": "}\n}\n"},
    ),
    "constexpr": (
        "«constexpr» int N = 4;\n" + one("x[i] = N;"),
        "MF0010",
        "`constexpr` is C++",
        {"constexpr": "const"},
    ),
    "a method": (
        one("x[i] = x.size();", "void f(int n, int B, «std::vector<float> &x»)\n{\n"),
        "MF0010",
        "`std::vector<float> &x` is C++",
        {"std::vector<float> &x": "float *x", "x.size()": "n"},
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
}
