"""What a block does: accesses, barriers and operations of all its threads, and the sectors that its accesses ask for.

No counter of its own (nothing limits it): leaves that are possible at the same points are compared by it
(``comprehensive.case_discussion.order``).  Counted on the kernel as it is lowered (``kernel_walk``), per block and per
thread of it, in a block away from the border of the data, as polynomials in parameters.

**Work**: each access to global or shared memory, each barrier and each operation on values counts one for each thread
that makes it.  Operations on indices are left out: of these a compiler shares, moves and folds most.  A copy that the
threads of a block share counts by its elements.

**Sectors**, in elements: an access of threads that are neighbours in x counts one where they touch neighbours in memory
or the same element, more where they stride, up to a 32-byte sector for each thread.  Where the stride is not known,
``sectors`` has the most and ``fewest_sectors`` the least.  Of the loads in one body of a loop, those without a stride
that differ by a constant number of steps between elements or threads (the neighbours of a stencil) count once: what
they touch is the same but for its border, and the first-level cache has it.  A loop multiplies: that the cache still
has what an earlier iteration loaded is not assumed.  Stores go through, and each counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most
from metafork.analysis.analyses import Analyses
from metafork.analysis.values.scope import Facts
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.kernel_walk import KernelWalk, UnknownCountError
from metafork.evaluators.kernels import kernel_of
from metafork.ir.kernel import Kernel, Space
from metafork.ir.program import Cast, Element, Expr, Stmt, Version, walk_expression

SECTOR_BYTES = 32

_KINDS = ("global memory", "shared memory", "barriers", "operations")
_SECTORS = ("sectors", "fewest sectors")


def _mark(kind: str, array: str = "") -> Polynomial:
    """Return a kind of count as a symbol that no program has: polynomials linear in them count all kinds at once."""
    return Polynomial.symbol(f"{kind} {array}")


class Work(Struct, frozen=True):
    """What a block does; the sum of the first four is its work.

    ``arrays`` are the sectors of each array in global memory, the most and the fewest that its accesses may take.
    """

    global_memory: Polynomial
    shared_memory: Polynomial
    barriers: Polynomial
    operations: Polynomial
    arrays: tuple[tuple[str, Polynomial, Polynomial], ...]

    @property
    def sectors(self) -> Polynomial:
        """The most that all accesses may take."""
        return _sum(most for _, most, _ in self.arrays)

    @property
    def fewest_sectors(self) -> Polynomial:
        """The fewest that all accesses may take."""
        return _sum(fewest for _, _, fewest in self.arrays)

    def apart_from(self, other: Work, same: Collection[str]) -> Work:
        """Return this without the sectors of arrays that both ask for alike: those of ``same`` with equal counts."""
        return replace(self, arrays=tuple(one for one in self.arrays if one[0] not in same or one not in other.arrays))

    @property
    def total(self) -> Polynomial:
        """Accesses, barriers and operations together."""
        return self.global_memory + self.shared_memory + self.barriers + self.operations


def work(version: Version, analyses: Analyses) -> Work | NotKnown:
    """Return what a block of a version does, in the symbols of its facts; what LLVM makes of it is not looked at."""
    return analyses.of(_work, version)


def _work(version: Version, analyses: Analyses) -> Work | NotKnown:
    kernel = kernel_of(version.program, analyses)
    if isinstance(kernel, NotKnown):
        return kernel
    try:
        facts = analyses.facts(version.program)
        # What is done where loops do not run decides nothing.
        walk = _Walk(kernel, replace(facts, constraints=(*facts.constraints, *facts.running)))
        total = walk.total()
    except UnknownCountError as reason:
        return NotKnown(str(reason))
    in_memory, in_shared, barriers, operations = (_coefficient(total, _mark(kind)) for kind in _KINDS)
    arrays: list[tuple[str, Polynomial, Polynomial]] = []
    for memory in kernel.memories:
        if memory.space is Space.GLOBAL:
            most, fewest = (_coefficient(total, _mark(kind, memory.name)) for kind in _SECTORS)
            arrays.append((memory.name, most, fewest))
    counts = [
        in_memory,
        in_shared,
        barriers,
        operations,
        *(most for _, most, _ in arrays),
        *(few for *_, few in arrays),
    ]
    known = {name for value in walk.facts.values.values() for name in value.symbols}
    known |= {symbol.name for symbol in walk.facts.derived}
    if not all(count.symbols <= known for count in counts):
        return NotKnown("it depends on more than parameters")
    return Work(in_memory, in_shared, barriers, operations, tuple(arrays))


def _sum(counts: Iterable[Polynomial]) -> Polynomial:
    total = ZERO
    for count in counts:
        total = total + count
    return total


class _Walk(KernelWalk):
    """Counts everything at once; ``_times`` is how often a block does what is being walked over."""

    def __init__(self, kernel: Kernel, facts: Facts) -> None:
        super().__init__(kernel, facts)
        self.facts = facts
        self._spaces = {memory.name: memory for memory in kernel.memories}
        self._marks = [_mark(kind) for kind in _KINDS]
        self._marks += [_mark(kind, array) for kind in _SECTORS for array in self.in_global_memory]
        self._indexing = 0
        # Loads that count already, by array: the offsets of one copy of a body.
        self._seen: dict[str, list[Polynomial]] = {}
        self._times = ONE
        for letter in "xyz":
            threads = self.scope.values[f"blockDim.{letter}"]
            if threads is None:
                raise UnknownCountError("the number of threads of a block is no known polynomial")
            self._times = self._times * threads

    def access(self, element: Element, *, stored: bool) -> Polynomial:
        memory = self._spaces[element.array]
        match memory.space:
            case Space.PRIVATE | Space.CONSTANT:
                return ZERO  # a table is read by whole warps at once, from a cache of its own
            case Space.SHARED:
                return self._times * _mark("shared memory")
            case Space.GLOBAL:
                (index,) = element.indices
                offset = self.scope.polynomial(index)
                count = self._times * _mark("global memory")
                least, most = self._elements(offset, memory.element.size)
                if offset is not None and not stored and most == 1:
                    if any(_are_near(offset, other) for other in self._seen.get(element.array, ())):
                        return count
                    self._seen.setdefault(element.array, []).append(offset)
                marks = [_mark(kind, element.array) for kind in _SECTORS]
                return count + self._times * (most * marks[0] + least * marks[1])

    def _elements(self, offset: Polynomial | None, size: int) -> tuple[int, int]:
        """Return how many elements' worth of sectors an access takes a thread, at the least and at the most."""
        most = max(1, SECTOR_BYTES // size)
        step = None if offset is None else offset.coefficient("threadIdx.x")
        if step is None:
            return 1, most
        if step.is_constant:
            taken = min(most, max(1, int(abs(step.constant_value()))))
            return taken, taken
        far = self.prover.proves(at_most(most, step)) or self.prover.proves(at_most(most, -step))
        return (most if far else 1), most

    def operation(self, expr: Expr) -> Polynomial:
        if self._indexing or isinstance(expr, Cast):
            return ZERO
        on_values = not expr.type.integer or any(isinstance(part, Element) for part in walk_expression(expr))
        return self._times * _mark("operations") if on_values else ZERO

    def barrier(self) -> Polynomial:
        return self._times * _mark("barriers")

    def index(self, indices: tuple[Expr, ...]) -> Polynomial:
        self._indexing += 1
        count = super().index(indices)
        self._indexing -= 1
        return count

    def repeated(self, trips: Polynomial, body: Callable[[], Polynomial]) -> Polynomial:
        return self._at(self._times * trips, body)

    def together(self, extent: Polynomial, threads: Polynomial, body: Callable[[], Polynomial]) -> Polynomial:
        others = self._times.divide_exactly(threads)
        if others is None:
            raise UnknownCountError("some threads of a block share a loop, and how many is not known")
        return self._at(others * extent, body)

    def _at(self, times: Polynomial, body: Callable[[], Polynomial]) -> Polynomial:
        before, self._times, seen, self._seen = self._times, times, self._seen, {}
        count = body()
        self._times, self._seen = before, seen
        return count

    def branch(self, body: tuple[Stmt, ...]) -> Polynomial:
        seen = self._seen
        self._seen = {array: list(offsets) for array, offsets in seen.items()}
        count = super().branch(body)
        self._seen = seen
        return count

    def greater(self, one: Polynomial, other: Polynomial) -> Polynomial:
        total = ZERO
        for mark in self._marks:
            sides = _coefficient(one, mark), _coefficient(other, mark)
            if self.prover.proves(at_most(*sides)):
                total = total + sides[1] * mark
            elif self.prover.proves(at_most(*reversed(sides))):
                total = total + sides[0] * mark
            else:
                raise UnknownCountError("which branch of a condition does more is not known")
        return total


def _are_near(one: Polynomial, other: Polynomial) -> bool:
    """Say whether two offsets differ by a constant number of elements and of steps between neighbouring threads."""
    apart = one - other
    for letter in "xyz":
        stride = other.coefficient(f"threadIdx.{letter}")
        if stride is None or stride.is_constant:
            continue
        mono, factor = next((mono, factor) for mono, factor in stride.terms().items() if mono)
        steps = apart.terms().get(mono, 0) / factor
        if steps.denominator == 1:
            apart = apart - stride * steps
    return apart.is_constant


def _coefficient(total: Polynomial, mark: Polynomial) -> Polynomial:
    (name,) = mark.symbols
    return total.coefficient(name) or ZERO
