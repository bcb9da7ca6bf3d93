"""A program played through at one point with *terms* for data: what each element is computed from, not what it is.

Integers that parameters and loop variables determine are numbers; what is read from memory is a term, equal to another
one only where both are the same operations on the same elements.  Two programs whose arrays end with equal terms
compute the same, bit for bit, from any contents of memory, at this point.  Blocks and the threads of a phase may be
walked backwards: a program that keeps the promise of its ``meta_for``s gives the same terms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import product

from metafork.comprehensive.verification.translation.compiled import Function, compiled
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, converted, integer_value, of_one, of_two
from metafork.ir.arithmetic.types import ScalarType

MOST_STEPS = 100_000
"""Statements that are played at one point."""


class CannotPlayError(Exception):
    """The program branches on data, runs too long, or leaves what C defines; the message says which."""


class OutsideError(Exception):
    """An access lies outside its array; the message names it."""


class Term:
    """A value that depends on memory; equal terms of one table are one object, and no arithmetic takes them."""

    __slots__ = ()


Value = int | Term
"""A number, always of an integer type, or a term."""
Cell = tuple[str, tuple[int, ...]]


class Terms:
    """The table of terms, shared by the programs that are compared; ``steps`` were played with it."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], Term] = {}
        self._compiled: dict[int, tuple[ir.Expr, Function | None]] = {}
        self.steps = 0
        self._whole: dict[int, tuple[ir.Assign, ir.Expr]] = {}
        self._wider: dict[Term, tuple[ScalarType, Value]] = {}

    def of(self, *key: object) -> Term:
        """Return the term of an operation and its operands."""
        return self._numbers.setdefault(key, Term())

    def compiled(self, expr: ir.Expr) -> Function | None:
        """Return the function of an integer expression, if it has one."""
        known = self._compiled.get(id(expr))
        if known is None:
            known = self._compiled[id(expr)] = expr, compiled(expr)
        return known[1]

    def whole(self, stmt: ir.Assign) -> ir.Expr:
        """Return what an assignment assigns: of ``x += y`` that is ``x + y``."""
        if not stmt.op:
            return stmt.value
        known = self._whole.get(id(stmt))
        if known is None:
            known = self._whole[id(stmt)] = stmt, ir.binary(stmt.op, stmt.target, stmt.value)
        return known[1]

    def cast(self, from_: ScalarType, to: ScalarType, value: Value) -> Value:
        """Return the term of a conversion; what was made wider and is made narrow again is what it was."""
        narrow, inner = self._wider.get(value, (None, value)) if isinstance(value, Term) else (None, value)
        if narrow is to:
            return inner
        term = self.of("cast", from_, to, value)
        if to.holds(from_):
            self._wider[term] = from_, value
        return term


def play(program: ir.Program, point: Mapping[str, int], terms: Terms, *, backward: bool = False) -> dict[Cell, Value]:
    """Return what the program leaves in its global arrays; elements that it never wrote are left out.

    Raises ``CannotPlayError`` and ``OutsideError``.
    """
    try:
        return _Play(program, terms, backward).run(point)
    except NoValueError as error:
        raise CannotPlayError(f"an integer expression has no value: {error}") from error


def initial(terms: Terms, cell: Cell) -> Term:
    """Return the term of an element as it was before."""
    return terms.of("initial", *cell)


class BreakError(Exception):
    """A ``break`` on its way to its loop."""


class ContinueError(Exception):
    """A ``continue`` on its way to its loop."""


class Player(ABC):
    """Statements and expressions at a point; what stands for memory is for programs and kernels to say."""

    def __init__(self, terms: Terms, most: int) -> None:
        self._terms = terms
        self._most = most
        self._memory: dict[Cell, Value] = {}
        self._values: dict[str, Value] = {}
        self._steps = 0

    def _body(self, body: tuple[ir.Stmt, ...]) -> None:
        outer = self._enter()
        declared: set[str] = set()
        try:
            for stmt in body:
                self._step(stmt)
                if isinstance(stmt, ir.Declare):
                    declared.add(stmt.name)
        finally:
            self._leave(outer, declared)

    def _enter(self) -> dict[str, Value]:
        outer = self._values
        self._values = dict(outer)
        return outer

    def _leave(self, outer: dict[str, Value], declared: set[str]) -> None:
        """Drop what a body declared; what it assigned to outer variables stays."""
        for name in outer:
            if name not in declared:
                outer[name] = self._values[name]
        self._values = outer

    def _count(self) -> None:
        self._steps += 1
        self._terms.steps += 1
        if self._steps > self._most:
            raise CannotPlayError("too many steps")

    def _step(self, stmt: ir.Stmt) -> None:
        self._count()
        match stmt:
            case ir.Declare(name=name, type=type_, value=value):
                self._values[name] = (
                    self._terms.of("unset") if value is None else self._as(self._eval(value), value.type, type_)
                )
            case ir.Assign():
                self._assign(stmt)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self._body(then if self._number(condition) else otherwise)
            case ir.For():
                self._for(stmt)
            case ir.While(condition=condition, body=body):
                self._loop(condition, body, None)
            case ir.Break():
                raise BreakError
            case ir.Continue():
                raise ContinueError
            case ir.Barrier():
                return
            case ir.Phase() | ir.BlockArray() | ir.PrivateArray():
                self._of_programs(stmt)

    def _of_programs(self, stmt: ir.Phase | ir.BlockArray | ir.PrivateArray) -> None:
        raise AssertionError(f"a kernel has no {type(stmt).__name__}")

    def _for(self, loop: ir.For) -> None:
        outer = self._enter()
        if loop.init is not None:
            self._step(loop.init)
        self._loop(loop.condition or ir.IntConst(1), loop.body, loop.step)
        self._leave(outer, {loop.init.name} if isinstance(loop.init, ir.Declare) else set())

    def _loop(self, condition: ir.Expr, body: tuple[ir.Stmt, ...], step: ir.Assign | None) -> None:
        while self._number(condition):
            self._count()
            try:
                self._body(body)
            except ContinueError:
                pass
            except BreakError:
                return
            if step is not None:
                self._assign(step)

    def _assign(self, stmt: ir.Assign) -> None:
        target = stmt.target
        if stmt.atomic:
            raise CannotPlayError("atomic updates have no order")
        full = self._terms.whole(stmt)
        value = self._as(self._eval(full), full.type, target.type)
        if isinstance(target, ir.Var):
            self._values[target.name] = value
        else:
            self._write(target, value)

    def _number(self, expr: ir.Expr) -> int:
        value = self._eval(expr)
        if isinstance(value, Term):
            raise CannotPlayError("an index, a bound or a condition depends on data")
        return value

    def _as(self, value: Value, from_: ScalarType, to: ScalarType) -> Value:
        if isinstance(value, int) and from_.integer and to.integer:
            return converted(value, to)
        return value if from_ is to else self._terms.cast(from_, to, value)

    @abstractmethod
    def _read(self, element: ir.Element) -> Value: ...

    @abstractmethod
    def _write(self, element: ir.Element, value: Value) -> None: ...

    def _eval(self, expr: ir.Expr) -> Value:
        if isinstance(expr, ir.Var):  # most are these or operations, of which verification plays millions
            return self._values[expr.name]
        if isinstance(expr, ir.Binary):
            return self._operation(expr)
        match expr:
            case ir.IntConst(value=value):
                return value
            case ir.FloatConst(text=text, type=type_):
                return self._terms.of("constant", text, type_)
            case ir.Element():
                return self._read(expr)
            case ir.Unary(op=op, operand=operand):
                inner = self._eval(operand)
                if isinstance(inner, int):
                    return of_one(op, inner, expr.type)
                return self._terms.of("unary", op, expr.type, operand.type, inner)
            case ir.Cast(type=type_, operand=operand):
                return self._as(self._eval(operand), operand.type, type_)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                chosen = then if self._number(condition) else otherwise
                return self._as(self._eval(chosen), chosen.type, expr.type)
            case ir.Call():
                return self._called(expr)

    def _called(self, call: ir.Call) -> Value:
        return self._terms.of("call", call.name, call.type, *(self._eval(argument) for argument in call.arguments))

    def _operation(self, expr: ir.Binary) -> Value:
        function = self._terms.compiled(expr)
        if function is not None:
            try:
                return function(self._values)
            except TypeError:
                pass  # a term, or a division by zero
        op, left, right = expr.op, expr.left, expr.right
        if op == "&&":
            return int(bool(self._number(left)) and bool(self._number(right)))
        if op == "||":
            return int(bool(self._number(left)) or bool(self._number(right)))
        first, second = self._eval(left), self._eval(right)
        if isinstance(first, int) and isinstance(second, int):
            return of_two(expr, first, second)
        if expr.type.integer and (one := _neutral(op, first, second)) is not None:
            return self._as(first, left.type, expr.type) if one == 1 else self._as(second, right.type, expr.type)
        return self._terms.of("binary", op, expr.type, left.type, right.type, first, second)


class _Play(Player):
    def __init__(self, program: ir.Program, terms: Terms, backward: bool) -> None:
        super().__init__(terms, MOST_STEPS)
        self._program = program
        self._backward = backward
        self._own: dict[str, tuple[int, ...]] = {}
        self._extents: dict[str, tuple[int, ...]] = {}

    def run(self, point: Mapping[str, int]) -> dict[Cell, Value]:
        program = self._program
        scalars = {parameter.name: point[parameter.name] for parameter in program.parameters}
        for derived in program.derived:
            scalars[derived.name] = converted(integer_value(derived.definition, scalars), derived.type)
        self._values.update(scalars)
        for value in program.values:
            self._values[value.name] = self._terms.of("value", value.name)
        self._extents = {array.name: self._shape(array) for array in program.arrays}
        moved = frozenset(self._extents)
        for table in program.tables:
            shape = self._extents[table.array.name] = self._shape(table.array)
            places = product(*map(range, shape))
            self._memory |= {
                (table.array.name, at): self._eval(one) for at, one in zip(places, table.values, strict=True)
            }
        outer = self._values
        for indices in self._points(program.grid):
            self._values = {**outer, **indices}
            self._own = {}
            self._body(program.body)
        return {cell: value for cell, value in self._memory.items() if cell[0] in moved}

    def _shape(self, array: ir.Array) -> tuple[int, ...]:
        return tuple(self._number(extent) for extent in array.extents)

    def _points(self, loops: Sequence[ir.MetaFor]) -> list[dict[str, int]]:
        ranges = [range(self._number(loop.extent)) for loop in loops]
        size = 1
        for one in ranges:
            size *= len(one)
        if size > MOST_STEPS:
            raise CannotPlayError("too many iterations")
        points = [dict(zip([loop.var for loop in loops], one, strict=True)) for one in product(*ranges)]
        return points[::-1] if self._backward else points

    def _of_programs(self, stmt: ir.Phase | ir.BlockArray | ir.PrivateArray) -> None:
        match stmt:
            case ir.Phase(threads=threads, body=body):
                outer = self._values
                for indices in self._points(threads):
                    self._values = {**outer, **indices}
                    self._body(body)
                self._values = outer
            case ir.BlockArray(array=array) | ir.PrivateArray(array=array):
                self._own[array.name] = self._shape(array)
                for cell in [cell for cell in self._memory if cell[0] == array.name]:
                    del self._memory[cell]

    def _cell(self, element: ir.Element) -> Cell:
        indices = tuple(self._number(index) for index in element.indices)
        extents = self._own.get(element.array) or self._extents[element.array]
        if not all(0 <= index < extent for index, extent in zip(indices, extents, strict=True)):
            raise OutsideError(f"{element.array}{''.join(f'[{index}]' for index in indices)} lies outside the array")
        return element.array, indices

    def _read(self, element: ir.Element) -> Value:
        cell = self._cell(element)
        if cell not in self._memory:
            own = cell[0] in self._own
            return self._terms.of("uninitialised") if own else initial(self._terms, cell)
        return self._memory[cell]

    def _write(self, element: ir.Element, value: Value) -> None:
        self._memory[self._cell(element)] = value


def _neutral(op: str, first: Value, second: Value) -> int | None:
    """Return which operand of integers is what both make, 1 or 2: strategies drop the other one."""
    match op, first, second:
        case (("*" | "/"), _, 1):
            return 1
        case (("+" | "-" | "<<" | ">>"), _, 0):
            return 1
        case ("*", 1, _) | ("+", 0, _):
            return 2
        case "*", _, 0:
            return 2
        case (("*" | "/" | "%"), 0, _):
            return 1
        case _:
            return None
