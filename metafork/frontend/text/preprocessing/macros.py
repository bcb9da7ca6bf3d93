"""Macros and their expansion (section 6.10.3 of C11).

Tokens that a macro's body gives have the span of the macro's use; arguments keep their own.  A macro whose definition
is not certain, or cannot be followed, is not expanded: its name stays, with the fault that is reported where a schedule
depends on it, and marked as ``unknown`` unless every definition that was read is a plain value or a type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.text.tokens import Token, TokenKind, hull
from metafork.frontend.text.vocabulary import CONSTANTS, HEADER_TYPES
from metafork.ir.messages.source import Span

NEVER_EXPANDED = frozenset(
    {
        *(
            "meta_schedule",
            "meta_for",
            "meta_grid",
            "meta_block",
            "meta_min_blocks",
            "meta_atomic",
            "meta_reduction",
            "meta_static",
            "cache",
        ),
        *("assert", "defined"),
    }
)
TOKEN_LIMIT = 50_000
VARIABLE = "__VA_ARGS__"

_TYPE_WORDS = frozenset(
    {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "const", "_Bool", *HEADER_TYPES}
)
_VALUE_WORDS = frozenset({"sizeof", "NULL", *CONSTANTS})
_ACTING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
_STRUCTURAL = frozenset({"[", "]", "{", "}", ";", "->", ".", "#", "##", "..."})
_OPERATORS = frozenset({*"+-*/%&|^~!<>", "<=", ">=", "==", "!=", "&&", "||", "<<", ">>"})


class Definition(Struct, frozen=True):
    """What a ``#define`` says: formal parameters where there are some, and the body."""

    formals: tuple[str, ...] | None
    body: tuple[Token, ...]


class Macro(Struct, frozen=True):
    """A macro as it is known at some place.

    ``fault`` says why it cannot be expanded.  It is ``uncertain`` where it may be defined otherwise, or not at all;
    ``definitions`` are all that it may have, the last one last.
    """

    name: str
    definitions: tuple[Definition, ...]
    fault: str
    span: Span
    uncertain: bool = False

    @property
    def formals(self) -> tuple[str, ...] | None:
        """The formal parameters; a variable number of arguments is one, called ``__VA_ARGS__``."""
        return self.definitions[-1].formals

    @property
    def body(self) -> tuple[Token, ...]:
        """The body."""
        return self.definitions[-1].body


class ExpansionError(Exception):
    """A macro use that cannot be expanded: ``code`` and ``span`` of the diagnostic."""

    def __init__(self, code: str, message: str, span: Span) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.span = span


def is_value(macro: Macro, known: Mapping[str, Macro], seen: frozenset[str] = frozenset()) -> bool:
    """Return whether a macro, whichever definition it has, is a value or a type: it reads no memory and writes none."""
    if macro.name in seen:
        return False
    seen |= {macro.name}
    return all(_is_plain(one, known, seen) for one in macro.definitions)


def _is_plain(definition: Definition, known: Mapping[str, Macro], seen: frozenset[str]) -> bool:
    formals = definition.formals or ()
    before: list[str] = ["", ""]
    for token, after in zip(definition.body, [*(one.text for one in definition.body[1:]), ""], strict=False):
        text = token.text
        if token.kind is TokenKind.NAME:
            if text in formals:
                plain = after != "("
            elif text in known:
                plain = is_value(known[text], known, seen)
            else:
                plain = text in _TYPE_WORDS or text in _VALUE_WORDS
        elif token.kind is TokenKind.PUNCTUATOR:
            # A `*` or `&` in front of an operand follows memory; behind a cast it does too.
            operand = before[1] not in ("", "(", ",", "?", ":") and before[1] not in _OPERATORS
            cast = before[1] == ")" and before[0] in _TYPE_WORDS
            plain = text not in _ACTING and text not in _STRUCTURAL
            plain = plain and (text not in ("*", "&", "&&") or (operand and not cast))
        else:
            plain = token.kind in (TokenKind.NUMBER, TokenKind.CHARACTER, TokenKind.STRING)
        if not plain:
            return False
        before = [before[1], text]
    return True


class Pending(Struct, frozen=True):
    """A token that waits for expansion, with the macros that may not be expanded in it any more."""

    token: Token
    hidden: frozenset[str]


def step(pending: list[Pending], known: Mapping[str, Macro], result: list[Pending]) -> None:
    """Take one token from the end of ``pending``: to the result, or in exchange for what its macro gives."""
    one = pending.pop()
    token = one.token
    macro = known.get(token.text) if token.kind is TokenKind.NAME and token.text not in one.hidden else None
    if macro is None:
        result.append(one)
        return
    if macro.formals is not None and not macro.uncertain and not (pending and pending[-1].token.text == "("):
        result.append(one)
        return
    if macro.fault or macro.name in NEVER_EXPANDED:
        marked = replace(token, fault=macro.fault, unknown=token.unknown or not is_value(macro, known))
        result.append(Pending(marked, one.hidden))
        return
    if macro.formals is None:
        pending.extend(
            Pending(replace(part, span=token.span), one.hidden | {macro.name}) for part in reversed(macro.body)
        )
        return
    arguments, use = _arguments(token, pending)
    bound = _bound(macro, arguments, known, use)
    pasting = any(part.text == "##" for part in macro.body)
    written = dict(zip(macro.formals, arguments, strict=False)) if pasting else {}
    nothing = Pending(Token(TokenKind.NAME, "", use), frozenset())  # an empty argument that is pasted
    body: list[Pending] = []
    for number, part in enumerate(macro.body):
        joined = pasting and any(near.text == "##" for near in macro.body[max(number - 1, 0) : number + 2])
        if part.kind is TokenKind.NAME and part.text in bound:
            # What is pasted is taken as it was written.
            tokens = (written.get(part.text) or [nothing]) if joined else bound[part.text]
            body.extend(Pending(given.token, given.hidden | one.hidden | {macro.name}) for given in tokens)
        else:
            body.append(Pending(replace(part, span=use), one.hidden | {macro.name}))
    pending.extend(reversed(_pasted(body, macro, use) if pasting else body))


def _pasted(body: list[Pending], macro: Macro, use: Span) -> list[Pending]:
    """Return the tokens of a macro with those around each ``##`` as one: an identifier or a number."""
    found: list[Pending] = []
    rest = iter(body)
    for one in rest:
        if one.token.text != "##":
            found.append(one)
            continue
        right = next(rest, None)
        if right is None or not found:
            continue
        left = found.pop()
        text = left.token.text + right.token.text
        if not (left.token.text and right.token.text):
            found.append(left if left.token.text else right)
            continue
        if not re.fullmatch(r"[A-Za-z_]\w*|\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*", text):
            message = f"`{macro.name}` makes `{text}`, which is no name and no number"
            raise ExpansionError("MF0008", message, use)
        kind = TokenKind.NAME if re.match(r"[A-Za-z_]", text) else TokenKind.NUMBER
        found.append(Pending(Token(kind, text, use), left.hidden | right.hidden))
    return [one for one in found if one.token.text]


def _bound(
    macro: Macro, arguments: list[list[Pending]], known: Mapping[str, Macro], use: Span
) -> dict[str, list[Pending]]:
    """Return the expanded argument of every formal parameter."""
    formals = macro.formals or ()
    if any(one.token.text == "meta_schedule" for argument in arguments for one in argument):
        message = f"a `meta_schedule` stands in the arguments of the macro `{macro.name}`"
        raise ExpansionError("MF0017", message, use)
    if formals[-1:] == (VARIABLE,) and len(arguments) >= len(formals):
        given, rest = arguments[: len(formals) - 1], arguments[len(formals) - 1 :]
        joined: list[Pending] = []
        for index, argument in enumerate(rest):
            comma = Pending(Token(TokenKind.PUNCTUATOR, ",", use), frozenset())
            joined += [comma, *argument] if index else argument
        arguments = [*given, joined]
    elif formals[-1:] == (VARIABLE,) and len(arguments) == len(formals) - 1:
        arguments = [*arguments, []]
    if len(arguments) != len(formals) and not (not formals and arguments == [[]]):
        message = f"`{macro.name}` takes {len(formals)} arguments, {len(arguments)} are given"
        raise ExpansionError("MF0009", message, use)
    return {formal: _expanded(argument, known) for formal, argument in zip(formals, arguments, strict=False)}


def _arguments(name: Token, pending: list[Pending]) -> tuple[list[list[Pending]], Span]:
    """Take ``( ... )`` from what is pending; return the arguments and the span of the whole use."""
    pending.pop()
    arguments: list[list[Pending]] = [[]]
    depth = 1
    while pending:
        one = pending.pop()
        text = one.token.text
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
            if depth == 0:
                return arguments, hull(name.span, one.token.span)
        if text == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(one)
    raise ExpansionError("MF0009", f"the arguments of `{name.text}` have no end", name.span)


def _expanded(argument: Sequence[Pending], known: Mapping[str, Macro]) -> list[Pending]:
    """Expand an argument by itself, as C does before it is put into the macro's body."""
    pending = list(reversed(argument))
    result: list[Pending] = []
    while pending:
        step(pending, known, result)
        if len(result) + len(pending) > TOKEN_LIMIT:
            raise ExpansionError("MF0008", "macros expand to too much text", argument[0].token.span)
    return result
