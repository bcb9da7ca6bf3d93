"""What a file and its own headers declare outside functions: types, variables, and the names of functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from metafork.frontend.host.known_names import C_WORDS, KnownNames
from metafork.frontend.host.variables import (
    Variable,
    advise,
    declare_under_condition,
    declared,
    define_type,
    without_size,
)
from metafork.frontend.text import syntax
from metafork.frontend.text.definitions import definitions
from metafork.frontend.text.parsing.c_grammar import Grammar, GrammarError, TooDeepError
from metafork.frontend.text.preprocessing.macros import ExpansionError
from metafork.frontend.text.preprocessing.preprocessor import Included, Preprocessed
from metafork.frontend.text.structures import TypeNames, note_structure
from metafork.frontend.text.tokens import BracketError, Token, TokenKind, match_brackets
from metafork.frontend.text.vocabulary import HEADER_TYPES, OTHER_TYPES, SMALL_FLOATS

_LONG = 2000
"""Tokens of an initialiser that is not worth reading: only the extents of its array matter."""
_LONG_TABLE = 70_000
"""Tokens of a table that may be worth it: more than 16,384 numbers, with signs, fit no constant memory."""


class FileScope:
    """The declarations of one file, noted in the order of the text.

    ``typedefs`` are the names of scalar types, ``types`` those of all types, ``variables`` what is in scope outside of
    functions, functions included, each where it is declared.  ``static`` are functions that are declared so,
    ``small_floats`` the types of 16 bits that the file uses and does not declare.
    """

    def __init__(self, preprocessed: Preprocessed, grammar: Grammar) -> None:
        self._preprocessed = preprocessed
        self._grammar = grammar
        self._functions: set[str] = set()
        self.typedefs = TypeNames()
        self.small_floats = _small_floats(preprocessed)
        self.typedefs.update(HEADER_TYPES)
        self.typedefs.update({name: SMALL_FLOATS[name] for name in self.small_floats})
        self.types = frozenset(HEADER_TYPES) | OTHER_TYPES | frozenset(self.small_floats)
        self.variables: dict[str, Variable] = {}
        self.static: set[str] = set()

    @property
    def known(self) -> KnownNames:
        """The names that are no variables and have a known meaning."""
        trusted = all(one.read for one in self._preprocessed.included)
        return KnownNames(frozenset(self._functions) | self.types, trusted)

    def add_header(self, included: Included) -> None:
        """Note what a header declares; nothing where its brackets do not match (a list of elements, say)."""
        tokens = included.tokens
        try:
            partners = match_brackets(tokens)
        except BracketError:
            return
        functions, outside = definitions(tokens, partners)
        for one in functions:
            self.add_function(tokens[one.name])
        for first, behind in outside:
            certain = not any(included.uncertain[first:behind])
            try:
                self._declare(self._preprocessed.expand_included(included, first, behind), certain)
            except ExpansionError:
                self._give_up(tokens[first:behind])

    def add_function(self, name: Token) -> None:
        """Note a function that is defined here."""
        function = Variable(name.text, name.span, name.span.start, is_global=True)
        function.fault, function.message = "MF0206", f"`{name.text}` is a function"
        self.variables.setdefault(name.text, function)
        self._functions.add(name.text)

    def add(self, tokens: Sequence[Token], certain: bool) -> None:
        """Note a declaration, its semicolon included; ``certain`` is false under an undecided ``#if``."""
        try:
            self._declare(self._preprocessed.expand(tokens), certain)
        except ExpansionError:
            self._give_up(tokens)

    def _give_up(self, tokens: Sequence[Token]) -> None:
        """Note the names that a declaration seems to declare, as ones of no known type."""
        for name in _names(tokens):
            self._functions.add(name.text)
            strange = Variable(name.text, name.span, 0, is_global=True)
            strange.fault, strange.message = "MF0315", f"the declaration of `{name.text}` is not understood"
            from metafork.frontend.text.other_languages.types import foreign_declaration  # most files have none

            if (foreign := foreign_declaration(tokens, name)) is not None:
                advise(strange, *foreign)
            self.variables.setdefault(name.text, strange)

    def _declare(self, tokens: Sequence[Token], certain: bool) -> None:
        shortened = _shortened(tokens)
        try:
            simple = self._grammar.simple_statement(shortened, self.types)
        except (GrammarError, TooDeepError):
            self._give_up(tokens)
            return
        if not isinstance(simple, syntax.Declaration):
            return
        for type_ in (simple.structure, *(declarator.type for declarator in simple.declarators[:1])):
            if type_ is not None:
                note_structure(type_, self.typedefs)
        for declarator in simple.declarators:
            if "typedef" in declarator.type.storage:
                self.types |= {declarator.name}
                define_type(declarator, self.typedefs, certain)
            elif declarator.type.function:
                self._functions.add(declarator.name)
                if "static" in declarator.type.storage:
                    self.static.add(declarator.name)
            else:
                variable = declared(declarator, self.typedefs, 0)
                if not certain:
                    declare_under_condition(variable, self.variables.get(declarator.name))
                variable.scope = dict(self.variables)
                variable.is_global = True
                if variable.fault == "MF0208":
                    without_size(variable)
                if certain and variable.const:
                    variable.initial = declarator.value
                    variable.braces = None if shortened is not tokens else declarator.braces
                self.variables[declarator.name] = variable


def _small_floats(preprocessed: Preprocessed) -> tuple[str, ...]:
    """Return the names of floating types of 16 bits that a file has no declaration of.

    Those that are not reserved are variables of many programs: they are types where they always stand as types do.
    """
    tokens = preprocessed.tokens
    words = {token.text for token in tokens} & SMALL_FLOATS.keys()
    if not words:
        return ()
    words -= {token.text for one in preprocessed.included for token in one.tokens}
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        if token.text in words and not token.text.startswith("_"):
            in_front = before is None or before.text in _BEFORE_TYPES
            behind = after is not None and (after.kind is TokenKind.NAME or after.text in ("*", ")"))
            words -= set() if in_front and behind else {token.text}
    return tuple(sorted(words))


_BEFORE_TYPES = frozenset({*"(,;{}", "const", "restrict", "__restrict__", "static", "extern", "typedef", "volatile"})


def _shortened(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return a declaration with a long initialiser left out, where an extent says how long it is."""
    constant = any(token.text == "const" for token in tokens[:8])
    if len(tokens) < (_LONG_TABLE if constant else _LONG):
        return tokens
    for index in range(len(tokens) - 1):
        if tokens[index].text == "=" and tokens[index + 1].text == "{" and tokens[index - 1].text == "]":
            close = match_brackets(tokens)[index + 1]
            if tokens[index - 2].text != "[" and close + 2 == len(tokens):
                zero = Token(TokenKind.NUMBER, "0", tokens[index].span)
                return [*tokens[: index + 2], zero, *tokens[close:]]
            break
    return tokens


def _names(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the names that a declaration that is not understood seems to declare."""
    depth = 0
    for token, after in pairwise(tokens):
        if token.kind is TokenKind.NAME and depth == 0 and token.text not in C_WORDS:
            if after.text in ("[", "=", ";", ",", "("):
                yield token
            if after.text == "=":
                return
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
