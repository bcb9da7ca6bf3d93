"""Functions that return an expression of what they are given: written out where a structure is handed to them.

``at(g, r, c)`` with ``static int at(Grid g, int r, int c) { return r * g.nx + c; }`` is read as
``((int)(((int)(r)) * g.nx + ((int)(c))))``, so that a schedule sees the members of ``g``.  The host's text keeps the
call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.file_scope import FileScope
from metafork.frontend.host.known_names import C_WORDS, KnownNames
from metafork.frontend.text.definitions import FunctionText, split_commas
from metafork.frontend.text.preprocessing.macros import ExpansionError
from metafork.frontend.text.preprocessing.preprocessor import Preprocessed
from metafork.frontend.text.structures import TypeNames
from metafork.frontend.text.tokens import WRITING, BracketError, Token, TokenKind, match_brackets
from metafork.frontend.text.vocabulary import scalar_type

_MOST_ROUNDS = 8
"""How deeply functions that are written out may call each other."""

_LEFT_OUT = frozenset({"const", "static", "inline", "restrict", "__inline", "__inline__", "extern", "*"})


class Returning(Struct, frozen=True):
    """``type name(parameters) { return value; }``: a parameter's type is ``None`` where it is a structure."""

    type: tuple[Token, ...]
    parameters: tuple[tuple[str, tuple[Token, ...] | None], ...]
    value: tuple[Token, ...]

    @property
    def takes_structures(self) -> bool:
        """Whether some parameter is a structure, or a pointer to one."""
        return any(type_ is None for _, type_ in self.parameters)


def returning(
    tokens: Sequence[Token],
    text: FunctionText,
    value: Sequence[Token],
    types: TypeNames,
    known: KnownNames,
    before: Mapping[str, Returning],
) -> Returning | None:
    """Return a function that does nothing but return an expression without side effects, ``None`` for any other.

    ``value`` is its body, macros expanded; ``before`` are such functions that stand before it.
    """
    texts = [token.text for token in value]
    if texts[:1] != ["return"] or texts[-1:] != [";"] or texts.count(";") > 1 or not WRITING.isdisjoint(texts):
        return None
    if not calls_nothing(value, known, before):
        return None
    parameters: list[tuple[str, tuple[Token, ...] | None]] = []
    for first, behind in split_commas(tokens, text.open_paren + 1, text.close_paren):
        piece = [token for token in tokens[first:behind] if token.text not in _LEFT_OUT]
        words = tuple(token.text for token in piece[:-1])
        structure = " ".join(words) in types.structures
        stars = sum(token.text == "*" for token in tokens[first:behind])
        if not piece or stars > structure or not (structure or scalar_type(words, types)):
            return None
        parameters.append((piece[-1].text, None if structure else tuple(piece[:-1])))
    type_ = tuple(token for token in tokens[text.first : text.name] if token.text not in _LEFT_OUT - {"*"})
    if scalar_type(tuple(token.text for token in type_), types) is None:
        return None
    names = {name for name, _ in parameters}
    for last, token in pairwise(value[:-1]):
        free = token.kind is TokenKind.NAME and token.text not in names and last.text not in (".", "->")
        meant = token.text in C_WORDS or token.text in types or token.text in before or known.harmless(token.text)
        if free and not meant:
            return None
    return Returning(type_, tuple(parameters), tuple(value[1:-1]))


def returning_functions(
    preprocessed: Preprocessed, functions: Sequence[FunctionText], scope: FileScope
) -> dict[str, Returning]:
    """Return those functions of a file that do nothing but return an expression, by name."""
    tokens = preprocessed.tokens
    found: dict[str, Returning] = {}
    for one in functions:
        with suppress(ExpansionError):  # told where it is called
            value = preprocessed.expand(tokens[one.open_brace + 1 : one.close_brace])
            function = returning(tokens, one, value, scope.typedefs, scope.known, found)
            if function is not None:
                found[tokens[one.name].text] = function
    return found


def written_out(tokens: Sequence[Token], functions: Mapping[str, Returning], known: KnownNames) -> list[Token]:
    """Return tokens in which calls that are given structures are what the functions return."""
    result = list(tokens)
    hidden = {one.text for one, after in pairwise(tokens) if one.text in functions and after.text != "("}
    functions = {name: function for name, function in functions.items() if name not in hidden}
    for _ in range(_MOST_ROUNDS):
        try:
            after = _once(result, functions, known)
        except BracketError:
            return result  # reported where it is parsed
        if after == result:
            break
        result = after
    return result


def _once(tokens: Sequence[Token], functions: Mapping[str, Returning], known: KnownNames) -> list[Token]:
    partners = match_brackets(tokens)
    result: list[Token] = []
    at = 0
    while at < len(tokens):
        function = functions.get(tokens[at].text)
        called = at + 1 < len(tokens) and tokens[at + 1].text == "(" and not (result and result[-1].text in (".", "->"))
        value = None
        if function is not None and called and function.takes_structures:
            arguments = [tokens[first:behind] for first, behind in split_commas(tokens, at + 2, partners[at + 1])]
            value = _value(function, arguments, tokens[at], functions, known)
        result += [tokens[at]] if value is None else value
        at = at + 1 if value is None else partners[at + 1] + 1
    return result


def _value(
    function: Returning,
    arguments: Sequence[Sequence[Token]],
    place: Token,
    functions: Mapping[str, Returning],
    known: KnownNames,
) -> list[Token] | None:
    if len(arguments) != len(function.parameters):
        return None
    given: dict[str, list[Token]] = {}
    for (name, type_), argument in zip(function.parameters, arguments, strict=True):
        texts = [token.text for token in argument]
        if type_ is None:
            if len(texts) not in (1, 2) or texts[:-1] not in ([], ["&"]) or argument[-1].kind is not TokenKind.NAME:
                return None
            given[name] = list(argument)
        elif not WRITING.isdisjoint(texts) or not calls_nothing(argument, known, functions):
            return None
        else:
            given[name] = _cast(type_, argument, place)
    value: list[Token] = []
    for before, token in zip((place, *function.value), function.value, strict=False):
        argument = given.get(token.text, []) if before.text not in (".", "->") else []
        if token.text == "->" and [one.text for one in value[-2:-1]] == ["&"] and before.text in given:
            value[-2:] = [value[-1], replace(token, text=".")]  # `(&g)->nx`
        elif [one.text for one in (*value[-2:], *argument[:1])] == ["(", "*", "&"]:
            value[-1] = argument[1]  # `(*&g).nx`
        else:
            value += argument or [token]
    return _cast(function.type, [replace(token, span=place.span) for token in value], place)


def _cast(type_: Sequence[Token], value: Sequence[Token], place: Token) -> list[Token]:
    """Return ``((type)(value))``."""
    opening, closing = (
        replace(place, kind=TokenKind.PUNCTUATOR, text="("),
        replace(place, kind=TokenKind.PUNCTUATOR, text=")"),
    )
    words = [replace(token, span=place.span) for token in type_]
    return [opening, opening, *words, closing, opening, *value, closing, closing]


def calls_nothing(tokens: Sequence[Token], known: KnownNames, harmless: Collection[str]) -> bool:
    """Say whether nothing is called but what reads its arguments: functions of C, and the given ones."""
    for token, after in pairwise(tokens):
        if token.kind is not TokenKind.NAME or after.text != "(" or token.text in C_WORDS or token.text in harmless:
            continue
        if token.text.startswith("meta_") or token.text == "cache":
            continue
        if not (known.harmless(token.text) or known.silent(token.text)):
            return False
    return not any(token.unknown or token.fault for token in tokens)
