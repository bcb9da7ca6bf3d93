"""The last steps of a tree over threads: within a warp, which hands on values by shuffles and needs no barriers.

``before --> after``, where ``B`` threads have an element each::

    for (int half = ...; half > 0; half /= 2) {          int half = ...;
      if (u < half && u + half < B)                      if (METAFORK_WARPS() && half >= 16 && (half & (half - 1)) == 0
        s[u] += s[u + half];                                 && B >= 32) {
      __syncthreads();                                     if (u < 32) {
    }                                             -->        for (int wide = half; wide > 16; wide /= 2)
                                                               for (int place = u; place < wide; place += 32)
                                                                 if (place + wide < B) s[place] += s[place + wide];
                                                             float own = s[u];
                                                             float other = METAFORK_SHUFFLE(own, u + 16);
                                                             if (u < 16) own += other;
                                                             ...                                    // 8, 4, 2
                                                             float other_5 = METAFORK_SHUFFLE(own, u + 1);
                                                             if (u < 1) own += other_5;
                                                             if (u < 16) s[u] = own;
                                                           }
                                                           __syncthreads();
                                                         } else
                                                           for (; half > 0; half /= 2) ...           as before

Each element gets what it had got, from the same operands in the same order.  In whole warps no place is behind the end.
Where rows of threads are several warps long, the first of each takes the steps of 32 and more alone: one barrier then
serves all of them.  Where a place counts threads of several rows, all threads take these steps, as before.

Legality.  From the step of 16 on, the threads that do something are lanes 0 to 15 of a warp: their place is below the
step.  What they read lies as many places behind their own, and is that of the lane as many behind, which changes it in
no step in which it is read.  Before, steps are powers of two from 32 on: a lane's places, and those that it reads, are
its own modulo 32, which no other lane touches.  A warp is whole where ``u`` counts the threads of a block that has 32,
or those of rows of a multiple of 32.  All lanes have an element, since the array has one for each thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial, reduce

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Polynomial
from metafork.analysis.analyses import WARP_SIZE
from metafork.analysis.counted_loops import conjuncts
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import SHUFFLE, WARPS
from metafork.ir.names import fresh
from metafork.ir.rewriting import arrays_read, map_body, without_unread
from metafork.lowering.copies.copy import product_of
from metafork.lowering.unrolling.coarsening import every
from metafork.lowering.unrolling.jam import copied
from metafork.lowering.unrolling.shared_loads import exact_polynomial
from metafork.lowering.unrolling.vectors import divides

INT = ScalarType.INT
Body = tuple[ir.Stmt, ...]
STEPS = (16, 8, 4, 2, 1)
INDICES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
MOST_STATEMENTS = 8
"""Statements of a step that is written five times."""


class Block(Struct, frozen=True):
    """The threads of a block in x, y and z as polynomials and as code, and the extents of its arrays."""

    shape: Sequence[Polynomial]
    extents: Sequence[ir.Expr]
    arrays: Mapping[str, Sequence[Polynomial | None]]


class _Tree(Struct, frozen=True):
    """What a thread does in a step: ``scalars``, and behind ``tests`` the ``body``, on its own elements and others.

    ``lane`` is its place, ``whole`` says when lanes 0 to 31 of it are a warp.  ``row``: it is the thread's place in x.
    """

    scalars: Body
    tests: ir.Expr
    body: Body
    own: Mapping[str, ir.Element]
    others: Mapping[str, Set[ir.Element]]
    lane: ir.Expr
    whole: ir.Expr
    row: bool


def with_warp_steps(loop: ir.For, block: Block, taken: set[str]) -> Body:
    """Return a lowered loop of a block, with its last steps within warps if it is a tree."""
    half = _halved(loop)
    tree = None if half is None else _tree(loop, half, block)
    if half is None or tree is None:
        return (loop,)
    assert loop.condition is not None
    assert loop.init is not None
    least, rest = ir.IntConst(STEPS[0]), replace(loop, init=None)
    first: Body = ()
    before: Body = ()
    if tree.row:
        low = ir.binary("&", half, ir.binary("-", half, ir.IntConst(1)))
        fits: tuple[ir.Expr, ...] = (ir.binary(">=", half, least), ir.binary("==", low, ir.IntConst(0)))
        first = _of_one_warp(loop, half, tree.lane, taken)
    else:
        fits = (ir.binary("==", half, least),)
        before = (replace(rest, condition=ir.binary(">", half, least)),)
    test = every((ir.Call(WARPS, (), INT), *fits, tree.whole))
    steps = (*first, *_steps(tree, half, taken))
    within = ir.If(ir.binary("<", tree.lane, ir.IntConst(WARP_SIZE)), steps)
    return (loop.init, *before, ir.If(test, (*tree.scalars, within, ir.Barrier()), (rest,)))


def _of_one_warp(loop: ir.For, half: ir.Var, lane: ir.Expr, taken: set[str]) -> Body:
    """Return the steps of 32 and more, of which each lane takes every 32nd place."""
    wide, place = (ir.Var(fresh(name, taken), INT) for name in ("wide", "place"))
    at: dict[str, ir.Expr] = {half.name: wide, INDICES[0]: ir.Cast(ScalarType.UNSIGNED_INT, place)}
    step = copied(loop.body[:-1], at, taken)
    over = ir.For(
        ir.Declare(place.name, INT, lane),
        ir.binary("<", place, wide),
        ir.Assign(place, "+", ir.IntConst(WARP_SIZE)),
        step,
        copies=ir.ROLLED,
    )
    going = ir.binary(">", wide, ir.IntConst(STEPS[0]))
    return (ir.For(ir.Declare(wide.name, INT, half), going, ir.Assign(wide, "/", ir.IntConst(2)), (over,)),)


def _halved(loop: ir.For) -> ir.Var | None:
    """Return the variable of a loop that halves it while it is positive."""
    if not isinstance(loop.init, ir.Declare) or loop.init.type is not INT:
        return None
    half = ir.Var(loop.init.name, INT)
    going = [ir.binary(op, half, ir.IntConst(limit)) for op, limit in ((">", 0), (">=", 1), ("!=", 0))]
    match loop.step:
        case ir.Assign(target=target, op="/", value=ir.IntConst(value=2)) if target == half:
            pass
        case ir.Assign(target=target, op=">>", value=ir.IntConst(value=1)) if target == half:
            pass
        case ir.Assign(target=target, op="", value=value) if target == half and value in (
            ir.binary("/", half, ir.IntConst(2)),
            ir.binary(">>", half, ir.IntConst(1)),
        ):
            pass
        case _:
            return None
    return half if loop.condition in going else None


def _tree(loop: ir.For, half: ir.Var, block: Block) -> _Tree | None:
    """Return what a step of a tree does, whose threads take up the element of the one ``half`` places behind."""
    scalars = tuple(one for one in loop.body[:-2] if isinstance(one, ir.Declare))
    match loop.body[-2:]:
        case (ir.If(otherwise=()) as outer, ir.Barrier(awaits=False)) if len(scalars) == len(loop.body) - 2:
            pass
        case _:
            return None
    tests = list(conjuncts(outer.condition))
    body = outer.then
    while len(body) == 1 and isinstance(body[0], ir.If) and not body[0].otherwise:
        tests += conjuncts(body[0].condition)
        body = body[0].then
    if len(body) > MOST_STATEMENTS or any(arrays_read(one) for one in tests):
        return None
    known: dict[str, Polynomial] = {}
    for one in (*scalars, *body):
        if isinstance(one, ir.Declare):
            known[one.name] = _known(one, known)
    own: dict[str, ir.Element] = {}
    for stmt in body:
        match stmt:
            case ir.Declare():
                pass
            case ir.Assign(target=ir.Element(part=None) as target, atomic=False) if target.type.size in (4, 8):
                if own.setdefault(target.array, target) != target:
                    return None
            case _:
                return None
    others: dict[str, set[ir.Element]] = {name: set() for name in own}
    for part in (one for one in ir.parts_of(body) if isinstance(one, ir.Element)):
        apart = _apart(part, own.get(part.array), known)
        if apart == Polynomial.symbol(half.name):
            others[part.array].add(part)
        elif apart != ZERO:
            return None
    first = Polynomial.symbol(INDICES[0])
    for lane, whole, place, threads, varying in _lanes(tests, half, known, block):
        if all(_counts(one, place, varying, known, block) for one in own.values()):
            behind = threads - place - Polynomial.symbol(half.name)
            asked = [one for one in tests if _margin(one, known) != behind]
            return _Tree(scalars, every(asked), body, own, others, lane, whole, place == first)
    return None


def _lanes(
    tests: Sequence[ir.Expr], half: ir.Var, known: Mapping[str, Polynomial], block: Block
) -> Iterator[tuple[ir.Expr, ir.Expr, Polynomial, Polynomial, Set[str]]]:
    """Yield what is below a step, when 32 of it are a warp, and its value.

    How many threads it counts, which are then 32 at least, and which indices of threads vary in a warp come with it.
    """
    x, y, _ = block.shape
    axes = [Polynomial.symbol(name) if size != ONE else ZERO for name, size in zip(INDICES, block.shape, strict=True)]
    number = axes[0] + axes[1] * x + axes[2] * x * y
    sizes = [code for code, size in zip(block.extents, block.shape, strict=True) if size != ONE]
    threads = reduce(partial(ir.binary, "*"), sizes, *([] if sizes else [ir.IntConst(1)]))
    for test in tests:
        match test:
            case ir.Binary(op="<", left=lane, right=right) if right == half:
                pass
            case ir.Binary(op=">", left=left, right=lane) if left == half:
                pass
            case _:
                continue
        place = exact_polynomial(lane, known, {half.name})
        if place == number:
            yield (
                lane,
                ir.binary(">=", threads, ir.IntConst(WARP_SIZE)),
                place,
                product_of(block.shape),
                frozenset(INDICES),
            )
        elif place == axes[0]:
            yield lane, divides(WARP_SIZE, block.extents[0]), place, x, frozenset(INDICES[:1])


def _margin(test: ir.Expr, known: Mapping[str, Polynomial]) -> Polynomial | None:
    """Return what has to be positive for a test to hold."""
    match test:
        case ir.Binary(op="<", left=left, right=right) | ir.Binary(op=">", left=right, right=left):
            sides = [exact_polynomial(one, known, frozenset()) for one in (left, right)]
            return None if sides[0] is None or sides[1] is None else sides[1] - sides[0]
        case _:
            return None


def _apart(element: ir.Element, other: ir.Element | None, known: Mapping[str, Polynomial]) -> Polynomial | None:
    """Return how far an element lies behind another one."""
    places = [None if one is None else _value(one, known) for one in (element, other)]
    return None if places[0] is None or places[1] is None else places[0] - places[1]


def _counts(
    element: ir.Element, lane: Polynomial, varying: Set[str], known: Mapping[str, Polynomial], block: Block
) -> bool:
    """Say whether the next lane has the next element, and the array one for each thread."""
    at, extents = _value(element, known), block.arrays.get(element.array)
    if at is None or extents is None or (at - lane).symbols & varying:
        return False
    sizes = [size for size in reversed(block.shape) if size != ONE] or [ONE]
    return list(extents) == sizes or list(extents) == [product_of(sizes)]


def _known(stmt: ir.Declare, known: Mapping[str, Polynomial]) -> Polynomial:
    """Return what is known of a scalar, at least its name."""
    match stmt.value:
        case ir.Cast(operand=ir.Var(name=name)) if name in INDICES:
            return Polynomial.symbol(name)
        case None:
            found = None
        case value:
            found = exact_polynomial(value, known, frozenset())
    return Polynomial.symbol(stmt.name) if found is None else found


def _value(element: ir.Element, known: Mapping[str, Polynomial]) -> Polynomial | None:
    (index,) = element.indices
    return exact_polynomial(index, known, frozenset())


def _steps(tree: _Tree, half: ir.Var, taken: set[str]) -> Body:
    """Return the steps of a warp, of which each element is a scalar."""
    own = {name: ir.Var(fresh(f"{name}_warp", taken), one.type) for name, one in tree.own.items()}
    lane = ir.binary("+", tree.lane, half)
    handed: list[ir.Stmt] = []
    named: dict[ir.Element, ir.Var] = {}
    for name, elements in tree.others.items():
        named[tree.own[name]] = own[name]
        if elements:
            other = ir.Var(fresh(f"{name}_other", taken), own[name].type)
            call = ir.Call(SHUFFLE, (own[name], lane), other.type)
            handed.append(ir.Declare(other.name, other.type, call))
            named |= dict.fromkeys(elements, other)

    def register(part: ir.Expr) -> ir.Expr | None:
        return named.get(part) if isinstance(part, ir.Element) else None

    step = (*handed, ir.If(tree.tests, without_unread(map_body(tree.body, register))))
    loads = [ir.Declare(own[name].name, own[name].type, one) for name, one in tree.own.items()]
    stores = tuple(ir.Assign(one, "", own[name]) for name, one in tree.own.items())
    steps = [stmt for size in STEPS for stmt in copied(step, {half.name: ir.IntConst(size)}, taken)]
    return (*loads, *steps, ir.If(ir.binary("<", tree.lane, ir.IntConst(STEPS[0])), stores))
