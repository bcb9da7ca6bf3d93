"""The last steps of a tree over threads: within a warp, which hands on values by shuffles and needs no barriers.

``before --> after``, where ``B`` threads have an element each::

    for (int half = ...; half > 0; half /= 2) {          int half = ...;
      if (u < half && u + half < B)                      if (METAFORK_WARPS() && half >= 16 && (half & (half - 1)) == 0
        s[u] += s[u + half];                                 && B >= 32) {
      __syncthreads();                                     if (u < 32) {
    }                                             -->        int wide = half;
                                                             for (; wide > 16; wide /= 2)
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
Where a thread has several elements, ``for (u = threadIdx.x; u < B; u += (B + 3) / 4)``, the first warp takes all steps.
Where rows of threads are several warps long, the first of each takes the steps of 32 and more alone: one barrier then
serves all of them.  Where a place counts threads of several rows, all threads take these steps, as before.

As a rule only the first element of the array is read afterwards (``metafork.analysis.first_elements``).  Then a lane
has up to 8 elements as scalars, the others keep what they had, and with numbers of floating point all lanes take part::

    float own = s[u];                                                          // 64 elements, as an example
    float own_2 = s[u + 32];
    own += own_2;
    own += METAFORK_SHUFFLE(own, u + 16);  ...  own += METAFORK_SHUFFLE(own, u + 1);
    if (u < 1) s[u] = own;

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

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, product
from metafork.analysis.analyses import WARP_SIZE
from metafork.analysis.counted_loops import conjuncts, halved
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import SHUFFLE, WARPS
from metafork.ir.names import fresh
from metafork.ir.rewriting import arrays_read, map_body, names_in, substitute, variables, without_unread
from metafork.unrolling.coarsening import every
from metafork.unrolling.jam import copied
from metafork.unrolling.shared_loads import exact_polynomial
from metafork.unrolling.vectors import divides

INT = ScalarType.INT
Body = tuple[ir.Stmt, ...]
STEPS = (16, 8, 4, 2, 1)
INDICES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
MOST_STATEMENTS = 8
"""Statements of a step that is written five times."""
MOST_VALUES = 8
"""Elements of a lane that are scalars at once."""


class Block(Struct, frozen=True):
    """The threads of a block in x, y and z as polynomials and as code, and the extents of its arrays.

    A thread has so many ``places`` in x, of which there are ``width``.  Of arrays of ``firsts`` only the first element
    is read behind the loop.
    """

    shape: Sequence[Polynomial]
    extents: Sequence[ir.Expr]
    arrays: Mapping[str, Sequence[Polynomial | None]]
    places: int
    width: ir.Expr
    firsts: Set[str]


class _Tree(Struct, frozen=True):
    """What a thread does in a step: ``scalars``, and behind ``tests`` the ``body``, on its own elements and others.

    ``lane`` is its place, ``whole`` says when lanes 0 to 31 of it are a warp.  ``row``: it is the thread's place in x.
    ``places`` are the own elements in terms of scalars around the body.  ``ends``: what is behind the end takes no
    part.  ``alone``: there is no test but these, and that of the step.
    """

    scalars: Body
    tests: ir.Expr
    body: Body
    places: Mapping[str, ir.Element]
    ends: bool
    alone: bool
    own: Mapping[str, ir.Element]
    others: Mapping[str, Set[ir.Element]]
    lane: ir.Expr
    whole: ir.Expr
    row: bool


def with_warp_steps(loop: ir.For, block: Block, taken: set[str]) -> Body:
    """Return a lowered loop of a block, with its last steps within warps if it is a tree."""
    half = halved(loop)
    step, block = ((), block) if half is None else _of_one_place(loop.body, block)
    tree = None if half is None else _tree(step, half, block)
    if half is None or tree is None or (block.places > 1 and not tree.row):
        return (loop,)
    assert loop.condition is not None
    assert isinstance(loop.init, ir.Declare)
    assert loop.init.value is not None
    least, rest = ir.IntConst(STEPS[0]), replace(loop, init=None)
    first: Body = ()
    before: Body = ()
    wide = ir.Var(fresh("wide", taken), INT)
    only = tree.row and tree.alone and tree.own.keys() <= block.firsts and not _names_places(tree)
    if tree.row:
        most = loop.init.value
        low = ir.binary("&", most, ir.binary("-", most, ir.IntConst(1)))
        fits: tuple[ir.Expr, ...] = (ir.binary(">=", most, least), ir.binary("==", low, ir.IntConst(0)))
        going = ir.binary(">", wide, least)
        if only:
            many = ir.binary(">", wide, ir.IntConst(MOST_VALUES * WARP_SIZE // 2))
            beyond = ir.binary(">", ir.binary("+", wide, wide), block.width)
            going = ir.binary("&&", going, ir.binary("||", many, beyond)) if tree.ends else many
        first = (ir.Declare(wide.name, INT, half), _of_one_warp(step, half, tree.lane, wide, going, taken))
    else:
        fits = (ir.binary("==", half, least),)
        before = (replace(rest, condition=ir.binary(">", half, least)),)
    test = every((*fits, tree.whole, ir.Call(WARPS, (), INT)))
    steps = (*first, *_steps(tree, half, wide if only else None, taken))
    within = ir.If(ir.binary("<", tree.lane, ir.IntConst(WARP_SIZE)), steps)
    return (loop.init, *before, ir.If(test, (*tree.scalars, within, ir.Barrier()), (rest,)))


def _of_one_place(body: Body, block: Block) -> tuple[Body, Block]:
    """Return what is done of one place in a step, without the barrier behind it, and a block of as many places."""
    match body:
        case (*step, ir.Barrier(awaits=False)) if block.places == 1:
            return tuple(step), block
        case (
            *once,
            ir.For(
                init=ir.Declare(value=ir.Cast(operand=ir.Var(name=thread))) as place, condition=ir.Binary(op="<")
            ) as each,
            ir.Barrier(awaits=False),
        ) if thread == INDICES[0]:
            assert isinstance(each.condition, ir.Binary)
            width = exact_polynomial(each.condition.right, {}, frozenset())
            if width is not None:
                own = replace(block, shape=(width, *block.shape[1:]), width=each.condition.right)
                return (*once, place, *each.body), own
        case _:
            pass
    return (), block


def _of_one_warp(step: Body, half: ir.Var, lane: ir.Expr, wide: ir.Var, going: ir.Expr, taken: set[str]) -> ir.For:
    """Return the steps of ``wide`` while ``going``, of which each lane takes every 32nd place."""
    place = ir.Var(fresh("place", taken), INT)
    at: dict[str, ir.Expr] = {half.name: wide, INDICES[0]: ir.Cast(ScalarType.UNSIGNED_INT, place)}
    over = ir.For(
        ir.Declare(place.name, INT, lane),
        ir.binary("<", place, wide),
        ir.Assign(place, "+", ir.IntConst(WARP_SIZE)),
        copied(step, at, taken),
        copies=ir.ROLLED,
    )
    return ir.For(None, going, ir.Assign(wide, "/", ir.IntConst(2)), (over,))


def _tree(step: Body, half: ir.Var, block: Block) -> _Tree | None:
    """Return what a step of a tree does, whose places take up the element of the one ``half`` places behind."""
    scalars = tuple(one for one in step[:-1] if isinstance(one, ir.Declare))
    match step[-1:]:
        case (ir.If(otherwise=()) as outer,) if len(scalars) == len(step) - 1:
            pass
        case _:
            return None
    tests = list(conjuncts(outer.condition))
    body = outer.then
    while (
        len(body) == 1 and isinstance(body[0], ir.If) and not body[0].otherwise and not arrays_read(body[0].condition)
    ):
        tests += conjuncts(body[0].condition)
        body = body[0].then
    statements = ir.walk_statements(body)
    if len(statements) > MOST_STATEMENTS or any(arrays_read(one) for one in tests):
        return None
    known: dict[str, Polynomial] = {}
    for one in (*scalars, *body):
        if isinstance(one, ir.Declare):
            known[one.name] = known_scalar(one, known)
    own: dict[str, ir.Element] = {}
    for stmt in statements:
        match stmt:
            case ir.Declare() | ir.If():
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
    first, places = Polynomial.symbol(INDICES[0]), _outside(own, body)
    inside = {one.name for one in statements if isinstance(one, ir.Declare)}
    if any(variables(index) & inside for one in places.values() for index in one.indices):
        return None
    for lane, whole, place, threads, varying in _lanes(tests, half, known, block):
        if all(_counts(one, place, varying, known, block) for one in own.values()):
            behind = threads - place - Polynomial.symbol(half.name)
            asked = [one for one in tests if _margin(one, known) != behind]
            ends = len(asked) < len(tests)
            alone, row = len(asked) == 1, place == first
            return _Tree(scalars, every(asked), body, places, ends, alone, own, others, lane, whole, row)
    return None


def _outside(own: Mapping[str, ir.Element], body: Body) -> dict[str, ir.Element]:
    """Return elements whose indices name no scalar that a body declares."""
    code: dict[str, ir.Expr] = {}
    for stmt in body:
        if isinstance(stmt, ir.Declare) and stmt.value is not None and not arrays_read(stmt.value):
            code[stmt.name] = ir.Cast(stmt.type, substitute(stmt.value, code))
    return {
        name: replace(one, indices=tuple(substitute(index, code) for index in one.indices)) for name, one in own.items()
    }


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
                product(block.shape),
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
    return list(extents) == sizes or list(extents) == [product(sizes)]


def known_scalar(stmt: ir.Declare, known: Mapping[str, Polynomial]) -> Polynomial:
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


def _steps(tree: _Tree, half: ir.Var, wide: ir.Var | None, taken: set[str]) -> Body:
    """Return the steps of a warp, in which elements are scalars.

    Where only the first element counts behind them, ``wide`` is the first of these steps.
    """
    own = {name: ir.Var(fresh(f"{name}_warp", taken), one.type) for name, one in tree.own.items()}
    lane = ir.binary("+", tree.lane, half)
    handed: list[ir.Stmt] = []
    others: dict[str, ir.Var] = {}
    for name, elements in tree.others.items():
        if elements:
            others[name] = ir.Var(fresh(f"{name}_other", taken), own[name].type)
            call = ir.Call(SHUFFLE, (own[name], lane), own[name].type)
            handed.append(ir.Declare(others[name].name, own[name].type, call))
    # Other lanes may hold anything then; but a sum of integers may not overflow in them.
    free = wide is not None and not any(one.type.integer for one in own.values())
    taking = _taking(tree, own, others)
    step = (*handed, *(taking if free else (ir.If(tree.tests, taking),)))
    loads = [ir.Declare(own[name].name, own[name].type, one) for name, one in tree.places.items()]
    stores = tuple(ir.Assign(one, "", own[name]) for name, one in tree.places.items())
    steps = [stmt for size in STEPS for stmt in copied(step, {half.name: ir.IntConst(size)}, taken)]
    left = ir.If(ir.binary("<", tree.lane, ir.IntConst(STEPS[0] if wide is None else 1)), stores)
    return (*loads, *(() if wide is None else _of_values(tree, half, wide, own, taken)), *steps, left)


def _taking(tree: _Tree, own: Mapping[str, ir.Var], others: Mapping[str, ir.Var]) -> Body:
    """Return what a step does with scalars in place of elements."""
    named: dict[ir.Element, ir.Var] = {}
    for name, elements in tree.others.items():
        named[tree.own[name]] = own[name]
        named |= dict.fromkeys(elements, others[name]) if elements else {}
    return without_unread(map_body(tree.body, lambda part: named.get(part) if isinstance(part, ir.Element) else None))


def _of_values(tree: _Tree, half: ir.Var, wide: ir.Var, own: Mapping[str, ir.Var], taken: set[str]) -> Body:
    """Return the steps from 32 on of lanes that have every 32nd place each, up to ``MOST_VALUES``, as scalars."""
    result: Body = ()
    count = 2
    while count <= MOST_VALUES:
        values = [own]
        loads: list[ir.Stmt] = []
        for number in range(1, count):
            more = {name: ir.Var(fresh(f"{name}_warp", taken), one.type) for name, one in own.items()}
            for name, one in tree.places.items():
                (index,) = one.indices
                place = ir.binary("+", index, ir.IntConst(number * WARP_SIZE))
                loads.append(ir.Declare(more[name].name, one.type, replace(one, indices=(place,))))
            values.append(more)
        steps: list[ir.Stmt] = []
        apart = count // 2
        while apart:
            for here, there in zip(values[:apart], values[apart : 2 * apart], strict=True):
                steps += copied(_taking(tree, here, there), {half.name: ir.IntConst(apart * WARP_SIZE)}, taken)
            apart //= 2
        result = (ir.If(ir.binary(">=", wide, ir.IntConst(count * WARP_SIZE // 2)), (*loads, *steps), result),)
        count *= 2
    return result


def _names_places(tree: _Tree) -> bool:
    """Say whether a step computes with places themselves, and not only with what lies there."""
    names = {one.name for one in tree.scalars if isinstance(one, ir.Declare)} | {*INDICES}
    scalars = {name: ir.Var(name, one.type) for name, one in tree.own.items()}
    return not names.isdisjoint(names_in(_taking(tree, scalars, scalars)))
