"""The syntax tree: C as it was written, before names and types are looked at.

Every node has the exact span of its text.  What the accepted language has no use for is ``Unsupported`` (an
expression), or ``Opaque`` (a statement of the host, carried over verbatim, of which only the names are known).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from metafork.frontend.text.expression_syntax import (
    COMPOUND_LITERAL as COMPOUND_LITERAL,
)
from metafork.frontend.text.expression_syntax import (
    Assignment as Assignment,
)
from metafork.frontend.text.expression_syntax import (
    Braces as Braces,
)
from metafork.frontend.text.expression_syntax import (
    Comma as Comma,
)
from metafork.frontend.text.expression_syntax import (
    Constant as Constant,
)
from metafork.frontend.text.expression_syntax import (
    Conversion as Conversion,
)
from metafork.frontend.text.expression_syntax import (
    Designated as Designated,
)
from metafork.frontend.text.expression_syntax import (
    Expression as Expression,
)
from metafork.frontend.text.expression_syntax import (
    Infix as Infix,
)
from metafork.frontend.text.expression_syntax import (
    Invocation as Invocation,
)
from metafork.frontend.text.expression_syntax import (
    Literal as Literal,
)
from metafork.frontend.text.expression_syntax import (
    Member as Member,
)
from metafork.frontend.text.expression_syntax import (
    MemberDesignator as MemberDesignator,
)
from metafork.frontend.text.expression_syntax import (
    MemberName as MemberName,
)
from metafork.frontend.text.expression_syntax import (
    Name as Name,
)
from metafork.frontend.text.expression_syntax import (
    Postfix as Postfix,
)
from metafork.frontend.text.expression_syntax import (
    Prefix as Prefix,
)
from metafork.frontend.text.expression_syntax import (
    SizeOfType as SizeOfType,
)
from metafork.frontend.text.expression_syntax import (
    String as String,
)
from metafork.frontend.text.expression_syntax import (
    StructureName as StructureName,
)
from metafork.frontend.text.expression_syntax import (
    Subscript as Subscript,
)
from metafork.frontend.text.expression_syntax import (
    Ternary as Ternary,
)
from metafork.frontend.text.expression_syntax import (
    TypeName as TypeName,
)
from metafork.frontend.text.expression_syntax import (
    Unsupported as Unsupported,
)
from metafork.frontend.text.expression_syntax import (
    conjuncts as conjuncts,
)
from metafork.frontend.text.expression_syntax import (
    items_of as items_of,
)
from metafork.frontend.text.expression_syntax import (
    names_in as names_in,
)
from metafork.frontend.text.expression_syntax import (
    operands as operands,
)
from metafork.frontend.text.expression_syntax import (
    walk as walk,
)
from metafork.frontend.text.tokens import Token
from metafork.ir.messages.source import Span


class Declarator(Struct, frozen=True):
    """One declared name.  ``span`` runs over the declarator with its initialiser, ``name_span`` over the name.

    Of a braced initialiser, ``value`` is ``Unsupported`` and ``braces`` are its items where it names no members.
    """

    name: str
    type: TypeName
    value: Expression | None
    name_span: Span
    span: Span
    braces: Braces | None = None


class Declaration(Struct, frozen=True):
    """``type a = 1, b;``; without declarators where only a type is declared, ``structure`` where that is one."""

    declarators: tuple[Declarator, ...]
    span: Span
    structure: TypeName | None = None


class ExpressionStatement(Struct, frozen=True):
    """``expression;``, with ``meta_atomic`` in front where it is ``atomic``."""

    expression: Expression
    span: Span
    atomic: bool = False


class Block(Struct, frozen=True):
    """``{ ... }``; of a whole function with its ``pragmas`` that are ``_Pragma("...")``, and what these say."""

    items: tuple[Statement, ...]
    span: Span
    pragmas: tuple[tuple[Span, str], ...] = ()


class IfStatement(Struct, frozen=True):
    """``if (condition) then else otherwise``."""

    condition: Expression
    then: Statement
    otherwise: Statement | None
    span: Span


class Reduction(Struct, frozen=True):
    """``op: name`` of a ``meta_reduction``; ``span`` is that of the whole clause."""

    op: str
    name: Name
    span: Span


class ForStatement(Struct, frozen=True):
    """``for`` or ``meta_for``; ``head`` is the span from the keyword to the closing parenthesis.

    Of a loop that is not ``separate`` a macro gives a part together with what stands before or behind the loop.
    """

    meta: bool
    init: Declaration | Expression | None
    condition: Expression | None
    step: Expression | None
    body: Statement
    head: Span
    span: Span
    separate: bool = True
    reductions: tuple[Reduction, ...] = ()


class WhileStatement(Struct, frozen=True):
    """``while (condition) body``, or ``do body while (condition);``; ``separate`` as for a ``for``."""

    condition: Expression
    body: Statement
    is_do: bool
    span: Span
    separate: bool = True


class SwitchStatement(Struct, frozen=True):
    """``switch (value) body``."""

    value: Expression
    body: Statement
    span: Span


class LabelledStatement(Struct, frozen=True):
    """``label: body``, ``case 1: body`` or ``default: body``; ``value`` is that of a ``case``, where it is known."""

    label: str
    body: Statement
    span: Span
    value: Expression | None = None


class Jump(Struct, frozen=True):
    """``break``, ``continue``, ``goto`` or ``return``."""

    word: str
    value: Expression | None
    span: Span


class Empty(Struct, frozen=True):
    """A lone semicolon, or a statement with a fault that was reported."""

    span: Span


class Opaque(Struct, frozen=True):
    """Host code of which only the tokens are known; ``mistake`` is why it is no C of the usual kind, and where."""

    tokens: tuple[Token, ...]
    span: Span
    mistake: tuple[str, Span] | None = None


class GridClause(Struct, frozen=True):
    """``meta_grid(loops)``: how many of the nested ``meta_for``s are the grid's."""

    loops: int
    span: Span


class BlockClause(Struct, frozen=True):
    """``meta_block(extents)``: the shape of the blocks into which the innermost ``meta_for``s are cut."""

    shape: tuple[Expression, ...]
    span: Span


class MinBlocksClause(Struct, frozen=True):
    """``meta_min_blocks(number)``: how many blocks a multiprocessor shall have registers for at once."""

    number: Expression
    span: Span


class StaticClause(Struct, frozen=True):
    """``name: values`` of a ``meta_static`` in front of a schedule."""

    name: Name
    values: tuple[Expression, ...]


class ScheduleStatement(Struct, frozen=True):
    """``meta_schedule`` with clauses, each at most once, and a body; ``keyword`` is its first word.

    ``static`` is what ``meta_static`` says in front of it, at ``static_words``; ``span`` begins behind that.
    """

    cache: tuple[Name, ...] | None
    grid: GridClause | None
    body: Statement
    keyword: Span
    span: Span
    static: tuple[StaticClause, ...] = ()
    static_words: Span | None = None
    block: BlockClause | None = None
    min_blocks: MinBlocksClause | None = None


Statement = (
    Declaration
    | ExpressionStatement
    | Block
    | IfStatement
    | ForStatement
    | WhileStatement
    | SwitchStatement
    | LabelledStatement
    | Jump
    | Empty
    | Opaque
    | ScheduleStatement
)


def direct_expressions(statement: Statement) -> tuple[Expression, ...]:
    """Return the expressions that a statement itself holds: initialisers and extents too, statements below it not."""
    match statement:
        case Declaration(declarators=declarators):
            found: list[Expression] = []
            for declarator in declarators:
                found.extend(extent for extent in declarator.type.extents if extent is not None)
                if declarator.value is not None:
                    found.append(declarator.value)
                if declarator.braces is not None:
                    found.extend(items_of(declarator.braces))
            return tuple(found)
        case ExpressionStatement(expression=expression):
            return (expression,)
        case IfStatement(condition=condition) | WhileStatement(condition=condition):
            return (condition,)
        case ForStatement(init=init, condition=condition, step=step):
            first: tuple[Expression, ...]
            if init is None:
                first = ()
            elif isinstance(init, Declaration):
                first = direct_expressions(init)
            else:
                first = (init,)
            return first + tuple(part for part in (condition, step) if part is not None)
        case SwitchStatement(value=value):
            return (value,)
        case Jump(value=value):
            return () if value is None else (value,)
        case Block() | LabelledStatement() | Empty() | Opaque() | ScheduleStatement():
            return ()


def expressions_in(statement: Statement) -> Iterator[Expression]:
    """Yield the expressions of a statement and of all below it, each with everything below that."""
    for one in walk_statements(statement):
        for expression in direct_expressions(one):
            yield from walk(expression)


def declarators_in(statement: Statement) -> Iterator[Declarator]:
    """Yield what is declared in a statement, in heads of loops too."""
    for one in walk_statements(statement):
        declaration = one.init if isinstance(one, ForStatement) else one
        if isinstance(declaration, Declaration):
            yield from declaration.declarators


def results_of(schedule: ScheduleStatement) -> Iterator[Name]:
    """Yield the names that the reductions of a schedule name as their results."""
    for statement in walk_statements(schedule):
        if isinstance(statement, ForStatement):
            yield from (clause.name for clause in statement.reductions)


def direct_statements(statement: Statement) -> tuple[Statement, ...]:
    """Return the statements directly below a statement (a declaration in the head of a ``for`` is not one)."""
    match statement:
        case Block(items=items):
            return items
        case IfStatement(then=then, otherwise=otherwise):
            return (then,) if otherwise is None else (then, otherwise)
        case (
            ForStatement(body=body)
            | WhileStatement(body=body)
            | SwitchStatement(body=body)
            | LabelledStatement(body=body)
            | ScheduleStatement(body=body)
        ):
            return (body,)
        case Declaration() | ExpressionStatement() | Jump() | Empty() | Opaque():
            return ()


def walk_statements(statement: Statement) -> Iterator[Statement]:
    """Yield a statement and everything below it, parents first, in textual order; without recursion."""
    pending: list[Statement] = [statement]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(direct_statements(node)))
