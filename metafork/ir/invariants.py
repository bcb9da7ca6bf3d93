"""The invariants of the IR, checked: ``check_program`` and ``check_kernel`` raise where a pass broke one.

Of a ``Program``:

- parameters, values, derived scalars and arrays have names of their own; a scope declares a name once;
- a ``Var`` names a scalar in scope and has its type; an ``Element`` names an array in scope, has its element type and
  one integer index for each extent;
- an operation has the type that C gives it, and a condition of bits or remainders no floating operand;
- parameters, values, derived scalars and the variables of ``meta_for``s are not assigned;
- what is updated atomically is an element, by an operation that may run in any order;
- all nests of threads have the dimensions of the grid; a ``Phase`` and a ``BlockArray`` stand at block level only, a
  ``PrivateArray``, of constant extents, in a phase only, a ``Break`` or ``Continue`` in a serial loop, a ``Barrier``
  nowhere;
- the mapping names arrays that exist, an array in one place only; what is static is a parameter;
- a table has as many values as elements, constants of its type, and is not assigned.

Of a ``Kernel``: the same of scalars and scopes; an ``Element`` names a memory and has one index; a shared memory has an
offset, a private one a constant extent, read-only ones are not written; there is no ``Phase``, ``BlockArray`` and
``PrivateArray``; what is asynchronous copies an element from global to shared memory, and what reads that memory stands
behind a barrier that awaits copies, in the loop that makes them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.atomic_updates import may_update
from metafork.ir.kernel import ASYNCHRONOUS_BYTES, Kernel, Space
from metafork.ir.marks import is_coarsenable, phases

SWITCH = "METAFORK_VERIFY"
"""The environment variable that, set to 1, has every program and kernel checked as it is made."""

_BUILTINS = {f"{word}.{axis}" for word in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"}
"""The kernel's own variables."""
_ON_BITS = frozenset({"%", "<<", ">>", "&", "^", "|"})


class InvariantError(Exception):
    """A program or a kernel is not what it must be: a fault of the tool, never of the input."""


def checking() -> bool:
    """Say whether programs are to be checked after every step."""
    return os.environ.get(SWITCH) == "1"


def check_program(program: ir.Program) -> None:
    """Raise ``InvariantError`` where an invariant does not hold."""
    arrays = {array.name: array for array in (*program.arrays, *(table.array for table in program.tables))}
    scalars = {one.name: one.type for one in program.parameters} | {one.name: one.type for one in program.values}
    given = [one.name for one in program.parameters] + [one.name for one in program.values]
    _distinct(program.name, [*given, *(one.name for one in program.derived), *(one.name for one in program.arrays)])
    _check_tables(program)
    if not 1 <= len(program.grid) <= 3:
        raise InvariantError(f"{program.name}: a grid of {len(program.grid)} dimensions")
    scope = _Scope(scalars, arrays, frozenset(), len(program.grid))
    for derived in program.derived:
        scope.expression(derived.definition)
        scope = replace(scope, scalars={**scope.scalars, derived.name: derived.type})
    scope = replace(scope, fixed=frozenset(scope.scalars))
    for assumption in program.assumptions:
        scope.expression(assumption)
    for array in program.arrays:
        for extent in array.extents:
            scope.expression(extent)
    scope = replace(scope, fixed=scope.fixed | {table.array.name for table in program.tables})
    scope = scope.with_loops(program.grid)
    scope.block(program.body)
    _check_mapping(program, {array.name: array for array in program.arrays})
    _check_marks(program)
    for name, _ in program.static:
        if name not in {one.name for one in program.parameters}:
            raise InvariantError(f"{program.name}: the static {name} is no parameter")


def _check_tables(program: ir.Program) -> None:
    _distinct(program.name, [one.name for one in (*program.arrays, *(table.array for table in program.tables))])
    for table in program.tables:
        array = table.array
        extents = [extent.value for extent in array.extents if isinstance(extent, ir.IntConst)]
        if len(extents) < len(array.extents) or math.prod(extents) != len(table.values):
            raise InvariantError(f"{program.name}: the table {array.name} has not as many values as elements")
        if any(value.type is not array.element for value in table.values):
            raise InvariantError(f"{program.name}: the table {array.name} has values of another type")


def check_kernel(kernel: Kernel) -> None:
    """Raise ``InvariantError`` where an invariant does not hold."""
    _distinct(kernel.name, [*(one.name for one in kernel.scalars), *(one.name for one in kernel.memories)])
    scalars = {one.name: one.type for one in kernel.scalars} | dict.fromkeys(_BUILTINS, ScalarType.UNSIGNED_INT)
    for memory in kernel.memories:
        if memory.space is Space.SHARED and memory.offset is None:
            raise InvariantError(f"{kernel.name}: shared {memory.name} stands nowhere")
        if memory.space is Space.PRIVATE and not isinstance(memory.extent, ir.IntConst):
            raise InvariantError(f"{kernel.name}: private {memory.name} has no constant extent")
    arrays = {one.name: ir.Array(one.name, one.element, (one.extent,)) for one in kernel.memories}
    fixed = frozenset({one.name for one in kernel.memories if one.read_only} | _BUILTINS)
    _Scope(scalars, arrays, fixed, None).block(kernel.body)
    if copies := list(_asynchronous(kernel.body)):
        spaces = {one.name: one.space for one in kernel.memories}
        for copy in copies:
            _check_copy(copy, spaces)
        targets = {copy.target.array for copy in copies if isinstance(copy.target, ir.Element)}
        _check_awaited(kernel.body, targets, awaited=False)


def _asynchronous(body: tuple[ir.Stmt, ...]) -> Iterable[ir.Assign]:
    return (stmt for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Assign) and stmt.asynchronous)


def _check_copy(copy: ir.Assign, spaces: Mapping[str, Space]) -> None:
    match copy:
        case ir.Assign(
            target=ir.Element(array=to) as target, op="", value=ir.Element(array=source) as value, atomic=False
        ):
            moves = (spaces[to], spaces[source]) == (Space.SHARED, Space.GLOBAL)
            if moves and target.type is value.type and target.type.size in ASYNCHRONOUS_BYTES:
                return
            raise InvariantError(f"{source} is copied to {to} asynchronously, as no hardware does")
        case _:
            raise InvariantError("what copies no element is asynchronous")


def _check_awaited(body: tuple[ir.Stmt, ...], targets: Collection[str], *, awaited: bool) -> None:
    """Raise where a statement reads a memory of ``targets`` and no barrier before it awaits copies to it.

    What a round of a loop copies, the next one reads: a barrier in front of a loop that copies is none for its body.
    """
    for stmt in body:
        if isinstance(stmt, ir.Barrier):
            awaited = awaited or stmt.awaits
        exprs = (stmt.value,) if isinstance(stmt, ir.Assign) and not stmt.op else ir.expressions_of(stmt)
        parts = (part for expr in exprs for part in ir.walk_expression(expr))
        early = {part.array for part in parts if isinstance(part, ir.Element) and part.array in targets}
        if early and not awaited:
            raise InvariantError(f"{', '.join(sorted(early))} is read where no barrier awaits its copies")
        match stmt:
            case ir.If(then=then, otherwise=otherwise):
                _check_awaited(then, targets, awaited=awaited)
                _check_awaited(otherwise, targets, awaited=awaited)
            case ir.For(body=inner) | ir.While(body=inner):
                _check_awaited(inner, targets, awaited=awaited and not any(_asynchronous(inner)))
            case _:
                pass


def _distinct(where: str, names: Sequence[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InvariantError(f"{where}: {', '.join(sorted(twice))} stands for two things")


def _check_mapping(program: ir.Program, arrays: Mapping[str, ir.Array]) -> None:
    mapping = program.mapping
    _distinct(f"{program.name}: the mapping", [*mapping.cached, *mapping.transposed])
    _distinct(f"{program.name}: layouts", [name for name, _ in mapping.layouts])
    missing = {*mapping.cached, *mapping.transposed} - arrays.keys()
    own = {stmt.array.name for stmt in ir.walk_statements(program.body) if isinstance(stmt, ir.BlockArray)}
    missing |= {name for name, _ in mapping.layouts} - {*mapping.cached, *own}
    if missing:
        raise InvariantError(f"{program.name}: the mapping names {', '.join(sorted(missing))}, which is not there")
    if mapping.stages not in (1, 2):
        raise InvariantError(f"{program.name}: windows of {mapping.stages} buffers")


def _check_marks(program: ir.Program) -> None:
    if program.striding is not None and program.striding < 1:
        raise InvariantError(f"{program.name}: {program.striding} threads stride")
    several = {tuple(loop.results for loop in phase.threads) for phase in phases(program)}
    if len(several) > 1:
        raise InvariantError(f"{program.name}: phases differ in the results of a thread")
    for counts in several:
        for loop, count in enumerate(counts):
            if count != 1 and not (count > 1 and is_coarsenable(program, loop, count)):
                raise InvariantError(f"{program.name}: no thread runs {count} iterations of thread loop {loop}")


class _Scope(Struct, frozen=True):
    """What is in scope: types of scalars, arrays, names that are not assigned.

    ``dimensions`` are those of the grid; ``None`` in a kernel and below a phase, where no phase may stand.
    ``declared`` are the names of the innermost scope.
    """

    scalars: Mapping[str, ScalarType]
    arrays: Mapping[str, ir.Array]
    fixed: frozenset[str]
    dimensions: int | None
    in_loop: bool = False
    in_phase: bool = False
    declared: frozenset[str] = frozenset()

    @property
    def kernel(self) -> bool:
        return self.dimensions is None and not self.in_phase

    def with_loops(self, loops: Sequence[ir.MetaFor]) -> _Scope:
        _distinct("a nest", [loop.var for loop in loops])
        for loop in loops:
            self.expression(loop.extent)
        scalars = {**self.scalars, **{loop.var: loop.type for loop in loops}}
        return replace(self, scalars=scalars, fixed=self.fixed | {loop.var for loop in loops}, declared=frozenset())

    def declaring(self, name: str, type_: ScalarType) -> _Scope:
        if name in self.declared:
            raise InvariantError(f"{name} is declared twice in one scope")
        arrays = {key: array for key, array in self.arrays.items() if key != name}
        return replace(
            self,
            scalars={**self.scalars, name: type_},
            arrays=arrays,
            fixed=self.fixed - {name},
            declared=self.declared | {name},
        )

    def block(self, body: Iterable[ir.Stmt]) -> None:
        """Check the statements of a new scope."""
        here = replace(self, declared=frozenset())
        for stmt in body:
            here = here.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> _Scope:
        """Check one statement; return the scope behind it."""
        match stmt:
            case ir.Declare(name=name, type=type_, value=value):
                if value is not None:
                    self.expression(value)
                return self.declaring(name, type_)
            case ir.Assign(target=target, op=op, value=value):
                self._assignment(target, op, value)
                if stmt.atomic and not (isinstance(target, ir.Element) and may_update(target.type, op)):
                    raise InvariantError(f"{op}= is no atomic update")
                if stmt.asynchronous and not self.kernel:
                    raise InvariantError("an asynchronous copy stands in a program")
                if op in ("min", "max") and not stmt.atomic:
                    raise InvariantError(f"{op}= stands outside of an atomic update")
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self.expression(condition)
                self.block(then)
                self.block(otherwise)
            case ir.For(init=init, condition=condition, step=step, body=body):
                inner = replace(self, declared=frozenset())
                if init is not None:
                    inner = inner.statement(init)
                if condition is not None:
                    inner.expression(condition)
                if step is not None:
                    inner.statement(step)
                replace(inner, in_loop=True).block(body)
            case ir.While(condition=condition, body=body):
                self.expression(condition)
                replace(self, in_loop=True).block(body)
            case ir.Break() | ir.Continue():
                if not self.in_loop:
                    raise InvariantError("a jump stands in no loop")
            case ir.BlockArray(array=array):
                if self.dimensions is None:
                    raise InvariantError(f"the block's array {array.name} is declared where there is no block level")
                return self._local_array(array)
            case ir.PrivateArray(array=array):
                if not self.in_phase:
                    raise InvariantError(f"the thread's array {array.name} is declared outside of thread code")
                if not all(isinstance(extent, ir.IntConst) and extent.value > 0 for extent in array.extents):
                    raise InvariantError(f"the thread's array {array.name} has an extent that is no constant")
                return self._local_array(array)
            case ir.Phase(threads=threads, body=body):
                if self.dimensions is None or len(threads) != self.dimensions:
                    raise InvariantError(
                        f"a phase over {', '.join(loop.var for loop in threads)} stands where none may"
                    )
                inner = self.with_loops(threads)
                replace(inner, dimensions=None, in_phase=True, in_loop=False).block(body)
            case ir.Barrier():
                if not self.kernel:
                    raise InvariantError("a barrier stands in a program")
            case _:
                assert_never(stmt)
        return self

    def _local_array(self, array: ir.Array) -> _Scope:
        if array.name in self.declared:
            raise InvariantError(f"{array.name} is declared twice in one scope")
        for extent in array.extents:
            self.expression(extent)
        scalars = {key: type_ for key, type_ in self.scalars.items() if key != array.name}
        arrays = {**self.arrays, array.name: array}
        return replace(self, scalars=scalars, arrays=arrays, declared=self.declared | {array.name})

    def _assignment(self, target: ir.Var | ir.Element, op: str, value: ir.Expr) -> None:
        self.expression(target)
        self.expression(value)
        name = target.name if isinstance(target, ir.Var) else target.array
        if name in self.fixed:
            raise InvariantError(f"{name} is assigned")
        if op in _ON_BITS and (target.type.floating or value.type.floating):
            raise InvariantError(f"{name} {op}= has a floating operand")

    def expression(self, expr: ir.Expr) -> None:
        """Check an expression and all below it."""
        for part in ir.walk_expression(expr):
            self._node(part)

    def _node(self, expr: ir.Expr) -> None:
        match expr:
            case ir.Var(name=name, type=type_):
                if name not in self.scalars:
                    raise InvariantError(f"{name} is no scalar in scope")
                if self.scalars[name] is not type_:
                    raise InvariantError(f"{name} is {self.scalars[name].spelling}, not {type_.spelling}")
            case ir.Element(array=name, indices=indices, type=type_):
                self._element(name, indices, type_)
            case ir.Unary(op=op, operand=operand, type=type_):
                if type_ is not ir.unary(op, operand).type or (op == "~" and operand.type.floating):
                    raise InvariantError(f"{op} has the type {type_.spelling}")
            case ir.Binary(op=op, left=left, right=right, type=type_):
                if type_ is not ir.binary(op, left, right).type:
                    raise InvariantError(f"{op} has the type {type_.spelling}")
                if op in _ON_BITS and (left.type.floating or right.type.floating):
                    raise InvariantError(f"{op} has a floating operand")
            case ir.Conditional(then=then, otherwise=otherwise, type=type_):
                if type_ is not common_type(then.type, otherwise.type):
                    raise InvariantError(f"?: has the type {type_.spelling}")
            case ir.IntConst() | ir.FloatConst() | ir.Cast() | ir.Call():
                pass
            case _:
                assert_never(expr)

    def _element(self, name: str, indices: tuple[ir.Expr, ...], type_: ScalarType) -> None:
        array = self.arrays.get(name)
        if array is None:
            raise InvariantError(f"{name} is no array in scope")
        if len(indices) != len(array.extents):
            raise InvariantError(f"{name} has {len(array.extents)} extents and {len(indices)} indices")
        if array.element is not type_:
            raise InvariantError(f"elements of {name} are {array.element.spelling}, not {type_.spelling}")
        if any(not index.type.integer for index in indices):
            raise InvariantError(f"an index of {name} is no integer")
