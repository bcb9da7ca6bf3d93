"""The functions of a file and its own headers, each parsed when a schedule calls it for the first time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.file_scope import FileScope
from metafork.frontend.host.variables import declared
from metafork.frontend.nests.local_pointers import with_places
from metafork.frontend.schedules.inlining.builtins import builtin
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import is_schedule_keyword
from metafork.frontend.text.definitions import FunctionText, declared_name, definitions, split_commas
from metafork.frontend.text.parsing.c_grammar import Grammar, GrammarError, TooDeepError
from metafork.frontend.text.parsing.structure import Structure
from metafork.frontend.text.preprocessing.macros import ExpansionError
from metafork.frontend.text.preprocessing.preprocessor import Included, Preprocessed
from metafork.frontend.text.reporter import RefusedError, Reporter, SilentReporter
from metafork.frontend.text.tokens import BracketError, Token, TokenKind, hull, match_brackets, tokenize
from metafork.ir.messages.source import Span

_SPECIFIERS = frozenset({"static", "inline", "extern", "__inline", "__inline__", "_Noreturn"})


_NOWHERE = Span(1, 1, 1, 1, 0, 0)


class FileFunction(Struct, frozen=True):
    """A function of the file: what it takes, what it gives (``None`` for ``void``), and its body."""

    name: str
    span: Span
    parameters: tuple[syntax.Declarator, ...]
    returns: syntax.TypeName | None
    body: syntax.Block


class _Text(Struct, frozen=True):
    """Where a function stands: in the file, in a header of its own, or in the compiler."""

    tokens: Sequence[Token]
    places: FunctionText
    included: Included | None
    of_compiler: bool = False


class Functions:
    """The functions that a schedule may call."""

    def __init__(
        self,
        preprocessed: Preprocessed,
        grammar: Grammar,
        reporter: Reporter,
        scope: FileScope,
        functions: Sequence[FunctionText],
    ) -> None:
        self._preprocessed = preprocessed
        self._grammar = grammar
        self._reporter = reporter
        self._scope = scope
        self._quiet: Functions | None = None
        self._given = functions
        self._texts: dict[str, list[_Text]] = {}
        self._parsed: dict[str, FileFunction | None] = {}
        for text in functions:
            self._note(_Text(preprocessed.tokens, text, None))
        for included in preprocessed.included:
            with contextlib.suppress(BracketError):
                for text in definitions(included.tokens, match_brackets(included.tokens))[0]:
                    self._note(_Text(included.tokens, text, included))

    def _note(self, text: _Text) -> None:
        self._texts.setdefault(text.tokens[text.places.name].text, []).append(text)

    @property
    def quiet(self) -> Functions:
        """The same functions for the code of the host, in which nothing is a fault."""
        if self._quiet is None:
            self._quiet = Functions(self._preprocessed, self._grammar, SilentReporter(), self._scope, self._given)
        return self._quiet

    @property
    def names(self) -> list[str]:
        """The names of all functions that have a body."""
        return list(self._texts)

    def find(self, name: str) -> FileFunction | None:
        """Return the function of a name, ``None`` where the file has no body of it.

        Raises ``RefusedError`` after reporting why it cannot be put in line.
        """
        if name not in self._texts and (text := builtin(name)):
            tokens = [replace(one, span=_NOWHERE) for one in tokenize(text)]
            self._note(_Text(tokens, definitions(tokens, match_brackets(tokens))[0][0], None, of_compiler=True))
        if name not in self._texts:
            return None
        if name not in self._parsed:
            self._parsed[name] = None
            with contextlib.suppress(RefusedError):
                self._parsed[name] = self._parse(name, self._texts[name])
        found = self._parsed[name]
        if found is None:
            raise RefusedError
        return found

    def reached(self, statement: syntax.Statement) -> Iterator[FileFunction]:
        """Yield the functions that a statement calls, and those that they call, each once."""
        seen: set[str] = set()
        pending = [statement]
        while pending:
            for name in sorted(_called(pending.pop()) - seen):
                seen.add(name)
                with contextlib.suppress(RefusedError):
                    function = self.find(name)
                    if function is not None:
                        yield function
                        pending.append(function.body)

    # --- parsing ----------------------------------------------------------------------------------------------

    def _refuse(self, span: Span, message: str) -> RefusedError:
        return self._reporter.refuse("MF0223", span, message)

    def _parse(self, name: str, texts: list[_Text]) -> FileFunction:
        text = texts[0]
        tokens, places = text.tokens, text.places
        span = tokens[places.name].span
        whole = hull(tokens[places.first].span, tokens[places.close_brace].span)
        conditional = (
            text.included is None and not text.of_compiler and self._preprocessed.within_conditional(whole) is not None
        )
        if text.included is not None:
            conditional = any(text.included.uncertain[places.first : places.close_brace + 1])
        if conditional or len(texts) > 1:
            raise self._reporter.refuse("MF0008", span, f"`{name}` is defined under a condition")
        if any(is_schedule_keyword(tokens, at) for at in range(places.open_brace, places.close_brace)):
            raise self._refuse(span, f"`{name}` is called in a schedule and has a schedule of its own")
        body = self._expand(text, places.open_brace + 1, places.close_brace)
        body_span = hull(tokens[places.open_brace].span, tokens[places.close_brace].span)
        returns = self._returns(text, span)
        try:
            structure = Structure(body, self._grammar, self._reporter, self._scope.types)
        except BracketError as error:
            raise self._reporter.refuse("MF0004", error.token.span, "this bracket has no partner") from None
        parameters = self._parameters(text)
        given = {one.name: declared(one, self._scope.typedefs, 0) for one in parameters}
        block = structure.statements(body_span, inside=True)
        found = with_places(block, {**self._scope.variables, **given}, self._scope.typedefs, parameters)
        assert isinstance(found, syntax.Block)
        return FileFunction(name, span, parameters, returns, found)

    def _expand(self, text: _Text, first: int, behind: int) -> list[Token]:
        if first == behind or text.of_compiler:
            return [*text.tokens[first:behind]]
        try:
            if text.included is not None:
                return self._preprocessed.expand_included(text.included, first, behind)
            return self._preprocessed.expand(text.tokens[first:behind])
        except ExpansionError as error:
            raise self._reporter.refuse(error.code, error.span, error.message) from None

    def _returns(self, text: _Text, span: Span) -> syntax.TypeName | None:
        """Return the type of what a function gives."""
        places = text.places
        head = [token for token in self._expand(text, places.first, places.name + 1) if token.text not in _SPECIFIERS]
        with contextlib.suppress(GrammarError, TooDeepError):
            tokens = [*head, Token(TokenKind.PUNCTUATOR, ";", span)]
            simple = self._grammar.simple_statement(tokens, self._scope.types)
            if isinstance(simple, syntax.Declaration) and len(simple.declarators) == 1:
                found = simple.declarators[0].type
                return None if found.words == ("void",) and not found.pointers else found
        from metafork.frontend.text.other_languages.types import foreign_function  # most files have none

        if (foreign := foreign_function(text.tokens[places.first : places.name])) is not None:
            raise self._reporter.advise(*foreign)
        raise self._refuse(span, "the type of what this function gives is not understood")

    def _parameters(self, text: _Text) -> tuple[syntax.Declarator, ...]:
        places = text.places
        found: list[syntax.Declarator] = []
        for first, behind in split_commas(text.tokens, places.open_paren + 1, places.close_paren):
            piece = text.tokens[first:behind]
            if not piece or [token.text for token in piece] == ["void"]:
                continue
            declarator: syntax.Declarator | None = None
            with contextlib.suppress(GrammarError, TooDeepError):
                declarator = self._grammar.parameter(self._expand(text, first, behind), self._scope.types)
            named = declared_name(piece)
            if declarator is None and named is not None:
                from metafork.frontend.text.other_languages.types import foreign_declaration  # most files have none

                if (foreign := foreign_declaration(piece, named)) is not None:
                    raise self._reporter.advise(*foreign)
            if declarator is None:
                raise self._refuse(hull(piece[0].span, piece[-1].span), "this parameter is not understood")
            found.append(declarator)
        return tuple(found)


def _called(statement: syntax.Statement) -> set[str]:
    return {
        part.callee.name
        for inner in syntax.walk_statements(statement)
        for expression in syntax.direct_expressions(inner)
        for part in syntax.walk(expression)
        if isinstance(part, syntax.Invocation) and isinstance(part.callee, syntax.Name)
    }
