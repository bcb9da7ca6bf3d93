"""C text of schedules that add up floating-point numbers in a stated order, around what their programs become.

``before --> after``, of a schedule that became two programs, whose texts (or dispatches) are ``FIRST`` and ``SECOND``::

    meta_schedule {...}    -->    { const _Bool in_order = B > 0 && n / B > 0 && ...;
                                    float *sum_of_block = in_order ? __builtin_malloc(...) : 0;
                                    if (in_order && sum_of_block) { FIRST SECOND }
                                    else {...}
                                    __builtin_free(sum_of_block); }

Where a loop has no iterations, a nest more than ``MOST_BLOCKS`` or than ``MOST_BYTES`` hold numbers of, or something
leaves its type that the programs compute and the text does not (the index of an iteration that is left out, say), the
text is what runs: in its own order.  Such conditions are evaluated with 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import assigned_variables, map_expression, substitute, variables
from metafork.ir.translation_unit import Schedule, StatedOrder
from metafork.printing.expressions import expression

MOST_BLOCKS = 1 << 30
"""Most blocks that are numbered in ``int``."""

MOST_BYTES = 1 << 18
"""Most bytes of the numbers of a block's threads, which lie on the stack where the serial code runs."""

_IN_ORDER = "metafork_in_order"


def in_order(place: Sequence[Schedule], texts: Sequence[str], otherwise: str, *, forget: bool = False) -> str:
    """Return one statement that runs statements of the same place in C one after the other; ``otherwise`` its text.

    ``forget`` says that copies of the arrays between them may lie on the device.
    """
    order = place[0].stated_order
    if order is None:
        (text,) = texts
        return text
    lines = ["{ /* floating-point numbers are added up in a stated order */"]
    lines.append(f"const _Bool {_IN_ORDER} = " + "\n  && ".join(computed_as_written(place[0].program, order)) + ";")
    lines += [
        f"{array.element.spelling} *const {array.name} = {_IN_ORDER} ? __builtin_malloc({_size(array)}) : 0;"
        for array in order.parts
    ]
    condition = " && ".join([_IN_ORDER, *(f"{array.name} != 0" for array in order.parts)])
    lines += [f"if ({condition}) {{", *texts]
    for array in order.parts if forget else ():
        lines.append(f"metafork_forget(&(const struct metafork_local){{{array.name}, {_size(array)}}});")
    lines += ["} else {", otherwise, "}", *(f"__builtin_free({array.name});" for array in order.parts), "}"]
    return "\n".join(lines)


def computed_as_written(program: ir.Program, order: StatedOrder) -> list[str]:
    """Return conditions under which a program computes what its text does; what one divides by stands before it."""
    phases = [stmt for stmt in ir.walk_statements(program.body) if isinstance(stmt, ir.Phase)]
    loops = [*program.grid, *(loop for phase in phases for loop in phase.threads)]
    found: list[str] = []
    for loop in loops:
        found += _defined(loop.extent)
    found += _counted(order.grid, MOST_BLOCKS)
    sizes = sum(stmt.array.element.size for stmt in program.body if isinstance(stmt, ir.BlockArray))
    for block in order.blocks:
        found += _counted(block, MOST_BYTES // max(sizes, 1))
    found += [
        f"{_wide(loop.extent)} <= {_greatest(loop.type)}" for loop in loops if not loop.type.holds(loop.extent.type)
    ]
    last = _last(program.grid)
    found += _in_range(program, program.body, last)
    for phase in phases:
        found += _in_range(program, phase.body, {**last, **_last(phase.threads)})
    return list(dict.fromkeys(found))


def _last(loops: Sequence[ir.MetaFor]) -> dict[str, ir.Expr]:
    """Return the values of loops' variables in their last iterations."""
    return {loop.var: ir.binary("-", loop.extent, ir.IntConst(1)) for loop in loops}


def _in_range(program: ir.Program, body: Sequence[ir.Stmt], values: dict[str, ir.Expr]) -> list[str]:
    """Return that scalars which code declares keep within their types in the last iterations.

    ``values`` are what variables are there, and grow; what depends on others, or is changed later, is left out.
    """
    found: list[str] = []
    known = {
        *(p.name for p in program.parameters),
        *(d.name for d in program.derived),
        *(v.name for v in program.values),
    }
    changing = assigned_variables(program.body)
    for stmt in body:
        if not isinstance(stmt, ir.Declare) or stmt.value is None or not stmt.type.signed or stmt.name in changing:
            continue
        value = substitute(stmt.value, values)
        if _is_sum(stmt.value) and variables(value) <= known and not variables(stmt.value).isdisjoint(values):
            found += [*_defined(value), _fits(value, stmt.type)]
            values[stmt.name] = value
    return found


def _is_sum(expr: ir.Expr) -> bool:
    """Say whether an expression is made of sums and products of integer scalars."""
    return all(
        isinstance(part, ir.Var | ir.IntConst)
        or (isinstance(part, ir.Binary) and part.op in ("+", "-", "*"))
        or (isinstance(part, ir.Unary) and part.op == "-")
        or (isinstance(part, ir.Cast) and part.type.integer)
        for part in ir.walk_expression(expr)
    )


def _defined(expr: ir.Expr) -> list[str]:
    """Return that a value is that of its expression in integers without limits: no type wraps, no divisor is 0."""
    found: list[str] = []
    for part in reversed(tuple(ir.walk_expression(expr))):  # operands first
        if not variables(part):
            continue
        match part:
            case ir.Binary(op="/" | "%", right=right):
                found.append(f"{_wide(right)} > 0")
            case ir.Binary(op="+" | "-" | "*") | ir.Unary(op="-") | ir.Cast():
                found.append(_fits(part, part.type))
            case _:
                pass
    return found


def _fits(value: ir.Expr, type_: ScalarType) -> str:
    least = "0" if not type_.signed else f"-{_greatest(type_)} - 1"
    return f"{_wide(value)} >= {least} && {_wide(value)} <= {_greatest(type_)}"


def _greatest(type_: ScalarType) -> str:
    return f"{type_.greatest}{'L' if type_.signed else 'UL'}"


def _wide(expr: ir.Expr) -> str:
    """Return an expression in parentheses, evaluated with 128 bits."""
    return f"({expression(_widened(expr))})"


def _widened(expr: ir.Expr) -> ir.Expr:
    def wider(part: ir.Expr) -> ir.Expr | None:
        match part:
            case ir.Var(name=name):
                return replace(part, name=f"(__int128){name}")
            case ir.Cast(operand=operand, type=type_) if type_.integer:
                return _widened(operand)
            case _:
                return None

    return map_expression(expr, wider)


def _counted(extents: Sequence[ir.Expr], most: int) -> list[str]:
    """Return conditions under which a nest has iterations, and not too many; none of them overflows by itself."""
    texts = [f"({expression(extent)})" for extent in extents]
    found = [f"{text} > 0" for text in texts]
    limit = str(most)
    for text in texts:
        found.append(f"{text} <= {limit}")
        limit = f"{limit} / {text}"
    return found


def _size(array: ir.Array) -> str:
    (length,) = array.extents
    return f"(__SIZE_TYPE__)({expression(length)}) * sizeof({array.element.spelling})"
