"""One path of a program as kernel statements: references redirected, windows moved, barriers where threads meet.

A barrier stands wherever what some thread did since the last one (a phase, a copy, a read of memory that the whole
block acts upon) could otherwise meet what another thread does next: between phases, around copies, and between the
iterations of a block-level loop (``metafork.lowering.meeting``).  Where copies run a step ahead
(``metafork.lowering.copies.staged``), one that awaits them stands at the beginning of each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from metafork.algebra.polynomial import ONE
from metafork.analysis.counted_loops import doubled, halved
from metafork.analysis.first_elements import first_alone
from metafork.analysis.memory.block_memory import HeldWindow, PathPlan
from metafork.analysis.memory.private_windows import digits_of
from metafork.analysis.memory.speculation import left_out
from metafork.analysis.memory.thread_arrays import thread_arrays
from metafork.analysis.memory.tile_layout import declare_masks
from metafork.analysis.memory.window_store import Store
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import promoted
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.marks import phases
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG, code_of, may_be_negative
from metafork.ir.rewriting import private_arrays, without_unread
from metafork.ir.visitor import Body, Rewriter
from metafork.lowering.copies.copy import (
    INT,
    Site,
    as_int,
)
from metafork.lowering.copies.window_copies import load, store
from metafork.lowering.loop_bounds import bounded
from metafork.lowering.meeting import NOTHING, Touched
from metafork.lowering.places import Places
from metafork.lowering.private import PrivateCode
from metafork.lowering.thread_memory import ThreadMemory
from metafork.unrolling.warp_steps import Block

if TYPE_CHECKING:  # few programs have structures, and every run would load it
    from metafork.lowering.structures import StructureCode


@dataclass
class PathLowering(Rewriter):
    """Rewrites the body of one path; use once.

    ``names`` gives the kernel's memory of each held window, ``block_arrays`` the extents of arrays of the block;
    ``threads`` places the threads' own arrays; ``taken`` are the names that are in use.  Phases stay, with their marks
    (``metafork.unrolling.threads``); ``stepping`` gets the blocks of loops that halve or double their variable, by it.
    """

    plan: PathPlan
    site: Site
    names: Mapping[int, str]
    block_arrays: Mapping[str, str]
    private: Sequence[PrivateCode]
    structures: Sequence[StructureCode]
    threads: ThreadMemory
    taken: set[str]
    touched: Touched = NOTHING
    stepping: dict[str, Block] = field(default_factory=dict)
    _phases: int = 0
    _at_block: bool = True
    _varying: set[str] = field(default_factory=set)
    _level: tuple[str, ...] = ()
    _met: ir.Element | None = None
    _symbols: dict[str, ir.Expr] = field(init=False)
    _places: Places = field(init=False)
    _unrolled: frozenset[int] = field(init=False)
    _left_out: frozenset[int] = field(init=False)
    _digits: list[LoopRange] = field(init=False)

    def __post_init__(self) -> None:
        self._symbols = dict(self.site.symbols)
        self._places = Places(
            self.plan, self.site.extent_code, self.names, self.block_arrays,
            self.private, self.structures, self.threads, self._symbols,
        )  # fmt: skip
        self._unrolled = thread_arrays(self.plan.program).unrolled
        self._left_out = left_out(self.plan, self.site.prover)
        self._digits = [
            digit
            for code in self.private
            for ref in code.window.references
            if code.window.of_block
            for digit in digits_of(ref, code.window.factors)
        ]

    def _masks(self) -> list[ir.Stmt]:
        """Declare the masks of the layouts that turn rows."""
        tiles = [
            (held.window.layout, code_of(held.window.extents[-1], self.site.symbols), held.window.array.element)
            for held in self.plan.windows
        ]
        for array, _ in self.plan.block_arrays:
            tiles.append((self.plan.program.mapping.layout(array.name), array.extents[-1], array.element))
        return declare_masks(tiles, self._symbols, self.taken)

    def lower(self) -> tuple[ir.Stmt, ...]:
        """Return the statements of the path, copies and private windows included."""
        masks = self._masks()
        body = self._with_copies(self.plan.program.body)
        after = [stmt for code in self.private for stmt in code.epilogue(self._copy_site())]
        return (*masks, *self.site.rows.declarations, *body, *after)

    def _copy_site(self) -> Site:
        return replace(self.site, symbols=self._symbols)

    def _with_copies(self, body: Body) -> list[ir.Stmt]:
        """Lower a block-level body with the copies of the windows that live there."""
        here = [(held, self.names[id(held)]) for held in self.plan.windows if held.window.level == self._level]
        in_time = [(held, name) for held, name in here if held.stages == 1]
        result: list[ir.Stmt] = []
        # Scalars that windows start from (decoded grid variables) come before whatever moves them.
        leading = 0
        while (
            leading < len(body)
            and isinstance(body[leading], ir.Declare)
            and not any(_reads_memory(expr) for expr in ir.expressions_of(body[leading]))
        ):
            result += self.body((body[leading],))
            leading += 1
        if not self._level:  # private windows start from such scalars too
            result += [stmt for code in self.private for stmt in code.prologue(self._copy_site())]
        loads = [
            stmt
            for held, name in in_time
            if held.window.reads or held.store is Store.NONE
            for stmt in load(held.window, name, self._copy_site())
        ]
        if loads:
            result += [*self._meet(self._moved(here)), *loads]
        result += self.body(body[leading:])
        stores: list[ir.Stmt] = []
        for held, name in here:
            for box in held.boxes:
                stores += store(held.window, box, name, self._copy_site())
        if stores:
            result += [*self._meet(self._moved(here)), *stores]
        return result

    def _meet(self, following: Touched) -> list[ir.Stmt]:
        """Return the barrier that has to stand before what touches so much, if one has."""
        barriers = self._come_to(following)
        self.touched |= following
        return barriers

    def _come_to(self, following: Touched) -> list[ir.Stmt]:
        """Return the barrier that has to stand before a loop that touches so much, or before its next iteration."""
        if not self.touched.meets(following):
            return []
        self.touched = NOTHING
        return [ir.Barrier()]

    def _touched(self, *body: ir.Stmt) -> Touched:
        """Return what code touches that other threads may touch, copies of windows in it included."""
        windows = {held.window.array.name for held in self.plan.windows}
        own = {code.window.array.name for code in self.private if code.window.of_block}
        return Touched.of(body, windows).without(own | private_arrays(body) | self._places.tables)

    @staticmethod
    def _moved(here: Iterable[tuple[HeldWindow, str]]) -> Touched:
        names = frozenset(held.window.array.name for held, _ in here)
        return Touched(names, names)

    def phase(self, node: ir.Phase) -> Body:
        """Lower a phase."""
        before = self._meet(self._touched(node))
        self._at_block = False
        declared = {stmt.name for stmt in ir.walk_statements(node.body) if isinstance(stmt, ir.Declare)}
        self._varying = declared | {loop.var for loop in node.threads}
        for loop in node.threads:
            self._symbols[loop.var] = ir.Var(loop.var, loop.type)
        body = self._phase_body(node)
        self._at_block = True
        return (*before, replace(node, body=body))

    def branch(self, node: ir.If) -> Body:
        """Lower an ``if``; what follows meets what either side did."""
        if id(node) in self._left_out:
            return self.body(node.then)
        before = self._meet_to_read(node.condition)
        test = self.expression(node.condition)
        start = self.touched
        then = self.body(node.then)
        ended, self.touched = self.touched, start
        otherwise = self.body(node.otherwise)
        self.touched |= ended
        return (*before, ir.If(test, then, otherwise))

    def repeat(self, node: ir.While) -> Body:
        """Lower a ``while``."""
        if not self._at_block:
            return (ir.While(self.expression(node.condition), self.body(node.body)),)
        whole = self._touched(node)
        before = self._come_to(whole)
        start, self.touched = self.touched, Touched.of_values(node.condition)
        test = self.expression(node.condition)
        inner = (*self.body(node.body), *self._come_to(whole))
        self.touched |= start | Touched.of_values(node.condition)
        return (*before, ir.While(test, inner))

    def loop(self, node: ir.For) -> Body:
        """Lower a ``for``."""
        return tuple(self._block_for(node) if self._at_block else self._thread_for(node))

    def jump(self, node: ir.Break | ir.Continue) -> Body:
        """Lower a jump."""
        if not self._at_block:
            return (node,)
        barriers = [] if self.touched == NOTHING else [ir.Barrier()]
        self.touched = NOTHING
        return (*barriers, node)

    def array(self, node: ir.BlockArray | ir.PrivateArray) -> Body:
        """Place an array of the thread; those of the block have their place."""
        if isinstance(node, ir.PrivateArray):
            self.threads.declare(node.array)
        return ()

    def declare(self, node: ir.Declare) -> Body:
        """Lower the declaration of a scalar."""
        return (*self._meet_to_read(*ir.expressions_of(node)), *self._simple(node))

    def assign(self, node: ir.Assign) -> Body:
        """Lower an assignment."""
        return (*self._meet_to_read(*ir.expressions_of(node)), *self._simple(node))

    def _meet_to_read(self, *expressions: ir.Expr) -> list[ir.Stmt]:
        """Return a barrier before a read of memory that the whole block acts upon, if one is due."""
        return self._meet(Touched.of_values(*expressions)) if self._at_block else []

    def _block_for(self, loop: ir.For) -> list[ir.Stmt]:
        whole = self._touched(loop)
        result = self._come_to(whole)
        init = self._head(loop.init)
        known = self._known_loop(loop, LoopKind.BLOCK)
        condition, outside = loop.condition, self._level
        if known is not None:
            variable, range_ = known
            self._bind(variable, range_)
            self._level = (*outside, range_.var)
            ahead = [held for held in self.plan.windows if held.stages > 1 and held.window.level == self._level]
            if ahead:
                assert isinstance(init, ir.Declare)
                result += self._staged_for(loop, init, ahead)
                self._level = outside
                self.touched |= whole
                return result
        test = None if condition is None else self.expression(condition)
        tested = Touched() if condition is None else Touched.of_values(condition)
        start, self.touched = self.touched, tested
        if isinstance(loop.init, ir.Declare) and (halved(loop) or doubled(loop)):
            self.stepping[loop.init.name] = self._block(loop)
        body = list(self.body(loop.body)) if known is None else self._with_copies(loop.body)
        self._level = outside
        step = self._head(loop.step)
        body += self._come_to(whole)
        assert step is None or isinstance(step, ir.Assign)
        self.touched |= start | tested
        return [*result, ir.For(init, test, step, tuple(body))]

    def _block(self, loop: ir.For) -> Block:
        """Return the threads of the block and its arrays, as a loop that halves or doubles its variable has to know."""
        shape = (*self.site.shape, ONE, ONE)[:3]
        codes = (code_of(extent, self.site.symbols) for extent in shape)
        extents = tuple(code if code.type is INT else as_int(code) for code in codes)
        in_rows = {one for one in self.block_arrays if self.plan.program.mapping.layout(one) == ROW_BY_ROW}
        arrays = {self.block_arrays[one]: self.site.extents[one] for one in in_rows}
        places = phases(self.plan.program)[0].threads[-1].results
        own = [one for one, _ in self.plan.block_arrays]
        firsts = {self.block_arrays[one.name] for one in own if first_alone(self.plan.program, loop, one)}
        return Block(shape, extents, {} if self.site.striding else arrays, places, extents[0], firsts)

    def _staged_for(self, loop: ir.For, init: ir.Declare, ahead: list[HeldWindow]) -> list[ir.Stmt]:
        """Lower a loop whose copies run a step ahead."""
        from metafork.lowering.copies.staged import StagedLoop  # no default strategy makes any

        assert loop.condition is not None
        test, step = self.expression(loop.condition), self._head(loop.step)
        assert isinstance(step, ir.Assign)
        staged = StagedLoop(init, test, step, ir.Var(fresh("buffer", self.taken), INT))
        now = self._symbols[self._level[-1]]
        first = [stmt for held in ahead for stmt in self._copy_ahead(held, ir.IntConst(0), ir.IntConst(0))]
        following = ir.binary("+", now, ir.IntConst(1))
        second = [stmt for held in ahead for stmt in self._copy_ahead(held, following, staged.other)]
        places: list[ir.Stmt] = []
        for held in ahead:
            place = ir.Var(fresh(f"{self.names[id(held)]}_now", self.taken), INT)
            places.append(ir.Declare(place.name, INT, self._begin(held, staged.buffer)))
            self._places.buffers[id(held)] = place
        self.touched = NOTHING
        body = [ir.Barrier(awaits=True), staged.ahead(second), *places, *self._with_copies(loop.body)]
        return [*staged.before(first), staged.around(body)]

    def _copy_ahead(self, held: HeldWindow, number: ir.Expr, buffer: ir.Expr) -> list[ir.Stmt]:
        """Return the copy of a window for iteration ``number`` of its loop into one of its buffers."""
        site = replace(self.site, symbols={**self._symbols, held.window.level[-1]: number})
        name = self.names[id(held)]
        if isinstance(buffer, ir.IntConst):
            return load(held.window, name, site, buffer)
        place = ir.Var(fresh(f"{name}_next", self.taken), INT)
        return [ir.Declare(place.name, INT, self._begin(held, buffer)), *load(held.window, name, site, place)]

    def _begin(self, held: HeldWindow, buffer: ir.Expr) -> ir.Expr:
        """Return where a buffer of a window begins."""
        size = code_of(held.window.elements, self._symbols)
        return ir.binary("*", buffer, size if size.type is INT else as_int(size))

    def _known_loop(self, loop: ir.For, kind: LoopKind) -> tuple[ir.Var, LoopRange] | None:
        """Return the counter of a loop and the range that the references in it, which come next, saw for it."""
        match loop.init:
            case ir.Declare(name=name, type=type_):
                counter = ir.Var(name, type_)
            case ir.Assign(target=ir.Var() as counter):
                pass
            case _:
                return None
        following = (ref for ref in self.plan.references if ref.number >= self.elements)
        ranges = (range_ for reference in following for range_ in reference.loops)
        found = next((one for one in ranges if one.var == counter.name and one.kind is kind), None)
        return None if found is None else (counter, found)

    def _bind(self, variable: ir.Var, range_: LoopRange) -> None:
        value: ir.Expr = variable if promoted(variable.type) is INT else ir.Cast(LONG, variable)
        low = code_of(range_.low, self._symbols) if range_.low else None
        if may_be_negative(range_.step):  # it counts down
            value = ir.unary("-", value) if low is None else ir.binary("-", low, value)
        elif low is not None:
            value = ir.binary("-", value, low)
        length = code_of(-range_.step if may_be_negative(range_.step) else range_.step, self._symbols)
        self._symbols[range_.var] = value if length == ir.IntConst(1) else ir.binary("/", value, length)

    def _head(self, stmt: ir.Declare | ir.Assign | None) -> ir.Declare | ir.Assign | None:
        if stmt is None:
            return None
        lowered = self._simple(stmt)
        assert len(lowered) == 1
        assert isinstance(lowered[0], ir.Declare | ir.Assign)
        return lowered[0]

    def _phase_body(self, phase: ir.Phase) -> tuple[ir.Stmt, ...]:
        """Lower what a thread does in a phase, between the loads and stores of its structures."""
        here = [code for code in self.structures if code.structure.phase == self._phases]
        self._phases += 1
        if not here:
            return self.body(phase.body)
        from metafork.lowering.structures import Warp

        lanes, warp = Warp.of(phase, self.taken)
        site = self._copy_site()
        loads = [stmt for code in here for stmt in code.load(warp, site)]
        body = self.body(phase.body)
        return (*lanes, *loads, *body, *(stmt for code in here for stmt in code.store(warp, site)))

    def _thread_for(self, loop: ir.For) -> list[ir.Stmt]:
        init = self._head(loop.init)
        known = self._known_loop(loop, LoopKind.SERIAL)
        if known is not None:
            self._bind(*known)
        test = None if loop.condition is None else self.expression(loop.condition)
        body = without_unread(self.body(loop.body))
        step = self._head(loop.step)
        assert step is None or isinstance(step, ir.Assign)
        whole = id(loop) in self._unrolled or (known is not None and known[1] in self._digits)
        together = loop.copies > 0 and not self.structures
        lowered = ir.For(init, test, step, body, copies=loop.copies if together else ir.WHOLE if whole else 0)
        return list(bounded(lowered, self._varying, self.taken))

    def _simple(self, stmt: ir.Declare | ir.Assign) -> list[ir.Stmt]:
        if isinstance(stmt, ir.Declare):
            self._symbols.setdefault(stmt.name, ir.Var(stmt.name, stmt.type))
            return [ir.Declare(stmt.name, stmt.type, None if stmt.value is None else self.expression(stmt.value))]
        value = self.expression(stmt.value)
        if isinstance(stmt.target, ir.Var):
            return [replace(stmt, value=value)]
        target = self.target(stmt.target)
        number, element = self.elements - 1, self._met
        assert element is not None
        result: list[ir.Stmt] = [replace(stmt, target=target, value=value)]
        held, own = self._places.held.get(number), self._places.own.get(number)
        if held is not None and held[0].store is Store.THROUGH:
            assert isinstance(target, ir.Element)
            result.append(ir.Assign(self._places.unmoved(element), "", target))
        if own is not None:
            result += own.mark()
        return result

    def element(self, node: ir.Element, number: int) -> ir.Element | ir.Var:
        """Lower an access; its indices are lowered already."""
        self._met = node
        return self._places.element(node, number)


def _reads_memory(expr: ir.Expr) -> bool:
    return any(isinstance(part, ir.Element) for part in ir.walk_expression(expr))
