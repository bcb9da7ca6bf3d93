"""The syntax tree: C as it was written, before names and types are looked at.

Every node has the exact span of its text.  What the accepted language has no use for is ``Unsupported`` (an
expression), or ``Opaque`` (a statement of the host, carried over verbatim, of which only the names are known).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from metafork.frontend.text.tokens import Token
from metafork.ir.messages.source import Span


class Name(Struct, frozen=True):
    """An identifier; ``uncertain`` where a macro of that name may be defined that is not known."""

    name: str
    span: Span
    uncertain: bool = False


class Constant(Struct, frozen=True):
    """A number or a character constant, as spelled."""

    text: str
    span: Span


class String(Struct, frozen=True):
    """A string literal."""

    span: Span


class Prefix(Struct, frozen=True):
    """``op operand``; ``op`` is one of ``+ - ! ~ & * ++ -- sizeof``."""

    op: str
    operand: Expression
    span: Span


class Postfix(Struct, frozen=True):
    """``operand++`` or ``operand--``."""

    op: str
    operand: Expression
    span: Span


class Infix(Struct, frozen=True):
    """``left op right``, without assignments and commas."""

    op: str
    left: Expression
    right: Expression
    span: Span


class Ternary(Struct, frozen=True):
    """``condition ? then : otherwise``."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span


class Assignment(Struct, frozen=True):
    """``target op value`` with ``op`` among ``= += -=`` and so on."""

    op: str
    target: Expression
    value: Expression
    span: Span


class Comma(Struct, frozen=True):
    """``a, b, c``."""

    items: tuple[Expression, ...]
    span: Span


class Invocation(Struct, frozen=True):
    """``callee(arguments)``."""

    callee: Expression
    arguments: tuple[Expression, ...]
    span: Span


class Subscript(Struct, frozen=True):
    """``base[index]``."""

    base: Expression
    index: Expression
    span: Span


class Member(Struct, frozen=True):
    """``base.field`` or ``base->field``."""

    base: Expression
    field: str
    arrow: bool
    span: Span


class Conversion(Struct, frozen=True):
    """``(type) operand``."""

    type: TypeName
    operand: Expression
    span: Span


class SizeOfType(Struct, frozen=True):
    """``sizeof(type)``."""

    type: TypeName
    span: Span


class Literal(Struct, frozen=True):
    """``(type){items}``."""

    type: TypeName
    braces: Braces
    span: Span


COMPOUND_LITERAL = "a compound literal"
"""What ``Literal`` is called, and ``Unsupported`` that is one."""


class Unsupported(Struct, frozen=True):
    """An expression of a form that has no meaning here; ``what`` names it, ``written`` are names it may write."""

    what: str
    span: Span
    written: frozenset[str]
    tokens: tuple[Token, ...] = ()


Expression = (
    Name
    | Constant
    | String
    | Prefix
    | Postfix
    | Infix
    | Ternary
    | Assignment
    | Comma
    | Invocation
    | Subscript
    | Member
    | Conversion
    | SizeOfType
    | Literal
    | Unsupported
)


class MemberName(Struct, frozen=True):
    """A member of a structure: its name and specifiers, and ``what`` it is where no schedule has such a thing.

    ``extents`` are those of an array, ``structure`` is the structure that it is.  Where it is a pointer to a scalar,
    ``pointed`` is the type of the member.
    """

    name: str
    words: tuple[str, ...]
    what: str = ""
    extents: tuple[Expression | None, ...] = ()
    structure: StructureName | None = None
    pointed: TypeName | None = None


class StructureName(Struct, frozen=True):
    """``struct tag``, or ``union tag``, with its members where it is defined."""

    tag: str
    members: tuple[MemberName, ...] | None = None
    union: bool = False


class TypeName(Struct, frozen=True):
    """Specifiers and declarator of a type, the name left out.

    ``words`` are the type specifiers in order (``unsigned``, ``long``, or a typedef name; ``struct`` stands for any
    structure, union or enumeration, ``structure`` for one that is no enumeration).  ``extents`` are those of an array,
    outermost first, ``None`` for an empty pair of brackets.  ``pointers`` counts the stars (of the element, for an
    array), and extents behind one, which are the ``rows`` of ``(*a)[m]``; ``function`` marks a function type.
    """

    words: tuple[str, ...]
    qualifiers: frozenset[str]
    storage: frozenset[str]
    extents: tuple[Expression | None, ...]
    pointers: int
    function: bool
    span: Span
    structure: StructureName | None = None
    rows: tuple[Expression, ...] = ()


class MemberDesignator(Struct, frozen=True):
    """``.name`` in a braced initialiser."""

    name: str
    span: Span


class Designated(Struct, frozen=True):
    """``[i][j] = item`` or ``.v[j] = item`` in a braced initialiser."""

    indices: tuple[Expression | MemberDesignator, ...]
    item: Expression | Braces
    span: Span


class Braces(Struct, frozen=True):
    """A braced initialiser; its items are expressions and, for rows, braces again, with designators or without."""

    items: tuple[Expression | Braces | Designated, ...]
    span: Span


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


def operands(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct operands of an expression, left to right."""
    match expression:
        case Name() | Constant() | String() | SizeOfType() | Unsupported():
            return ()
        case Prefix(operand=operand) | Postfix(operand=operand) | Conversion(operand=operand):
            return (operand,)
        case Infix(left=left, right=right):
            return (left, right)
        case Ternary(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Assignment(target=target, value=value):
            return (target, value)
        case Comma(items=items):
            return items
        case Invocation(callee=callee, arguments=arguments):
            return (callee, *arguments)
        case Subscript(base=base, index=index):
            return (base, index)
        case Member(base=base):
            return (base,)
        case Literal(braces=braces):
            return tuple(items_of(braces))


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and everything below it, parents first, left to right; without recursion."""
    pending: list[Expression] = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(operands(node)))


def names_in(expression: Expression) -> set[str]:
    """Return the names in an expression."""
    return {one.name for one in walk(expression) if isinstance(one, Name)}


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the conditions that all hold where one does."""
    if isinstance(condition, Infix) and condition.op == "&&":
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    else:
        yield condition


def items_of(braces: Braces) -> Iterator[Expression]:
    """Yield the expressions of a braced initialiser, in textual order."""
    for item in braces.items:
        if isinstance(item, Designated):
            yield from (index for index in item.indices if not isinstance(index, MemberDesignator))
            item = item.item
        if isinstance(item, Braces):
            yield from items_of(item)
        else:
            yield item


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
