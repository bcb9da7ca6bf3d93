"""Stretches of tokens: their expressions by ``c_grammar``, and what is said of those that are not understood."""

from __future__ import annotations

from collections.abc import Sequence

from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import (
    is_atomic_keyword,
)
from metafork.frontend.text.other_languages.words import foreign_syntax
from metafork.frontend.text.parsing.c_grammar import Grammar, GrammarError, TooDeepError
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.tokens import OPENING, Token, TokenKind, handlers, hull, match_brackets, perhaps_written
from metafork.ir.messages.source import Span


class Pieces:
    """Reads pieces of one stretch of tokens, macros expanded.

    ``types`` are the typedef names that are known.  Raises ``BracketError``.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        grammar: Grammar,
        reporter: Reporter,
        types: frozenset[str],
        fragment: bool = False,
    ) -> None:
        self._tokens = tokens
        self._partners = match_brackets(tokens)
        self._grammar = grammar
        self._reporter = reporter
        self._types = types
        self._fragment = fragment
        self._pragmas: list[tuple[Span, str]] = []

    @property
    def types(self) -> frozenset[str]:
        """The typedef names that are known, those of the text itself included once it is parsed."""
        return self._types

    def _expression(self, index: int, end: int, inside: bool, place: Span | None = None) -> syntax.Expression:
        if index >= end:
            if inside:
                where = place or self._tokens[min(index, len(self._tokens) - 1)].span
                self._reporter.error("MF0010", where, "an expression is missing here")
            return syntax.Unsupported("", place or self._tokens[min(index, len(self._tokens) - 1)].span, frozenset())
        try:
            self._trust(index, end, inside)
            return self._grammar.expression(self._tokens[index:end], self._types)
        except GrammarError as error:
            self._syntax_error(error, index, end, inside)
        except TooDeepError:
            self._too_deep(index, end, inside)
        except RefusedError:
            pass
        return self._unknown(index, end)

    def _trust(self, index: int, end: int, inside: bool) -> None:
        """Refuse tokens that a macro left unexpanded, and handlers, which only code of the host can have."""
        if not inside:
            return
        for token in self._tokens[index:end]:
            if token.fault:
                raise self._reporter.refuse("MF0008", token.span, f"{token.fault}, so it cannot be used in a schedule")
        for token in handlers(self._tokens[index:end]):
            raise self._reporter.refuse("MF0217", token.span, f"a variable of a schedule has `{token.text}`")

    def _syntax_error(self, error: GrammarError, index: int, end: int, inside: bool) -> None:
        if not inside:
            return
        for here in range(index, end - 1):
            if is_atomic_keyword(self._tokens, here, end, self._partners):
                message = "an atomic update has no value: what stood there before depends on the order of threads"
                way_out = "make it a statement of its own; places in a list come from sums of counts, one by one."
                raise self._reporter.refuse("MF0224", self._tokens[here].span, message, way_out=way_out)
        if (foreign := foreign_syntax(self._tokens[index:end])) is not None:
            self._reporter.advise("MF0010", *foreign)
        else:
            self._reporter.error("MF0010", error.span, error.message)

    def _too_deep(self, index: int, end: int, inside: bool) -> None:
        if inside:
            self._reporter.error("MF0005", self._hull(index, end), "this expression is nested too deeply")

    def _unknown(self, index: int, end: int) -> syntax.Unsupported:
        tokens = self._tokens[index:end]
        written = frozenset(perhaps_written(tokens))
        return syntax.Unsupported("", self._hull(index, max(end, index + 1)), written, tuple(tokens))

    def _opaque(self, index: int, end: int, inside: bool, mistake: tuple[str, Span] | None = None) -> syntax.Opaque:
        for here in range(index, end - 1):
            if not inside and self._tokens[here].text == "meta_for" and self._tokens[here + 1].text == "(":
                message = "a `meta_for` stands outside every `meta_schedule`"
                self._reporter.error("MF0012", self._tokens[here].span, message)
        return syntax.Opaque(tuple(self._tokens[index:end]), self._hull(index, end), mistake)

    def _text(self, index: int, end: int) -> str:
        return self._tokens[index].text if index < end else ""

    def _kind(self, index: int, end: int) -> TokenKind | None:
        return self._tokens[index].kind if index < end else None

    def _separate(self, index: int, end: int) -> bool:
        """Return whether no use of a macro gives a part of some tokens together with a neighbour of theirs."""
        opens = index > 0 and self._tokens[index - 1].span == self._tokens[index].span
        closes = end < len(self._tokens) and self._tokens[end - 1].span == self._tokens[end].span
        return not opens and not closes

    def _hull(self, index: int, end: int) -> Span:
        return hull(self._tokens[index].span, self._tokens[max(min(end, len(self._tokens)), index + 1) - 1].span)

    def _semicolon(self, index: int, end: int) -> int | None:
        while index < end:
            text = self._tokens[index].text
            if text == ";":
                return index
            index = self._partners[index] + 1 if text in OPENING and index in self._partners else index + 1
        return None

    def _split(self, index: int, end: int) -> list[tuple[int, int]]:
        parts: list[tuple[int, int]] = []
        start = index
        while index < end:
            text = self._tokens[index].text
            if text == ";":
                parts.append((start, index))
                start = index + 1
            index = self._partners[index] + 1 if text in OPENING and index in self._partners else index + 1
        parts.append((start, end))
        return parts
