"""A hand-made result: two functions, three schedules, trees and kernels written out; no analysis is involved."""

from dataclasses import dataclass

from metafork.algebra.polynomial import ZERO, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.emit import LeafCode
from metafork.comprehensive.tree.schedule_tree import (
    CounterInfo,
    Leaf,
    LeafReference,
    Node,
    NoLeaf,
    ScheduleTree,
    Variant,
)
from metafork.evaluators.counter import CounterValue
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Argument, Kernel, Memory, Space
from metafork.ir.messages.source import Source, Span
from metafork.ir.program import (
    Array,
    Assign,
    Cast,
    Derived,
    Element,
    FloatConst,
    IntConst,
    MetaFor,
    Parameter,
    ParameterKind,
    Phase,
    Program,
    ValueArgument,
    Var,
    Version,
    binary,
)
from metafork.ir.translation_unit import (
    Function,
    FunctionParameter,
    HostAccess,
    HostAccesses,
    HostIndex,
    HostPlace,
    Schedule,
    TranslationUnit,
)

FLOAT, INT, UNSIGNED, LONG = ScalarType.FLOAT, ScalarType.INT, ScalarType.UNSIGNED_INT, ScalarType.LONG_LONG

TEXT = """\
/* blend.mf */
#include <stdio.h>

int marker(void) { return 42; } /* carried over */

void blend(int N, int B, float alpha, float a[N], float c[N])
{
  int dim = N / B;
  meta_schedule /* both */ cache(a, c) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        c[p] = alpha * a[p] + c[p];
      }
  }
}

void relax(int N, int B, int steps, float a[N], float b[N], float other[N])
{
  int dim = (N - 2) / B;
  for (int t = 0; t < steps; t++) {
    other[0] = (float)t;
    meta_schedule {
      meta_for (int i = 0; i < dim; i++)
        meta_for (int j = 0; j < B; j++)
          b[i * B + j + 1] = a[i * B + j] + a[i * B + j + 2];
    }
    meta_schedule
      meta_for (int i = 0; i < dim; i++)
        meta_for (int j = 0; j < B; j++)
          a[i * B + j + 1] = 0.5f * b[i * B + j + 1];
  }
}
"""


def span(text, start, end=None):
    """The span from the first character of `start` to the last of `end`."""
    first = text.index(start)
    last = first + len(start) if end is None else text.index(end, first) + len(end)
    return Span(text.count("\n", 0, first) + 1, 1, text.count("\n", 0, last) + 1, 1, first, last)


def var(name, type_=INT):
    return Var(name, type_)


def number(value, type_=INT):
    return IntConst(value, type_)


def times(left, right):
    return binary("*", left, right)


def plus(left, right):
    return binary("+", left, right)


def symbols(names):
    return [Polynomial.symbol(name) for name in names]


N, B, T, Z, DIM, STEPS = symbols(["N", "B", "T_", "Z", "dim", "steps"])
MACHINE = {"threads_per_block": "T_", "shared_words": "Z", "block_dim_x": "block_dim_x"}
RESOURCES = (CounterInfo("threads_per_block", "resource", "T_"), CounterInfo("shared_memory", "resource", "Z"))


def parameter(name, kind, serial=False):
    return Parameter(name, INT, kind, serial)


def start(lowest):
    return (
        at_most(0, N),
        at_most(1, B),
        at_most(0, N - lowest),
        at_most(1, DIM),
        at_most(B, Polynomial.symbol("block_dim_x")),
    )


def one_phase(body):
    return (Phase((MetaFor("j", var("B")),), body),)


def program(number_, function, parameters, values, derived, arrays, body, span_):
    return Program(
        name=f"blend_k{number_}",
        function=function,
        parameters=tuple(parameters),
        values=tuple(values),
        derived=(derived,),
        assumptions=(),
        arrays=tuple(Array(name, FLOAT, (var("N"),)) for name in arrays),
        grid=(MetaFor("i", var("dim")),),
        body=one_phase(body),
        span=span_,
    )


def element(name, index):
    return Element(name, (index,), FLOAT)


def leaf(program_, number_, words):
    counters = {"threads_per_block": CounterValue(B), "shared_memory": CounterValue(words)}
    own = Variant(1, f"{program_.name}_leaf{number_}", Version(program_), counters=counters)
    return Leaf(id=number_, systems=((at_most(words, Z),),), trace=(), variants=(own,))


def tree(program_, words, lowest=0, dim=(N, B), performance=None):
    """Leaves by falling shared memory; too many threads refuse all."""
    leaves = [leaf(program_, i + 1, value) for i, value in enumerate(words)]
    inner = NoLeaf("shared_memory")
    for entry in reversed(leaves):
        value = entry.counters["shared_memory"]
        inner = Node("shared_memory", value, at_most(value.numerator, Z), LeafReference(entry.id), "caching", inner)
    root = Node("threads_per_block", CounterValue(B), at_most(B, T), inner, None, NoLeaf("threads_per_block"))
    machine, counters, limits = dict(MACHINE), RESOURCES, start(lowest)
    if performance is not None:
        target = Polynomial.symbol("Q")
        condition = at_most(B, target * 64)
        last = Node("cost", CounterValue(B), at_most(B, T), LeafReference(3), None, NoLeaf("threads_per_block"))
        root = Node("cost", CounterValue(B, Polynomial.constant(64)), condition, root, None, last)
        machine["Q"] = "Q"
        counters = (*RESOURCES, CounterInfo("cost", "performance", "Q", target=performance))
    return ScheduleTree(
        program=program_,
        machine=machine,
        start=limits,
        derived=(DerivedSymbol("dim", "floor", dim),),
        counters=counters,
        strategies=("caching",),
        root=root,
        leaves=tuple(leaves),
    )


BLEND_SPAN = span(TEXT, "meta_schedule /* both */", "      }\n  }")
RELAX_SPAN = span(TEXT, "meta_schedule {\n      meta_for", "+ 2];\n    }")
COPY_SPAN = span(TEXT, "meta_schedule\n", "+ 1];")
STORE_SPAN = span(TEXT, "other[0] = (float)t;")
INDEX = plus(times(var("i"), var("B")), var("j"))
SHIFTED = plus(INDEX, number(1))

BLEND = program(
    0,
    "blend",
    [parameter("N", ParameterKind.DATA), parameter("B", ParameterKind.PROGRAM)],
    [ValueArgument("alpha", FLOAT)],
    Derived("dim", INT, binary("/", var("N"), var("B"))),
    ["a", "c"],
    (
        Assign(
            element("c", INDEX),
            "",
            plus(times(var("alpha", FLOAT), element("a", INDEX)), element("c", INDEX)),
        ),
    ),
    BLEND_SPAN,
)
INNER_DIM = Derived("dim", INT, binary("/", binary("-", var("N"), number(2)), var("B")))
RELAX_PARAMETERS = [
    parameter("N", ParameterKind.DATA),
    parameter("B", ParameterKind.PROGRAM),
    parameter("t", ParameterKind.PROGRAM, serial=True),
]
RELAX = program(
    1,
    "relax",
    RELAX_PARAMETERS,
    [],
    INNER_DIM,
    ["a", "b"],
    (Assign(element("b", SHIFTED), "", plus(element("a", INDEX), element("a", plus(INDEX, number(2))))),),
    RELAX_SPAN,
)
COPY = program(
    2,
    "relax",
    RELAX_PARAMETERS,
    [],
    INNER_DIM,
    ["a", "b"],
    (Assign(element("a", SHIFTED), "", times(FloatConst("0.5f", FLOAT), element("b", SHIFTED))),),
    COPY_SPAN,
)


def scalar(name, type_="int"):
    return FunctionParameter(name, f"{type_} {name}", FLOAT if type_ == "float" else INT)


def vector(name):
    return FunctionParameter(name, f"float {name}[N]", array=Array(name, FLOAT, (var("N"),)))


STORE = HostAccess("other", "parameter", (HostIndex("0LL"),), reads=False, writes=True)

UNIT = TranslationUnit(
    source=Source("blend.mf", TEXT),
    name="blend",
    functions=(
        Function(
            "blend",
            "void",
            (scalar("N"), scalar("B"), scalar("alpha", "float"), vector("a"), vector("c")),
            span(TEXT, "void blend", "\n}"),
            span(TEXT, "{\n  int dim = N / B", "\n}"),
            accesses=HostAccesses(),
        ),
        Function(
            "relax",
            "void",
            (scalar("N"), scalar("B"), scalar("steps"), vector("a"), vector("b"), vector("other")),
            span(TEXT, "void relax", "\n}"),
            span(TEXT, "{\n  int dim = (N - 2)", "\n}"),
            accesses=HostAccesses((HostPlace(STORE_SPAN.start, STORE_SPAN.end, "statement", (STORE,)),)),
        ),
    ),
    schedules=(
        Schedule(0, "blend", BLEND_SPAN, BLEND),
        Schedule(1, "relax", RELAX_SPAN, RELAX),
        Schedule(2, "relax", COPY_SPAN, COPY),
    ),
    transfers=(),
)

GUARD = "for (int i = blockIdx.x; i < dim; i += gridDim.x)"
POSITION = "    const int p = i * B + (int)threadIdx.x;\n"
BODIES = {
    "blend_k0_leaf1": """\
  METAFORK_SHARED(base);
  METAFORK_SHARED_ARRAY(float, a_s, base, 0, B);
  METAFORK_SHARED_ARRAY(float, c_s, base, 4 * B, B);
  const int j = threadIdx.x;
  for (int i = blockIdx.x; i < dim; i += gridDim.x) {
    a_s[B - 1 - j] = a[i * B + B - 1 - j];
    c_s[j] = c[i * B + j];
    __syncthreads();
    c_s[j] = alpha * a_s[j] + c_s[j];
    __syncthreads();
    c[i * B + B - 1 - j] = c_s[B - 1 - j];
    __syncthreads();
  }
""",
    "blend_k0_leaf2": """\
  METAFORK_SHARED(base);
  METAFORK_SHARED_ARRAY(float, a_s, base, 0, B);
  const int j = threadIdx.x;
  for (int i = blockIdx.x; i < dim; i += gridDim.x) {
    a_s[B - 1 - j] = a[i * B + B - 1 - j];
    __syncthreads();
    c[i * B + j] = alpha * a_s[j] + c[i * B + j];
    __syncthreads();
  }
""",
    "blend_k0_leaf3": f"  {GUARD}\n    c[i * B + (int)threadIdx.x] += alpha * a[i * B + (int)threadIdx.x];\n",
    "blend_k1_leaf1": f"  {GUARD} {{\n{POSITION}    b[p + 1] = a[p] + a[p + 2];\n  }}\n",
    "blend_k2_leaf1": f"  {GUARD} {{\n{POSITION}    a[p + 1] = 0.5f * b[p + 1];\n  }}\n",
}
SHARED = {"blend_k0_leaf1": 8, "blend_k0_leaf2": 4}


def code_of(entry):
    """The kernel of a variant; ``bytes`` shared memory a thread as in SHARED."""
    name = entry.kernel
    program_ = entry.version.program
    one, dim = number(1), var("dim")
    written = {stmt.target.array for stmt in program_.body[0].body}
    kernel = Kernel(
        name=name,
        scalars=(Argument("B", INT), Argument("dim", INT), *(Argument(v.name, v.type) for v in program_.values)),
        memories=tuple(
            Memory(a.name, Space.GLOBAL, FLOAT, var("N"), read_only=a.name not in written) for a in program_.arrays
        ),
        body=(),
        grid=(dim, one, one),
        block=(var("B"), one, one),
        shared_bytes=times(Cast(LONG, var("B")), number(SHARED.get(name, 0))),
        host_scalars=(),
    )
    declarations = ["int B", "int dim", *(f"float {v.name}" for v in program_.values)]
    declarations += [f"{'const ' if m.read_only else ''}float *METAFORK_RESTRICT {m.name}" for m in kernel.memories]
    names = ", ".join(declaration.replace("*METAFORK_RESTRICT", "").split()[-1] for declaration in declarations)
    text = f"METAFORK_KERNEL(__global__ void, {name}, ({', '.join(declarations)}), ({names}))\n{{\n{BODIES[name]}}}\n"
    return LeafCode(kernel, text)


@dataclass(frozen=True)
class Example:
    unit: TranslationUnit
    schedules: tuple[ScheduleTree, ...]


def example(performance=None):
    return Example(
        UNIT,
        (
            tree(BLEND, [B * 2, B, ZERO], performance=performance),
            tree(RELAX, [ZERO], 2, (N - 2, B)),
            tree(COPY, [B], 2, (N - 2, B)),
        ),
    )
