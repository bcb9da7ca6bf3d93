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

from metafork.ir.messages.source import Span
from metafork.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Integer:
    """A number."""

    value: int
    span: Span


@dataclass(frozen=True, slots=True)
class Variable:
    """An index, or a constant of ``let``."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Operation:
    """A binary operation, in the spelling of C, or ``max`` or ``min``."""

    op: str
    left: Value
    right: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    """``condition ? yes : no``."""

    condition: Value
    yes: Value
    no: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Element:
    """``array[index, …]``."""

    array: str
    indices: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Sum:
    """``sum(i < bound, condition) body``: a reduction by ``+`` (``xor`` by ``^``, and so on)."""

    op: str
    variable: str
    bound: Value
    condition: Value | None
    body: Value
    span: Span


@dataclass(frozen=True, slots=True)
class ListValue:
    """``[value, …]``, nested for arrays."""

    items: tuple[Value, ...]
    span: Span


Value = Integer | Variable | Operation | Conditional | Element | Sum | ListValue


@dataclass(frozen=True, slots=True)
class Function:
    """``\\i, j. value``."""

    parameters: tuple[str, ...]
    body: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Option:
    """``name`` or ``name=value`` between braces."""

    name: str
    value: Value | None
    span: Span


@dataclass(frozen=True, slots=True)
class InputArray:
    """Fresh symbols."""

    options: tuple[Option, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A gather, or a hole where ``hole`` is set, applied to arrays."""

    name: str
    hole: bool
    options: tuple[Option, ...]
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FoldCall:
    """``fold(op){axes=n}(argument)``."""

    op: str
    options: tuple[Option, ...]
    argument: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Elementwise:
    """``left op right``, element by element; ``op`` as in ``Operation``, without comparisons."""

    op: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Reference:
    """An array defined before."""

    name: str
    span: Span


Expression = InputArray | Call | FoldCall | Elementwise | Integer | Reference | ListValue | Function


@dataclass(frozen=True, slots=True)
class StatementLine:
    """``name: [shape] = expression``."""

    name: str
    shape: tuple[Value, ...]
    expression: Expression
    span: Span
    shape_span: Span


@dataclass(frozen=True, slots=True)
class Definition:
    """A named gather, or a set of gathers for holes."""

    name: str
    parameter: str
    source: tuple[Value, ...]
    shape: tuple[Value, ...]
    alternatives: tuple[Function, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    """``let name = value``."""

    name: str
    value: Value
    span: Span


@dataclass(frozen=True, slots=True)
class For:
    """A loop of a sequential specification, from 0."""

    variable: str
    bound: Value
    body: tuple[Step, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    """A condition of a sequential specification."""

    condition: Value
    body: tuple[Step, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Assign:
    """``array[index, …] op value;`` with ``op`` one of ``= += -= *= ^= &= |=``."""

    target: Element
    op: str
    value: Value
    span: Span


Step = For | If | Assign


@dataclass(frozen=True, slots=True)
class Goal:
    """What an array must hold: a function of its indices, an array, or the result of a sequential program.

    ``place`` says where in the output a cell goes.
    """

    name: str
    wanted: Function | ListValue | tuple[Step, ...]
    span: Span
    place: Function | None = None


@dataclass(frozen=True, slots=True)
class SketchText:
    """A parsed sketch."""

    name: str
    warp: Value | None
    lines: tuple[Let | StatementLine | Definition | Goal, ...]
