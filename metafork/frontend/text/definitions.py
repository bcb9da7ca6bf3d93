"""Function definitions of a file, found by their brackets: a header that ends in parentheses, then a body in braces."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from metafork.frontend.text.clauses.static_clauses import is_static_keyword
from metafork.frontend.text.tokens import Token, TokenKind

_CONTROL = frozenset({"if", "for", "while", "switch", "do", "else", "return", "meta_for", "meta_schedule"})
_NO_FUNCTION = frozenset(
    {
        *("__attribute__", "__attribute", "__declspec", "_Alignas", "typeof", "__typeof__", "void", "char", "short"),
        *("int", "long", "float", "double", "signed", "unsigned", "const"),
    }
)
"""Words before parentheses that are not a function's parameters."""


class FunctionText(Struct, frozen=True):
    """A function definition as indices of tokens: first token, name, parentheses, braces."""

    first: int
    name: int
    open_paren: int
    close_paren: int
    open_brace: int
    close_brace: int


def split_commas(tokens: Sequence[Token], index: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges of tokens between the commas that stand in no brackets."""
    pieces: list[tuple[int, int]] = []
    start, depth = index, 0
    for here in range(index, end):
        text = tokens[here].text
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
        elif text == "," and depth == 0:
            pieces.append((start, here))
            start = here + 1
    pieces.append((start, end))
    return pieces


def definitions(tokens: Sequence[Token], partners: dict[int, int]) -> tuple[list[FunctionText], list[tuple[int, int]]]:
    """Return the function definitions of a file, and the ranges of its other declarations."""
    functions: list[FunctionText] = []
    others: list[tuple[int, int]] = []
    start = index = 0
    while index < len(tokens):
        text = tokens[index].text
        if text in ("(", "["):
            index = partners[index] + 1
        elif text == ";":
            others.append((start, index + 1))
            start = index = index + 1
        elif text == "{":
            function = _definition(tokens, partners, start, index)
            if function is not None:
                functions.append(function)
                start = index = partners[index] + 1
            elif [token.text for token in tokens[start:index]][:1] == ["extern"] and index == start + 2:
                start = index = index + 1  # extern "C" { ... }: what is inside counts as the file's own
            elif index > start and (tokens[start].text in _CONTROL or is_static_keyword(tokens, start, partners)):
                start = index = partners[index] + 1
            else:
                index = partners[index] + 1
        elif text == "}":
            start = index = index + 1
        else:
            index += 1
    return functions, others


def _definition(tokens: Sequence[Token], partners: dict[int, int], start: int, brace: int) -> FunctionText | None:
    """Return the function whose body opens at ``brace``, where what stands before it is a function's header."""
    begin = start
    if tokens[start].text == "template":  # of C++, whose parameters may have defaults
        begin = next((here for here in range(start, brace) if tokens[here].text == ">"), start)
    if any(tokens[here].text == "=" for here in range(begin, brace)):
        return None
    here = begin + 1  # no function's name stands before the first token
    while here < brace:
        name = tokens[here - 1]
        if tokens[here].text == "(" and name.kind is TokenKind.NAME and name.text not in _NO_FUNCTION:
            words = {name.text, tokens[start].text}
            if words & _CONTROL or is_static_keyword(tokens, here - 1, partners):
                return None
            return FunctionText(start, here - 1, here, partners[here], brace, partners[brace])
        here = partners[here] + 1 if tokens[here].text in ("(", "[") else here + 1
    return None


def declared_name(tokens: Sequence[Token]) -> Token | None:
    """Return the name that a parameter whose type is not understood declares, as far as its brackets tell."""
    for before, name, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        if name.kind is TokenKind.NAME and (
            after is None or after.text == "[" or (before.text == "*" and after.text == ")")
        ):
            return name
    return None
