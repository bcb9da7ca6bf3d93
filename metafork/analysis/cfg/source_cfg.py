"""The source CFG: basic blocks of C statements, built from a ``Program`` and giving it back (DESIGN section 3).

``build(program)`` gives a ``SourceCfg``; ``SourceCfg.program()`` gives back an equal program.  In between, a pass may
replace the statements of blocks and the conditions of terminators.  A terminator says where control goes and of which
C construct it is, with the block where the construct ends (``merge``), so that the structure is never lost.

``available`` finds what is computed where on it; ``uniform_paths`` gives one
specialised program for each outcome of the conditions that a whole block decides alike, ``launch_paths`` for each of
those that a whole launch does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.cfg.paths import UniformPath, launch_paths, uniform_paths
from metafork.ir import program as ir
from metafork.ir.messages.source import Span

__all__ = [
    "BasicBlock",
    "EnterFor",
    "EnterThreads",
    "EnterWhile",
    "Exit",
    "Jump",
    "Leave",
    "Select",
    "Simple",
    "SourceCfg",
    "Terminator",
    "Test",
    "UniformPath",
    "build",
    "launch_paths",
    "successors",
    "uniform_paths",
]

Simple = ir.Declare | ir.Assign | ir.BlockArray | ir.PrivateArray | ir.Barrier
"""The statements that stand inside basic blocks."""


class Exit(Struct, frozen=True):
    """The end of the program."""


class Jump(Struct, frozen=True):
    """Fall to the next block of the construct around this one."""

    target: int


class Leave(Struct, frozen=True):
    """``break`` or ``continue``; ``following`` is the (unreachable) block of the statements after it, if there are."""

    word: Literal["break", "continue"]
    target: int
    following: int | None
    span: Span


class Select(Struct, frozen=True):
    """``if (condition)``; a missing branch goes straight to ``merge``."""

    condition: ir.Expr
    then: int
    otherwise: int
    merge: int
    span: Span


class EnterFor(Struct, frozen=True):
    """Enter a ``for``: ``init`` is the block of its first clause, which jumps to ``header``."""

    init: int
    header: int
    step: int
    merge: int
    span: Span


class EnterWhile(Struct, frozen=True):
    """Enter a ``while``."""

    header: int
    merge: int
    span: Span


class Test(Struct, frozen=True):
    """The test of a loop, in its header; no condition is a true one."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    condition: ir.Expr | None
    body: int
    merge: int


class EnterThreads(Struct, frozen=True):
    """Enter the thread loops of a phase: each thread runs ``body`` once, then all go on at ``merge``."""

    threads: tuple[ir.MetaFor, ...]
    body: int
    merge: int
    span: Span


Terminator = Exit | Jump | Leave | Select | EnterFor | EnterWhile | Test | EnterThreads


class BasicBlock(Struct, frozen=True):
    """Statements that run one after the other, and where control goes then.

    ``scope`` is the path of C scopes around the block: a declaration is visible in blocks whose scope starts with its
    own (and which it dominates).
    """

    statements: tuple[Simple, ...]
    terminator: Terminator
    scope: tuple[int, ...]


class SourceCfg(Struct, frozen=True):
    """Basic blocks, by number; block 0 is the entry.  ``outline`` is the program with an empty body."""

    blocks: tuple[BasicBlock, ...]
    outline: ir.Program

    def program(self) -> ir.Program:
        """Give the program back."""
        return replace(self.outline, body=tuple(self._body(0, None)))

    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Return the predecessors of each block."""
        result: list[list[int]] = [[] for _ in self.blocks]
        for number, block in enumerate(self.blocks):
            for target in successors(block.terminator):
                result[target].append(number)
        return tuple(tuple(sources) for sources in result)

    def with_block(self, number: int, block: BasicBlock) -> SourceCfg:
        """Return the CFG with one block replaced."""
        return replace(self, blocks=(*self.blocks[:number], block, *self.blocks[number + 1 :]))

    def _body(self, number: int | None, stop: int | None) -> Iterator[ir.Stmt]:
        """Yield the statements from a block up to, not including, the block ``stop``."""
        while number is not None and number != stop:
            block = self.blocks[number]
            yield from block.statements
            terminator = block.terminator
            match terminator:
                case Exit() | Jump() | Test():
                    # A jump that ends a body leads to its ``stop``; there is no other.
                    return
                case Leave(word=word, following=following, span=span):
                    yield ir.Break(span) if word == "break" else ir.Continue(span)
                    number = following
                case Select(condition=condition, then=then, otherwise=otherwise, merge=merge, span=span):
                    yield ir.If(condition, tuple(self._body(then, merge)), tuple(self._body(otherwise, merge)), span)
                    number = merge
                case EnterFor(merge=merge):
                    yield self._for(terminator)
                    number = merge
                case EnterWhile(header=header, merge=merge, span=span):
                    test = self._test(header)
                    assert test.condition is not None
                    yield ir.While(test.condition, tuple(self._body(test.body, header)), span)
                    number = merge
                case EnterThreads(threads=threads, body=body, merge=merge, span=span):
                    yield ir.Phase(threads, tuple(self._body(body, merge)), span)
                    number = merge
                case _:
                    assert_never(terminator)

    def _test(self, header: int) -> Test:
        test = self.blocks[header].terminator
        assert isinstance(test, Test)
        return test

    def _for(self, loop: EnterFor) -> ir.For:
        test = self._test(loop.header)
        first, last = self.blocks[loop.init].statements, self.blocks[loop.step].statements
        init = first[0] if first else None
        step = last[0] if last else None
        assert init is None or isinstance(init, ir.Declare | ir.Assign)
        assert step is None or isinstance(step, ir.Assign)
        return ir.For(init, test.condition, step, tuple(self._body(test.body, loop.step)), loop.span)


def successors(terminator: Terminator) -> tuple[int, ...]:
    """Return where control may go from a terminator."""
    match terminator:
        case Exit():
            return ()
        case Jump(target=target) | Leave(target=target):
            return (target,)
        case Select(then=then, otherwise=otherwise):
            return (then, otherwise) if then != otherwise else (then,)
        case EnterFor(init=init):
            return (init,)
        case EnterWhile(header=header):
            return (header,)
        case Test(condition=condition, body=body, merge=merge):
            return (body,) if condition is None else (body, merge)
        case EnterThreads(body=body):
            return (body,)
        case _:
            assert_never(terminator)


def build(program: ir.Program) -> SourceCfg:
    """Return the source CFG of a program."""
    return _Builder(program).cfg()


class _Loop(Struct, frozen=True):
    """Where ``break`` and ``continue`` lead."""

    merge: int
    again: int


class _Builder:
    def __init__(self, program: ir.Program) -> None:
        self._program = program
        self._blocks: list[BasicBlock | None] = []
        self._scopes = 0

    def cfg(self) -> SourceCfg:
        entry = self._new()
        self._body(self._program.body, entry, None, (), None)
        blocks = tuple(block for block in self._blocks if block is not None)
        assert len(blocks) == len(self._blocks)
        return SourceCfg(blocks, replace(self._program, body=()))

    def _new(self) -> int:
        self._blocks.append(None)
        return len(self._blocks) - 1

    def _inner(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        self._scopes += 1
        return (*scope, self._scopes)

    def _body(
        self, body: tuple[ir.Stmt, ...], number: int, after: int | None, scope: tuple[int, ...], loop: _Loop | None
    ) -> None:
        """Fill block ``number`` and new ones with a body; at its end control goes to ``after``."""
        statements: list[Simple] = []
        for position, stmt in enumerate(body):
            match stmt:
                case ir.Declare() | ir.Assign() | ir.BlockArray() | ir.PrivateArray() | ir.Barrier():
                    statements.append(stmt)
                    continue
                case ir.Break(span=span) | ir.Continue(span=span):
                    if loop is None:
                        raise ValueError("break or continue outside a serial loop")
                    following = self._new() if position + 1 < len(body) else None
                    if isinstance(stmt, ir.Break):
                        leave = Leave("break", loop.merge, following, span)
                    else:
                        leave = Leave("continue", loop.again, following, span)
                    self._blocks[number] = BasicBlock(tuple(statements), leave, scope)
                    if following is None:
                        return
                    number, statements = following, []
                    continue
                case ir.If() | ir.For() | ir.While() | ir.Phase():
                    merge = self._new()
                    terminator = self._construct(stmt, merge, scope, loop)
                    self._blocks[number] = BasicBlock(tuple(statements), terminator, scope)
                    number, statements = merge, []
                case _:
                    assert_never(stmt)
        end = Exit() if after is None else Jump(after)
        self._blocks[number] = BasicBlock(tuple(statements), end, scope)

    def _construct(
        self, stmt: ir.If | ir.For | ir.While | ir.Phase, merge: int, scope: tuple[int, ...], loop: _Loop | None
    ) -> Terminator:
        match stmt:
            case ir.If(condition=condition, then=then, otherwise=otherwise, span=span):
                ends = []
                for branch in (then, otherwise):
                    if branch:
                        ends.append(self._new())
                        self._body(branch, ends[-1], merge, self._inner(scope), loop)
                    else:
                        ends.append(merge)
                return Select(condition, ends[0], ends[1], merge, span)
            case ir.For(init=init, condition=clause, step=step, body=body, span=span):
                first, header, inside, again = self._new(), self._new(), self._new(), self._new()
                around = self._inner(scope)
                self._blocks[first] = BasicBlock(() if init is None else (init,), Jump(header), around)
                self._blocks[header] = BasicBlock((), Test(clause, inside, merge), around)
                self._blocks[again] = BasicBlock(() if step is None else (step,), Jump(header), around)
                self._body(body, inside, again, self._inner(around), _Loop(merge, again))
                return EnterFor(first, header, again, merge, span)
            case ir.While(condition=condition, body=body, span=span):
                header, inside = self._new(), self._new()
                around = self._inner(scope)
                self._blocks[header] = BasicBlock((), Test(condition, inside, merge), around)
                self._body(body, inside, header, around, _Loop(merge, header))
                return EnterWhile(header, merge, span)
            case ir.Phase(threads=threads, body=body, span=span):
                inside = self._new()
                self._body(body, inside, merge, self._inner(scope), None)
                return EnterThreads(threads, inside, merge, span)
            case _:
                assert_never(stmt)
