"""Copies of statements that stand side by side, as unrolled loops over small arrays: the text of a kernel for people.

``before --> after``::

    float part = a[first];                           METAFORK_UNROLLED
    float part_2 = a[first + 1];                     for (int r = 0; r < 3; r++) {
    float part_3 = a[first + 2];          -->          parts[r] = a[first + r];
    sum += x * part;                                 }
    sum_2 += x * part_2;                             METAFORK_UNROLLED
    sum_3 += x * part_3;                             for (int r = 0; r < 3; r++) {
                                                       sums[r] += x * parts[r];
                                                     }

Compilers unroll such loops and keep the elements of such arrays in registers, which makes the code before.  Copies are
statements that differ in integer constants which grow evenly, and in scalars that are others in each of them.  Scalars
that are used elsewhere too become elements of an array; those of one copy alone stay scalars.

Loads are moved in front of assignments first (``metafork.printing.loads_first``), but for kernels with launch bounds:
compilers find registers for what is loaded where it is needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Kernel, Memory, Space
from metafork.ir.names import fresh
from metafork.ir.visitor import Body, Rewriter, with_operands
from metafork.printing.input_lines import spanned
from metafork.printing.loads_first import array_loaded, loads_first, split
from metafork.printing.without_aliases import without_aliases

INT = ScalarType.INT
FEWEST, LONGEST = 3, 12
"""Fewest copies that become a loop, and the most statements of one of them."""


def rerolled(kernel: Kernel) -> Kernel:
    """Return a kernel that computes the same with fewer statements."""
    kernel = replace(kernel, body=without_aliases(kernel.body))
    walk = _Rerolled(kernel)
    body = walk.body(kernel.body)
    arrays = walk.arrays()
    return replace(kernel, body=_InArrays(walk, arrays).body(body), memories=(*kernel.memories, *arrays.values()))


class _Hole(Struct, frozen=True):
    """Where two copies differ: by a constant, or by the ``names`` of scalars, or of arrays of scalars.

    ``place`` is the way to it: by what number of statement, of body, of expression and operand.
    """

    place: tuple[int, ...]
    step: int = 0
    names: tuple[str, str] | None = None


class _Array(Struct):
    """Scalars of one type, one after the other; ``within`` is the larger array that it has become a part of."""

    name: str
    type: ScalarType
    length: int
    within: tuple[str, int] | None = None


class _Rerolled(Rewriter):
    """``places`` are the arrays of scalars, and where they lie there."""

    def __init__(self, kernel: Kernel) -> None:
        self.places: dict[str, tuple[str, int]] = {}
        self._bounded = kernel.bounds is not None
        self._arrays: dict[str, _Array] = {}
        statements = ir.walk_statements(kernel.body)
        counters = {s.init.name for s in statements if isinstance(s, ir.For) and isinstance(s.init, ir.Declare)}
        declared = Counter(stmt.name for stmt in statements if isinstance(stmt, ir.Declare))
        self._declared = {stmt.name: stmt for stmt in statements if isinstance(stmt, ir.Declare)}
        self._own = {name for name, count in declared.items() if count == 1} - counters
        self._used = Counter(part.name for part in ir.parts_of(kernel.body) if isinstance(part, ir.Var))
        self._counters: list[str] = []
        self._taken = {*self._declared, *self._used, *(one.name for one in kernel.scalars)}
        self._taken |= {one.name for one in kernel.memories}

    def arrays(self) -> dict[str, Memory]:
        """Return the arrays that scalars have become, by what they are called meanwhile."""
        return {
            name: Memory(fresh(one.name, self._taken), Space.PRIVATE, one.type, ir.IntConst(one.length))
            for name, one in self._arrays.items()
            if one.within is None
        }

    def body(self, body: Body) -> Body:
        inner = super().body(body)
        moved = spanned(inner) if self._bounded else loads_first(spanned(inner))
        again: Body = moved
        while (shorter := self._once(again)) is not again:
            again = shorter
        return inner if again is moved else again

    def _once(self, body: Body) -> Body:
        """Return a body with the loops that it shows, of statements and of such loops; itself where there are none."""
        result: list[ir.Stmt] = []
        position = 0
        while position < len(body):
            counts = ((self._count(body, position, size), size) for size in range(1, LONGEST + 1))
            found = next((one for one in counts if one[0] >= FEWEST), None)
            if found is None:
                result.append(body[position])
                position += 1
                continue
            count, size = found
            copies = [body[position + at * size : position + (at + 1) * size] for at in range(count)]
            result.append(self._loop(copies))
            position += count * size
        return body if len(result) == len(body) else tuple(result)

    def _count(self, body: Body, position: int, size: int) -> int:
        """Return how many copies of so many statements begin at a position."""
        steps: list[tuple[tuple[int, ...], int, bool]] | None = None
        owners: dict[str, tuple[str, int]] = {}  # the scalar of the first copy that one stands for, and in which copy
        count = 1
        while position + (count + 1) * size <= len(body):
            begin = position + (count - 1) * size
            pairs = zip(body[begin : begin + size], body[begin + size : begin + 2 * size], strict=True)
            holes: list[_Hole] = []
            if not all(self._alike(*pair, holes, (at,)) for at, pair in enumerate(pairs)) or not holes:
                break
            here = [(hole.place, hole.step, hole.names is None) for hole in holes]
            steps = here if steps is None else steps
            if steps != here:
                break
            if not _goes_on([hole.names for hole in holes if hole.names is not None], owners, count):
                break
            count += 1
        return count

    def _alike(self, one: ir.Stmt, other: ir.Stmt, holes: list[_Hole], place: tuple[int, ...]) -> bool:
        """Say whether two statements are copies; ``holes`` grows by where they differ."""
        match one, other:
            case ir.Declare(), ir.Declare():
                if one.type is not other.type or one.value is None or other.value is None:
                    return False
                names = ir.Var(one.name, one.type), ir.Var(other.name, other.type)
                return self._same(one.value, other.value, holes, (*place, 0)) and self._same(*names, holes, (*place, 1))
            case ir.Assign(), ir.Assign():
                same = (one.op, one.atomic, one.asynchronous) == (other.op, other.atomic, other.asynchronous)
                pairs = (one.value, other.value), (one.target, other.target)
                return same and all(self._same(*pair, holes, (*place, at)) for at, pair in enumerate(pairs))
            case ir.If(), ir.If():
                return (
                    one.widened == other.widened
                    and self._same(one.condition, other.condition, holes, (*place, 0))
                    and self._bodies(one.then, other.then, holes, (*place, 1))
                    and self._bodies(one.otherwise, other.otherwise, holes, (*place, 2))
                )
            case ir.For(), ir.For():
                heads = [(loop.init, loop.condition, loop.step, loop.copies) for loop in (one, other)]
                return heads[0] == heads[1] and self._bodies(one.body, other.body, holes, place)
            case _:
                return False

    def _bodies(self, one: Body, other: Body, holes: list[_Hole], place: tuple[int, ...]) -> bool:
        if len(one) != len(other):
            return False
        return all(self._alike(*pair, holes, (*place, at)) for at, pair in enumerate(zip(one, other, strict=True)))

    def _same(self, one: ir.Expr, other: ir.Expr, holes: list[_Hole], place: tuple[int, ...]) -> bool:
        one, other = self.placed(one), self.placed(other)
        if one == other:
            return True
        if one.type is not other.type:
            return False
        if one.type.integer and one.type is not ScalarType.BOOL:
            (base, first), (same, second) = split(one), split(other)
            if base == same:
                if first != second:
                    holes.append(_Hole(place, step=second - first))
                return True
        match one, other:
            case ir.Var(name=name), ir.Var(name=another):
                holes.append(_Hole(place, names=(name, another)))
                return {name, another} <= self._own
            case ir.Element(array=array), ir.Element(array=another) if array != another:
                lengths = [self._arrays[name].length for name in (array, another) if name in self._arrays]
                holes.append(_Hole(place, names=(array, another)))
                return len(lengths) == 2 and lengths[0] == lengths[1] and one.indices == other.indices
            case ((ir.Var() | ir.IntConst() | ir.FloatConst()), _):
                return False
        operands = ir.subexpressions(one), ir.subexpressions(other)
        if len(operands[0]) != len(operands[1]) or with_operands(one, operands[1]) != other:
            return False
        return all(self._same(*pair, holes, (*place, at)) for at, pair in enumerate(zip(*operands, strict=True)))

    def placed(self, expr: ir.Expr) -> ir.Expr:
        """Return a scalar that is in an array as its element, and an element of an array as that of a larger one."""
        match expr:
            case ir.Var(name=name) if name in self.places:
                array, offset = self.found(*self.places[name])
                return ir.Element(array, (ir.IntConst(offset),), expr.type)
            case ir.Element(array=array, indices=(index,)) if array in self._arrays:
                larger, offset = self.found(array, 0)
                return expr if larger == array else ir.Element(larger, (_plus(index, offset),), expr.type)
            case _:
                return expr

    def length(self, array: str) -> int:
        """Return how many scalars are in an array."""
        return self._arrays[array].length

    def found(self, array: str, offset: int) -> tuple[str, int]:
        """Return the largest array that one is a part of, and where an offset lies in it."""
        while (within := self._arrays[array].within) is not None:
            array, offset = within[0], within[1] + offset
        return array, offset

    def _loop(self, copies: Sequence[Body]) -> ir.For:
        """Return copies as a loop."""
        variable = self._counter(max(_depth(stmt) for stmt in copies[0]))
        inside = Counter(part.name for copy in copies for part in ir.parts_of(copy) if isinstance(part, ir.Var))
        declared = [{s.name for s in ir.walk_statements(copy) if isinstance(s, ir.Declare)} for copy in copies]
        local = {
            name for names in declared for name in names
            if name in self._own and name not in self.places and inside[name] == self._used[name]
        }  # fmt: skip
        merge = _Merge(self, variable, local)
        body = tuple(merge.statement(each) for each in zip(*copies, strict=True))
        for name in local:
            self._used[name] = 0
        for part in ir.parts_of(body):
            if isinstance(part, ir.Var) and part.name in local:
                self._used[part.name] += 1
        condition = ir.binary("<", variable, ir.IntConst(len(copies)))
        step = ir.Assign(variable, "+", ir.IntConst(1))
        return ir.For(
            ir.Declare(variable.name, INT, ir.IntConst(0)), condition, step, body, copies[0][0].span, ir.WHOLE
        )

    def _counter(self, depth: int) -> ir.Var:
        """Return what counts the copies in a loop with so many such loops inside."""
        while len(self._counters) <= depth:
            self._counters.append(fresh("copy", self._taken))
        return ir.Var(self._counters[depth], INT)

    def array_of(self, names: Sequence[str]) -> str:
        """Return the array of some scalars, or of some arrays of equal length, one after the other."""
        kinds = [self._arrays.get(name) for name in names]
        first = kinds[0] or self._scalar(names[0])
        array = f"array {len(self._arrays)}"
        length = first.length
        self._arrays[array] = _Array(first.name, first.type, length * len(names))
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            if kind is None:
                self.places[name] = array, number
            else:
                kind.within = array, number * length
        return array

    def _scalar(self, name: str) -> _Array:
        """Return a scalar as an array, called after the memory that it is loaded from, or as it was before copies."""
        declared = self._declared[name]
        source = array_loaded(declared)
        return _Array(f"{source}_parts" if source else re.sub(r"(_\d+)+$", "", name) + "s", declared.type, 1)


class _Merge(Struct, frozen=True):
    """Makes one statement of copies; ``local`` are scalars that no other statement knows."""

    walk: _Rerolled
    variable: ir.Var
    local: set[str]

    def statement(self, each: Sequence[ir.Stmt]) -> ir.Stmt:
        """Return copies of a statement as one."""
        first = each[0]
        match first:
            case ir.Declare(type=type_):
                declared = [one for one in each if isinstance(one, ir.Declare)]
                new = self.value([one.value for one in declared if one.value is not None])
                target = self.value([ir.Var(one.name, type_) for one in declared])
                if isinstance(target, ir.Var):
                    return replace(first, name=target.name, value=new)
                assert isinstance(target, ir.Element)
                return ir.Assign(target, "", new, first.span)
            case ir.Assign():
                assigned = [one for one in each if isinstance(one, ir.Assign)]
                value = self.value([one.value for one in assigned])
                place = self.value([one.target for one in assigned])
                assert isinstance(place, ir.Var | ir.Element)
                return replace(first, value=value, target=place)
            case ir.If():
                chosen = [one for one in each if isinstance(one, ir.If)]
                return replace(
                    first,
                    condition=self.value([one.condition for one in chosen]),
                    then=self.body([one.then for one in chosen]),
                    otherwise=self.body([one.otherwise for one in chosen]),
                )
            case ir.For():
                return replace(first, body=self.body([one.body for one in each if isinstance(one, ir.For)]))
            case _:
                raise AssertionError(f"{type(first).__name__} is no copy")

    def body(self, each: Sequence[Body]) -> Body:
        """Return copies of a body as one."""
        return tuple(self.statement(stmts) for stmts in zip(*each, strict=True))

    def value(self, each: Sequence[ir.Expr]) -> ir.Expr:
        """Return copies of an expression as one."""
        first, *others = each = [self.walk.placed(one) for one in each]
        if all(one == first for one in others):
            return first
        if first.type.integer and first.type is not ScalarType.BOOL:
            apart = [split(one) for one in each]
            if all(base == apart[0][0] for base, _ in apart):
                return _grown(apart[0][0], apart[0][1], apart[1][1] - apart[0][1], self.variable, first.type)
        match first:
            case ir.Var(type=type_):
                names = [one.name for one in each if isinstance(one, ir.Var)]
                if set(names) <= self.local:
                    return first
                return ir.Element(self.walk.array_of(names), (self.variable,), type_)
            case ir.Element(array=array, indices=indices):
                elements = [one for one in each if isinstance(one, ir.Element)]
                names = [one.array for one in elements]
                if len(set(names)) > 1:
                    base, constant = split(indices[0])
                    index = _grown(base, constant, self.walk.length(array), self.variable, INT)
                    return ir.Element(self.walk.array_of(names), (index,), first.type)
                new = tuple(self.value(list(one)) for one in zip(*(e.indices for e in elements), strict=True))
                return replace(first, indices=new)
            case _:
                parts = zip(*(ir.subexpressions(one) for one in each), strict=True)
                return with_operands(first, [self.value(list(one)) for one in parts])


class _InArrays(Rewriter):
    """Puts scalars that are in arrays there everywhere."""

    def __init__(self, walk: _Rerolled, arrays: Mapping[str, Memory]) -> None:
        self._walk, self._arrays = walk, arrays

    def variable(self, node: ir.Var) -> ir.Expr:
        return self._named(self._walk.placed(node))

    def element(self, node: ir.Element, number: int) -> ir.Expr:
        return self._named(self._walk.placed(node))

    def _named(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Element) and expr.array in self._arrays:
            return replace(expr, array=self._arrays[expr.array].name)
        return expr

    def declare(self, node: ir.Declare) -> ir.Stmt | Body:
        new = super().declare(node)
        target = self.variable(ir.Var(node.name, node.type))
        if isinstance(target, ir.Var):
            return new
        assert isinstance(new, ir.Declare)
        assert isinstance(target, ir.Element)
        return () if new.value is None else ir.Assign(target, "", new.value, node.span)


def _goes_on(names: Sequence[tuple[str, str]], owners: dict[str, tuple[str, int]], count: int) -> bool:
    """Say whether names of two neighbours go on with those before; ``owners`` grows by those of copy ``count``."""
    for one, two in names:
        first, copy = owners.setdefault(one, (one, 0)) if count == 1 else owners.get(one, ("", 0))
        if copy != count - 1 or owners.setdefault(two, (first, count)) != (first, count):
            return False
    return True


def _depth(stmt: ir.Stmt) -> int:
    """Return how many loops over copies stand in each other in a statement."""
    inside = [_depth(one) for one in _inner(stmt)]
    return max(inside, default=0) + (isinstance(stmt, ir.For) and stmt.copies == ir.WHOLE)


def _inner(stmt: ir.Stmt) -> Body:
    match stmt:
        case ir.If(then=then, otherwise=otherwise):
            return (*then, *otherwise)
        case ir.For(body=body):
            return body
        case _:
            return ()


def _plus(expr: ir.Expr, offset: int) -> ir.Expr:
    base, constant = split(expr)
    if base is None:
        return ir.IntConst(constant + offset, expr.type)
    away = ir.IntConst(abs(constant + offset), expr.type)
    return base if away.value == 0 else ir.binary("+" if constant + offset > 0 else "-", base, away)


def _grown(base: ir.Expr | None, constant: int, step: int, variable: ir.Var, type_: ScalarType) -> ir.Expr:
    """Return ``base + step*variable + constant``."""
    if step == 0:
        return ir.IntConst(constant, type_) if base is None else _plus(base, constant)
    grows: ir.Expr = variable if abs(step) == 1 else ir.binary("*", variable, ir.IntConst(abs(step)))
    if type_ is not INT:
        grows = ir.Cast(type_, grows)
    if step < 0 and base is None:
        return ir.binary("-", ir.IntConst(constant, type_), grows)
    result = grows if base is None else ir.binary("+" if step > 0 else "-", base, grows)
    if constant == 0:
        return result
    return ir.binary("+" if constant > 0 else "-", result, ir.IntConst(abs(constant), type_))
