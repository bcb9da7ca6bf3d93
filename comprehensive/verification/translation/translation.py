"""Translation validation: does a leaf's program compute what the source program computes?  (Issue: verification.)

``validate(source, leaf)`` compares the programs before they are lowered to kernels, the source in its serial order, the
leaf with blocks and threads in any order that its barriers allow.  Three answers:

*no* (refuted): at some small point both programs are played through with terms for data (``played``), and an element
ends with another term, or an access lies outside its array; the answer names both.  The leaf is played forward
and backward.

*yes* (proved): for each of a few block shapes (numbers for program parameters and others of the block's shape, which
stand in products with loop variables otherwise) and *every* value of the other parameters, isl shows that

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
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random

from msgspec import Struct

from comprehensive.tree.schedule_tree import ScheduleTree
from comprehensive.verification.translation.affine import NotAffineError
from comprehensive.verification.translation.correspondence import OUT_OF_TIME, Comparison
from comprehensive.verification.translation.dataflow import dataflow
from comprehensive.verification.translation.expansion import expanded
from comprehensive.verification.translation.played import CannotPlayError, OutsideError, Terms, initial, play
from metafork.algebra.prover import Verdict
from metafork.analysis.facts import program_facts
from metafork.ir.program import (
    Binary,
    BlockArray,
    IntConst,
    ParameterKind,
    Phase,
    Program,
    expressions_of,
    walk_expression,
    walk_statements,
)
from metafork.ir.rewriting import variables

SHAPES = 3
"""Block shapes for which a proof is tried."""
POINTS = 6
"""Points at which both programs are played through."""
LARGEST_TILE = 8
"""The largest factor of tiles that shapes and points follow."""
OPERATIONS = 40_000_000
"""What isl may do for one shape, in its own units."""
OUT_OF_OPERATIONS = "isl gave up at its limit of operations"


class Validation(Struct, frozen=True):
    """The verdict, and in one sentence for what it holds or why it is open; ``shapes`` are those with a proof."""

    verdict: Verdict
    detail: str
    points: int = 0
    shapes: tuple[Mapping[str, int], ...] = ()


def validate(
    source: Program, leaf: Program, *, shapes: int = SHAPES, points: int = POINTS, seconds: float = 600.0
) -> Validation:
    """Compare two programs; isl's operations are bounded, and ``seconds`` behind them (what is left is unknown)."""
    deadline = time.monotonic() + seconds
    factors = _factors(leaf) - _factors(source)
    played, refutation = _played(source, leaf, points, deadline, factors)
    if refutation:
        return Validation(Verdict.NO, refutation, played)
    fixed_names = _shape_parameters(source)
    proved: list[Mapping[str, int]] = []
    reason = "no block shape satisfies the assertions"
    for fixed in _shapes(fixed_names, factors):
        if len(proved) == shapes or (not fixed_names and proved):
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
            reason = f"{problem} ({_shown(fixed)})" if fixed else problem
            return Validation(Verdict.UNKNOWN, _open(reason, played), played, tuple(proved))
        proved.append(fixed)
    if not proved:
        return Validation(Verdict.UNKNOWN, _open(reason, played), played)
    others = [p.name for p in source.parameters if p.name not in fixed_names]
    which = "; ".join(_shown(fixed) for fixed in proved)
    every = f"all {', '.join(others)}" if others else ""
    detail = " and ".join(part for part in (which, every) if part) or "all inputs"
    return Validation(Verdict.YES, f"proved for {detail}", played, tuple(proved))


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
    known: dict[Program, Validation] = {}
    found: dict[tuple[int, int], Validation] = {}
    variants = ((leaf.id, one) for leaf in tree.leaves for one in leaf.variants if not one.values)
    for leaf, variant in variants:
        program = variant.version.program
        if program not in known:
            left = max(0.0, deadline - time.monotonic())
            known[program] = validate(tree.written or tree.program, program, shapes=shapes, points=points, seconds=left)
        found[leaf, variant.number] = known[program]
    return found


def _open(reason: str, played: int) -> str:
    tested = f"tested with terms at {played} points, not proved" if played else "not proved"
    return f"{tested}: {reason}"


def _shown(point: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())


def _shape_parameters(program: Program) -> list[str]:
    """Return the parameters that are fixed: program parameters, and those of thread loops, block arrays and divisors.

    A block size that also sizes an array is a data parameter, and multiplies loop variables all the same.
    """
    wanted = {p.name for p in program.parameters if p.kind is ParameterKind.PROGRAM}
    expressions = [loop.extent for loop in program.grid] + [derived.definition for derived in program.derived]
    for stmt in walk_statements(program.body):
        expressions += expressions_of(stmt)
        if isinstance(stmt, Phase | BlockArray):
            wanted |= {name for expr in expressions_of(stmt) for name in variables(expr)}
    for expr in expressions:
        for part in walk_expression(expr):
            if isinstance(part, Binary) and part.op in ("/", "%"):
                wanted |= variables(part.right)
    return [p.name for p in program.parameters if p.name in wanted and not p.of_serial_loop]


def _factors(program: Program) -> frozenset[int]:
    """Return the constants by which a program divides, among them those of its tiles."""
    expressions = [loop.extent for loop in program.grid] + [derived.definition for derived in program.derived]
    expressions += [expr for stmt in walk_statements(program.body) for expr in expressions_of(stmt)]
    return frozenset(
        part.right.value
        for expr in expressions
        for part in walk_expression(expr)
        if isinstance(part, Binary) and part.op in ("/", "%") and isinstance(part.right, IntConst)
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
    for shape in (*_in_tiles(names, factors), first, second, dict.fromkeys(names, 1), *others):
        if shape not in known:
            known.append(shape)
            yield shape


def _in_tiles(names: Sequence[str], factors: Collection[int]) -> list[dict[str, int]]:
    """Return shapes of which tiles are full and leave one over, or all but one, and those that tiles fill."""
    found: list[dict[str, int]] = []
    for factor in sorted(factor for factor in factors if 1 < factor <= LARGEST_TILE):
        found.append({name: (factor + 1, 2 * factor - 1)[number % 2] for number, name in enumerate(names)})
        found.append({name: (2 * factor - 1, factor + 1)[number % 2] for number, name in enumerate(names)})
        found.append({name: factor * (1 + number % 2) for number, name in enumerate(names)})
    return found


# --- played with terms ------------------------------------------------------------------------------------------


def _played(source: Program, leaf: Program, wanted: int, deadline: float, factors: Collection[int]) -> tuple[int, str]:
    """Return at how many points both programs gave the same terms, and a refutation where there is one."""
    done = 0
    for point in _points(source, wanted, factors):
        if done == wanted or time.monotonic() > deadline:
            break
        terms = Terms()
        try:
            expected = play(source, point, terms)
        except (CannotPlayError, OutsideError):
            continue  # the source says nothing here that the leaf could fail to say
        for backward in (False, True):
            try:
                found = play(leaf, point, terms, backward=backward)
            except OutsideError as error:
                return done, f"refuted at {_shown(point)}: {error}"
            except CannotPlayError:
                break
            for cell in sorted({*expected, *found}):
                before = initial(terms, cell)
                if expected.get(cell, before) != found.get(cell, before):
                    element = cell[0] + "".join(f"[{index}]" for index in cell[1])
                    order = ", blocks and threads backwards" if backward else ""
                    return done, f"refuted at {_shown(point)}: {element} is computed from other values{order}"
        else:
            done += bool(expected)  # where nothing runs, nothing is tested
    return done, ""


def _points(program: Program, wanted: int, factors: Collection[int]) -> Iterator[dict[str, int]]:
    """Yield small points of Start: program parameters from 1 to 4, or to what begins a second tile."""
    facts = program_facts(program)
    names = [parameter.name for parameter in program.parameters]
    blocks = {p.name for p in program.parameters if p.kind is ParameterKind.PROGRAM}
    tiles = _in_tiles(sorted(blocks), factors)
    most = max([4, *(size for shape in tiles for size in shape.values())])
    random = Random(2)
    found: list[dict[str, int]] = []
    for attempt in range(400 * wanted):
        point = {name: random.randint(1, most) if name in blocks else random.randint(0, 14 + most) for name in names}
        if attempt % 2 and tiles:
            shape = tiles[attempt // 2 % len(tiles)]
            point |= {name: size for name, size in shape.items() if random.randint(0, 1)}
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
            if len(found) == 3 * wanted:
                return


# --- proved with isl ----------------------------------------------------------------------------------------------


def _compared(source: Program, leaf: Program, fixed: Mapping[str, int], deadline: float) -> str | None:
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
