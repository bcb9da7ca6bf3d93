"""OpenCL C 1.2 text of a kernel: one ``__kernel`` function, built once for each kind of launch.

The text stands behind the prelude of ``metafork/target_opencl.h``, which defines ``METAFORK_FIRST`` and its like
(``metafork.printing.launches``) by the macro ``METAFORK_LARGE`` that the build gives.  It computes what the CUDA text
without contraction computes; what differs between C and OpenCL C is written out:

- integer types by OpenCL's names: ``long`` has 64 bits, and there is no ``long long``;
- no argument of a kernel is a ``bool``;
- functions are chosen by the types of their arguments, which are converted first;
- a floating condition of ``?:`` is compared with zero.

Each pointer argument comes with an offset in bytes: an array may begin anywhere in the buffer that holds it.  The last
argument is the dynamic shared memory, where the kernel has any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.math_functions import OF_SMALL, SIGNATURES
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.kernel import ALIGNED, SHUFFLE, Kernel, Memory, Space, without_warps
from metafork.ir.rewriting import map_body, map_expression
from metafork.printing.cuda import identifiers, known_threads, table_name
from metafork.printing.expressions import Spelling, expression, table_rows
from metafork.printing.launches import for_both
from metafork.printing.opencl_names import renamed
from metafork.printing.statements import statements

BOOL, FLOAT, DOUBLE = ScalarType.BOOL, ScalarType.FLOAT, ScalarType.DOUBLE

_TYPES = {
    ScalarType.BOOL: "bool",
    ScalarType.SIGNED_CHAR: "char",
    ScalarType.UNSIGNED_CHAR: "uchar",
    ScalarType.UNSIGNED_SHORT: "ushort",
    ScalarType.UNSIGNED_INT: "uint",
    ScalarType.UNSIGNED_LONG: "ulong",
    ScalarType.LONG_LONG: "long",
    ScalarType.UNSIGNED_LONG_LONG: "ulong",
}
_OF_64_BITS = {
    ScalarType.LONG_LONG: ScalarType.LONG,
    ScalarType.UNSIGNED_LONG_LONG: ScalarType.UNSIGNED_LONG,
}
_FUNCTIONS = {
    "abs": "metafork_abs",
    "labs": "metafork_labs",
    "llabs": "metafork_labs",
    **{name: name for name in ("ceil", "copysign", "fabs", "floor", "fma", "rint", "round", "sqrt", "trunc")},
    "nearbyint": "rint",
    "__float_as_uint": "as_uint",
    "__uint_as_float": "as_float",
    "__double_as_longlong": "as_long",
    "__longlong_as_double": "as_double",
    **{name: f"metafork_{name}" for name in ("fdim", "fmax", "fmin")},
    **{name: name for name in OF_SMALL},
}
"""Functions of ``math.h`` that OpenCL computes exactly, by the C name for ``double``.

OpenCL C 1.2, section 7.4, gives 0 ulp or "correctly rounded" for those that keep their name, ``sqrt`` of ``float``
where the build asks for it; the prelude has the others, those of the last line for ``float`` with a suffix.
"""
_ATOMICS = {"+": "add", "-": "sub", "&": "and", "|": "or", "^": "xor", "min": "min", "max": "max"}
"""Atomic updates that OpenCL has functions for."""
_BUILT_IN = {
    f"{cuda}.{axis}": f"METAFORK_{name}({number})"
    for cuda, name in (("threadIdx", "THREAD"), ("blockIdx", "BLOCK"), ("blockDim", "THREADS"), ("gridDim", "BLOCKS"))
    for number, axis in enumerate("xyz")
}

_BUFFER, _OFFSET, _TRUTH, _SHARED = "metafork_buffer", "metafork_offset", "metafork_truth", "metafork_shared"


class NoOpenClError(Exception):
    """A kernel does something that OpenCL C cannot say, or not exactly; the message is the reason."""


class OpenClText(Struct, frozen=True):
    """The text of a kernel and what a device must have for it.

    ``doubles``: arithmetic of 64 bits.  ``floats``: denormals, infinities and rounding to nearest in 32 bits;
    ``divides``: correctly rounded division and square root there.  ``atomics_64``: atomic updates of 64 bits.
    """

    text: str
    shared: bool
    doubles: bool
    floats: bool
    divides: bool
    atomics_64: bool


class _OpenCl(Spelling, frozen=True):
    """How OpenCL C spells what the IR says; ``memories`` are those of the kernel."""

    memories: Mapping[str, Memory] = field(default_factory=dict)

    def type(self, type_: ScalarType) -> str:
        return _TYPES.get(type_, type_.spelling)

    def atomic(self, stmt: ir.Assign) -> str | None:
        target, element = stmt.target, self.type(stmt.target.type)
        arguments = f"(&{expression(target, self)}, ({element})({expression(stmt.value, self)}))"
        if _native(stmt):
            return f"{'atom' if target.type.size == 8 else 'atomic'}_{_ATOMICS[stmt.op]}{arguments}"
        return _helper(stmt, self.memories) + arguments


def kernel_text(kernel: Kernel) -> OpenClText:
    """Return the definition of the kernel.  Raises ``NoOpenClError``, and ``ValueError`` as the CUDA text does."""
    kernel = replace(kernel, body=without_warps(kernel.body))
    _refuse(kernel)
    memories = {memory.name: memory for memory in kernel.memories}
    body = map_body(for_both(kernel.body), _changed)
    tables = [memory for memory in kernel.memories if memory.space is Space.CONSTANT]
    names = {**renamed(identifiers(kernel)), **_BUILT_IN, **{one.name: table_name(one.name) for one in tables}}
    spelling = _OpenCl(names, barrier=_barrier(kernel), memories=memories)
    shared = any(memory.space is Space.SHARED for memory in kernel.memories)
    parameters, opening = _arguments(kernel, spelling, shared)
    lines = [*(_table(one, spelling) for one in tables), *_helpers(kernel, spelling), *_required_threads(kernel)]
    lines += [f"__kernel void {kernel.name}({', '.join(parameters)})", "{"]
    lines += [f"  {line};" for line in opening]
    own = (memory for memory in kernel.memories if memory.space in (Space.SHARED, Space.PRIVATE))
    lines += [f"  {_local_memory(memory, spelling)};" for memory in own]
    text = "\n".join([*lines, *statements(body, 2, spelling), "}", ""])
    return OpenClText(
        text,
        shared,
        doubles=DOUBLE in _types(kernel),
        floats=_computes_floats(kernel),
        divides=_divides_floats(kernel),
        atomics_64=any(stmt.target.type.size == 8 for stmt in _atomic_updates(kernel)),
    )


def _refuse(kernel: Kernel) -> None:
    unknown = set()
    for part in ir.parts_of(kernel.body):
        if isinstance(part, ir.Call) and part.name == SHUFFLE:
            raise NoOpenClError("OpenCL 1.2 has no shuffles")
        if isinstance(part, ir.Call) and part.name in SIGNATURES and _plain_name(part) not in _FUNCTIONS:
            unknown.add(part.name)
    if unknown:
        raise NoOpenClError(f"OpenCL does not say that these are exact: {', '.join(sorted(unknown))}")


def _plain_name(call: ir.Call) -> str:
    """Return the name of a function of ``math.h`` without the mark of ``float``."""
    if call.name in OF_SMALL:
        return call.name
    return call.name.removesuffix("f") if SIGNATURES[call.name].result is FLOAT else call.name


def _changed(expr: ir.Expr) -> ir.Expr | None:
    """Return what OpenCL C says instead, operands included; ``None`` where only they may change."""
    match expr:
        case ir.IntConst(value=value, type=type_) if type_ in _OF_64_BITS:
            return ir.IntConst(value, _OF_64_BITS[type_], expr.span)
        case ir.Conditional(condition=condition) if condition.type.floating:
            zero = ir.FloatConst("0.0f" if condition.type is FLOAT else "0.0", condition.type)
            test = ir.Binary("!=", _in_opencl(condition), zero, ScalarType.INT)
            return ir.Conditional(test, _in_opencl(expr.then), _in_opencl(expr.otherwise), expr.type, expr.span)
        case ir.Call(name=name) if name == ALIGNED:
            return ir.IntConst(0, expr.type)  # elements are accessed one by one
        case ir.Call(name=name, arguments=arguments) if name in SIGNATURES:
            given = tuple(
                _in_opencl(one) if one.type is type_ else ir.Cast(type_, _in_opencl(one))
                for one, type_ in zip(arguments, SIGNATURES[name].parameters, strict=True)
            )
            return ir.Call(_function(expr), given, expr.type, expr.span)
        case _:
            return None


def _in_opencl(expr: ir.Expr) -> ir.Expr:
    return map_expression(expr, _changed)


def _function(call: ir.Call) -> str:
    name = _FUNCTIONS[_plain_name(call)]
    own = name.startswith("metafork_f") and call.name not in OF_SMALL
    return f"{name}f" if own and call.type is FLOAT else name


def _arguments(kernel: Kernel, spelling: Spelling, shared: bool) -> tuple[list[str], list[str]]:
    """Return the parameters, and the declarations that make the kernel's own arguments of them."""
    parameters: list[str] = []
    opening: list[str] = []
    for argument in kernel.scalars:
        name = spelling.name(argument.name)
        if argument.type is BOOL:
            # No argument has this type.
            parameters.append(f"uchar {_TRUTH}{len(opening)}")
            opening.append(f"bool {name} = {_TRUTH}{len(opening)}")
        else:
            parameters.append(f"{spelling.type(argument.type)} {name}")
    for number, memory in enumerate(memory for memory in kernel.memories if memory.space is Space.GLOBAL):
        const = "const " if memory.read_only else ""
        element, name = spelling.type(memory.element), spelling.name(memory.name)
        parameters += [f"__global {const}uchar *restrict {_BUFFER}{number}", f"ulong {_OFFSET}{number}"]
        place = f"(__global {const}{element} *)({_BUFFER}{number} + {_OFFSET}{number})"
        opening.append(f"__global {const}{element} *const {name} = {place}")
    if shared:
        # Of its type for its alignment.
        parameters.append(f"__local ulong2 *restrict {_SHARED}")
    return parameters, opening


def _table(memory: Memory, spelling: Spelling) -> str:
    """Return the definition of a table in constant memory."""
    values = table_rows([_in_opencl(value) for value in memory.values], len(memory.values), spelling)
    name = spelling.name(memory.name)
    return f"__constant {spelling.type(memory.element)} {name}[{len(memory.values)}] = {values};"


def _local_memory(memory: Memory, spelling: Spelling) -> str:
    element, name = spelling.type(memory.element), spelling.name(memory.name)
    if memory.space is Space.PRIVATE:
        return f"{element} {name}[{expression(memory.extent, spelling)}]"
    if memory.offset is None:
        raise ValueError(f"the shared memory {memory.name} has no offset")
    offset = expression(_in_opencl(memory.offset), spelling)
    return f"__local {element} *const {name} = (__local {element} *)((__local uchar *){_SHARED} + ({offset}))"


def _required_threads(kernel: Kernel) -> list[str]:
    """Return what tells the compiler how many threads a block has, where they are constants that it may know."""
    threads = known_threads(kernel) if kernel.told else {}
    known = {axis: extent.value for axis, extent in threads.items() if isinstance(extent, ir.IntConst)}
    if len(known) < 3:
        return []
    return [f"__attribute__((reqd_work_group_size({', '.join(str(known[axis]) for axis in 'xyz')})))"]


def _barrier(kernel: Kernel) -> str:
    """Return the barrier; it orders global memory too where threads may read there what others wrote."""
    written = {stmt.target.array for stmt in _assignments(kernel) if isinstance(stmt.target, ir.Element)}
    names = {memory.name for memory in kernel.memories if memory.space is Space.GLOBAL}
    fences = "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE" if names & written & _read(kernel) else "CLK_LOCAL_MEM_FENCE"
    return f"barrier({fences})"


# ---- atomic updates ----


def _native(stmt: ir.Assign) -> bool:
    """Say whether OpenCL has a function for an update."""
    return stmt.op in _ATOMICS and stmt.target.type.size >= 4 and stmt.target.type.integer


def _helper(stmt: ir.Assign, memories: Mapping[str, Memory]) -> str:
    """Return the name of the kernel's own function for an update."""
    assert isinstance(stmt.target, ir.Element)
    space = memories[stmt.target.array].space.value
    operation = {"*": "mul", **_ATOMICS}[stmt.op]
    return f"metafork_{operation}_{space}_{_TYPES.get(stmt.target.type, stmt.target.type.spelling)}"


def _helpers(kernel: Kernel, spelling: Spelling) -> list[str]:
    """Return the definitions of these functions: the word around the value is exchanged until nobody else did."""
    memories = {memory.name: memory for memory in kernel.memories}
    found = {_helper(stmt, memories): stmt for stmt in _atomic_updates(kernel) if not _native(stmt)}
    return [line for name, stmt in found.items() for line in _exchange(name, stmt, memories, spelling)]


def _exchange(name: str, stmt: ir.Assign, memories: Mapping[str, Memory], spelling: Spelling) -> list[str]:
    assert isinstance(stmt.target, ir.Element)
    type_, element = stmt.target.type, spelling.type(stmt.target.type)
    space = "__local" if memories[stmt.target.array].space is Space.SHARED else "__global"
    word, exchange = ("ulong", "atom_cmpxchg") if type_.size == 8 else ("uint", "atomic_cmpxchg")
    if stmt.op in ("min", "max"):
        update = f"value {'<' if stmt.op == 'min' else '>'} old ? value : old"
    elif type_.floating:
        update = f"old {stmt.op} value"
    else:
        # In a type without a sign, where everything wraps around.
        update = f"({element})(({word})old {stmt.op} ({word})value)"
    lines = [f"void {name}(volatile {space} {element} *place, {element} value)", "{"]
    if type_.size >= 4:
        lines += [f"  volatile {space} {word} *const at = (volatile {space} {word} *)place;"]
        shift, mask = "", ""
    else:
        lines += [
            "  const ulong address = (ulong)place;",
            f"  volatile {space} uint *const at = (volatile {space} uint *)(address & ~3UL);",
            f"  const uint shift = 8 * (uint)(address & 3UL), mask = 0x{(1 << 8 * type_.size) - 1:x}U << shift;",
        ]
        shift, mask = " >> shift", "(expected & ~mask) | "
    new = f"({word})next" if not mask else f"{mask}(((uint)next << shift) & mask)"
    old = f"({element})({'expected' + shift})"
    if type_.floating:
        new, old = f"as_{word}(next)", f"as_{element}(expected)"
    return [
        *lines,
        f"  {word} seen = *at, expected;",
        "  do {",
        "    expected = seen;",
        f"    const {element} old = {old};",
        f"    const {element} next = {update};",
        f"    seen = {exchange}(at, expected, {new});",
        "  } while (seen != expected);",
        "}",
    ]


# ---- what a kernel has ----


def _assignments(kernel: Kernel) -> Iterator[ir.Assign]:
    return (stmt for stmt in ir.walk_statements(kernel.body) if isinstance(stmt, ir.Assign))


def _atomic_updates(kernel: Kernel) -> Iterator[ir.Assign]:
    return (stmt for stmt in _assignments(kernel) if stmt.atomic)


def _read(kernel: Kernel) -> frozenset[str]:
    """Return the memories that the body reads."""
    found = set()
    for stmt in ir.walk_statements(kernel.body):
        parts = ir.expressions_of(stmt)
        if isinstance(stmt, ir.Assign) and not stmt.op:
            parts = (*ir.subexpressions(stmt.target), stmt.value)
        found |= {one.array for expr in parts for one in ir.walk_expression(expr) if isinstance(one, ir.Element)}
    return frozenset(found)


def _types(kernel: Kernel) -> frozenset[ScalarType]:
    declared = {stmt.type for stmt in ir.walk_statements(kernel.body) if isinstance(stmt, ir.Declare)}
    given = {scalar.type for scalar in kernel.scalars} | {memory.element for memory in kernel.memories}
    return frozenset(declared | given | {part.type for part in ir.parts_of(kernel.body)})


def _computes_floats(kernel: Kernel) -> bool:
    """Say whether anything is done with a ``float`` but to move it."""
    for stmt in ir.walk_statements(kernel.body):
        match stmt:
            case ir.Assign(target=target, op=op, value=value):
                stored, what = target.type, value.type
                if FLOAT in (stored, what) and (op or stored is not what):
                    return True
            case ir.Declare(type=stored, value=value) if value is not None:
                if FLOAT in (stored, value.type) and stored is not value.type:
                    return True
            case _:
                pass
    computing = ir.Unary | ir.Binary | ir.Cast | ir.Call | ir.Conditional
    return any(
        FLOAT in (part.type, *(operand.type for operand in ir.subexpressions(part)))
        for part in ir.parts_of(kernel.body)
        if isinstance(part, computing)
    )


def _divides_floats(kernel: Kernel) -> bool:
    """Say whether a ``float`` is divided, or a square root of one taken."""
    for part in ir.parts_of(kernel.body):
        match part:
            case ir.Binary(op="/", type=ScalarType.FLOAT) | ir.Call(name="sqrtf"):
                return True
            case _:
                pass
    return any(
        stmt.op == "/" and common_type(stmt.target.type, stmt.value.type) is FLOAT for stmt in _assignments(kernel)
    )
