"""One path of a program as kernel statements: references redirected, windows moved, barriers where threads meet.

A barrier stands wherever what some thread did since the last one (a phase, a copy, a read of memory that the whole
block acts upon) could otherwise meet what another thread does next: between phases, around copies, and between the
iterations of a block-level loop.  Where copies run a step ahead (``metafork.lowering.copies.staged``), one that awaits
them stands at the beginning of each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.analysis.facts import Scope
from metafork.analysis.loop_ranges import LoopKind, LoopRange
from metafork.analysis.memory.block_memory import HeldWindow, PathPlan
from metafork.analysis.memory.interleaving import digits
from metafork.analysis.memory.thread_arrays import thread_arrays
from metafork.analysis.memory.tile_layout import declare_masks, place_in_line, place_in_tile
from metafork.analysis.memory.window_store import Store
from metafork.analysis.memory.windows import coordinates
from metafork.analysis.references import Reference
from metafork.ir.arithmetic.types import promoted
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG, code_of, may_be_negative
from metafork.ir.program import (
    WHOLE,
    Assign,
    Barrier,
    Binary,
    BlockArray,
    Break,
    Call,
    Cast,
    Conditional,
    Continue,
    Declare,
    Element,
    Expr,
    FloatConst,
    For,
    If,
    IntConst,
    Phase,
    PrivateArray,
    Stmt,
    Unary,
    Var,
    While,
    binary,
    expressions_of,
    unary,
    walk_expression,
)
from metafork.ir.rewriting import names_in
from metafork.lowering.coarsening import coarsened
from metafork.lowering.columns import Around, Several, in_columns
from metafork.lowering.copies.copy import (
    INT,
    Site,
    as_int,
    builtin,
    kept_column,
    linear_offset,
    offset_inside,
    window_offset,
)
from metafork.lowering.copies.window_copies import load, store
from metafork.lowering.jam import jam_of, jammed
from metafork.lowering.private import PrivateCode
from metafork.lowering.shared_vectors import with_wide_reads
from metafork.lowering.thread_memory import ThreadMemory

if TYPE_CHECKING:  # few programs have structures, and every run would load it
    from metafork.lowering.structures import StructureCode


@dataclass(slots=True)
class PathLowering:
    """Rewrites the body of one path; use once.

    ``names`` gives the kernel's memory of each held window, ``block_arrays`` the extents of arrays of the block;
    ``uneven`` says that some phase does not fill the block; ``threads`` places the threads' own arrays; ``taken`` are
    the names that are in use.
    """

    plan: PathPlan
    scope: Scope
    site: Site
    names: Mapping[int, str]
    block_arrays: Mapping[str, str]
    private: Sequence[PrivateCode]
    structures: Sequence[StructureCode]
    uneven: bool
    threads: ThreadMemory
    taken: set[str]
    dirty: bool = False
    _read: int = 0
    _held: dict[int, tuple[HeldWindow, Reference]] = field(init=False)
    _own: dict[int, PrivateCode] = field(init=False)
    _fields: dict[int, StructureCode] = field(init=False)
    _phases: int = 0
    _together: int = 1
    _symbols: dict[str, Expr] = field(init=False)
    _unrolled: frozenset[int] = field(init=False)
    _tables: frozenset[str] = field(init=False)
    _buffers: dict[int, Var] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._held = {ref.number: (held, ref) for held in self.plan.windows for ref in held.window.references}
        self._own = {ref.number: code for code in self.private for ref in code.window.references}
        self._fields = {member.reference.number: code for code in self.structures for member in code.structure.members}
        self._symbols = dict(self.site.symbols)
        self._unrolled = thread_arrays(self.plan.program).unrolled
        self._tables = frozenset(table.array.name for table in self.plan.program.tables)

    def _masks(self) -> list[Stmt]:
        """Declare the masks of the layouts that turn rows."""
        tiles = [
            (held.window.layout, code_of(held.window.extents[-1], self.site.symbols), held.window.array.element)
            for held in self.plan.windows
        ]
        for array, _ in self.plan.block_arrays:
            tiles.append((self.plan.program.mapping.layout(array.name), array.extents[-1], array.element))
        return declare_masks(tiles, self._symbols, self.taken)

    def lower(self) -> tuple[Stmt, ...]:
        """Return the statements of the path, copies and private windows included."""
        masks = self._masks()
        body = self._level(self.plan.program.body, ())
        after = [stmt for code in self.private for stmt in code.epilogue(self._copy_site())]
        if self._read != len(self.plan.references):
            raise AssertionError("references and rewriting do not agree")
        return (*masks, *self.site.rows.declarations, *body, *after)

    def _copy_site(self) -> Site:
        return replace(self.site, symbols=self._symbols)

    def _level(self, body: tuple[Stmt, ...], level: tuple[str, ...]) -> list[Stmt]:
        """Lower a block-level body with the copies of the windows that live there."""
        here = [(held, self.names[id(held)]) for held in self.plan.windows if held.window.level == level]
        in_time = [(held, name) for held, name in here if held.stages == 1]
        result: list[Stmt] = []
        # Scalars that windows start from (decoded grid variables) come before whatever moves them.
        leading = 0
        while (
            leading < len(body)
            and isinstance(body[leading], Declare)
            and not any(_reads_memory(expr) for expr in expressions_of(body[leading]))
        ):
            result += self._block_statement(body[leading], level)
            leading += 1
        if not level:  # private windows start from such scalars too
            result += [stmt for code in self.private for stmt in code.prologue(self._copy_site())]
        loads = [
            stmt
            for held, name in in_time
            if held.window.reads or held.store is Store.NONE
            for stmt in load(held.window, name, self._copy_site())
        ]
        if loads:
            result += self._meet()
            result += loads
            self.dirty = True
        for stmt in body[leading:]:
            result += self._block_statement(stmt, level)
        stores: list[Stmt] = []
        for held, name in here:
            for box in held.boxes:
                stores += store(held.window, box, name, self._copy_site())
        if stores:
            result += self._meet()
            result += stores
            self.dirty = True
        return result

    def _meet(self) -> list[Stmt]:
        if not self.dirty:
            return []
        self.dirty = False
        return [Barrier()]

    def _block_statement(self, stmt: Stmt, level: tuple[str, ...]) -> list[Stmt]:
        match stmt:
            case BlockArray():
                return []
            case PrivateArray():
                raise AssertionError("a thread's array at block level")
            case Phase():
                result = self._meet()
                result += self._phase(stmt)
                self.dirty = True
                return result
            case If(condition=condition, then=then, otherwise=otherwise):
                result = self._meet_to_read(condition)
                test = self._expression(condition)
                start = self.dirty
                first = self._body_at_block(then, level)
                ended = self.dirty
                self.dirty = start
                second = self._body_at_block(otherwise, level)
                self.dirty = self.dirty or ended
                return [*result, If(test, first, second)]
            case For():
                return self._block_for(stmt, level)
            case While(condition=condition, body=body):
                result = self._meet()
                test = self._expression(condition)
                self.dirty = _reads_memory(condition)
                inner = [*self._body_at_block(body, level), *self._meet()]
                self.dirty = _reads_memory(condition)
                return [*result, While(test, tuple(inner))]
            case Declare() | Assign():
                expressions = expressions_of(stmt)
                result = self._meet_to_read(*expressions)
                return [*result, *self._simple(stmt)]
            case Break() | Continue():
                return [*self._meet(), stmt]
            case Barrier():
                return [stmt]
            case _ as never:
                assert_never(never)

    def _body_at_block(self, body: tuple[Stmt, ...], level: tuple[str, ...]) -> tuple[Stmt, ...]:
        return tuple(lowered for stmt in body for lowered in self._block_statement(stmt, level))

    def _meet_to_read(self, *expressions: Expr) -> list[Stmt]:
        """Return a barrier before a read of memory that the whole block acts upon, if one is due."""
        if not any(_reads_memory(expr) for expr in expressions):
            return []
        barriers = self._meet()
        self.dirty = True
        return barriers

    def _block_for(self, loop: For, level: tuple[str, ...]) -> list[Stmt]:
        result = self._meet()
        init = self._loop_part(loop.init)
        known = self._known_loop(loop, LoopKind.BLOCK)
        condition = loop.condition
        inner_level = level
        if known is not None:
            variable, range_ = known
            self._bind(variable, range_)
            inner_level = (*level, range_.var)
            ahead = [held for held in self.plan.windows if held.stages > 1 and held.window.level == inner_level]
            if ahead:
                assert isinstance(init, Declare)
                return [*result, *self._staged_for(loop, init, ahead, inner_level)]
        test = None if condition is None else self._expression(condition)
        reads = condition is not None and _reads_memory(condition)
        self.dirty = reads
        body = self._level(loop.body, inner_level) if known is not None else list(self._body_at_block(loop.body, level))
        step = self._loop_part(loop.step)
        body += self._meet()
        assert step is None or isinstance(step, Assign)
        self.dirty = reads
        return [*result, For(init, test, step, tuple(body))]

    def _staged_for(self, loop: For, init: Declare, ahead: list[HeldWindow], level: tuple[str, ...]) -> list[Stmt]:
        """Lower a loop whose copies run a step ahead."""
        from metafork.lowering.copies.staged import StagedLoop  # no default strategy makes any

        assert loop.condition is not None
        test, step = self._expression(loop.condition), self._loop_part(loop.step)
        assert isinstance(step, Assign)
        staged = StagedLoop(init, test, step, Var(fresh("buffer", self.taken), INT))
        now = self._symbols[level[-1]]
        first = [stmt for held in ahead for stmt in self._copy_ahead(held, IntConst(0), IntConst(0))]
        following = binary("+", now, IntConst(1))
        second = [stmt for held in ahead for stmt in self._copy_ahead(held, following, staged.other)]
        places: list[Stmt] = []
        for held in ahead:
            place = Var(fresh(f"{self.names[id(held)]}_now", self.taken), INT)
            places.append(Declare(place.name, INT, self._begin(held, staged.buffer)))
            self._buffers[id(held)] = place
        self.dirty = False
        body = [Barrier(awaits=True), staged.ahead(second), *places, *self._level(loop.body, level)]
        self.dirty = True
        return [*staged.before(first), staged.around(body)]

    def _copy_ahead(self, held: HeldWindow, number: Expr, buffer: Expr) -> list[Stmt]:
        """Return the copy of a window for iteration ``number`` of its loop into one of its buffers."""
        site = replace(self.site, symbols={**self._symbols, held.window.level[-1]: number})
        name = self.names[id(held)]
        if isinstance(buffer, IntConst):
            return load(held.window, name, site, buffer)
        place = Var(fresh(f"{name}_next", self.taken), INT)
        return [Declare(place.name, INT, self._begin(held, buffer)), *load(held.window, name, site, place)]

    def _begin(self, held: HeldWindow, buffer: Expr) -> Expr:
        """Return where a buffer of a window begins."""
        size = code_of(held.window.elements, self._symbols)
        return binary("*", buffer, size if size.type is INT else as_int(size))

    def _known_loop(self, loop: For, kind: LoopKind) -> tuple[Var, LoopRange] | None:
        """Return the counter of a loop and the range that the references in it, which come next, saw for it."""
        match loop.init:
            case Declare(name=name, type=type_):
                counter = Var(name, type_)
            case Assign(target=Var() as counter):
                pass
            case _:
                return None
        for reference in self.plan.references[self._read :]:
            for range_ in reference.loops:
                if range_.var == counter.name and range_.kind is kind:
                    return counter, range_
        return None

    def _bind(self, variable: Var, range_: LoopRange) -> None:
        value: Expr = variable if promoted(variable.type) is INT else Cast(LONG, variable)
        low = code_of(range_.low, self._symbols) if range_.low else None
        if may_be_negative(range_.step):  # it counts down
            value = unary("-", value) if low is None else binary("-", low, value)
        elif low is not None:
            value = binary("-", value, low)
        length = code_of(-range_.step if may_be_negative(range_.step) else range_.step, self._symbols)
        self._symbols[range_.var] = value if length == IntConst(1) else binary("/", value, length)

    def _loop_part(self, stmt: Declare | Assign | None) -> Declare | Assign | None:
        if stmt is None:
            return None
        lowered = self._simple(stmt)
        assert len(lowered) == 1
        assert isinstance(lowered[0], Declare | Assign)
        return lowered[0]

    def _strided_phase(self, phase: Phase) -> list[Stmt]:
        """Lower a phase that fewer threads walk: each takes every ``blockDim.x``-th iteration of the thread loops."""
        index = Var(fresh("thread", self.taken), INT)
        declarations: list[Stmt] = []
        total: Expr | None = None
        for loop in reversed(phase.threads):
            value: Expr = index if total is None else binary("/", index, total)
            if loop is not phase.threads[0]:
                value = binary("%", value, loop.extent)
            declarations.insert(0, Declare(loop.var, loop.type, Cast(loop.type, value)))
            total = loop.extent if total is None else binary("*", loop.extent, total)
            self._symbols[loop.var] = Var(loop.var, loop.type)
        assert total is not None
        return [
            For(
                Declare(index.name, INT, as_int(builtin("threadIdx.x"))),
                binary("<", index, as_int(total)),
                Assign(index, "+", as_int(builtin("blockDim.x"))),
                (*declarations, *self._thread_body(phase.body)),
            )
        ]

    def _phase(self, phase: Phase) -> list[Stmt]:
        if self.plan.program.mapping.striding is not None:
            return self._strided_phase(phase)
        mapping = self.plan.program.mapping
        rows: Several | None = None
        crossed: Several | None = None
        columns: Several | None = None
        declarations: list[Stmt] = []
        guards: list[Expr] = []
        for number, loop in enumerate(phase.threads):
            axis = len(phase.threads) - 1 - number
            thread = IntConst(0) if self.site.has_one_thread(axis) else builtin(f"threadIdx.{'xyz'[axis]}")
            self._symbols[loop.var] = Var(loop.var, loop.type)
            if mapping.coarsened is not None and number == mapping.coarsened[0]:
                rows = Several(loop, thread, mapping.coarsened[1])
                guards.append(binary("<", rows.first, loop.extent))
            elif mapping.crossed is not None and number == mapping.crossed[0]:
                crossed = Several(loop, thread, mapping.crossed[1])
                guards.append(binary("<", crossed.first, loop.extent))
            elif mapping.columns is not None and number == len(phase.threads) - 1:
                columns = Several(loop, thread, mapping.columns)
                guards.append(binary("<", columns.first, loop.extent))
            else:
                place = thread if thread.type is loop.type else Cast(loop.type, thread)
                declarations.append(Declare(loop.var, loop.type, place))
                guards.append(binary("<", Var(loop.var, loop.type), loop.extent))
        guards = guards if self.uneven else []
        body = self._phase_body(phase)
        if columns is not None:
            arrays = {array.name for array in self.plan.program.arrays}
            scalars = self._integers()
            body = in_columns(columns, rows, body, Around(self.threads.names, arrays, scalars, self.taken))
        elif rows is not None:
            if crossed is not None:
                body = coarsened(crossed.loop, crossed.thread, crossed.count, body, self.threads.names, self.taken)
            row = next((code.row for code in self.private), None)
            body = coarsened(rows.loop, rows.thread, rows.count, body, self.threads.names, self.taken, row)
        if self.site.begins and mapping.jammed is not None:
            wide = with_wide_reads((*declarations, *body), self.site.begins, self._integers(), self.taken)
            body = wide[len(declarations) :]
        if not guards:
            return [*declarations, *body]
        test = guards[0]
        for guard in guards[1:]:
            test = binary("&&", test, guard)
        return [*declarations, If(test, body)]

    def _integers(self) -> list[str]:
        """Return the scalars that a kernel is given as ``int``."""
        program = self.plan.program
        own = [one.name for one in program.parameters if one.type is INT]
        return own + [one.name for one in program.derived if one.type is INT]

    def _phase_body(self, phase: Phase) -> tuple[Stmt, ...]:
        """Lower what a thread does in a phase, between the loads and stores of its structures."""
        here = [code for code in self.structures if code.structure.phase == self._phases]
        self._phases += 1
        if not here:
            return self._thread_body(phase.body)
        from metafork.lowering.structures import Warp

        lanes, warp = Warp.of(phase, self.taken)
        site = self._copy_site()
        loads = [stmt for code in here for stmt in code.load(warp, site)]
        body = self._thread_body(phase.body)
        return (*lanes, *loads, *body, *(stmt for code in here for stmt in code.store(warp, site)))

    def _thread_body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(lowered for stmt in body for lowered in self._thread_statement(stmt))

    def _thread_statement(self, stmt: Stmt) -> list[Stmt]:
        match stmt:
            case Declare() | Assign():
                return self._simple(stmt)
            case If(condition=condition, then=then, otherwise=otherwise):
                test = self._expression(condition)
                return [If(test, self._thread_body(then), self._thread_body(otherwise))]
            case For():
                return self._thread_for(stmt)
            case While(condition=condition, body=body):
                test = self._expression(condition)
                return [While(test, self._thread_body(body))]
            case Break() | Continue():
                return [stmt]
            case PrivateArray(array=array):
                self.threads.declare(array)
                return []
            case _:
                raise AssertionError(f"{type(stmt).__name__} in thread code")

    def _thread_for(self, loop: For) -> list[Stmt]:
        outside, self._together = self._together, 1
        start = self._read
        init = self._loop_part(loop.init)
        known = self._known_loop(loop, LoopKind.SERIAL)
        if known is not None:
            self._bind(*known)
        test = None if loop.condition is None else self._expression(loop.condition)
        body = self._thread_body(loop.body)
        step = self._loop_part(loop.step)
        assert step is None or isinstance(step, Assign)
        lowered = For(init, test, step, body, copies=WHOLE if id(loop) in self._unrolled else 0)
        mapping = self.plan.program.mapping
        most = mapping.jammed
        inside, self._together = self._together, max(outside, self._together)
        if most is None or self.structures or names_in((loop,)) & self.threads.names:
            return [lowered]
        several = [count for _, count in filter(None, (mapping.coarsened, mapping.crossed))]
        results = prod(several) * (mapping.columns or 1)
        jam = jam_of(loop, self.plan.references[start : self._read], inside * results, most, self.site.prover)
        if jam is None:
            return [lowered]
        self._together = max(outside, inside * jam.factor)
        return list(jammed(lowered, jam, self.taken))

    def _simple(self, stmt: Declare | Assign) -> list[Stmt]:
        if isinstance(stmt, Declare):
            self._symbols.setdefault(stmt.name, Var(stmt.name, stmt.type))
            return [Declare(stmt.name, stmt.type, None if stmt.value is None else self._expression(stmt.value))]
        value = self._expression(stmt.value)
        if isinstance(stmt.target, Var):
            return [replace(stmt, value=value)]
        indices = tuple(self._expression(index) for index in stmt.target.indices)
        reference = self._next(stmt.target)
        target = self._access(stmt.target, indices, reference)
        result: list[Stmt] = [replace(stmt, target=target, value=value)]
        if reference is None:
            return result
        held = self._held.get(reference.number)
        if held is not None and held[0].store is Store.THROUGH:
            assert isinstance(target, Element)
            result.append(Assign(self._global(stmt.target, indices), "", target))
        own = self._own.get(reference.number)
        if own is not None:
            result += own.mark()
        return result

    def _next(self, element: Element) -> Reference | None:
        """Return the reference of the access that is met next; a table or an array of the thread has none."""
        if element.array in self.threads or element.array in self._tables:
            return None
        reference = self.plan.references[self._read]
        self._read += 1
        if reference.element != element:
            raise AssertionError("references and rewriting do not agree")
        return reference

    def _access(self, element: Element, indices: tuple[Expr, ...], reference: Reference | None) -> Element | Var:
        if reference is None:
            if element.array in self._tables:
                return self._global(element, indices)
            return self.threads.element(element, indices)
        own = self._own.get(reference.number)
        if own is not None:
            return own.access(reference, self._symbols)
        code = self._fields.get(reference.number)
        if code is not None:
            return code.access(reference, self._symbols)
        if reference.number not in self._held:
            return self._global(element, indices)
        held, reference = self._held[reference.number]
        window = held.window
        symbols = self._symbols
        for axis, range_ in reference.distances:
            value = indices[axis]
            sides = (value if promoted(value.type) is INT else Cast(LONG, value)), code_of(range_.low, symbols)
            symbols = {**symbols, range_.var: binary("-", *(sides if range_.step == ONE else reversed(sides)))}
        offsets: list[Expr] = []
        for index, low, stride in zip(coordinates(reference, window.factors), window.lows, window.strides, strict=True):
            offset = (index - low).divide_exactly(Polynomial.constant(stride))
            assert offset is not None
            offsets.append(code_of(offset, symbols))
        if window.kept is not None:
            x, serial = digits(window, reference)
            offsets[-1] = kept_column(window.kept, symbols[x.var], symbols[serial.var], symbols)
        place = window_offset(window, tuple(offsets), symbols)
        if id(held) in self._buffers:
            place = binary("+", self._buffers[id(held)], place)
        return Element(self.names[id(held)], (place,), element.type)

    def _global(self, element: Element, indices: tuple[Expr, ...]) -> Element:
        extents = self.site.extent_code[element.array]
        name = self.block_arrays.get(element.array, element.array)
        layout = self.plan.program.mapping.layout(element.array) if element.array in self.block_arrays else ROW_BY_ROW
        if layout == ROW_BY_ROW:
            return Element(name, (offset_inside(indices, extents),), element.type)
        if len(indices) == 1:
            place = place_in_line(layout, element.type, as_int(indices[0]), extents[0], self._symbols)
            return Element(name, (place,), element.type)
        row, column = as_int(linear_offset(indices[:-1], extents[:-1])), as_int(indices[-1])
        offset = place_in_tile(layout, element.type, row, column, extents[-1], self._symbols)
        return Element(name, (offset,), element.type)

    def _expression(self, expr: Expr) -> Expr:
        """Rewrite an expression; its references are met in the order of ``metafork.analysis.references``."""
        match expr:
            case Element(indices=indices):
                lowered = tuple(self._expression(index) for index in indices)
                return self._access(expr, lowered, self._next(expr))
            case Binary(op=op, left=left, right=right):
                first = self._expression(left)
                return binary(op, first, self._expression(right))
            case Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
                test = self._expression(condition)
                first = self._expression(then)
                return Conditional(test, first, self._expression(otherwise), type_)
            case Unary(op=op, operand=operand):
                return unary(op, self._expression(operand))
            case Cast(type=type_, operand=operand):
                return Cast(type_, self._expression(operand))
            case Call(name=name, arguments=arguments, type=type_):
                return Call(name, tuple(self._expression(argument) for argument in arguments), type_)
            case IntConst() | FloatConst() | Var():
                return expr


def _reads_memory(expr: Expr) -> bool:
    return any(isinstance(part, Element) for part in walk_expression(expr))
