"""C text of expressions and statements, shared by every printer.

The text has the fewest parentheses that keep C's meaning (no operand is regrouped, so floating-point results stay)
and that compilers do not advise to add: ``a & (b == c)``, ``(a && b) || c``, ``a << (b + c)``.  What is printed is
plain C unless a ``Spelling`` says otherwise; ``metafork.printing.cuda`` prints C++ with renamed identifiers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec import Struct, field

from metafork.ir import program as ir
from metafork.ir.arithmetic.math_functions import SIGNATURES
from metafork.ir.arithmetic.types import ScalarType, common_type, promoted

_PRIMARY, _UNARY, _CONDITIONAL = 16, 14, 3
_PRECEDENCE = {
    **dict.fromkeys(("*", "/", "%"), 13),
    **dict.fromkeys(("+", "-"), 12),
    **dict.fromkeys(("<<", ">>"), 11),
    **dict.fromkeys(("<", ">", "<=", ">="), 10),
    **dict.fromkeys(("==", "!="), 9),
    "&": 8,
    "^": 7,
    "|": 6,
    "&&": 5,
    "||": 4,
}
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
_BITWISE = frozenset({"<<", ">>", "&", "^", "|"})
_SUFFIX = {
    ScalarType.UNSIGNED_INT: "U",
    ScalarType.LONG: "L",
    ScalarType.UNSIGNED_LONG: "UL",
    ScalarType.LONG_LONG: "LL",
    ScalarType.UNSIGNED_LONG_LONG: "ULL",
}

_ATOMIC_FUNCTIONS = {
    "+": "metafork_atomic_add",
    "-": "metafork_atomic_sub",
    "*": "metafork_atomic_mul",
    "&": "metafork_atomic_and",
    "|": "metafork_atomic_or",
    "^": "metafork_atomic_xor",
    "min": "metafork_atomic_min",
    "max": "metafork_atomic_max",
}
"""The functions of ``metafork/device.h``."""


class Spelling(Struct, frozen=True):
    """How a language spells what the IR says.

    ``names`` renames identifiers.  ``cplusplus`` selects C++: ``bool``, exact argument types where C++ would choose an
    overload, and explicit forms of the conversions that C makes silently and C++ compilers warn of.  ``unread`` are the
    ``id``s of declarations whose variable is never read.  ``barrier`` is where the threads of a block meet.
    ``members`` are those of arrays of structures, for people: they are rows in all that is computed.  ``line`` is the
    schedule's in the input, where statements shall say from which line they come (``metafork.printing.input_lines``).
    ``steps`` are comments, by the ``id`` of the statement in front of which they stand.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    cplusplus: bool = False
    unread: frozenset[int] = frozenset()
    barrier: str = "__syncthreads()"
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    line: int | None = None
    steps: Mapping[int, str] = field(default_factory=dict)

    def name(self, name: str) -> str:
        """Return the identifier as this language may spell it."""
        return self.names.get(name, name)

    def type(self, type_: ScalarType) -> str:
        """Return the name of a scalar type."""
        return "bool" if self.cplusplus and type_ is ScalarType.BOOL else type_.spelling

    def atomic(self, stmt: ir.Assign) -> str | None:
        """Return an atomic update as a call, in a language that has functions for it."""
        if not self.cplusplus:
            return None
        element = self.type(stmt.target.type)
        value = f"({element})({expression(stmt.value, self)})"
        return f"{_ATOMIC_FUNCTIONS[stmt.op]}<{element}>(&{expression(stmt.target, self)}, {value})"


PLAIN_C = Spelling()


def representable(value: int, type_: ScalarType) -> bool:
    """Say whether an integer type can hold the value."""
    if type_ is ScalarType.BOOL:
        return value in (0, 1)
    bits = 8 * type_.size
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1) if type_.signed else 0 <= value < 1 << bits


def integer_constant(value: int, type_: ScalarType) -> str:
    """Return a constant of that type (narrow types as ``int``), parenthesised where it is more than one token.

    Raises ``ValueError`` where a signed type cannot hold the value; unsigned types wrap, as in C.
    """
    type_ = promoted(type_)
    if not type_.signed:
        value %= 1 << (8 * type_.size)
    if not representable(value, type_):
        raise ValueError(f"{value} is no {type_.spelling}")
    suffix = _SUFFIX.get(type_, "")
    if value == -(1 << (8 * type_.size - 1)) and type_.signed:
        # The magnitude alone would have a wider type.
        return f"({value + 1}{suffix} - 1{suffix})"
    return f"{value}{suffix}"


def expression(expr: ir.Expr, spelling: Spelling = PLAIN_C) -> str:
    """Return the C text of an expression."""
    return _text(expr, spelling)[0]


def as_written(program: ir.Program) -> Spelling:
    """Return how people write a program's expressions: ``p[k].x`` for an element of an array of structures."""
    names = {array.name: array.whole for array in program.arrays if array.whole}
    return Spelling(names, members={array.name: array.members for array in program.arrays if array.members})


def table_rows(values: Sequence[ir.Expr], columns: int, spelling: Spelling = PLAIN_C) -> str:
    """Return the values of a table as an initialiser, in a pair of braces for each row of so many columns."""
    texts = [expression(value, spelling) for value in values]
    rows = [", ".join(texts[first : first + columns]) for first in range(0, len(texts), columns)]
    return f"{{{rows[0]}}}" if len(rows) == 1 else f"{{{', '.join(f'{{{row}}}' for row in rows)}}}"


def converted(expr: ir.Expr, type_: ScalarType, spelling: Spelling = PLAIN_C) -> str:
    """Return the text of an expression that is about to be converted to ``type_`` by C itself.

    In C++ a constant that the type cannot hold is cast, for C++ compilers warn where C converts silently.
    """
    return _converted(expr, type_, spelling, 0)


def _converted(expr: ir.Expr, type_: ScalarType, spelling: Spelling, least: int) -> str:
    if spelling.cplusplus and isinstance(expr, ir.IntConst | ir.Unary) and type_.integer:
        value = _constant_value(expr)
        held_by = promoted(type_) if type_ is ScalarType.BOOL else type_
        if value is not None and not representable(value, held_by):
            expr = ir.Cast(type_, expr)
    return _operand(expr, spelling, least)


def _constant_value(expr: ir.Expr) -> int | None:
    match expr:
        case ir.IntConst(value=value):
            return value
        case ir.Unary(op="-", operand=ir.IntConst(value=value, type=type_)) if promoted(type_).signed:
            return -value
        case _:
            return None


def _at_least(text: str, precedence: int, least: int) -> str:
    return text if precedence >= least else f"({text})"


def _operand(expr: ir.Expr, spelling: Spelling, least: int) -> str:
    if isinstance(expr, ir.Var):  # every other operand is one
        return spelling.name(expr.name)
    text, precedence = _text(expr, spelling)
    return text if precedence >= least else f"({text})"


def truth(expr: ir.Expr, spelling: Spelling = PLAIN_C, least: int = 0) -> str:
    """Return the text of an expression that C compares with zero (a condition, an operand of ``&&``).

    C++ compilers suspect a slip where a product, a shift or a choice of numbers stands for a truth value; there the
    comparison is written out.
    """
    suspicious = isinstance(expr, ir.Conditional) or (isinstance(expr, ir.Binary) and expr.op in ("*", "<<"))
    if spelling.cplusplus and suspicious:
        return _at_least(f"{_operand(expr, spelling, _PRECEDENCE['!='] + 1)} != 0", _PRECEDENCE["!="], least)
    return _operand(expr, spelling, least)


def _text(expr: ir.Expr, spelling: Spelling) -> tuple[str, int]:
    """Return the text and the precedence of its outermost operator."""
    if isinstance(expr, ir.Binary):  # most of what is not a scalar
        return _binary_text(expr, spelling), _PRECEDENCE[expr.op]
    match expr:
        case ir.IntConst(value=value, type=type_):
            text = integer_constant(value, type_)
            return text, _UNARY if text.startswith("-") else _PRIMARY
        case ir.FloatConst(text=text):
            return text, _UNARY if text.startswith(("-", "+")) else _PRIMARY
        case ir.Var(name=name):
            return spelling.name(name), _PRIMARY
        case ir.Unary(op=op, operand=operand):
            return op + _unary_operand(op, operand, spelling), _UNARY
        case ir.Cast(type=type_, operand=operand):
            return f"({spelling.type(type_)}){_operand(operand, spelling, _UNARY)}", _UNARY
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            first = truth(condition, spelling, _CONDITIONAL + 1)
            second, third = _arms(then, otherwise, spelling)
            return f"{first} ? {second} : {third}", _CONDITIONAL
        case ir.Call(name=name, arguments=arguments):
            return f"{name}({', '.join(_arguments(name, arguments, spelling))})", _PRIMARY
        case ir.Element(array=array, indices=indices):
            member = ""
            match spelling.members.get(array, ()), indices:
                case [_, *_] as names, (*_, ir.IntConst(value=number)) if 0 <= number < len(names) and names[number]:
                    indices, member = indices[:-1], f".{names[number]}"
                case _:
                    pass
            place = "".join(f"[{expression(index, spelling)}]" for index in indices)
            return spelling.name(array) + place + member, _PRIMARY
        case _:
            assert_never(expr)


def _unary_operand(op: str, operand: ir.Expr, spelling: Spelling) -> str:
    if op == "!":
        return truth(operand, spelling, _UNARY)
    if op == "~" and spelling.cplusplus and _truth_value(operand):
        operand = ir.Cast(ScalarType.INT, operand)
    text = _operand(operand, spelling, _UNARY)
    # Two signs in a row would be read as an increment or a decrement.
    return f"({text})" if text[0] == op and op in "+-" else text


def _truth_value(expr: ir.Expr) -> bool:
    """Say whether C++ gives the expression type ``bool`` where C gives ``int``."""
    match expr:
        case ir.Binary(op=op):
            return op in ir.COMPARISONS or op in ir.LOGICAL
        case ir.Unary(op=op):
            return op == "!"
        case ir.Var(type=type_) | ir.Element(type=type_) | ir.Cast(type=type_):
            return type_ is ScalarType.BOOL
        case _:
            return False


def _binary_text(expr: ir.Binary, spelling: Spelling) -> str:
    op, left, right = expr.op, expr.left, expr.right
    least = _PRECEDENCE[op]
    if op in _ARITHMETIC:
        computed = common_type(left.type, right.type)
        first = _converted(left, computed, spelling, least)
        return f"{first} {op} {_converted(right, computed, spelling, least + 1)}"
    needs = _advised(op, left, least), _advised(op, right, least + 1)
    if op in ir.LOGICAL:
        return f"{truth(left, spelling, needs[0])} {op} {truth(right, spelling, needs[1])}"
    if op in ("<<", ">>"):
        return f"{_operand(left, spelling, needs[0])} {op} {_operand(right, spelling, needs[1])}"
    texts = []
    computed = common_type(left.type, right.type)
    for operand, need in zip((left, right), needs, strict=True):
        if spelling.cplusplus and op in ir.COMPARISONS and _changes_sign(operand, computed):
            operand = ir.Cast(computed, operand)
        texts.append(_converted(operand, computed, spelling, need))
    return f"{texts[0]} {op} {texts[1]}"


def _changes_sign(expr: ir.Expr, type_: ScalarType) -> bool:
    """Say whether C's own conversion makes a signed value unsigned (and the value is not plainly nonnegative)."""
    if isinstance(expr, ir.IntConst) and expr.value >= 0:
        return False
    return type_.integer and not type_.signed and expr.type.integer and promoted(expr.type).signed


def _advised(op: str, operand: ir.Expr, least: int) -> int:
    """Return the least precedence that an operand needs, raised where compilers advise parentheses."""
    match operand:
        case ir.Binary(op=inner):
            advised = (
                (op in _BITWISE and inner != op)
                or (op == "||" and inner == "&&")
                or (op in ir.COMPARISONS and inner in ir.COMPARISONS)
            )
            return _PRIMARY if advised else least
        case ir.Unary(op="!") if op in ir.COMPARISONS or op in _BITWISE:
            return _PRIMARY
        case _:
            return least


def _arms(then: ir.Expr, otherwise: ir.Expr, spelling: Spelling) -> tuple[str, str]:
    common = common_type(then.type, otherwise.type)
    texts = []
    for arm, least in ((then, 0), (otherwise, _CONDITIONAL)):
        if spelling.cplusplus and (_changes_sign(arm, common) or (common is not arm.type and _truth_value(arm))):
            arm = ir.Cast(common, arm)
        texts.append(_converted(arm, common, spelling, least))
    return texts[0], texts[1]


def _arguments(name: str, arguments: tuple[ir.Expr, ...], spelling: Spelling) -> list[str]:
    signature = SIGNATURES.get(name)
    if not spelling.cplusplus or signature is None:
        return [expression(argument, spelling) for argument in arguments]
    return [
        expression(argument if argument.type is type_ else ir.Cast(type_, argument), spelling)
        for argument, type_ in zip(arguments, signature.parameters, strict=True)
    ]
