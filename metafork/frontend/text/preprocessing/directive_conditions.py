"""The conditions of ``#if`` and its kin, as far as they can be decided: yes, no, or unknown.

A name that the text itself has defined or undefined for certain is known.  Any other may be defined on a command line
or by the compiler, so what depends on it is unknown; ``&&``, ``||`` and ``?:`` may still be decided without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from metafork.frontend.text.preprocessing.macros import Macro
from metafork.frontend.text.tokens import Token, TokenKind, UnterminatedCommentError, tokenize
from metafork.ir.arithmetic.evaluation import NoValueError, fitted, operation
from metafork.ir.arithmetic.types import ScalarType

Table = Mapping[str, Macro | None]
"""Macros that are defined, ``None`` for names that are undefined for certain; others are not known."""

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)[lL]{0,2}")
_LEVELS = (("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
"""Binary operators; each row binds closer than those before it."""
_INTMAX = ScalarType.LONG_LONG
_DEEPEST = 100


def condition_holds(word: str, condition: str, table: Table) -> bool | None:
    """Return whether the branch behind ``#word condition`` is compiled, ``None`` where that cannot be told."""
    match word:
        case "ifdef" | "elifdef":
            return defined(condition, table)
        case "ifndef" | "elifndef":
            known = defined(condition, table)
            return None if known is None else not known
        case _:
            try:
                value = _Reader(tokenize(condition), table, frozenset()).whole()
            except (_UnknownError, UnterminatedCommentError, RecursionError):
                return None
            return None if value is None else value != 0


def defined(name: str, table: Table) -> bool | None:
    """Return whether a name is defined as a macro; a C file is no C++."""
    if name == "__cplusplus":
        return False
    if name not in table:
        return None
    macro = table[name]
    return macro is not None if macro is None or not macro.uncertain else None


class _UnknownError(Exception):
    """This is no condition that is understood."""


class _Reader:
    """Evaluates one expression; values are integers of 64 bits, ``None`` where they are not known."""

    def __init__(self, tokens: Sequence[Token], table: Table, hidden: frozenset[str]) -> None:
        self._tokens = tokens
        self._table = table
        self._hidden = hidden
        self._next = 0

    def whole(self) -> int | None:
        value = self._conditional()
        if self._next != len(self._tokens):
            raise _UnknownError
        return value

    def _peek(self) -> str:
        return self._tokens[self._next].text if self._next < len(self._tokens) else ""

    def _take(self, text: str) -> bool:
        found = self._peek() == text
        self._next += found
        return found

    def _conditional(self) -> int | None:
        test = self._disjunction()
        if not self._take("?"):
            return test
        yes = self._conditional()
        if not self._take(":"):
            raise _UnknownError
        no = self._conditional()
        if test is None:
            return yes if yes == no else None
        return yes if test else no

    def _disjunction(self) -> int | None:
        value = self._conjunction()
        while self._take("||"):
            other = self._conjunction()
            value = _decided(value, other, deciding=True)
        return value

    def _conjunction(self) -> int | None:
        value = self._binary(0)
        while self._take("&&"):
            other = self._binary(0)
            value = _decided(value, other, deciding=False)
        return value

    def _binary(self, level: int) -> int | None:
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while (sign := self._peek()) and sign in _LEVELS[level]:
            self._next += 1
            other = self._binary(level + 1)
            value = None if value is None or other is None else _result(sign, value, other)
        return value

    def _unary(self) -> int | None:
        for sign in ("!", "-", "+", "~"):
            if self._take(sign):
                value = self._unary()
                if value is None:
                    return None
                return _within({"!": int(not value), "-": -value, "+": value, "~": ~value}[sign])
        return self._primary()

    def _primary(self) -> int | None:
        if self._next >= len(self._tokens):
            raise _UnknownError
        token = self._tokens[self._next]
        self._next += 1
        if token.text == "(":
            value = self._conditional()
            if not self._take(")"):
                raise _UnknownError
            return value
        if token.kind is TokenKind.NUMBER:
            match = _INTEGER.fullmatch(token.text)
            return (
                None if match is None else _within(int(match[1], 0 if match[1][1:2] in ("x", "X") else _base(match[1])))
            )
        if token.kind is not TokenKind.NAME:
            raise _UnknownError
        if token.text == "defined":
            return self._defined()
        return self._named(token.text)

    def _defined(self) -> int | None:
        brackets = self._take("(")
        if self._next >= len(self._tokens) or self._tokens[self._next].kind is not TokenKind.NAME:
            raise _UnknownError
        known = defined(self._tokens[self._next].text, self._table)
        self._next += 1
        if brackets and not self._take(")"):
            raise _UnknownError
        return None if known is None else int(known)

    def _named(self, name: str) -> int | None:
        """Return the value of a name: of its macro, 0 where it has none, unknown where that is not certain."""
        called = self._take("(")
        if called:
            self._pass_arguments()
        known = defined(name, self._table)
        macro = self._table.get(name)
        if name in self._hidden or known is None or called:
            return None
        if macro is None:
            return 0
        if macro.formals is not None or macro.fault or len(self._hidden) > _DEEPEST or not _is_whole(macro.body):
            return None
        inner = _Reader((*macro.body,), self._table, self._hidden | {name})
        try:
            return inner.whole()
        except _UnknownError:
            return None  # a part of an expression, which would bind otherwise than it reads

    def _pass_arguments(self) -> None:
        depth = 1
        while depth:
            if self._next >= len(self._tokens):
                raise _UnknownError
            depth += {"(": 1, ")": -1}.get(self._peek(), 0)
            self._next += 1


def _is_whole(body: Sequence[Token]) -> bool:
    """Return whether a macro's text binds as one value wherever it stands: one token, or all of it in parentheses."""
    if len(body) < 2:
        return len(body) == 1
    depth = 0
    for index, token in enumerate(body):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and index + 1 < len(body):
            return False
    return depth == 0


def _decided(left: int | None, right: int | None, *, deciding: bool) -> int | None:
    """Join two truth values with ``||`` (``deciding`` true) or ``&&``."""
    if any(value is not None and bool(value) is deciding for value in (left, right)):
        return int(deciding)
    return None if left is None or right is None else int(not deciding)


def _result(sign: str, left: int, right: int) -> int | None:
    try:
        return operation(sign, left, right, _INTMAX)
    except NoValueError:
        return None


def _within(value: int) -> int | None:
    try:
        return fitted(value, _INTMAX)
    except NoValueError:
        return None


def _base(digits: str) -> int:
    return 8 if digits.startswith("0") else 10
