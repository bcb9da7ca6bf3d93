"""Points to run leaves at: parameters inside Start, and machines on the boundaries of a leaf's region.

Parameter values are sampled so that sizes divide and do not, blocks are small, wide and full, and extents are 1; the
tree is then walked with an interval for each machine symbol, which gives every leaf that some machine chooses for these
parameters, and the boundaries exactly: a limit equal to a counter (``Z`` at the words of the leaf), or one below the
counter of another leaf.  At about half of the points where there is more than one block the machine's grid is smaller
than the leaf's, so that blocks walk it.  Everything is small enough to run in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from random import Random

from msgspec import Struct

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.facts import program_facts
from metafork.analysis.memory.lane_transpose import WARP
from metafork.analysis.values.scope import Scope
from metafork.comprehensive.tree.schedule_tree import (
    Inconsistent,
    LeafReference,
    Node,
    NoLeaf,
    ScheduleTree,
    Tree,
    Variant,
    has_values,
)
from metafork.comprehensive.verification.point_conditions import Condition, Interval, Values, condition_of
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.program import ParameterKind, Phase, Program, walk_statements
from metafork.runtime.machine import DEFAULT

MOST_ELEMENTS = 20_000
"""Most array elements of a point, all arrays together."""

MOST_THREADS = 700
"""Most threads of a block at a point, a result each."""

FULL_BLOCK = 1024
"""The same for leaves that have no such point: where a thread has 32 results, a warp of them is all of a block."""

INSTANCE_ELEMENTS, INSTANCE_THREADS = 200_000, 1024
"""The same where an instance runs: its values are the user's, and may be large."""

VAST_ELEMENTS, VAST_THREADS = 4_000_000, 2_000_000
"""Most elements, and threads of all blocks, for leaves without any smaller point: sizes in the text may be large."""

SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 17, 31, 32, 33, 64, 128, 129, 256, 300)
"""Values tried for parameters that size nothing."""

WIDE = SIZES[12:]
"""Those about as large as a warp, or larger."""

BLOCKS = (2, 4, 8, 16, 17, 32)
"""Those of which two make a block that still has a warp where a thread runs several iterations in each direction."""

WHOLE_BLOCKS, FLAT = (4, 4, 8, 8, 16, 32), (1, 2, 3)
"""Those that tiles fill, in vectors, and those without tiles."""

FULL_BLOCKS, FULL_CUBES = (1, 2, 16, 32, 64), (4, 8, 16, 32)
"""Those of which two make a full block, and three in three dimensions."""

GRID_FIELDS = ("grid_dim_x", "grid_dim_y", "grid_dim_z")
"""The machine's limits of a launch; a kernel's x is the innermost loop of the grid."""

WALKS = "a block walks the grid in "
"""How marks begin that say in which dimension a launch has fewer blocks than the leaf's grid."""

TOGETHER = "several threads walk the grid"
"""The mark of such a launch whose blocks have threads enough to disturb each other."""

FILLED = f"all sizes are multiples of {WHOLE_BLOCKS[0]}"
"""How the mark begins of points at which tiles are full and vectors aligned."""

SEVERAL_THREADS = 4


class Point(Struct, frozen=True):
    """Where a variant is run: values of the schedule's parameters, a machine by field, and what is special about it."""

    leaf: int
    variant: int
    parameters: Mapping[str, int]
    machine: Mapping[str, int]
    marks: frozenset[str] = frozenset()

    @property
    def walks(self) -> bool:
        """Whether a launch has fewer blocks here than the leaf's grid."""
        return any(mark.startswith(WALKS) for mark in self.marks)

    def text(self) -> str:
        """Return the point as ``n=4, B0=2; T=4, Z=8``."""
        parameters = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        machine = ", ".join(f"{name}={value}" for name, value in self.machine.items())
        return f"{parameters}; {machine}" if machine else parameters


_Limited = tuple[Variant, list[tuple[Condition, Condition]]]
"""A variant, and its limits with their opposites."""


class Points:
    """Finds points of one schedule's tree; equal seeds give equal points."""

    def __init__(self, tree: ScheduleTree, seed: int = 1) -> None:
        self.tree = tree
        self._numbers = Random(seed)
        self._machine = frozenset(symbol for symbol in tree.machine.values() if symbol not in tree.fixed)
        self._fields = {symbol: name for name, symbol in tree.machine.items()}
        on_machine = set(self._machine)
        self._late: list[DerivedSymbol] = []
        for symbol in tree.derived:
            if any(operand.symbols & on_machine for operand in symbol.operands):
                on_machine.add(symbol.name)
                self._late.append(symbol)
        self._start = [self._condition(constraint) for constraint in tree.start]
        self._nodes: dict[int, tuple[Condition, Condition]] = {}
        self._systems = [[[self._condition(c) for c in system] for system in leaf.systems] for leaf in tree.leaves]
        program = tree.program
        facts = program_facts(program)
        scope = Scope.of(facts)
        self._opaque = [derived for derived in program.derived if derived.name in tree.opaque]
        # Two orders exist: opaque scalars follow the program, the others the tree; an opaque one may use any of these.
        self._derived = tuple(symbol for symbol in tree.derived if symbol not in self._late)
        sized = [array.extents for array in program.arrays if not array.endless]
        sizes = [[scope.polynomial(extent) for extent in extents] for extents in sized]
        self._sizes = [prod_of(extents) for extents in sizes]
        threads = [phase.threads for phase in walk_statements(program.body) if isinstance(phase, Phase)]
        self._threads = [prod_of([scope.polynomial(loop.extent) for loop in loops]) for loops in threads]
        self._grid = prod_of([scope.polynomial(loop.extent) for loop in program.grid])
        self._variants = {
            leaf.id: [(one, [self._with_opposite(c) for c in one.limits]) for one in leaf.variants]
            for leaf in tree.leaves
        }
        values = [one.values for leaf in tree.leaves for one in leaf.variants if one.values]
        self._static = [one for number, one in enumerate(values) if one not in values[:number]]

    # ---- parameters ----

    def parameter_points(
        self, tries: int, *, full: bool = False, large: bool = False, vast: bool = False
    ) -> Iterator[Values]:
        """Yield different parameter points of Start (with derived symbols), at most one a try.

        Where ``full``, blocks have the sizes that usual ones have, and up to ``FULL_BLOCK`` threads; where ``large``,
        they are large in one direction or in several.  Where ``vast``, arrays and grids may have ``VAST`` sizes.
        """
        seen: set[tuple[int, ...]] = set()
        names = [parameter.name for parameter in self.tree.program.parameters]
        witnesses = [leaf.witness for leaf in self.tree.leaves if leaf.witness is not None]
        for number in range(tries):
            if number < len(witnesses) and not large:
                start = {name: int(value) for name, value in witnesses[number].items() if name in names}
                candidate = {name: start.get(name, 1) for name in names}
            else:
                candidate = self._candidate(number, full, large, vast)
            key = tuple(candidate.values())
            if key in seen:
                continue
            seen.add(key)
            point = self.completed(candidate)
            if point is not None and self._small(point, FULL_BLOCK if full or vast else MOST_THREADS, vast):
                yield point

    def _candidate(self, number: int, full: bool, large: bool, vast: bool) -> Values:
        random = self._numbers
        reach = len(SIZES) if vast else (4, 8, len(SIZES), 4)[number % 4]
        programs = [one.name for one in self.tree.program.parameters if one.kind.value == "program"]
        widened = random.choice(programs) if programs and number % 8 == 3 else None
        blocks = number % 4 != 3 if large else number % 8 == 7
        whole = number % 8 == 5
        flat = random.choice(programs) if len(programs) > 1 and number % 16 == 5 else None
        values: Values = {}
        sized = []
        for parameter in self.tree.program.parameters:
            if parameter.of_serial_loop:
                values[parameter.name] = random.randint(0, 3)
            elif parameter.kind.value == "program":
                sizes: Sequence[int] = SIZES[:reach]
                if full:
                    sizes = FULL_BLOCKS if len(self.tree.program.grid) < 3 else FULL_CUBES
                elif whole:
                    sizes = FLAT if parameter.name == flat else WHOLE_BLOCKS
                elif parameter.name == widened:
                    sizes = self._wide(widened)
                elif blocks:
                    sizes = BLOCKS
                values[parameter.name] = random.choice(sizes)
            else:
                sized.append(parameter.name)
        if self._static and number % 2 and not large:
            values.update(self._static[number // 2 % len(self._static)])
        for name in sized:
            values[name] = random.randint(1, 12)
        for name in sized:
            size = self._size(name, values)
            values[name] = size + -size % WHOLE_BLOCKS[0] if whole else size
        return values

    def _wide(self, name: str) -> Sequence[int]:
        """Return sizes of which a block has a warp and more; fewer do where the block's extents are all this one."""
        power = max((max(dict(mono).get(name, 0) for mono in one.terms()) for one in self._threads if one), default=1)
        return [size for size in SIZES if WARP <= size**power <= MOST_THREADS] if power > 1 else WIDE

    def _size(self, name: str, values: Values) -> int:
        """Return a size that makes one of the program's quotients a small number, with or without a remainder."""
        random = self._numbers
        choices = [d for d in self._derived if d.kind in ("floor", "ceiling") and name in d.operands[0].symbols]
        random.shuffle(choices)
        for symbol in choices:
            numerator, denominator = symbol.operands
            factor = numerator.coefficient(name)
            if (
                factor is None
                or not factor.is_constant
                or not (numerator.symbols | denominator.symbols) <= values.keys()
            ):
                continue
            rest = numerator - factor * Polynomial.symbol(name)
            step = int(denominator.evaluate(values))
            whole = random.choice((1, 1, 2, 2, 3, 4)) * step + random.choice((0, 0, 1, step - 1, random.randint(0, 4)))
            value = (whole - rest.evaluate(values)) / factor.constant_value()
            if value >= 1:
                return int(value)
        return random.choice((1, 2, 3, 4, 6, 7, 8, 12, 16, 17, 24, 33, 40))

    def completed(self, candidate: Values) -> Values | None:
        """Return a parameter point with its derived symbols, ``None`` outside of Start (whatever the machine)."""
        point = dict(candidate)
        try:
            waiting = list(self._opaque)
            for symbol in self._derived:
                point[symbol.name] = symbol.evaluate(point)
        except KeyError:  # a derived symbol of an opaque scalar
            point = dict(candidate)
            try:
                for derived in self.tree.program.derived:
                    point.setdefault(derived.name, integer_value(derived.definition, point))
                for symbol in self._derived:
                    point[symbol.name] = symbol.evaluate(point)
            except (ZeroDivisionError, NoValueError):
                return None
        except ZeroDivisionError:
            return None
        else:
            try:
                for derived in waiting:
                    point[derived.name] = integer_value(derived.definition, {**self._scalars(point), **point})
            except (ZeroDivisionError, NoValueError):
                return None
        inside = all(condition.holds(point) for condition in self._start if condition.symbol == "")
        return point if inside and self._asserted(point) else None

    def _asserted(self, point: Values) -> bool:
        """Say whether no assertion fails, also of those that are no constraint of Start (``B != C``)."""
        for assumption in self.tree.program.assumptions:
            try:
                if not integer_value(assumption, {**self._scalars(point), **point}):
                    return False
            except (ZeroDivisionError, NoValueError):
                continue  # it is not known to fail
        return True

    def _scalars(self, point: Values) -> Values:
        values: Values = {parameter.name: point[parameter.name] for parameter in self.tree.program.parameters}
        for derived in self.tree.program.derived:
            values[derived.name] = integer_value(derived.definition, values)
        return values

    def _small(self, point: Values, most_threads: int, vast: bool) -> bool:
        threads = self._most_threads(point)
        most_elements, all_threads = (VAST_ELEMENTS, VAST_THREADS) if vast else (MOST_ELEMENTS, 8 * MOST_THREADS)
        if any(has_values(values, point) for values in self._static):
            most_elements, most_threads = INSTANCE_ELEMENTS, INSTANCE_THREADS
        return (
            self._elements(point) <= most_elements
            and threads <= most_threads
            and threads * _number(self._grid, point) <= all_threads
        )

    def _elements(self, point: Values) -> int:
        return sum(_number(size, point) for size in self._sizes)

    def size(self, point: Point) -> int:
        """Return how many elements the arrays have at a point, all together."""
        return self._elements(self.completed({**point.parameters}) or {})

    def _most_threads(self, point: Values) -> int:
        return max((_number(value, point) for value in self._threads), default=1)

    # ---- machines ----

    def _with_opposite(self, condition: Constraint) -> tuple[Condition, Condition]:
        return self._condition(condition), self._condition(condition.negated())

    def _condition(self, constraint: Constraint) -> Condition:
        return condition_of(constraint, self._machine, frozenset(symbol.name for symbol in self._late))

    def _with_late(self, point: Values) -> Values:
        """Return a point with machine symbols, and what is derived from these."""
        whole = dict(point)
        for symbol in self._late:
            whole[symbol.name] = symbol.evaluate(whole)
        return whole

    def leaves_at(self, point: Values) -> Iterator[tuple[int, dict[str, Interval]]]:
        """Yield the leaves that machines choose at a parameter point, with the intervals of the machine's symbols."""
        intervals: dict[str, Interval] = {}
        for symbol in sorted(self._machine):
            most = DEFAULT.fields().get(self._fields.get(symbol, ""))
            intervals[symbol] = (0, most)
        for condition in self._start:
            if condition.symbol:
                narrowed = condition.narrowed(point, intervals[condition.symbol])
                if narrowed is None:
                    return
                intervals[condition.symbol] = narrowed
        yield from self._below(self.tree.root, point, intervals)

    def _below(
        self, tree: Tree, point: Values, intervals: dict[str, Interval]
    ) -> Iterator[tuple[int, dict[str, Interval]]]:
        match tree:
            case LeafReference(leaf=leaf):
                yield leaf, intervals
            case NoLeaf() | Inconsistent():
                return
            case Node(condition=condition, accept=accept, refuse=refuse):
                if id(tree) not in self._nodes:
                    self._nodes[id(tree)] = self._with_opposite(condition)
                for one, child in zip(self._nodes[id(tree)], (accept, refuse), strict=True):
                    if one.symbol == "":
                        if one.holds(point):
                            yield from self._below(child, point, intervals)
                    elif one.symbol is None:
                        yield from self._below(child, point, intervals)
                    else:
                        narrowed = one.narrowed(point, intervals[one.symbol])
                        if narrowed is not None:
                            yield from self._below(child, point, {**intervals, one.symbol: narrowed})

    def displayed_at(self, point: Values) -> list[int]:
        """Return the leaves one of whose displayed systems holds at a point with machine symbols."""
        point = self._with_late(point)
        return [
            leaf.id
            for leaf, systems in zip(self.tree.leaves, self._systems, strict=True)
            if any(all(condition.holds(point) for condition in system) for system in systems)
        ]

    def at(self, point: Values, leaf: int, intervals: Mapping[str, Interval]) -> Iterator[Point]:
        """Yield points of a leaf at parameters: machines on the lower boundary, on the upper one, and one between.

        So it is for each variant that some machine runs there.
        """
        names = [parameter.name for parameter in self.tree.program.parameters]
        parameters = {name: point[name] for name in names}
        marks = self._marks(point)
        defaults = DEFAULT.fields()
        for part, side in product(self._parts(point, self._variants[leaf], intervals), ("low", "high", "middle")):
            machine: Values = {}
            special = set(marks)
            for symbol, (low, high) in part.items():
                most = defaults.get(self._fields[symbol])
                top = high if high is not None else most if most is not None else low + 8
                if top < low:
                    break
                value = {"low": low, "high": top, "middle": self._numbers.randint(low, top)}[side]
                machine[self._fields[symbol]] = value
                if value == low and low > 0:
                    special.add(f"{symbol} is equal to the least that the leaf needs")
                if high is not None and value == high and high != most:
                    special.add(f"{symbol} is one below what another leaf or variant needs")
            if len(machine) < len(part):
                continue
            whole = {**point, **{symbol: machine[self._fields[symbol]] for symbol in intervals}}
            if self.displayed_at(whole) == [leaf]:
                variant = self.variant_at(whole, leaf)
                limits = self._small_grid(point, variant.version.program)
                special |= {f"{WALKS}{limit[-1]}" for limit in limits}
                if limits:  # the kernel for such a grid has no vectors
                    special = {mark for mark in special if not mark.startswith(FILLED)}
                if limits and self._most_threads(point) >= SEVERAL_THREADS:
                    special.add(TOGETHER)
                yield Point(leaf, variant.number, parameters, {**machine, **limits}, frozenset(special))

    def variant_at(self, point: Values, leaf: int) -> Variant:
        """Return the variant of a leaf that runs at a point with machine symbols."""
        point = self._with_late(point)
        return next(
            one
            for one, limits in self._variants[leaf]
            if has_values(one.values, point) and all(condition.holds(point) for condition, _ in limits)
        )

    def _parts(
        self, point: Values, variants: Sequence[_Limited], intervals: Mapping[str, Interval]
    ) -> Iterator[Mapping[str, Interval]]:
        """Yield the machines on which the first of some variants runs at a point, and those on which later ones do."""
        if not variants:
            return
        (one, limits), *rest = variants
        never = (not condition.holds(point) for condition, _ in limits if condition.symbol == "")
        if not has_values(one.values, point) or any(never):
            yield from self._parts(point, rest, intervals)
            return
        within = dict(intervals)
        for condition, opposite in limits:
            if not condition.symbol:
                continue
            outside = opposite.narrowed(point, within[condition.symbol])
            if outside is not None:
                yield from self._parts(point, rest, {**within, condition.symbol: outside})
            inside = condition.narrowed(point, within[condition.symbol])
            if inside is None:
                return
            within[condition.symbol] = inside
        yield within

    def _small_grid(self, point: Values, program: Program) -> Values:
        """Return limits of the grid below a program's own, in some dimensions or in none, by field of the machine."""
        random = self._numbers
        limits: Values = {}
        if random.random() < 0.5:
            return limits
        try:
            values = {**point, **self._scalars(point)}
            for derived in program.derived:  # a strategy may have added some
                values.setdefault(derived.name, integer_value(derived.definition, values))
            extents = [integer_value(loop.extent, values) for loop in reversed(program.grid)]
        except (ZeroDivisionError, NoValueError):
            return limits
        one_block = random.random() < 0.4
        for limit, extent in zip(GRID_FIELDS, extents, strict=False):
            if extent > 1 and limit not in self.tree.machine and (one_block or random.random() < 0.7):
                limits[limit] = 1 if one_block else random.randint(1, min(3, extent - 1))
        return limits

    def disagreements(
        self, point: Values, leaf: int, intervals: Mapping[str, Interval]
    ) -> Iterator[tuple[Values, list[int]]]:
        """Yield machines for which the displayed systems name other leaves than the tree, with what they name."""
        for side in (0, 1):
            machine = {
                symbol: low if side == 0 else (low + 8 if high is None else high)
                for symbol, (low, high) in intervals.items()
            }
            shown = self.displayed_at({**point, **machine})
            if shown != [leaf] and self._leads_to(leaf, self._with_late({**point, **machine})):
                yield machine, shown

    def _leads_to(self, leaf: int, point: Values) -> bool:
        """Say whether the tree gives a leaf at a point with machine symbols, of which intervals do not tell all."""
        tree = self.tree.root
        while isinstance(tree, Node):
            tree = tree.accept if self._condition(tree.condition).holds(point) else tree.refuse
        return isinstance(tree, LeafReference) and tree.leaf == leaf

    def _marks(self, point: Values) -> set[str]:
        marks: set[str] = set()
        threads = self._most_threads(point)
        if threads >= WARP:
            marks.add("whole warps" if threads % WARP == 0 else "whole warps and a part of one")
        for parameter in self.tree.program.parameters:
            if point[parameter.name] == 1:
                marks.add(f"{parameter.name} = 1")
        rest = [one for one in self.tree.program.parameters if point[one.name] % WHOLE_BLOCKS[0]]
        if all(one.kind is ParameterKind.PROGRAM and point[one.name] in FLAT for one in rest[:1]) and len(rest) < 2:
            marks.add(f"{FILLED} but {rest[0].name}" if rest else FILLED)
        for symbol in self._derived:
            if symbol.kind == "floor":
                numerator, denominator = (int(operand.evaluate(point)) for operand in symbol.operands)
                marks.add(f"{symbol.name} {'divides' if numerator % denominator == 0 else 'does not divide'}")
                if point[symbol.name] == 1:
                    marks.add(f"{symbol.name} = 1")
        return marks


def _number(value: Polynomial | None, point: Values) -> int:
    return 1 if value is None or not value.symbols <= point.keys() else int(value.evaluate(point))


def prod_of(values: list[Polynomial | None]) -> Polynomial | None:
    """Return the product, ``None`` where a factor is not known."""
    known = [value for value in values if value is not None]
    return prod(known, start=Polynomial.constant(1)) if len(known) == len(values) else None
