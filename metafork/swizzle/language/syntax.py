"""The syntax of sketches: what ``parser`` makes of a ``*.swz`` text, each node with its span.

sketch     := { 'name' NAME | 'let' NAME '=' value | 'warp' value | statement | definition | goal }
statement  := NAME ':' shape '=' expression
definition := 'define' NAME '(' NAME ':' shape ')' '->' shape '=' function { '|' function }
goal       := 'goal' NAME '=' ( function | array | 'spec' block ) [ '->' place ]
place      := [ '\\' NAME { ',' NAME } '.' ] 'out' '[' value ']'
expression := primary { OPERATOR primary }        (C's precedence of + - * ^ & |, and - before a primary)
primary    := 'input' options | 'range' '(' value ',' value ')' | array | function | NUMBER | '(' expression ')'
            | 'fold' '(' OP ')' options '(' expression ')' | ('max' | 'min') '(' expression ',' expression ')'
            | ['?'] NAME options '(' expression { ',' expression } ')' | NAME
options    := [ '{' NAME [ '=' value ] { ',' NAME [ '=' value ] } '}' ]
function   := '\\' NAME { ',' NAME } '.' value
value      := C-like integers, with NAME '[' value, … ']' for elements, max(value, value), min(value, value), and
              reductions: (sum | product | xor | and | or | max | min) '(' NAME '<' value [, value] ')' value
block      := '{' { 'for' NAME '<' value block | 'if' '(' value ')' block
                  | NAME '[' value, … ']' ( '=' | '+=' | '-=' | '*=' | '^=' | '&=' | '|=' ) value ';' } '}'
"""

from __future__ import annotations

from msgspec import Struct

from metafork.ir.messages.source import Span


class Integer(Struct, frozen=True):
    """A number."""

    value: int
    span: Span


class Variable(Struct, frozen=True):
    """An index, or a constant of ``let``."""

    name: str
    span: Span


class Operation(Struct, frozen=True):
    """A binary operation, in the spelling of C, or ``max`` or ``min``."""

    op: str
    left: Value
    right: Value
    span: Span


class Conditional(Struct, frozen=True):
    """``condition ? yes : no``."""

    condition: Value
    yes: Value
    no: Value
    span: Span


class Element(Struct, frozen=True):
    """``array[index, …]``."""

    array: str
    indices: tuple[Value, ...]
    span: Span


class Sum(Struct, frozen=True):
    """``sum(i < bound, condition) body``: a reduction by ``+`` (``xor`` by ``^``, and so on)."""

    op: str
    variable: str
    bound: Value
    condition: Value | None
    body: Value
    span: Span


class ListValue(Struct, frozen=True):
    """``[value, …]``, nested for arrays."""

    items: tuple[Value, ...]
    span: Span


Value = Integer | Variable | Operation | Conditional | Element | Sum | ListValue


class Function(Struct, frozen=True):
    """``\\i, j. value``."""

    parameters: tuple[str, ...]
    body: Value
    span: Span


class Option(Struct, frozen=True):
    """``name`` or ``name=value`` between braces."""

    name: str
    value: Value | None
    span: Span


class InputArray(Struct, frozen=True):
    """Fresh symbols."""

    options: tuple[Option, ...]
    span: Span


class Call(Struct, frozen=True):
    """A gather, or a hole where ``hole`` is set, applied to arrays."""

    name: str
    hole: bool
    options: tuple[Option, ...]
    arguments: tuple[Expression, ...]
    span: Span


class FoldCall(Struct, frozen=True):
    """``fold(op){axes=n}(argument)``."""

    op: str
    options: tuple[Option, ...]
    argument: Expression
    span: Span


class Elementwise(Struct, frozen=True):
    """``left op right``, element by element; ``op`` as in ``Operation``, without comparisons."""

    op: str
    left: Expression
    right: Expression
    span: Span


class Reference(Struct, frozen=True):
    """An array defined before."""

    name: str
    span: Span


Expression = InputArray | Call | FoldCall | Elementwise | Integer | Reference | ListValue | Function


class StatementLine(Struct, frozen=True):
    """``name: [shape] = expression``."""

    name: str
    shape: tuple[Value, ...]
    expression: Expression
    span: Span
    shape_span: Span


class Definition(Struct, frozen=True):
    """A named gather, or a set of gathers for holes."""

    name: str
    parameter: str
    source: tuple[Value, ...]
    shape: tuple[Value, ...]
    alternatives: tuple[Function, ...]
    span: Span


class Let(Struct, frozen=True):
    """``let name = value``."""

    name: str
    value: Value
    span: Span


class For(Struct, frozen=True):
    """A loop of a sequential specification, from 0."""

    variable: str
    bound: Value
    body: tuple[Step, ...]
    span: Span


class If(Struct, frozen=True):
    """A condition of a sequential specification."""

    condition: Value
    body: tuple[Step, ...]
    span: Span


class Assign(Struct, frozen=True):
    """``array[index, …] op value;`` with ``op`` one of ``= += -= *= ^= &= |=``."""

    target: Element
    op: str
    value: Value
    span: Span


Step = For | If | Assign


class Goal(Struct, frozen=True):
    """What an array must hold: a function of its indices, an array, or the result of a sequential program.

    ``place`` says where in the output a cell goes.
    """

    name: str
    wanted: Function | ListValue | tuple[Step, ...]
    span: Span
    place: Function | None = None


class SketchText(Struct, frozen=True):
    """A parsed sketch."""

    name: str
    warp: Value | None
    lines: tuple[Let | StatementLine | Definition | Goal, ...]


def chain_of(expression: Expression, op: str) -> list[tuple[int, Expression]]:
    """Return the operands of a chain of one operator, with -1 for those that are subtracted."""
    if not isinstance(expression, Elementwise) or expression.op not in {op, "-" if op == "+" else op}:
        return [(1, expression)]
    left, right = chain_of(expression.left, op), chain_of(expression.right, op)
    sign = -1 if expression.op == "-" else 1
    return [*left, *((sign * one, operand) for one, operand in right)]
