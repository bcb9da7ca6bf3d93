"""Translation validation: does a leaf's program compute what the source program computes?  (Issue: verification.)

``validate(source, leaf, kernel)`` compares the source in its serial order with the leaf's program, blocks and threads
in any order that its barriers allow, and with the kernel that the program was lowered to.  Three answers:

*no* (refuted): at some small point all are played through with terms for data (``played``, ``played_kernel``), and an
element ends with another term, or an access lies outside its array; the answer names both.  Leaf and kernel are played
forward and backward, the kernel also with a grid that is too small, and without vectors.  Points follow the factors by
which results are computed together, and more are taken while there are statements of the kernel that ran at none.

*yes* (proved), of the program before it is lowered: for each of a few block shapes (numbers for program parameters and
others of the block's shape, which stand in products with loop variables otherwise) and *every* value of the other
parameters, isl shows that

1. each write of the leaf is a write of the source: a relation M of statement instances, given by equal elements in
   equal places of equal shapes, is a bijection of the leaf's instances onto the source's;
2. no two instances that touch one element, one of them writing, change their order: whenever M(x) stands before M(y) in
   the source, x happens before y in the leaf (same thread, or a barrier between; never in different blocks).

So every read of the leaf sees the write that the source's read sees: the dataflow is the same.  It is a proof for
these shapes and says so.

*unknown*: tested (played) at so many points, not proved, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random

from msgspec import Struct

from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.analysis.facts import program_facts
from metafork.comprehensive.tree.schedule_tree import ScheduleTree
from metafork.comprehensive.verification.translation.affine import NotAffineError
from metafork.comprehensive.verification.translation.correspondence import OUT_OF_TIME, Comparison
from metafork.comprehensive.verification.translation.dataflow import dataflow
from metafork.comprehensive.verification.translation.expansion import expanded
from metafork.comprehensive.verification.translation.played import (
    CannotPlayError,
    Cell,
    OutsideError,
    Terms,
    Value,
    initial,
    play,
)
from metafork.comprehensive.verification.translation.played_kernel import manners_of, play_kernel, statements_of
from metafork.ir import program as ir
from metafork.ir.kernel import Kernel
from metafork.ir.marks import factors_of
from metafork.ir.rewriting import variables
from metafork.lowering.lowering import typed_kernel
from metafork.printing.rerolled import rerolled

SHAPES = 3
"""Block shapes for which a proof is tried."""
POINTS = 8
"""Points at which both programs are played through."""
MORE = 3
"""How many times as many points are tried at most to have every statement of a kernel run."""
MOST_TOGETHER = 1_000_000
"""Statements played after which half of the points are enough."""
LARGEST_PROVED, LARGEST_PLAYED = 8, 16
"""The largest factors of tiles that shapes of proofs and points follow."""
OPERATIONS = 40_000_000
"""What isl may do for one shape, in its own units."""
OUT_OF_OPERATIONS = "isl gave up at its limit of operations"


class Validation(Struct, frozen=True):
    """The verdict, and in one sentence for what it holds or why it is open.

    ``points`` are those at which both programs gave the same terms, ``kernel_points`` those at which the kernel did so
    too; ``shapes`` are those with a proof.
    """

    verdict: Verdict
    detail: str
    points: int = 0
    kernel_points: int = 0
    shapes: tuple[Mapping[str, int], ...] = ()


def validate(
    source: ir.Program,
    leaf: ir.Program,
    kernel: Kernel | None = None,
    *,
    shapes: int = SHAPES,
    points: int = POINTS,
    seconds: float = 600.0,
) -> Validation:
    """Compare two programs, and the kernel of the second where it is given.

    isl's operations are bounded, and ``seconds`` behind them (what is left is unknown).
    """
    deadline = time.monotonic() + seconds
    kernel = None if kernel is None else rerolled(kernel)  # as its text has it
    factors = _factors(leaf) - _factors(source)
    try:
        tested = _played(source, leaf, kernel, points, deadline, factors | factors_of(leaf))
    except _RefutedError as refuted:
        return Validation(Verdict.NO, str(refuted))
    proved, reason = _proved(source, leaf, shapes, deadline, factors)
    if reason:
        detail = ", ".join(filter(None, (str(tested), f"not proved: {reason}")))
        return Validation(Verdict.UNKNOWN, detail, tested.points, tested.kernel_points, proved)
    fixed_names = _shape_parameters(source)
    others = [p.name for p in source.parameters if p.name not in fixed_names]
    which = "; ".join(_shown(fixed) for fixed in proved if fixed)
    every = f"all {', '.join(others)}" if others else ""
    what = " and ".join(part for part in (which, every) if part) or "all inputs"
    detail = "; ".join(filter(None, (f"proved for {what}", str(tested))))
    return Validation(Verdict.YES, detail, tested.points, tested.kernel_points, proved)


def _proved(
    source: ir.Program, leaf: ir.Program, wanted: int, deadline: float, factors: Collection[int]
) -> tuple[tuple[Mapping[str, int], ...], str]:
    """Return the shapes for which isl proves that the leaf's program has the source's dataflow, and why not for more.

    The reason is empty where as many are proved as are wanted, or as the time allows.
    """
    fixed_names = _shape_parameters(source)
    proved: list[Mapping[str, int]] = []
    reason = "no block shape satisfies the assertions"
    for fixed in _shapes(fixed_names, factors):
        if len(proved) == wanted or (not fixed_names and proved):
            break
        if time.monotonic() > deadline:
            reason = OUT_OF_TIME
            break
        try:
            problem = _compared(source, leaf, fixed, deadline)
        except NotAffineError as error:
            problem = str(error)
        if problem is None:
            continue  # nothing runs at this shape
        if problem in (OUT_OF_TIME, OUT_OF_OPERATIONS) and proved:
            break  # what is proved stays proved, for the shapes that are named
        if problem:
            return tuple(proved), f"{problem} ({_shown(fixed)})" if fixed else problem
        proved.append(fixed)
    return tuple(proved), "" if proved else reason


def validations(
    tree: ScheduleTree,
    *,
    shapes: int = SHAPES,
    points: int = POINTS,
    seconds: float = 600.0,
) -> dict[tuple[int, int], Validation]:
    """Validate every leaf of a tree against its program, by the numbers of leaf and variant.

    ``seconds`` are shared by all of them.  Instances, which have fewer parameters than the program, are left aside.
    """
    deadline = time.monotonic() + seconds
    analyses = Analyses()
    known: dict[ir.Program, Validation] = {}
    found: dict[tuple[int, int], Validation] = {}
    variants = ((leaf.id, one) for leaf in tree.leaves for one in leaf.variants if not one.values)
    for leaf, variant in variants:
        program = variant.version.program
        if program not in known:
            left = max(0.0, deadline - time.monotonic())
            source, kernel = tree.written or tree.program, typed_kernel(program, analyses)
            known[program] = validate(source, program, kernel, shapes=shapes, points=points, seconds=left)
        found[leaf, variant.number] = known[program]
    return found


def _shown(point: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())


def _shape_parameters(program: ir.Program) -> list[str]:
    """Return the parameters that are fixed: program parameters, and those of thread loops, block arrays and divisors.

    A block size that also sizes an array is a data parameter, and multiplies loop variables all the same.
    """
    wanted = {p.name for p in program.parameters if p.kind is ir.ParameterKind.PROGRAM}
    expressions = [loop.extent for loop in program.grid] + [derived.definition for derived in program.derived]
    for stmt in ir.walk_statements(program.body):
        expressions += ir.expressions_of(stmt)
        if isinstance(stmt, ir.Phase | ir.BlockArray):
            wanted |= {name for expr in ir.expressions_of(stmt) for name in variables(expr)}
    for expr in expressions:
        for part in ir.walk_expression(expr):
            if isinstance(part, ir.Binary) and part.op in ("/", "%"):
                wanted |= variables(part.right)
    return [p.name for p in program.parameters if p.name in wanted and not p.of_serial_loop]


def _factors(program: ir.Program) -> frozenset[int]:
    """Return the constants by which a program divides, among them those of its tiles."""
    expressions = [loop.extent for loop in program.grid] + [derived.definition for derived in program.derived]
    expressions += [expr for stmt in ir.walk_statements(program.body) for expr in ir.expressions_of(stmt)]
    return frozenset(
        part.right.value
        for expr in expressions
        for part in ir.walk_expression(expr)
        if isinstance(part, ir.Binary) and part.op in ("/", "%") and isinstance(part.right, ir.IntConst)
    )


def _shapes(names: Sequence[str], factors: Collection[int] = ()) -> Iterator[dict[str, int]]:
    """Yield small shapes, each once: unequal numbers first (equal ones hide exchanged dimensions), then ones.

    The second has another number than the first for every parameter, and neither is 1: a granularity of 1 shows
    little, and of one number alone it is not seen whether it is squared or doubled.  Where the leaf has tiles of
    ``factors`` that the source has not, full tiles with a rest come before all others, then those that tiles fill:
    below the factor only the rest runs.
    """
    random = Random(1)
    first = {name: 2 + number % 2 for number, name in enumerate(names)}
    second = {name: 3 - number % 2 for number, name in enumerate(names)}
    others = [{name: random.randint(1, 4) for name in names} for _ in range(20)]
    known: list[dict[str, int]] = []
    for shape in (*_in_tiles(names, factors, LARGEST_PROVED), first, second, dict.fromkeys(names, 1), *others):
        if shape not in known:
            known.append(shape)
            yield shape


def _in_tiles(names: Sequence[str], factors: Collection[int], largest: int) -> list[dict[str, int]]:
    """Return shapes of which tiles are full and leave one over, or all but one, and those that tiles fill."""
    found: list[dict[str, int]] = []
    for factor in sorted(factor for factor in factors if 1 < factor <= largest):
        found.append({name: (factor + 1, 2 * factor - 1)[number % 2] for number, name in enumerate(names)})
        found.append({name: (2 * factor - 1, factor + 1)[number % 2] for number, name in enumerate(names)})
        found.append({name: factor * (1 + number % 2) for number, name in enumerate(names)})
    return found


# --- played with terms ------------------------------------------------------------------------------------------


class _Tested(Struct):
    """At how many points all gave the same terms, of the program and of the kernel.

    ``left`` are the statements of the kernel, by ``id``, that ran at no point.
    """

    left: set[int]
    points: int = 0
    kernel_points: int = 0

    def __str__(self) -> str:
        """Return what is said of it; empty where nothing was played."""
        if not self.points:
            return ""
        words = f"tested with terms at {self.points} points"
        if self.kernel_points:
            words += f", the kernel at {self.kernel_points}"
            words += f" ({len(self.left)} of its statements ran at none)" if self.left else ""
        return words


def _played(
    source: ir.Program, leaf: ir.Program, kernel: Kernel | None, wanted: int, deadline: float, factors: Collection[int]
) -> _Tested:
    """Play the leaf's program and its kernel at so many points.  Raises ``_RefutedError``.

    The kernel is played at more of them as long as some of its statements have run at none, in all manners where one of
    these runs.
    """
    terms, tested = Terms(), _Tested(set() if kernel is None else statements_of(kernel))
    for tried, point in enumerate(_points(source, wanted, factors)):
        more = tested.points >= wanted
        enough = more and not (tested.left and tried < MORE * wanted)
        late = 2 * tested.points >= wanted and terms.steps > MOST_TOGETHER
        if enough or late or time.monotonic() > deadline:
            break
        try:
            expected = play(source, point, terms)
        except (CannotPlayError, OutsideError):
            continue  # the source says nothing here that the leaf could fail to say
        with suppress(CannotPlayError):
            for backward in () if more else (False, True):
                how = ", blocks and threads backwards" if backward else ""
                _compare(expected, partial(play, leaf, point, terms, backward=backward), point, how, terms)
            tested.points += bool(expected and not more)  # where nothing runs, nothing is tested
            if kernel is None:
                continue
            before = len(tested.left)
            for manner in manners_of(kernel):
                how = f", by the kernel{manner}"
                one = partial(play_kernel, kernel, leaf, point, terms, manner, tested.left)
                _compare(expected, one, point, how, terms)
                if more and len(tested.left) == before:
                    break
            else:
                tested.kernel_points += bool(expected)
    return tested


def _compare(
    expected: Mapping[Cell, Value],
    one: Callable[[], dict[Cell, Value]],
    point: Mapping[str, int],
    how: str,
    terms: Terms,
) -> None:
    """Play something that has to leave what is expected.  Raises ``_RefutedError`` and ``CannotPlayError``."""
    try:
        found = one()
    except OutsideError as error:
        raise _RefutedError(f"refuted at {_shown(point)}: {error}{how}") from error
    for cell in sorted({*expected, *found}):
        before = initial(terms, cell)
        if expected.get(cell, before) != found.get(cell, before):
            element = cell[0] + "".join(f"[{index}]" for index in cell[1])
            raise _RefutedError(f"refuted at {_shown(point)}: {element} is computed from other values{how}")


class _RefutedError(Exception):
    """A leaf computes something else; the message names a point and an element."""


def _points(program: ir.Program, wanted: int, factors: Collection[int]) -> Iterator[dict[str, int]]:
    """Yield small points of Start: program parameters from 1 to 4, or to what begins a second tile.

    Where there are tiles, every other attempt has sizes of theirs, and every eighth one multiples of the largest.
    """
    facts = program_facts(program)
    names = [parameter.name for parameter in program.parameters]
    blocks = {p.name for p in program.parameters if p.kind is ir.ParameterKind.PROGRAM}
    tiles = _in_tiles(sorted(blocks), factors, LARGEST_PLAYED)
    most = max([4, *(size for shape in tiles for size in shape.values())])
    largest = max((factor for factor in factors if factor <= LARGEST_PLAYED), default=1)
    # Of small blocks, with data that fill a tile and leave some over, nearly all statements run in few steps.
    small = [{name: one if name in blocks else largest + more for name in names} for one, more in ((1, 4), (2, 1))]
    random = Random(2)

    def candidates() -> Iterator[dict[str, int]]:
        yield from small if tiles else ()
        for attempt in range(400 * wanted):
            point = {n: random.randint(1, most) if n in blocks else random.randint(0, 14 + most) for n in names}
            if attempt % 2 and tiles:
                shape = tiles[attempt // 2 % len(tiles)]
                point |= {name: size for name, size in shape.items() if random.randint(0, 1)}
                if attempt % 8 == 7:
                    point = {name: largest * (1 if name in blocks else random.randint(1, 6)) for name in names}
            yield point

    found: list[dict[str, int]] = []
    for point in candidates():
        full = dict(point)
        try:
            for symbol in facts.derived:
                full[symbol.name] = symbol.evaluate(full)
        except (KeyError, ZeroDivisionError):
            continue
        full |= dict.fromkeys(facts.opaque, 1)
        if point not in found and all(constraint.holds(full) for constraint in facts.constraints):
            found.append(point)
            yield point
            if len(found) == 3 * MORE * wanted:
                return


# --- proved with isl ----------------------------------------------------------------------------------------------


def _compared(source: ir.Program, leaf: ir.Program, fixed: Mapping[str, int], deadline: float) -> str | None:
    """Return why the leaf is not proved to have the source's dataflow; empty where it is, ``None`` where none runs."""
    import islpy as isl

    first, second = expanded(source), expanded(leaf)
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(OPERATIONS)
    try:
        flows = [
            dataflow(program, fixed, tag) for program, tag in ((first, "p"), (first, "q"), (second, "P"), (second, "Q"))
        ]
        if all(statement.domain.is_empty() for statement in flows[0].statements):
            return None
        return Comparison(flows[0], flows[1], flows[2], flows[3], deadline).problem()
    except isl.Error as error:
        # A limit that is reached while isl reads a text is called a syntax error.
        if "number of operations exceeded" in str(error) or "syntax error" in str(error):
            return OUT_OF_OPERATIONS
        raise
    finally:
        context.set_max_operations(0)
        context.reset_operations()
