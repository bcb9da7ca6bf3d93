"""pycparser fed with tokens: its lexer and its parser, which note where each node stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from msgspec import Struct
from pycparser.c_lexer import CLexer
from pycparser.c_lexer import Token as LexerToken
from pycparser.c_parser import Coord, CParser, _TokenStream

from metafork.frontend.text.tokens import Token, TokenKind

_SPELLED = {"__const": "const", "__const__": "const", "__signed__": "signed", "bool": "_Bool"}


class StoppedError(Exception):
    """pycparser stops at the token of an index."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.message = message
        self.index = index


class FeedLexer(CLexer):  # type: ignore[misc]  # pycparser has no types
    """Gives the parser our tokens; the line number of each is its index."""

    def feed(self, tokens: Sequence[Token]) -> None:
        """Take other tokens."""
        self._feed = tokens
        self._next = 0
        self._types: frozenset[str] = frozenset()
        self.input("")

    def expect_types(self, types: frozenset[str]) -> None:
        """Take these names for types."""
        self._types = types

    def token(self) -> LexerToken | None:
        """Return the next token, ``None`` behind the last one."""
        if self._next >= len(self._feed):
            return None
        token = self._feed[self._next]
        text = _SPELLED.get(token.text, token.text)
        if token.fault and (text in self._keyword_map or text in self._types):
            raise StoppedError(token.fault, self._next)
        given = LexerToken(self._classify(token.kind, text), text, self._next, 1, "")
        self._next += 1
        return given

    def _classify(self, kind: TokenKind, text: str) -> str:
        if kind is TokenKind.NAME:
            return str(self._keyword_map.get(text, "ID"))
        if kind in (TokenKind.STRAY, TokenKind.DIRECTIVE):
            raise StoppedError(f"`{text}` is no token of C", self._next)
        self.input(text)
        token = super().token()
        if token is None or token.value != text:
            raise StoppedError(f"`{text}` is no token of C", self._next)
        return str(token.type)


class Extent(Struct, frozen=True):
    """A half-open range of tokens."""

    begin: int
    end: int


class Parser(CParser):  # type: ignore[misc]  # pycparser has no types
    """pycparser's parser, with token extents noted: of what stands in parentheses, of leaves, of type names."""

    def __init__(self) -> None:
        super().__init__(lexer=FeedLexer)
        self.extents: dict[int, Extent] = {}
        self.declarators: list[Extent] = []
        self._alive: list[Any] = []  # keeps ids from being used again

    def load(self, tokens: Sequence[Token], types: frozenset[str], supposed: frozenset[str]) -> None:
        """Begin with other tokens; ``types`` and ``supposed`` ones are names of types."""
        self.clex.feed(tokens)
        self.clex.expect_types(types)
        self._scope_stack = [dict.fromkeys(types | supposed, True), {}]
        self._typedef_checked_token = None
        self._tokens = _TokenStream(self.clex.token)
        self.extents, self.declarators, self._alive = {}, [], []

    def _parse_error(self, msg: str, coord: Any) -> NoReturn:
        raise StoppedError(msg, coord.line if isinstance(coord, Coord) else self._mark())

    def _lex_error_func(self, msg: str, line: int, column: int) -> None:
        raise StoppedError(msg, self._mark())

    def _note(self, node: Any, begin: int) -> Any:
        self.extents[id(node)] = Extent(begin, self._mark())
        self._alive.append(node)
        return node

    def _parse_primary_expression(self) -> Any:
        begin = self._mark()
        return self._note(super()._parse_primary_expression(), begin)

    def _parse_type_name(self) -> Any:
        begin = self._mark()
        return self._note(super()._parse_type_name(), begin)

    def _parse_initializer(self) -> Any:
        begin = self._mark()
        return self._note(super()._parse_initializer(), begin)

    def _parse_init_declarator(self, id_only: bool = False) -> Any:
        begin = self._mark()
        result = super()._parse_init_declarator(id_only)
        self.declarators.append(Extent(begin, self._mark()))
        return result

    def at_end(self) -> bool:
        """Say whether all tokens are read."""
        return self._peek() is None

    def starts_declaration(self) -> bool:
        """Say whether a declaration comes next."""
        return bool(self._starts_declaration())
