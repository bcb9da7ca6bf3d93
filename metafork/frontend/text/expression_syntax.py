"""Expressions of the syntax tree (``metafork.frontend.text.syntax``), and the types and braces that stand in them."""

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
