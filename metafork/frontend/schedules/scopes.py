"""Names inside a schedule: nested scopes over the host's names, and a unique name in the program for every local."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.frontend.schedules.symbols import ArraySymbol, ScalarSymbol, Symbol, UnusableSymbol
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.tokens import Token, TokenKind
from metafork.frontend.text.vocabulary import DEVICE_WORDS
from metafork.ir import program as ir
from metafork.ir.messages.source import Span


class _Scope(Struct):
    symbols: dict[str, Symbol] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    of_function: str = ""


class Scopes:
    """The scopes of one schedule.

    ``host`` maps names of the host to symbols and ``host_names`` lists them, ``file`` maps those that functions of
    the file see; ``reserved`` are those that the program uses, ``spoken`` the names that the schedule declares.
    ``scalars`` and ``arrays`` collect the host's names that were looked up.
    """

    def __init__(
        self,
        reporter: Reporter,
        host: Callable[[str], Symbol | None],
        file: Callable[[str], Symbol | None],
        host_names: list[str],
        reserved: frozenset[str],
        spoken: frozenset[str],
    ) -> None:
        self._reporter = reporter
        self._host = host
        self._file = file
        self._host_names = host_names
        self._taken = set(reserved)
        self._spoken = spoken
        self._scopes: list[_Scope] = []
        self._of_block: set[str] = set()
        self.scalars: set[str] = set()
        self.arrays: set[str] = set()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope for the time of a ``with`` statement."""
        self._scopes.append(_Scope())
        try:
            yield
        finally:
            self._scopes.pop()

    @contextmanager
    def function(self, name: str, parameters: dict[str, Symbol]) -> Iterator[None]:
        """Open the scope of a function that is put in line: of names around it, it sees those of the file only."""
        self._scopes.append(_Scope(dict(parameters), of_function=name))
        try:
            yield
        finally:
            self._scopes.pop()

    def resolve(self, name: str) -> Symbol | None:
        """Return what a name stands for, innermost first; raises ``RefusedError`` where its declaration was refused."""
        for scope in reversed(self._scopes):
            if name in scope.symbols:
                symbol = scope.symbols[name]
                if isinstance(symbol, UnusableSymbol):
                    raise RefusedError
                return symbol
            if scope.of_function:
                found = self._file(name)
                break
        else:
            found = self._host(name)
        if isinstance(found, ScalarSymbol) and found.number is None:
            self.scalars.add(name)
        elif isinstance(found, ArraySymbol):
            self.arrays.add(name)
        return found

    def visible(self) -> list[str]:
        """Return all names in scope."""
        names: list[str] = []
        for scope in reversed(self._scopes):
            names = [*scope.symbols, *names]
            if scope.of_function:
                return names
        return names + self._host_names

    def local(self, unique: str) -> ScalarSymbol | None:
        """Return the local scalar with a unique name, ``None`` where the name is the host's."""
        for scope in reversed(self._scopes):
            for symbol in scope.symbols.values():
                if isinstance(symbol, ScalarSymbol) and symbol.name == unique:
                    return symbol
        return None

    def array(self, unique: str) -> ArraySymbol:
        """Return the array with a unique name."""
        for scope in reversed(self._scopes):
            for symbol in scope.symbols.values():
                if isinstance(symbol, ArraySymbol) and symbol.array.name == unique:
                    return symbol
        found = self._host(unique)
        assert isinstance(found, ArraySymbol)
        return found

    def given(self, name: str) -> ir.Var | ir.IntConst | None:
        """Return whether a pointer is not null: the host's integer that says so; ``None`` where nothing does."""
        symbol = self.resolve(name)
        if not isinstance(symbol, ArraySymbol) or symbol.array.scalar or symbol.whole:
            return None
        if not symbol.pointer or symbol.of_block or symbol.of_thread or symbol.prefix or symbol.offset is not None:
            return ir.IntConst(1)  # a place in an array
        found = self._host(symbol.given) if symbol.given else None
        if not isinstance(found, ScalarSymbol):
            return None
        self.scalars.add(found.name)
        return ir.Var(found.name, found.type)

    def is_of_block(self, unique: str) -> bool:
        """Return whether a unique name is that of an array of the block."""
        return unique in self._of_block

    def check(self, name: str, span: Span) -> None:
        """Refuse a second declaration of a name in the innermost scope."""
        before = self._scopes[-1].spans.get(name)
        if before is not None:
            related = ((before, "declared here first"),)
            raise self._reporter.refuse("MF0307", span, f"`{name}` is declared twice in one scope", related=related)
        self._scopes[-1].spans[name] = span

    def introduce(self, name: str, symbol: ScalarSymbol, span: Span, base: str = "") -> str:
        """Declare a scalar in the innermost scope and return its unique name, which is like ``base`` where given."""
        self.check(name, span)
        unique = self.fresh(base or name)
        self._scopes[-1].symbols[name] = replace(symbol, name=unique)
        return unique

    def settle(self, name: str, number: int) -> None:
        """Note the value of a scalar of the innermost scope that never has another one."""
        symbol = self._scopes[-1].symbols[name]
        assert isinstance(symbol, ScalarSymbol)
        self._scopes[-1].symbols[name] = replace(symbol, number=number)

    def fresh(self, name: str) -> str:
        """Return a name that nothing in the program has: the given one where it is free."""
        unique, number = name, 0
        while unique in self._taken or unique in DEVICE_WORDS or (number and unique in self._spoken):
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(unique)
        return unique

    def declare_array(self, name: str, symbol: ArraySymbol) -> None:
        """Declare an array of the block, or of a thread, in the innermost scope."""
        if symbol.of_block:
            self._of_block.add(symbol.array.name)
        self._scopes[-1].symbols[name] = symbol

    def name_members(self, name: str, members: tuple[str, ...], *, single: bool) -> None:
        """Note that an array of the innermost scope is one of structures, or a single one."""
        symbol = self._scopes[-1].symbols[name]
        assert isinstance(symbol, ArraySymbol)
        self._scopes[-1].symbols[name] = replace(symbol, members=members, single=single)

    def give_up_unknown(self, tokens: Sequence[Token]) -> None:
        """Note the names of a piece that is not understood: it may declare those that nothing else does."""
        known = set(self.visible())
        for token in tokens:
            if token.kind is TokenKind.NAME and token.text not in known:
                self.give_up(token.text, token.span)

    def give_up(self, name: str, span: Span) -> None:
        """Note that the declaration of a name was refused, so that its uses are not reported as well."""
        self._scopes[-1].symbols.setdefault(name, UnusableSymbol("", "", span))
