"""Expressions and declarations of C, piece by piece: plain ones here, all others by pycparser.

Statements are not the grammar's business: ``structure`` descends through them and asks for one piece at a time, so that
a piece that is not understood costs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metafork.frontend.text import plain_c, syntax
from metafork.frontend.text.tokens import Token
from metafork.ir.messages.source import Span

if TYPE_CHECKING:
    from metafork.frontend.text.pycparser_grammar import WholeGrammar


class GrammarError(Exception):
    """This is no C that the parser knows; ``span`` is where it stopped."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message = message
        self.span = span


class TooDeepError(Exception):
    """An expression that is nested too deeply."""


class Grammar:
    """Parses pieces of C.  ``types`` are the typedef names that are known."""

    def __init__(self) -> None:
        self._made: WholeGrammar | None = None

    def expression(self, tokens: Sequence[Token], types: frozenset[str]) -> syntax.Expression:
        """Return the expression that the tokens are; raises ``GrammarError`` and ``TooDeepError``."""
        return plain_c.expression(tokens, types) or self._whole().expression(tokens, types)

    def simple_statement(
        self, tokens: Sequence[Token], types: frozenset[str], supposed: frozenset[str] = frozenset()
    ) -> syntax.Declaration | syntax.ExpressionStatement:
        """Return a declaration or an expression statement, semicolon included; raises as ``expression`` does.

        ``supposed`` are words that are read as names of types without being known as such.
        """
        plain = plain_c.simple_statement(tokens, types | supposed)
        return plain or self._whole().simple_statement(tokens, types, supposed)

    def parameter(self, tokens: Sequence[Token], types: frozenset[str]) -> syntax.Declarator | None:
        """Return the declaration of a function's parameter, ``None`` for a nameless one; raises as above."""
        return plain_c.parameter(tokens, types) or self._whole().parameter(tokens, types)

    def _whole(self) -> WholeGrammar:
        from metafork.frontend.text.pycparser_grammar import WholeGrammar  # for those that need it

        self._made = self._made or WholeGrammar()
        return self._made
