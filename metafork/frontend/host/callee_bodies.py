"""The bodies of a file's functions without schedules, as code of the host, read when they are called the first time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from metafork.frontend.host.callees import Callee
from metafork.frontend.host.file_scope import FileScope
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Variable, declared
from metafork.frontend.text.clauses.keywords import is_schedule_keyword
from metafork.frontend.text.definitions import FunctionText, split_commas
from metafork.frontend.text.parsing.c_grammar import Grammar, GrammarError, TooDeepError
from metafork.frontend.text.parsing.structure import Structure
from metafork.frontend.text.preprocessing.macros import ExpansionError
from metafork.frontend.text.preprocessing.preprocessor import Preprocessed
from metafork.frontend.text.reporter import RefusedError, SilentReporter
from metafork.frontend.text.tokens import BracketError, Token, handlers, hull

_MOST_TOKENS = 5000
"""Of a function whose effects are looked for."""


class HostCallees:
    """The functions of one file, those of its headers left out."""

    def __init__(
        self, preprocessed: Preprocessed, grammar: Grammar, scope: FileScope, functions: Sequence[FunctionText]
    ) -> None:
        self._preprocessed = preprocessed
        self._grammar = grammar
        self._scope = scope
        self._texts: dict[str, list[FunctionText]] = {}
        self._read: dict[str, Callee | None] = {}
        for one in functions:
            self._texts.setdefault(preprocessed.tokens[one.name].text, []).append(one)

    def find(self, name: str) -> Callee | None:
        """Return a function, ``None`` where something in it is not known."""
        if name not in self._read:
            self._read[name] = None
            texts = self._texts.get(name, [])
            if len(texts) == 1:
                with contextlib.suppress(
                    RefusedError, GrammarError, TooDeepError, ExpansionError, BracketError, RecursionError
                ):
                    self._read[name] = self._callee(name, texts[0])
        return self._read[name]

    def _callee(self, name: str, text: FunctionText) -> Callee | None:
        tokens = self._preprocessed.tokens
        whole = hull(tokens[text.first].span, tokens[text.close_brace].span)
        span = hull(tokens[text.open_brace].span, tokens[text.close_brace].span)
        said = any(whole.start <= one.span.start < whole.end for one in self._preprocessed.directives)
        schedules = any(is_schedule_keyword(tokens, at) for at in range(text.open_brace, text.close_brace))
        conditional = self._preprocessed.within_conditional(whole) is not None
        if said or schedules or conditional or text.close_brace - text.first > _MOST_TOKENS:
            return None
        parameters: dict[str, Variable] = {}
        for first, behind in split_commas(tokens, text.open_paren + 1, text.close_paren):
            piece = tokens[first:behind]
            if not piece or [token.text for token in piece] == ["void"]:
                continue
            declarator = self._grammar.parameter(self._expanded(piece), self._scope.types)
            if declarator is None:
                return None
            variable = declared(declarator, self._scope.typedefs, 0)
            variable.scope = {**self._scope.variables, **parameters}
            variable.is_parameter = True
            parameters[variable.name] = variable
        body = self._expanded(tokens[text.open_brace + 1 : text.close_brace])
        structure = Structure(body, self._grammar, SilentReporter(), self._scope.types)
        doubtful = [token.span for token in body if token.unknown or token.fault]
        doubtful += [token.span for token in handlers(body)]
        host = HostFunction(
            self._scope.typedefs,
            self._scope.variables,
            parameters,
            structure.statements(span),
            self._scope.known,
            doubtful=doubtful,
        )
        return None if host.has_unknown(span) else Callee(name, tuple(parameters.values()), host)

    def _expanded(self, tokens: Sequence[Token]) -> list[Token]:
        return self._preprocessed.expand(tokens) if tokens else []
