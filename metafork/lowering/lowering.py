"""Program to kernel: the one form from which CUDA text, LLVM IR and window arithmetic come (DESIGN section 3).

The grid is walked with a stride in each dimension, so that a launch may have fewer blocks than the nest; a block runs
one of the program's paths; thread variables are the built-in ones, since a block has exactly the threads that the
nest asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ZERO, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import (
    BlockMemory,
    PathPlan,
    UnknownSizeError,
    block_array_elements,
    block_memory,
)
from metafork.analysis.memory.block_shape import UnknownShapeError, block_shape, in_groups
from metafork.analysis.memory.interleaving import interleaving
from metafork.analysis.values.conditions import together
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.invariants import check_kernel, checking
from metafork.ir.kernel import OFFSET, Argument, Kernel, Memory, Space, builtin
from metafork.ir.marks import phases
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG, code_of, conjunction
from metafork.ir.visitor import Body, Rewriter, changed
from metafork.lowering.copies.copy import RowPlaces, Site
from metafork.lowering.host_scalars import with_host_scalars
from metafork.lowering.launch_bounds import launch_bounds
from metafork.lowering.path import PathLowering
from metafork.lowering.private import PrivateCode
from metafork.lowering.thread_memory import ThreadMemory
from metafork.lowering.truth_values import as_bytes
from metafork.unrolling.threads import ThreadCode

if TYPE_CHECKING:  # few programs have structures, and every run would load it
    from metafork.lowering.structures import StructureCode


class CannotLowerError(Exception):
    """A program has no kernel; the message names the expression that stands in the way."""


def lower(program: ir.Program, name: str, analyses: Analyses | None = None) -> Kernel:
    """Return the kernel of a program, called ``name``; its memories of truth values are bytes.

    Raises ``CannotLowerError`` where the size of a block or of its own arrays is no polynomial in parameters.
    """
    return replace((analyses or Analyses()).of(_kernel, program), name=name)


def _kernel(program: ir.Program, analyses: Analyses) -> Kernel:
    kernel = as_bytes(typed_kernel(program, analyses))
    if checking():
        check_kernel(kernel)
    return kernel


def typed_kernel(program: ir.Program, analyses: Analyses) -> Kernel:
    """Return the kernel of a program with the types that are declared, truth values too.

    Raises ``CannotLowerError``.
    """
    try:
        memory = block_memory(program, analyses)
        scope = Scope.of(memory.facts)
        scope.derived.extend(symbol for symbol in memory.derived if symbol not in scope.derived)
        shape = block_shape(program, scope, analyses.prover(memory.facts.constraints, memory.facts.derived))
    except (UnknownSizeError, UnknownShapeError) as reason:
        raise CannotLowerError(str(reason)) from reason
    return _Lowering(program, memory, scope, shape, analyses).kernel()


class _Lowering(Struct):
    program: ir.Program
    memory: BlockMemory
    scope: Scope
    shape: tuple[Polynomial, ...]
    analyses: Analyses

    def kernel(self) -> Kernel:
        scalars = self._scalars()
        symbols: dict[str, ir.Expr] = {**scalars}
        for loop in self.program.grid:
            symbols[loop.var] = ir.Var(loop.var, loop.type)
        shared: list[Memory] = []
        private: list[Memory] = []
        tables = [table.array for table in self.program.tables]
        taken = set(scalars) | {array.name for array in (*self.program.arrays, *tables)} | _names(self.program)
        bodies: list[tuple[ir.Expr | None, tuple[ir.Stmt, ...]]] = []
        block_arrays: set[str] = set()
        reached: list[Polynomial] = []
        threads = ThreadMemory(taken)
        for path in self.memory.paths:
            plan = self._interleaved(path)
            names = self._window_names(plan, taken)
            # Paths lay out their memory each for itself: a name may stand for one place only.
            own = {a.name: fresh(a.name, taken) if a.name in block_arrays else a.name for a, _ in plan.block_arrays}
            block_arrays |= own.keys()
            begins: dict[str, Polynomial] = {}
            shared += self._shared(plan, names, own, symbols, begins)
            row = fresh("row", taken)
            codes = tuple(PrivateCode(one, fresh(f"own_{one.array.name}", taken), row) for one in plan.private)
            private += [
                Memory(code.name, Space.PRIVATE, code.window.array.element, ir.IntConst(code.window.registers))
                for code in codes
                if code.window.registers > 1
            ]
            structures = self._structures(plan, taken)
            private += [
                Memory(code.name, Space.PRIVATE, code.structure.array.element, ir.IntConst(code.structure.span))
                for code in structures
            ]
            filled = any(one.of_block for one in plan.private)
            site = replace(self._site(plan, symbols, taken), begins=begins, filled=filled)
            lowering = PathLowering(plan, site, names, own, codes, structures, threads, taken)
            block = lowering.lower()
            rows = codes[0].row if codes else None
            code = ThreadCode(
                self.program,
                site.has_one_thread,
                site.begins,
                self._uneven,
                rows,
                threads.names,
                lowering.stepping,
                partial(_positive, self.scope, site.prover),
                taken,
            )
            body = code.body(block)
            reached += site.rows.spans
            bodies.append((_test(plan), body))
        body = _chain(bodies)
        if shared:
            body = (*body, ir.Barrier())  # the next block of this thread-block reuses the memory
        body = self._grid_loops(body, taken)
        prover = self.analyses.prover(self.memory.facts.constraints, self.memory.facts.derived)
        body, computed = with_host_scalars(body, scalars, self.scope, prover, taken)
        body = _without_dead(body)
        scalars |= {one.name: ir.Var(one.name, one.type) for one in computed}
        written = {
            stmt.target.array
            for stmt in ir.walk_statements(body)
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element)
        }
        parts = list(ir.parts_of(body))
        used = {part.name for part in parts if isinstance(part, ir.Var)}
        read = {part.array for part in parts if isinstance(part, ir.Element)}
        with_offsets = _with_offsets(parts)
        constants = tuple(
            Memory(
                one.array.name, Space.CONSTANT, one.array.element, ir.IntConst(len(one.values)), None, True, one.values
            )
            for one in self.program.tables
            if one.array.name in read
        )
        globals_ = [
            Memory(array.name, Space.GLOBAL, array.element, _elements(array), None, array.name not in written)
            for array in self.program.arrays
        ]
        for memory in shared:
            used |= _used_in(memory.extent) | (set() if memory.offset is None else _used_in(memory.offset))
        arguments = tuple(Argument(n, v.type) for n, v in scalars.items() if n in used) + tuple(
            Argument(value.name, value.type) for value in self.program.values if value.name in used
        )
        elements = (memory.extent for memory in globals_ if memory.name in with_offsets)
        x, y, z = self._padded([code_of(extent, symbols, wide=True) for extent in self.shape])
        grid_x, grid_y, grid_z = self._padded([loop.extent for loop in reversed(self.program.grid)])
        return Kernel(
            self.program.name,
            arguments,
            (*globals_, *shared, *private, *threads.memories, *constants),
            body,
            (grid_x, grid_y, grid_z),
            (x, y, z),
            code_of(self.memory.words * 4, symbols, wide=True),
            (*self._host_scalars(), *computed),
            self._widest(),
            spans=(*dict.fromkeys((*elements, *(code_of(span, symbols, wide=True) for span in reached))),),
            bounds=launch_bounds(self.program, self.shape, prover),
        )

    def _structures(self, plan: PathPlan, taken: set[str]) -> tuple[StructureCode, ...]:
        if not plan.structures:
            return ()
        from metafork.lowering.structures import StructureCode  # few programs have any

        return tuple(StructureCode(one, fresh(f"own_{one.array.name}", taken), taken) for one in plan.structures)

    def _interleaved(self, plan: PathPlan) -> PathPlan:
        """Return a path whose windows are kept as its threads read them."""
        prover = self._prover(plan)
        windows = tuple(
            replace(held, window=replace(held.window, kept=interleaving(held.window, self.program, self.shape, prover)))
            for held in plan.windows
        )
        return replace(plan, windows=windows)

    def _prover(self, plan: PathPlan) -> Prover:
        """Return what proves conditions on a path."""
        known = together(self.scope, plan.conditions).constraints
        return self.analyses.prover((*self.memory.facts.constraints, *known), self.memory.facts.derived)

    def _widest(self) -> ir.Expr | None:
        """Return how many threads have work in a block that strides: as many as its longest phase has iterations."""
        if self.program.striding is None:
            return None
        result: ir.Expr | None = None
        for phase in phases(self.program):
            size = _product(loop.extent for loop in phase.threads)
            result = size if result is None else ir.Conditional(ir.binary("<", result, size), size, result, LONG)
        return result

    def _scalars(self) -> dict[str, ir.Var]:
        """Return every scalar that a kernel may be given, in the order of its signature."""
        scalars = {parameter.name: ir.Var(parameter.name, parameter.type) for parameter in self.program.parameters}
        scalars |= {derived.name: ir.Var(derived.name, derived.type) for derived in self.program.derived}
        for symbol in self.scope.derived:
            scalars.setdefault(symbol.name, ir.Var(symbol.name, LONG))
        return scalars

    def _host_scalars(self) -> tuple[ir.Derived, ...]:
        """Return the derived scalars of the program, then the quotients and extrema that have no name there."""
        known: dict[str, ir.Expr] = {
            parameter.name: ir.Var(parameter.name, parameter.type) for parameter in self.program.parameters
        }
        result = list(self.program.derived)
        known |= {derived.name: ir.Var(derived.name, derived.type) for derived in self.program.derived}
        for symbol in self.scope.derived:
            if symbol.name not in known:
                result.append(ir.Derived(symbol.name, LONG, _definition(symbol, known)))
                known[symbol.name] = ir.Var(symbol.name, LONG)
        return tuple(result)

    def _padded(self, extents: Sequence[ir.Expr]) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
        padded: list[ir.Expr] = [*extents, *[ir.IntConst(1)] * (3 - len(extents))]
        return padded[0], padded[1], padded[2]

    def _uneven(self, loop: ir.MetaFor, number: int) -> bool:
        """Say whether a thread loop, of that number from the outermost, is not proved to fill the block."""
        extent = self.scope.polynomial(loop.extent)
        try:
            threads = None if extent is None else in_groups(extent, loop.results, self.scope, loop.var)
        except UnknownShapeError:
            return True
        return threads != self.shape[len(self.shape) - 1 - number]

    def _window_names(self, plan: PathPlan, taken: set[str]) -> dict[int, str]:
        """Name the windows of a path; no name is that of a counter of another window's copy."""
        names: dict[int, str] = {}
        for held in plan.windows:
            while True:
                name = fresh(f"shared_{held.window.array.name}", taken)
                counters = {f"{name}_{axis}" for axis in range(len(held.window.extents))}
                if not counters & taken:
                    break
            taken |= counters
            names[id(held)] = name
        return names

    def _shared(
        self,
        plan: PathPlan,
        names: Mapping[int, str],
        own: Mapping[str, str],
        symbols: Mapping[str, ir.Expr],
        begins: dict[str, Polynomial],
    ) -> list[Memory]:
        """Lay out the shared memory of a path from 0, wider elements first: each is aligned.  ``begins`` is filled.

        Of equals, windows that are kept for wide accesses come first: what follows a row of any length need not begin
        at a multiple of 16 bytes.
        """
        wide_first = sorted(plan.windows, key=lambda held: held.window.kept is None)
        parts: list[tuple[str, ScalarType, Polynomial, Polynomial]] = [
            (names[id(held)], held.window.array.element, held.window.elements * held.stages, held.words)
            for held in wide_first
        ]
        for array, words in plan.block_arrays:
            elements = block_array_elements(array, self.program, self.scope)
            parts.append((own[array.name], array.element, elements, words))
        result: list[Memory] = []
        offset = Polynomial()
        for name, element, elements, words in sorted(parts, key=lambda part: -part[1].size):
            extent = code_of(elements, symbols, wide=True)
            begins[name] = offset * 4
            result.append(Memory(name, Space.SHARED, element, extent, code_of(offset * 4, symbols, wide=True)))
            offset = offset + words
        return result

    def _site(self, plan: PathPlan, symbols: Mapping[str, ir.Expr], taken: set[str]) -> Site:
        arrays = [*plan.program.arrays, *(array for array, _ in plan.block_arrays)]
        arrays += [table.array for table in plan.program.tables]
        extents = {array.name: tuple(self.scope.polynomial(extent) for extent in array.extents) for array in arrays}
        codes = {array.name: array.extents for array in arrays}
        striding = self.program.striding is not None
        rows = RowPlaces(symbols, taken, host=frozenset(self._scalars()))
        return Site(symbols, extents, codes, self.shape, striding, self._prover(plan), rows)

    def _grid_loops(self, body: tuple[ir.Stmt, ...], taken: set[str]) -> tuple[ir.Stmt, ...]:
        """Wrap the body in one strided loop for each grid dimension."""
        for loop, letter in zip(reversed(self.program.grid), "xyz", strict=False):
            body = (_strided(loop, letter, body, taken),)
        return body


def _positive(scope: Scope, prover: Prover, value: ir.Expr) -> bool:
    """Say whether a value is proved not to be negative."""
    found = scope.polynomial(value)
    return found is not None and prover.derives(at_most(ZERO, found))


def _strided(loop: ir.MetaFor, letter: str, body: tuple[ir.Stmt, ...], taken: set[str]) -> ir.For:
    """Return ``for (b = blockIdx; b < extent; b += gridDim) { int i = b; ... }``; unsigned: no sum overflows."""
    type_ = ScalarType.UNSIGNED_INT if loop.extent.type.size <= 4 else ScalarType.UNSIGNED_LONG_LONG
    counter = ir.Var(fresh(f"block_{letter}", taken), type_)
    return ir.For(
        ir.Declare(counter.name, type_, builtin(f"blockIdx.{letter}")),
        ir.binary("<", counter, ir.Cast(type_, loop.extent)),
        ir.Assign(counter, "+", builtin(f"gridDim.{letter}")),
        (ir.Declare(loop.var, loop.type, ir.Cast(loop.type, counter)), *body),
    )


def _test(plan: PathPlan) -> ir.Expr | None:
    return conjunction([condition if truth else ir.unary("!", condition) for condition, truth in plan.conditions])


def _chain(bodies: Sequence[tuple[ir.Expr | None, tuple[ir.Stmt, ...]]]) -> tuple[ir.Stmt, ...]:
    """Return ``if (first) ... else if (second) ... else last``: the paths are all the outcomes there are."""
    test, body = bodies[0]
    if len(bodies) == 1 or test is None:
        return body
    return (ir.If(test, body, _chain(bodies[1:])),)


def _elements(array: ir.Array) -> ir.Expr:
    """Return how many elements an array has."""
    return ir.ENDLESS if array.endless else _product(array.extents)


def _product(extents: Iterable[ir.Expr]) -> ir.Expr:
    result: ir.Expr | None = None
    for extent in extents:
        result = ir.Cast(LONG, extent) if result is None else ir.binary("*", result, extent)
    assert result is not None
    return result


def _definition(symbol: DerivedSymbol, known: Mapping[str, ir.Expr]) -> ir.Expr:
    first, *others = (code_of(operand, known, wide=True) for operand in symbol.operands)
    match symbol.kind:
        case "floor":
            return ir.binary("/", first, others[0])
        case "ceiling":
            return ir.binary("/", ir.binary("-", ir.binary("+", first, others[0]), ir.IntConst(1)), others[0])
        case "maximum" | "minimum":
            result = first
            for other in others:
                better = ir.binary(">" if symbol.kind == "maximum" else "<", other, result)
                result = ir.Conditional(better, other, result, LONG)
            return result


def _names(program: ir.Program) -> set[str]:
    names = {loop.var for loop in program.grid} | {value.name for value in program.values}
    for stmt in ir.walk_statements(program.body):
        if isinstance(stmt, ir.Declare):
            names.add(stmt.name)
        names |= {loop.var for loop in getattr(stmt, "threads", ())}
        array = getattr(stmt, "array", None)
        if array is not None:
            names.add(array.name)
    return names


def _with_offsets(parts: Sequence[ir.Expr]) -> set[str]:
    """Return the memories that are accessed by an ``OFFSET``."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, ir.Element) and part.array not in found and _has_offset(part.indices[0]):
            found.add(part.array)
    return found


def _has_offset(expr: ir.Expr) -> bool:
    return any(isinstance(part, ir.Call) and part.name == OFFSET for part in ir.walk_expression(expr))


def _used_in(expr: ir.Expr) -> set[str]:
    if isinstance(expr, ir.Var):
        return {expr.name}
    return {part.name for part in ir.walk_expression(expr) if isinstance(part, ir.Var)}


def _without_dead(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Drop declarations of scalars that nothing reads: indices that the offsets in a window have replaced."""
    kept: set[str] = set()
    droppable: list[tuple[str, set[str]]] = []
    stmts = ir.walk_statements(body)
    # The heads of loops stay as they are.
    heads = {id(head) for stmt in stmts if isinstance(stmt, ir.For) for head in (stmt.init, stmt.step)}
    for stmt in stmts:
        match stmt:
            case ir.Declare(name=name, value=value) if id(stmt) not in heads:
                droppable.append((name, set() if value is None else _used_in(value)))
            case ir.Assign(target=ir.Var(name=name), op=op, value=value) if id(stmt) not in heads:
                droppable.append((name, _used_in(value) - ({name} if op else set())))
            case _:
                kept.update(*(_used_in(expr) for expr in ir.expressions_of(stmt)))
    read = kept.union(*[names for _, names in droppable])
    if all(name in read for name, _ in droppable):
        return body
    while len(smaller := kept.union(*[names for name, names in droppable if name in read])) < len(read):
        read = smaller
    return _Dropping(read).body(body)


class _Dropping(Rewriter):
    def __init__(self, read: set[str]) -> None:
        self._read = read

    def declare(self, node: ir.Declare) -> ir.Stmt | Body:
        return node if node.name in self._read else ()

    def assign(self, node: ir.Assign) -> ir.Stmt | Body:
        return node if isinstance(node.target, ir.Element) or node.target.name in self._read else ()

    def loop(self, node: ir.For) -> ir.For:
        return changed(node, body=self.body(node.body))
