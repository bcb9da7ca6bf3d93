"""Plain C, which is most of what programs have: read without pycparser, whose loading takes as long as a small file.

Plain are names, decimal constants, operators, calls, members and subscripts, conversions to arithmetic types, and
declarations of scalars and arrays of such types.  What a function of this module returns is what
``pycparser_grammar`` would; for all else, wrong C above all, it returns ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import TypeVar

from metafork.frontend.text import syntax
from metafork.frontend.text.tokens import Token, TokenKind, hull
from metafork.frontend.text.vocabulary import scalar_type
from metafork.ir.messages.source import Span

_Read = TypeVar("_Read")
_Operand = tuple[syntax.Expression, int, int, int]
"""An expression, where its tokens begin and end with parentheses around it, and its depth."""

_DEEPEST = 30

_KINDS = frozenset({TokenKind.NAME, TokenKind.NUMBER, TokenKind.PUNCTUATOR})
_OF_TYPES = frozenset({"char", "const", "double", "float", "int", "long", "short", "signed", "unsigned"})
_RESERVED = frozenset(
    {
        *("auto", "bool", "break", "case", "continue", "default", "do", "else", "enum", "extern", "for", "goto", "if"),
        *("inline", "offsetof", "register", "restrict", "return", "sizeof", "static", "struct", "switch", "typedef"),
        *("union", "void", "volatile", "while"),
    }
)
_PREFIXES = frozenset({"&", "*", "+", "-", "~", "!"})
_ASSIGNING = frozenset({"=", "^=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "|="})
_STEPS = frozenset({"++", "--"})
_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "> >= < <=", ">> <<", "+ -", "* / %")
_STRENGTH = {op: level for level, ops in enumerate(_LEVELS) for op in ops.split()}


def expression(tokens: Sequence[Token], types: Collection[str]) -> syntax.Expression | None:
    """Return the expression that the tokens are; ``types`` are names of types."""
    return _read(tokens, types, _Reader.expression)


def simple_statement(
    tokens: Sequence[Token], types: Collection[str]
) -> syntax.Declaration | syntax.ExpressionStatement | None:
    """Return a declaration or an expression statement, semicolon included."""
    return _read(tokens, types, _Reader.simple_statement)


def parameter(tokens: Sequence[Token], types: Collection[str]) -> syntax.Declarator | None:
    """Return the declaration of a function's parameter that has a name."""
    return _read(tokens, types, _Reader.parameter)


class _NotPlainError(Exception):
    """Here is something that is left to the other grammar."""


def _read(tokens: Sequence[Token], types: Collection[str], read: Callable[[_Reader], _Read]) -> _Read | None:
    if any(token.kind not in _KINDS for token in tokens) or not _in_order(tokens):
        return None
    reader = _Reader(tokens, types)
    try:
        result = read(reader)
        reader.expect("")
    except (_NotPlainError, RecursionError):
        return None
    return result


class _Reader:
    def __init__(self, tokens: Sequence[Token], types: Collection[str]) -> None:
        self._tokens = tokens
        self._texts = [*(token.text for token in tokens), ""]
        self._types = types
        self._at = 0
        self._level = 0

    def expression(self) -> syntax.Expression:
        return self._shallow(self._comma())

    def simple_statement(self) -> syntax.Declaration | syntax.ExpressionStatement:
        if self._texts[0] in _OF_TYPES:
            words, qualifiers = self._specifiers()
            declarators = [self._declarator(words, qualifiers)]
            while self._accept(","):
                declarators.append(self._declarator(words, qualifiers))
            self.expect(";")
            return syntax.Declaration(tuple(declarators), self._span(0, self._at))
        read = self.expression()
        self.expect(";")
        return syntax.ExpressionStatement(read, self._span(0, self._at))

    def parameter(self) -> syntax.Declarator:
        words, qualifiers = self._specifiers()
        name, extents = self._named()
        span = self._span(0, self._at)
        type_ = syntax.TypeName(words, qualifiers, frozenset(), extents, 0, False, span)
        return syntax.Declarator(self._texts[name], type_, None, self._tokens[name].span, span)

    def expect(self, text: str) -> None:
        """Go on behind a token; the empty text stands for the end."""
        if self._texts[self._at] != text:
            raise _NotPlainError
        self._at += 1

    # --- declarations -----------------------------------------------------------------------------------------

    def _specifiers(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """Read the words of a type and its qualifiers."""
        begin = self._at
        while self._texts[self._at] in _OF_TYPES:
            if self._tokens[self._at].fault:
                raise _NotPlainError
            self._at += 1
        given = self._texts[begin : self._at]
        words = tuple(word for word in given if word != "const")
        if scalar_type(words, {}) is None:
            raise _NotPlainError
        return words, frozenset({"const"}) if len(words) < len(given) else frozenset()

    def _named(self) -> tuple[int, tuple[syntax.Expression | None, ...]]:
        """Read a name and the extents behind it, and return where the name is."""
        name = self._at
        self._name()
        extents: list[syntax.Expression | None] = []
        while self._accept("["):
            if self._accept("]"):
                extents.append(None)
                continue
            if self._texts[self._at] == "*":  # of an extent that is not said
                raise _NotPlainError
            extents.append(self._shallow(self._assignment()))
            self.expect("]")
        return name, tuple(extents)

    def _declarator(self, words: tuple[str, ...], qualifiers: frozenset[str]) -> syntax.Declarator:
        name, extents = self._named()
        value = self._shallow(self._assignment()) if self._accept("=") else None
        span = self._span(name, self._at)
        type_ = syntax.TypeName(words, qualifiers, frozenset(), extents, 0, False, span)
        return syntax.Declarator(self._texts[name], type_, value, self._tokens[name].span, span)

    # --- expressions ------------------------------------------------------------------------------------------

    def _comma(self) -> _Operand:
        first = self._assignment()
        if self._texts[self._at] != ",":
            return first
        parts = [first]
        while self._accept(","):
            parts.append(self._assignment())
        begin, end = first[1], parts[-1][2]
        items = tuple(part[0] for part in parts)
        return syntax.Comma(items, self._span(begin, end)), begin, end, 1 + max(part[3] for part in parts)

    def _assignment(self) -> _Operand:
        target, begin, end, depth = self._conditional()
        op = self._texts[self._at]
        if op not in _ASSIGNING:
            return target, begin, end, depth
        self._at += 1
        value, _, end, value_depth = self._assignment()
        return syntax.Assignment(op, target, value, self._span(begin, end)), begin, end, 1 + max(depth, value_depth)

    def _conditional(self) -> _Operand:
        condition, begin, end, depth = self._infix(0)
        if not self._accept("?"):
            return condition, begin, end, depth
        then, _, _, then_depth = self._comma()
        self.expect(":")
        otherwise, _, end, last_depth = self._conditional()
        ternary = syntax.Ternary(condition, then, otherwise, self._span(begin, end))
        return ternary, begin, end, 1 + max(depth, then_depth, last_depth)

    def _infix(self, least: int) -> _Operand:
        left, begin, end, depth = self._converted()
        while (strength := _STRENGTH.get(op := self._texts[self._at], -1)) >= least:
            self._at += 1
            right, _, end, right_depth = self._infix(strength + 1)
            left, depth = syntax.Infix(op, left, right, self._span(begin, end)), 1 + max(depth, right_depth)
        return left, begin, end, depth

    def _converted(self) -> _Operand:
        self._level += 1
        if self._level > _DEEPEST:
            raise _NotPlainError
        read = self._conversion() if self._texts[self._at] == "(" else self._prefixed()
        self._level -= 1
        return read

    def _conversion(self) -> _Operand:
        begin = self._at
        if self._texts[begin + 1] not in _OF_TYPES:
            return self._prefixed()
        self._at += 1
        words, qualifiers = self._specifiers()
        type_ = syntax.TypeName(words, qualifiers, frozenset(), (), 0, False, self._span(begin + 1, self._at))
        self.expect(")")
        operand, _, end, depth = self._converted()
        return syntax.Conversion(type_, operand, self._span(begin, end)), begin, end, 1 + depth

    def _prefixed(self) -> _Operand:
        begin = self._at
        op = self._texts[begin]
        if op not in _PREFIXES and op not in _STEPS:
            return self._postfixed()
        self._at += 1
        operand, _, end, depth = self._converted() if op in _PREFIXES else self._prefixed()
        return syntax.Prefix(op, operand, self._span(begin, end)), begin, end, 1 + depth

    def _postfixed(self) -> _Operand:
        read, begin, end, depth = self._primary()
        while True:
            text = self._texts[self._at]
            if text == "[":
                self._at += 1
                index, _, _, inner = self._comma()
                self.expect("]")
                read = syntax.Subscript(read, index, self._span(begin, self._at))
            elif text == "(":
                self._at += 1
                arguments, inner = self._arguments()
                read = syntax.Invocation(read, arguments, self._span(begin, self._at))
            elif text in (".", "->"):
                self._at += 1
                field, inner = self._name(), 0
                read = syntax.Member(read, field, text == "->", self._span(begin, self._at))
            elif text in _STEPS:
                self._at += 1
                inner = 0
                read = syntax.Postfix(text, read, self._span(begin, self._at))
            else:
                return read, begin, end, depth
            end, depth = self._at, 1 + max(depth, inner)

    def _arguments(self) -> tuple[tuple[syntax.Expression, ...], int]:
        """Read what stands in the parentheses of a call, and return its depth too."""
        if self._accept(")"):
            return (), 0
        parts = [self._assignment()]
        while self._accept(","):
            parts.append(self._assignment())
        self.expect(")")
        return tuple(part[0] for part in parts), max(part[3] for part in parts)

    def _primary(self) -> _Operand:
        begin = self._at
        if self._accept("("):
            read, _, _, depth = self._comma()
            self.expect(")")
            return read, begin, self._at, depth
        if begin == len(self._tokens):
            raise _NotPlainError
        token = self._tokens[begin]
        if token.kind is TokenKind.NUMBER:
            if not _is_plain_number(token.text):
                raise _NotPlainError
            self._at += 1
            return syntax.Constant(token.text, token.span), begin, self._at, 1
        return syntax.Name(self._name(), token.span, bool(token.fault)), begin, self._at, 1

    def _name(self) -> str:
        text = self._texts[self._at]
        if self._at == len(self._tokens) or self._tokens[self._at].kind is not TokenKind.NAME:
            raise _NotPlainError
        # Words of compilers and of later standards begin with an underscore.
        if text[0] == "_" or text in _OF_TYPES or text in _RESERVED or text in self._types:
            raise _NotPlainError
        self._at += 1
        return text

    def _accept(self, text: str) -> bool:
        if self._texts[self._at] != text:
            return False
        self._at += 1
        return True

    def _shallow(self, read: _Operand) -> syntax.Expression:
        if read[3] > _DEEPEST:
            raise _NotPlainError
        return read[0]

    def _span(self, begin: int, end: int) -> Span:
        return hull(self._tokens[begin].span, self._tokens[end - 1].span)


def _in_order(tokens: Sequence[Token]) -> bool:
    """Say whether no macro gave tokens whose places are other than their order says."""
    pairs = pairwise(token.span for token in tokens)
    return all(one.start <= other.start and one.end <= other.end for one, other in pairs)


def _is_plain_number(text: str) -> bool:
    """Say whether this is a decimal constant, with ``f`` behind it or not if it has a point, and without exponent."""
    whole, point, fraction = text.partition(".")
    if point:
        return (whole + fraction.removesuffix("f")).isdecimal()
    return whole.isdecimal() and (whole[0] != "0" or whole == "0")
