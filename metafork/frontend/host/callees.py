"""Functions that host code calls and whose effects are known: those of the file by their bodies, some of C by name.

A *drop-in* is a function with schedules: it announces itself what its host code touches.  Any other function with a
body is a ``Callee``: what it touches is told in the caller's names, as if its body stood there.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from msgspec import Struct, field

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.linear_indices import Linear
from metafork.frontend.host.variables import Variable
from metafork.frontend.text import syntax
from metafork.frontend.text.vocabulary import scalar_type
from metafork.ir.arithmetic.types import ScalarType


class Callee(Struct, frozen=True):
    """A function of the file without schedules: its parameters in order, and its body, all of which is known."""

    name: str
    parameters: tuple[Variable, ...]
    host: HostFunction


class Callees(Struct, frozen=True):
    """``drop_ins`` are names; ``find`` returns what is known of another function, ``None`` where that is nothing."""

    drop_ins: Set[str] = frozenset()
    find: Callable[[str], Callee | None] = field(default=lambda _: None)


class Place(Struct, frozen=True):
    """Where an address of the caller's leads: to ``variable[prefix...]``, and ``offset`` elements on."""

    variable: Variable
    prefix: tuple[Linear, ...]
    offset: Linear | None


class Range(Struct, frozen=True):
    """A range of bytes that a function of C takes: by the numbers of arguments, where it begins and how long it is.

    The length is the product of the arguments ``length``.
    """

    start: int
    length: tuple[int, ...]
    reads: bool
    writes: bool


RANGES = {
    "memset": (Range(0, (2,), reads=False, writes=True),),
    "memcpy": (Range(1, (2,), reads=True, writes=False), Range(0, (2,), reads=False, writes=True)),
    "memmove": (Range(1, (2,), reads=True, writes=False), Range(0, (2,), reads=False, writes=True)),
    "fwrite": (Range(0, (1, 2), reads=True, writes=False),),
    "fread": (Range(0, (1, 2), reads=True, writes=True),),
}
"""Functions of C that touch nothing but these ranges, and keep no address."""


def element_type(variable: Variable) -> ScalarType | None:
    """Return the type of the elements of an array, or of what a pointer leads to."""
    if variable.structure is not None:
        return None
    return variable.element if variable.element is not None else variable.pointed


def elements_of(
    factors: tuple[syntax.Expression, ...],
    size: ScalarType,
    typed: Callable[[syntax.Expression], ScalarType | None],
    typedefs: dict[str, ScalarType],
) -> tuple[syntax.Expression, ...] | None:
    """Return the factors of a length in bytes without its one ``sizeof`` of an element, ``None`` where there is none.

    ``typed`` returns the type of an element that is written out.  Elements of one byte need none.
    """
    found: list[syntax.Expression] = []
    pending = list(factors)
    sizes: list[int | None] = []
    while pending:
        match pending.pop():
            case syntax.Infix(op="*", left=left, right=right):
                pending += [right, left]
            case syntax.SizeOfType(type=type_) if not (type_.pointers or type_.extents or type_.function):
                found_type = scalar_type(type_.words, typedefs)
                sizes.append(None if found_type is None else found_type.size)
            case syntax.Prefix(op="sizeof", operand=operand):
                found_type = typed(operand)
                sizes.append(None if found_type is None else found_type.size)
            case other:
                found.append(other)
    return tuple(found) if sizes == [size.size] or (size.size == 1 and not sizes) else None


def called_drop_ins(piece: syntax.Statement | syntax.Expression, callees: Callees) -> bool:
    """Return whether the name of a drop-in is called in a piece of code."""
    parts = (
        [part for one in syntax.walk_statements(piece) for part in syntax.direct_expressions(one)]
        if isinstance(piece, syntax.Statement)
        else [piece]
    )
    return any(
        isinstance(node, syntax.Invocation)
        and isinstance(node.callee, syntax.Name)
        and node.callee.name in callees.drop_ins
        for part in parts
        for node in syntax.walk(part)
    )


def lone_call(statement: syntax.Statement) -> syntax.Invocation | None:
    """Return the call that a statement makes last, and after which it touches no array."""
    expression: syntax.Expression | None = None
    match statement:
        case syntax.ExpressionStatement(expression=syntax.Assignment(op="=", target=syntax.Name(), value=value)):
            expression = value
        case syntax.ExpressionStatement(expression=value):
            expression = value
        case syntax.Declaration(declarators=(syntax.Declarator(value=value),)):
            expression = value
        case syntax.Jump(word="return", value=value):
            expression = value
        case _:
            return None
    while isinstance(expression, syntax.Conversion):
        expression = expression.operand
    return expression if isinstance(expression, syntax.Invocation) else None
