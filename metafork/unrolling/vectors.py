"""Vector accesses: neighbouring elements that straight thread code reads or writes anyway are moved by one access.

``before --> after``, where ``first`` and ``n`` are multiples of 4::

    s0 += x * a[y * n + first];                    float part = a[y * n + first];  ...  // parts 0 to 3 of one access
    ...                                     -->    s0 += x * part;
    s3 += x * a[y * n + (first + 3)];              ...
                                                   s3 += x * part_4;

Kernels say it by the ``part`` of an ``Element``; what an element is stays as it was: who ignores parts is right.

Legality.  Offsets are polynomials in scalars that nothing assigns.  Elements that are read whatever conditions are, in
one list of statements and with no store to their array in between, may be read at the first of these reads.  Stores
of one access follow each other, and none of their values reads the array.  An access is aligned where each term of the
offset of its first element has a coefficient, or one of the ``divided`` scalars, that is a multiple of its lanes: the
caller asks for these scalars, and for memories that begin at multiples of 16 bytes, before it runs the code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from functools import cache

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import OFFSET, VECTOR_BYTES, VECTORS
from metafork.ir.names import fresh
from metafork.ir.rewriting import arrays_read, map_expression
from metafork.unrolling.shared_loads import SIGNED, changing_scalars, exact_polynomial, read_always

Body = tuple[ir.Stmt, ...]
WARP, SECTOR_BYTES = 32, 32
WORTH = Fraction(19, 20)
"""What sectors have to fall to for an access per column to pay: vectors save instructions."""
THREAD = "thread "
"""How symbols begin that stand for what differs from thread to thread; no name does."""

BLOCK = ("threadIdx.y", "threadIdx.z", "blockIdx.", "blockDim.")
"""How built-in variables begin that are the same in threads that are neighbours in x."""


class Vectors(Struct, frozen=True):
    """Code with vector accesses, which is right where each scalar of ``divided`` is a multiple of its number.

    ``pays``: warps ask for no more sectors than with one column a thread, as many elements lying anywhere take.
    """

    body: Body
    divided: Mapping[str, int]
    pays: bool


def with_vectors(
    body: Body,
    known: Mapping[str, Polynomial],
    divisible: Sequence[str],
    begins: Mapping[str, Polynomial],
    columns: int,
    taken: set[str],
) -> Vectors:
    """Return straight code, with loops and conditions in it, in which neighbours in some arrays are accessed together.

    ``known`` are scalars around it as polynomials, with ``THREAD`` in those that differ from thread to thread;
    ``divisible`` are those that the caller can ask to be multiples.  ``begins`` are the arrays, and where each begins,
    in bytes from a multiple of 16.  ``taken`` grows by the names of scalars.
    """
    hidden = {stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare)}
    free = [name for name in divisible if name not in hidden | known.keys()]
    walk = _Vectors(changing_scalars(body), free, begins, columns, taken)
    result = walk.body(body, known, 1)
    return Vectors(result, walk.divided, walk.found and walk.wide * WORTH <= walk.narrow)


class _Line(Struct, frozen=True):
    """Elements whose offsets differ by constants, between two stores to their array."""

    array: str
    stores: int
    rest: Polynomial


class _Read(Struct, frozen=True):
    """The first read of an element: the number of its statement."""

    statement: int
    element: ir.Element


class _Vectors(Struct):
    changing: Set[str]
    divisible: Sequence[str]
    begins: Mapping[str, Polynomial]
    columns: int
    taken: set[str]
    divided: dict[str, int] = field(default_factory=dict)
    found: bool = False
    wide: Fraction = Fraction(0)
    narrow: Fraction = Fraction(0)
    symbols: int = 0

    def body(self, body: Body, known: Mapping[str, Polynomial], trips: int) -> Body:
        """Return a list of statements with its vector accesses, and those of the bodies in it; it runs so often."""
        scalars, stores = dict(known), Counter[str]()
        reads: dict[_Line, dict[int, _Read]] = {}
        places: list[dict[int, tuple[_Line, int]]] = []
        targets: list[tuple[_Line, int] | None] = []
        inner: list[ir.Stmt] = []
        for number, stmt in enumerate(body):
            own = [] if isinstance(stmt, ir.For) else values_of(stmt)
            elements = [one for expr in own for one in ir.walk_expression(expr) if isinstance(one, ir.Element)]
            place = self._places(elements, scalars, stores)
            places.append(place)
            always = [one for expr in own for one in read_always(expr)] if elements else []
            for element in always:
                if (found := place.get(id(element))) is not None:
                    line, constant = found
                    reads.setdefault(line, {}).setdefault(constant, _Read(number, element))
            targets.append(self._target(stmt, scalars, stores))
            inner.append(self._inside(stmt, scalars, trips))
            self._count_unknown(stmt, elements, always, place, targets[-1], trips)
            if isinstance(stmt, ir.Declare):
                exact = self._value(stmt, scalars)
                alike = stmt.type in SIGNED and is_alike(stmt.value, scalars, self.changing)
                name = stmt.name if alike else f"{THREAD} {stmt.name}"
                scalars[stmt.name] = self._symbol(name) if exact is None else exact
            stores.update(stored_in(stmt))
        loaded, declared = self._loaded(reads, trips)
        result: list[tuple[ir.Stmt, tuple[_Line, int] | None]] = []
        for number, (stmt, place, target) in enumerate(zip(inner, places, targets, strict=True)):
            result += [(one, None) for one in declared.get(number, ())]
            names = {one: loaded[key] for one, key in place.items() if key in loaded} if loaded else {}
            result.append((_with_values(stmt, names) if names else stmt, target))
        return tuple(self._stored_together(result, trips))

    def _inside(self, stmt: ir.Stmt, scalars: Mapping[str, Polynomial], trips: int) -> ir.Stmt:
        match stmt:
            case ir.If(then=then, otherwise=otherwise):
                return replace(
                    stmt, then=self.body(then, scalars, trips), otherwise=self.body(otherwise, scalars, trips)
                )
            case ir.For(init=ir.Declare(name=name) as init, body=inner):
                start = self._value(init, scalars)
                counter = self._symbol(name if is_alike(init.value, scalars, self.changing) else f"{THREAD} {name}")
                step = self._step(stmt, scalars)
                if start is not None and step is not None:
                    counter = start + counter * step
                return replace(stmt, body=self.body(inner, {**scalars, name: counter}, trips * _trips(stmt)))
            case _:
                return stmt

    def _loaded(
        self, reads: Mapping[_Line, Mapping[int, _Read]], trips: int
    ) -> tuple[dict[tuple[_Line, int], ir.Var], dict[int, list[ir.Stmt]]]:
        """Return the scalars of elements that are read together, and their declarations before statements."""
        loaded: dict[tuple[_Line, int], ir.Var] = {}
        declared: dict[int, list[ir.Stmt]] = {}
        for line, constants in reads.items():
            groups = list(self._groups(line, constants, next(iter(constants.values())).element.type))
            size = next(iter(constants.values())).element.type.size
            self._count(line, constants, len(constants) - sum(lanes - 1 for _, lanes in groups), trips, size)
            for first, lanes in groups:
                self._use(line, lanes)
                group = range(first, first + lanes)
                read, constant = min(((constants[one], one) for one in group), key=lambda pair: pair[0].statement)
                (index,) = read.element.indices
                begin = _moved(index, first - constant)
                for place, one in enumerate(group):
                    element = replace(read.element, indices=(_moved(begin, place),), part=ir.Part(lanes, place))
                    variable = ir.Var(fresh("part", self.taken), element.type)
                    loaded[line, one] = variable
                    declared.setdefault(read.statement, []).append(ir.Declare(variable.name, variable.type, element))
        return loaded, declared

    def _groups(self, line: _Line, constants: Iterable[int], type_: ScalarType) -> Iterator[tuple[int, int]]:
        """Yield where groups of elements begin that can be accessed together, and how many they are."""
        left = set(constants)
        for lanes in (4, 2):
            needed = self._needed(line.rest, lanes) if lanes * type_.size <= VECTOR_BYTES and type_ in VECTORS else None
            if needed is None:
                continue
            for first in sorted(one for one in left if one % lanes == 0):
                group = set(range(first, first + lanes))
                if group <= left:
                    left -= group
                    yield first, lanes

    def _use(self, line: _Line, lanes: int) -> None:
        """Ask for what an access needs."""
        self.found = True
        for name in self._needed(line.rest, lanes) or ():
            self.divided[name] = max(lanes, self.divided.get(name, 1))

    def _needed(self, rest: Polynomial, lanes: int) -> list[str] | None:
        """Return the scalars that have to be multiples for all terms to be; ``None`` where that is not enough."""
        chosen = [name for name, multiple in self.divided.items() if multiple >= lanes]
        return multiples_needed([rest], lanes, self.divisible, chosen)

    def _stored_together(
        self, stmts: Sequence[tuple[ir.Stmt, tuple[_Line, int] | None]], trips: int
    ) -> Iterator[ir.Stmt]:
        targets = Counter(target[0] for _, target in stmts if target is not None)
        position = 0
        while position < len(stmts):
            several = self._run(stmts[position : position + 4])
            if several:
                yield from several
                place = stmts[position][1]
                assert place is not None
                targets[place[0]] -= len(several) - 1
            else:
                yield stmts[position][0]
            position += max(1, len(several))
        sizes = {target[0]: _size_of_store(stmt) for stmt, target in stmts if target is not None}
        elements: dict[_Line, list[int]] = {}
        for _, target in stmts:
            if target is not None:
                elements.setdefault(target[0], []).append(target[1])
        for line, constants in elements.items():
            self._count(line, constants, targets[line], trips, sizes[line])

    def _count(self, line: _Line, constants: Iterable[int], accesses: int, trips: int, size: int) -> None:
        """Count the sectors of so many accesses to elements of a line, and of those that a thread of one column has.

        Of a row of neighbours such a thread has as many fewer as there are more columns; of each row that lies apart.
        """
        if varies(line.rest):
            one = Fraction(0)
            for length in _rows_of_neighbours(constants):
                one += max(Fraction(length, self.columns), Fraction(length - self.columns + 1))
            self.wide += trips * accesses * sectors_of_access(self.columns * size)
            self.narrow += trips * one * self.columns * sectors_of_access(size)

    def _count_unknown(
        self,
        stmt: ir.Stmt,
        elements: Sequence[ir.Element],
        always: Sequence[ir.Element],
        places: Mapping[int, tuple[_Line, int]],
        target: object,
        trips: int,
    ) -> None:
        """Count elements as other ones in each thread that are not known to be the same, or not ``always`` read."""
        read = set(map(id, always))
        suspects = [
            one
            for one in elements
            if id(one) not in places or (id(one) not in read and varies(places[id(one)][0].rest))
        ]
        unknown: list[int] = []
        if suspects:  # only these are looked at as what they are: that takes long
            equal = set(always)
            unknown += [one.type.size for one in set(suspects) if id(one) not in places or one not in equal]
        if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element) and not target:
            unknown.append(stmt.target.type.size)
        if unknown:
            self.wide += trips * sum(sectors_of_access(self.columns * size) for size in unknown)
            self.narrow += trips * sum(map(sectors_of_access, unknown))

    def _run(self, stmts: Sequence[tuple[ir.Stmt, tuple[_Line, int] | None]]) -> list[ir.Stmt]:
        """Return the first of some statements as stores of one access, as many as that takes; none where it cannot."""
        (first, place), *_ = stmts
        if place is None:
            return []
        line, constant = place
        constants = set()
        for number, (stmt, other) in enumerate(stmts):
            if (
                other is None
                or (other[0].array, other[0].rest, other[1]) != (line.array, line.rest, constant + number)
                or any(line.array in arrays_read(expr) for expr in values_of(stmt))
            ):
                break
            constants.add(constant + number)
        assert isinstance(first, ir.Assign)
        assert isinstance(first.target, ir.Element)
        for begin, lanes in self._groups(line, constants, first.target.type):
            if begin != constant:
                continue
            self._use(line, lanes)
            (index,) = first.target.indices
            result: list[ir.Stmt] = []
            for number, (stmt, _) in enumerate(stmts[:lanes]):
                assert isinstance(stmt, ir.Assign)
                target = replace(first.target, indices=(_moved(index, number),), part=ir.Part(lanes, number))
                result.append(replace(stmt, target=target))
            return result
        return []

    def _places(
        self, elements: Sequence[ir.Element], scalars: Mapping[str, Polynomial], stores: Counter[str]
    ) -> dict[int, tuple[_Line, int]]:
        """Return where elements lie for which that is known, by their identity."""
        found = {id(one): self._place(one, scalars, stores) for one in elements}
        return {one: place for one, place in found.items() if place is not None}

    def _target(
        self, stmt: ir.Stmt, scalars: Mapping[str, Polynomial], stores: Counter[str]
    ) -> tuple[_Line, int] | None:
        """Return where a statement stores that does nothing else."""
        match stmt:
            case ir.Assign(target=ir.Element() as target, op="", atomic=False):
                return self._place(target, scalars, stores)
            case _:
                return None

    def _place(
        self, element: ir.Element, scalars: Mapping[str, Polynomial], stores: Counter[str]
    ) -> tuple[_Line, int] | None:
        if element.array not in self.begins:
            return None
        (index,) = element.indices
        offset = self._polynomial(index, scalars)
        if offset is None:
            return None
        begin = self.begins[element.array]
        if begin:
            offset += begin * Fraction(1, element.type.size)
        if not offset.whole:
            return None
        constant = int(offset.coefficients.get((), 0))
        return _Line(element.array, stores[element.array], offset - constant), constant

    def _polynomial(self, expr: ir.Expr, scalars: Mapping[str, Polynomial]) -> Polynomial | None:
        return exact_polynomial(expr, scalars, self.changing)

    def _value(self, stmt: ir.Declare, scalars: Mapping[str, Polynomial]) -> Polynomial | None:
        """Return the value of a scalar where it is declared."""
        return None if stmt.value is None or stmt.type not in SIGNED else self._polynomial(stmt.value, scalars)

    def _step(self, loop: ir.For, scalars: Mapping[str, Polynomial]) -> Polynomial | None:
        """Return by how much the counter of a loop grows, where that is more than 1 and the same in neighbours."""
        step = loop.step
        if step is None or step.op != "+" or step.value == ir.IntConst(1):
            return None
        value = self._polynomial(step.value, scalars)
        return None if value is None or varies(value) else value

    def _symbol(self, name: str) -> Polynomial:
        """Return a symbol that stands for a scalar of this declaration only."""
        self.symbols += 1
        return Polynomial.symbol(f"{name} {self.symbols}")


def multiples_needed(
    values: Iterable[Polynomial], number: int, divisible: Sequence[str], chosen: Sequence[str] = ()
) -> list[str] | None:
    """Return the scalars of ``divisible`` that have to be multiples of a number for all terms of some values to be.

    ``chosen`` are multiples anyway.  ``None``: that is not enough.
    """
    terms = [term for value in values for term in value.coefficients.items()]
    if any(coefficient.denominator != 1 for _, coefficient in terms):
        return None
    odd = [{factor for factor, _ in mono} for mono, coefficient in terms if coefficient % number]
    factors = [[name for name in divisible if name in own] for own in odd]
    if not all(factors):
        return None
    often = Counter(name for names in factors for name in names)
    needed = list(chosen)
    for names in factors:
        if not set(needed) & set(names):
            needed.append(max(names, key=lambda name: often[name]))
    return needed


def divides(number: int, value: ir.Expr) -> ir.Expr:
    """Return the condition that a value is a multiple of a number."""
    return ir.binary("==", ir.binary("%", value, ir.IntConst(number)), ir.IntConst(0))


def wide_in(body: Body) -> set[str]:
    """Return the memories of which something reads several elements by one access."""
    return {
        part.array
        for stmt in ir.walk_statements(body)
        for expr in values_of(stmt)
        for part in ir.walk_expression(expr)
        if isinstance(part, ir.Element) and part.part is not None
    }


def values_of(stmt: ir.Stmt) -> list[ir.Expr]:
    """Return the expressions that a statement itself evaluates, but for the target that it stores to."""
    match stmt:
        case ir.Declare(value=value):
            return [] if value is None else [value]
        case ir.Assign(value=value):
            return [value]
        case ir.If(condition=condition):
            return [condition]
        case _:
            return []


def _with_values(stmt: ir.Stmt, names: Mapping[int, ir.Var]) -> ir.Stmt:
    """Return a statement that reads scalars instead of elements, which ``names`` has by their identity."""

    def read(expr: ir.Expr) -> ir.Expr:
        return map_expression(expr, lambda part: names.get(id(part)))

    match stmt:
        case ir.Declare(value=value) if value is not None:
            return ir.Declare(stmt.name, stmt.type, read(value), stmt.span)
        case ir.Assign():
            return ir.Assign(stmt.target, stmt.op, read(stmt.value), stmt.span, stmt.atomic, stmt.asynchronous)
        case ir.If(condition=condition):
            return replace(stmt, condition=read(condition))
        case _:
            return stmt


def _rows_of_neighbours(constants: Iterable[int]) -> list[int]:
    """Return how many elements each row has in which every element is followed by its neighbour, or accessed again."""
    lengths: list[int] = []
    before = None
    for one in sorted(constants):
        if before is not None and one - before <= 1:
            lengths[-1] += 1
        else:
            lengths.append(1)
        before = one
    return lengths


def varies(value: Polynomial) -> bool:
    """Say whether a value may differ between threads that are neighbours in x."""
    return any(symbol.startswith(THREAD) for symbol in value.symbols)


@cache  # of a few distances
def sectors_of_access(apart: int) -> Fraction:
    """Return how many sectors a warp's access takes whose threads lie so many bytes apart, beginning anywhere."""
    return min(Fraction((WARP - 1) * apart, SECTOR_BYTES) + 1, Fraction(WARP))


def _size_of_store(stmt: ir.Stmt) -> int:
    assert isinstance(stmt, ir.Assign)
    return stmt.target.type.size


def is_alike(value: ir.Expr | None, known: Mapping[str, Polynomial], changing: Set[str]) -> bool:
    """Say whether a value is proved to be the same in threads that are neighbours in x; ``known`` are its scalars."""
    if value is None:
        return False
    for part in ir.walk_expression(value):
        match part:
            case ir.Element():
                return False
            case ir.Call(name=name) if name != OFFSET:
                return False
            case ir.Var(name=name) if name.startswith(BLOCK):
                pass
            case ir.Var(name=name, type=type_):
                scalar = known.get(name)
                if name in changing or type_ not in SIGNED or (scalar is not None and varies(scalar)):
                    return False
            case _:
                pass
    return True


def _trips(loop: ir.For) -> int:
    """Return how often a loop runs where that is plain to see, else 1."""
    match loop:
        case ir.For(
            init=ir.Declare(value=ir.IntConst(value=first)),
            condition=ir.Binary(op="<", right=ir.IntConst(value=last)),
            step=ir.Assign(op="+", value=ir.IntConst(value=step)),
        ) if step > 0:
            return max(0, -((first - last) // step))
        case _:
            return 1


def stored_in(stmt: ir.Stmt) -> set[str]:
    """Return the memories that a statement stores to."""
    return {
        one.target.array
        for one in ir.walk_statements((stmt,))
        if isinstance(one, ir.Assign) and isinstance(one.target, ir.Element)
    }


def _moved(index: ir.Expr, by: int) -> ir.Expr:
    if by == 0:
        return index
    return ir.binary("+" if by > 0 else "-", index, ir.IntConst(abs(by)))
