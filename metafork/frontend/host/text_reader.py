"""The text of a file: its tokens, what stands outside of functions, and functions as code of the host."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from metafork.frontend.host.file_scope import FileScope
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Variable
from metafork.frontend.text.cut_statements import Simple, cut_statement
from metafork.frontend.text.definitions import FunctionText
from metafork.frontend.text.parsing.c_grammar import Grammar
from metafork.frontend.text.parsing.structure import Structure
from metafork.frontend.text.preprocessing.headers import Headers
from metafork.frontend.text.preprocessing.macros import ExpansionError
from metafork.frontend.text.preprocessing.preprocessor import Included, Preprocessed, definition_of
from metafork.frontend.text.reporter import Reporter
from metafork.frontend.text.tokens import (
    BracketError,
    LineMap,
    Token,
    UnterminatedCommentError,
    first_from,
    handlers,
    hull,
    match_brackets,
    tokenize,
)
from metafork.frontend.text.unclosed_braces import refuse_unclosed
from metafork.frontend.text.vocabulary import BUILTIN_CONSTANTS, SIZED_CONSTANTS
from metafork.ir.messages.source import Source, Span

MOST_TOKENS = 150_000
"""Tokens of a function with a schedule, macros expanded: some seconds of parsing."""


class TextReader:
    """Reads one source, of which it notes what is wrong.

    ``undecided``: conditions of the text, once it is read, may depend on a command line.
    """

    def __init__(self, source: Source, *, assuming: bool = False) -> None:
        self._source = source
        self._assuming = assuming
        self.undecided = False
        self._reporter = Reporter(source)
        self._grammar = Grammar()
        self._lines = LineMap(source.text)
        self._headers = Headers(Path(source.name).parent, source.folders)

    def _declare(
        self,
        preprocessed: Preprocessed,
        scope: FileScope,
        functions: Sequence[FunctionText],
        outside: Sequence[tuple[int, int]],
    ) -> None:
        """Note what stands outside functions, in the order of the text, and the functions themselves."""
        tokens = preprocessed.tokens
        bodies = [(tokens[one.open_brace].span.start, tokens[one.close_brace].span.end) for one in functions]
        places: list[tuple[int, Included | tuple[int, int]]] = [
            (one.directive.span.start, one)
            for one in preprocessed.included
            if not any(start < one.directive.span.start < end for start, end in bodies)
        ]
        places += [(tokens[first].span.start, (first, behind)) for first, behind in outside]
        for _, one in sorted(places, key=lambda place: place[0]):
            if isinstance(one, Included):
                scope.add_header(one)
            else:
                piece = tokens[one[0] : one[1]]
                span = hull(piece[0].span, piece[-1].span)
                scope.add(piece, preprocessed.within_conditional(span) is None)
        for function in functions:
            scope.add_function(tokens[function.name])

    def _tokens(self) -> tuple[Preprocessed, dict[int, int]]:
        try:
            given = [definition_of(one) for one in self._source.definitions]
            if "__builtin_" in self._source.text:
                given += [definition_of(one) for one in BUILTIN_CONSTANTS]
            if re.search(r"INT(8|16|32|64|MAX)_C\b", self._source.text):
                given += [definition_of(one) for one in SIZED_CONSTANTS]
            if re.search(r"[</]complex\.h[>\"]", self._source.text):
                given.append(definition_of("complex=_Complex"))
            tokens = tokenize(self._source.text, self._lines)
            preprocessed = Preprocessed(tokens, self._headers, given, self._assuming)
        except UnterminatedCommentError as error:
            span = self._lines.span(error.offset, error.offset + 2)
            raise self._reporter.refuse("MF0003", span, "this comment is not closed") from None
        self.undecided = bool(preprocessed.undecided)
        for one in preprocessed.included:
            for name in one.missing:
                whole = one.directive.span
                at = self._source.text.find(name, whole.start, whole.end)
                span = self._lines.span(at, at + len(name)) if at >= 0 else whole
                self._reporter.suspect("MF0018", span, f"the header {name} is not found")
        for directive in preprocessed.unbalanced:
            self._reporter.error("MF0004", directive.span, f"this `#{directive.word}` has no partner")
        try:
            return preprocessed, match_brackets(preprocessed.tokens)
        except BracketError as error:
            # Two branches of an #if may open the same brace; then the first branch stands for both.
            with contextlib.suppress(BracketError):
                single = preprocessed.first_branches()
                return single, match_brackets(single.tokens)
            if error.token.text == "{" and error.opened is None:
                raise refuse_unclosed(self._reporter, error.token, preprocessed.tokens) from None
            related = ((error.opened.span, "this bracket is open"),) if error.opened is not None else ()
            message = f"this `{error.token.text}` has no partner"
            raise self._reporter.refuse("MF0004", error.token.span, message, related=related) from None

    def _expand(self, preprocessed: Preprocessed, tokens: Sequence[Token]) -> list[Token]:
        try:
            return preprocessed.expand(tokens)
        except ExpansionError as error:
            raise self._reporter.refuse(error.code, error.span, error.message) from None

    def _host(
        self,
        preprocessed: Preprocessed,
        tokens: Sequence[Token],
        span: Span,
        scope: FileScope,
        visible: dict[str, Variable],
        parameters: dict[str, Variable],
        fragment: bool = False,
    ) -> HostFunction:
        if len(tokens) > MOST_TOKENS:
            message = f"this function has {len(tokens)} tokens; at most {MOST_TOKENS} are taken"
            raise self._reporter.refuse("MF0016", span, message)
        try:
            structure = Structure(tokens, self._grammar, self._reporter, scope.types, fragment)
        except BracketError as error:
            message = f"this `{error.token.text}` has no partner"
            raise self._reporter.refuse("MF0004", error.token.span, message) from None
        block = structure.statements(span)
        uncertain = tuple((one.start, one.end) for one in preprocessed.conditionals)
        doubtful = [token.span for token in tokens if token.unknown] + [token.span for token in handlers(tokens)]
        # The text of a header that is included in a function is a part of it.
        doubtful += [
            one.directive.span
            for one in preprocessed.included
            if span.start <= one.directive.span.start < span.end and (one.tokens or not one.read) and not fragment
        ]
        structured = True
        for conditional in preprocessed.conditionals:
            if span.start < conditional.end and conditional.start < span.end:
                cut = cut_statement(block, conditional)
                if cut is not None:
                    simple = isinstance(cut, Simple) and cut.span.start < conditional.start
                    structured = structured and simple and conditional.end < cut.span.end
                    doubtful += [cut.span, conditional.opening]
        known = scope.known
        known = replace(known, declared=known.declared | structure.types)
        host = HostFunction(scope.typedefs, visible, parameters, block, known, uncertain, doubtful, structured)
        host.faults = {name: one.fault for name, one in preprocessed.macros_at(span.end).items() if one.fault}
        # Our own say nothing about other functions.
        before = preprocessed.tokens[: first_from(preprocessed.tokens, span.start)]
        first = next((token.span.end for token in reversed(before) if token.text in ("}", ";")), 0)
        pragmas = (
            one.rest
            for one in preprocessed.directives
            if one.word == "pragma"
            if first <= one.span.start < span.end or one.rest.split()[:1] != ["metafork"]
        )
        host.in_pragmas = frozenset(word for text in pragmas for word in re.findall(r"\w+", text))
        for message, place in host.mistakes:
            self._reporter.error("MF0010", place, message)
        return host
