"""Sums of all elements up to each place, in steps of 1, 2, 4, ...: one warp takes them all, and needs no barriers.

``before --> after``, where ``B`` threads have an element each::

    for (int reach = 1; reach < B; reach *= 2) {          if (METAFORK_WARPS() && B is 32, 64, 128 or 256) {
      t[u] = u < reach ? s[u] : s[u] + s[u - reach];        ...                              // of 64, as an example
      __syncthreads();                                      if (u < 32) {
      s[u] = t[u];                                            float own = s[u], own_2 = s[u + 32], sum, sum_2;
      __syncthreads();                                        float left = METAFORK_SHUFFLE(own, u + 31);
    }                                               -->       sum = u < 1 ? own : own + left;
                                                              own = sum;
                                                              float last = u >= 31 ? own : own_2;
                                                              float left_2 = METAFORK_SHUFFLE(last, u + 31);
                                                              sum_2 = own_2 + left_2;
                                                              own_2 = sum_2;
                                                              ...                                    // 2, 4, 8, 16
                                                              sum_2 = own_2 + own;                   // 32
                                                              own_2 = sum_2;
                                                              s[u] = own;  s[u + 32] = own_2;
                                                              t[u] = sum;  t[u + 32] = sum_2;
                                                            }
                                                            __syncthreads();
                                                          } else
                                                            for (int reach = 1; ...) ...              as before

A lane has the elements of every 32nd place as scalars, and takes each step of all of them before the next one.  Each
element gets what it had got, from the same operands in the same order.  Where a step goes from one half of an array to
the other, ``s[1 - now][u] = ...; now = 1 - now;``, the scalars of the halves change places from step to step.

Legality.  An element that a thread touches in a step is its own, ``base + u``, or that of the place ``reach`` before,
if there is one, which nobody writes before the next barrier.  Elements with different bases are in different arrays or
an odd multiple of ``B`` apart, so that none is that of two places.  Each step has the bases of the one before it, in
another order.  What lies ``reach`` places before is another lane's, of the same 32 places or of those before, and from
the step of 32 on the lane's own.  The arrays have an element for each place, so that none is loaded beyond their ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from itertools import chain, combinations
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, product
from metafork.analysis.analyses import WARP_SIZE
from metafork.analysis.counted_loops import conjuncts, doubled
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import SHUFFLE, WARPS
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import code_of
from metafork.ir.rewriting import arrays_read, assigned_variables, names_in, without_unread
from metafork.ir.visitor import Body, Rewriter
from metafork.unrolling.coarsening import every
from metafork.unrolling.jam import copied
from metafork.unrolling.shared_loads import exact_polynomial
from metafork.unrolling.warp_steps import INDICES, Block, known_scalar

INT = ScalarType.INT
SIZES = (32, 64, 128, 256)
"""How many places one warp may take."""
REACHES, FALLS_SHORT = "reaches", "falls short"
"""What stands for ``u >= reach`` and ``u < reach`` in a step."""
T = TypeVar("T")

_Key = tuple[str, Polynomial]
"""An array, and where the element of place 0 lies in it."""


class _Step(Struct, frozen=True):
    """A step: what is done between barriers, with scalars in place of elements.

    ``keys`` are the elements by the scalar that stands for a thread's own one, ``others`` say which scalar stands for
    what lies ``reach`` places before it, in each part.  Behind the step, what is named ``turns[name]`` now has
    that name.  ``unset`` are elements that are written before they are read.  ``counts`` changes scalars of the block.
    """

    reach: str
    parts: Sequence[Body]
    others: Sequence[Mapping[str, str]]
    keys: Mapping[str, _Key]
    types: Mapping[str, ScalarType]
    turns: Mapping[str, str]
    unset: Set[str]
    counts: Body
    symbols: Mapping[str, ir.Expr]


def with_warp_scan(loop: ir.For, block: Block, taken: set[str]) -> Body:
    """Return a lowered loop of a block, in one warp for blocks of some sizes if it is a scan."""
    reach = doubled(loop)
    parts = None if reach is None else _parts(loop.body, block)
    match loop.condition:
        case ir.Binary(op="<", left=left, right=width) if left == reach and parts is not None:
            places = exact_polynomial(width, {}, frozenset())
        case _:
            places = None
    if reach is None or parts is None or places is None or any(one != places for _, one in parts):
        return (loop,)
    bodies = [body for body, _ in parts]
    step = _Reader(tuple(chain(*bodies)), reach, places, block).step(bodies)
    sizes = [size for size in SIZES if not places.is_constant or places == Polynomial.constant(size)]
    if step is None or not sizes:
        return (loop,)
    codes: Body = ()
    for size in sizes:
        code = _of_one_warp(step, size // WARP_SIZE, taken)
        codes = (ir.If(ir.binary(">", width, ir.IntConst(size // 2)), code, codes),) if codes else code
    fits: list[ir.Expr] = [ir.binary(">=", block.extents[0], ir.IntConst(WARP_SIZE))]
    if not places.is_constant:
        low = ir.binary("&", width, ir.binary("-", width, ir.IntConst(1)))
        ends = (ir.binary(op, width, ir.IntConst(size)) for op, size in ((">=", SIZES[0]), ("<=", SIZES[-1])))
        fits += [*ends, ir.binary("==", low, ir.IntConst(0))]
    return (ir.If(every((*fits, ir.Call(WARPS, (), INT))), codes, (loop,)),)


def _parts(body: Body, block: Block) -> list[tuple[Body, Polynomial | None]] | None:
    """Return what is done of one place before each barrier, and of how many places."""
    if block.shape[1:] != (ONE, ONE) or body[-1:] != (ir.Barrier(),):
        return None
    result: list[tuple[Body, Polynomial | None]] = []
    part: list[ir.Stmt] = []
    width = block.shape[0] if block.places == 1 else None
    for stmt in body:
        match stmt:
            case ir.Barrier(awaits=False):
                result.append((tuple(part), width))
                part = []
            case ir.For(init=ir.Declare(value=ir.Cast(operand=ir.Var(name=thread))) as place) if (
                thread == INDICES[0] and isinstance(stmt.condition, ir.Binary) and stmt.condition.op == "<"
            ):
                width = exact_polynomial(stmt.condition.right, {}, frozenset())
                part += (place, *stmt.body)
            case ir.Declare() | ir.Assign() | ir.If():
                part.append(stmt)
            case _:
                return None
    return result


class _Reader(Rewriter):
    """Reads a step, and puts scalars in the place of elements; ``scope`` are the values of scalars."""

    def __init__(self, body: Body, reach: ir.Var, width: Polynomial, block: Block) -> None:
        self._reach, self._width, self._block = reach, width, block
        self._symbols = {one.name: one for one in ir.parts_of(body) if isinstance(one, ir.Var)}
        self._declared = {one.name for one in ir.walk_statements(body) if isinstance(one, ir.Declare)}
        self._changing = assigned_variables(body) & self._declared
        self._names: dict[_Key, str] = {}
        self._types: dict[str, ScalarType] = {}
        self._others: dict[str, str] = {}
        self._written: set[str] = set()
        self._touched: set[str] = set()
        self._surely: set[str] = set()
        self._loaded: set[str] = set()
        self._behind = False
        self._known = True
        self.scope: dict[str, Polynomial] = {}

    def inner(self) -> dict[str, Polynomial]:
        return dict(self.scope)

    def step(self, parts: Sequence[Body]) -> _Step | None:
        """Return what is done between barriers, or ``None`` if this is no scan."""
        places: list[ir.Stmt] = []
        counts: list[ir.Stmt] = []
        follows: dict[str, Polynomial] = {}
        bodies: list[Body] = []
        others: list[Mapping[str, str]] = []
        for part in parts:
            code: list[ir.Stmt] = [*places]
            self._others, self._written = {}, set()
            for stmt in part:
                match stmt:
                    case ir.Assign(target=ir.Var(name=name), op="", value=value) if name not in self._declared:
                        new = exact_polynomial(value, self.scope, self._changing)
                        if new is None or new.symbols & (self._declared | {*INDICES, self._reach.name}):
                            return None
                        self.scope[name] = follows[name] = new
                        counts.append(stmt)
                    case ir.Declare(value=value) if value is None or not arrays_read(value):
                        places.append(stmt)
                        counts.append(stmt)
                        code.append(stmt)
                        self.statement(stmt)
                    case _:
                        new_stmt = self.statement(stmt)
                        code += new_stmt if isinstance(new_stmt, tuple) else (new_stmt,)
            if self._written & self._others.keys():
                return None
            bodies.append(without_unread(tuple(code)))
            others.append(self._others)
        turned = {name: (array, base.substitute(follows)) for (array, base), name in self._names.items()}
        keys = {name: key for key, name in self._names.items()}
        if (
            not self._known
            or not any(others)
            or not all(key in self._names for key in turned.values())
            or not all(map(self._exists, keys))
            or not all(self._apart(*two) for two in combinations(keys.values(), 2))
            or any(names_in(body) & follows.keys() for body in bodies)
        ):
            return None
        turns = {name: self._names[key] for name, key in turned.items()}
        unset = self._surely - self._loaded
        kept = without_unread(tuple(counts))
        return _Step(self._reach.name, bodies, others, keys, self._types, turns, unset, kept, self._symbols)

    def declare(self, node: ir.Declare) -> ir.Stmt | Body:
        if node.name not in self._changing:
            self.scope[node.name] = known_scalar(node, self.scope)
        return super().declare(node)

    def assign(self, node: ir.Assign) -> ir.Stmt | Body:
        value = self.expression(node.value)
        if isinstance(node.target, ir.Var):
            self._known &= node.target.name in self._declared
            return replace(node, value=value)
        if node.op:
            self.expression(node.target)
        name, before = self._named(node.target)
        self._known &= not before and not node.atomic and not node.asynchronous
        for names in (self._written, self._touched, self._surely):
            names.add(name)
        return replace(node, target=ir.Var(name, node.target.type), value=value)

    def element(self, node: ir.Element, number: int) -> ir.Expr:
        name, before = self._named(node)
        if name not in self._surely:
            self._loaded.add(name)
        if not before:
            self._touched.add(name)
            return ir.Var(name, node.type)
        self._known &= self._behind
        return ir.Var(self._others.setdefault(name, f"before {name}"), node.type)

    def branch(self, node: ir.If) -> ir.Stmt | Body:
        test = self._test(node.condition)
        reaches, falls = self._reaches(node.condition), self._reaching(node.condition) is False
        then, otherwise = self._either(reaches, lambda: self.body(node.then), falls, lambda: self.body(node.otherwise))
        return replace(node, condition=test, then=then, otherwise=otherwise)

    def conditional(self, node: ir.Conditional) -> ir.Expr:
        test = self._test(node.condition)
        reaches, falls = self._reaches(node.condition), self._reaching(node.condition) is False
        then, otherwise = self._either(
            reaches, lambda: self.expression(node.then), falls, lambda: self.expression(node.otherwise)
        )
        return replace(node, condition=test, then=then, otherwise=otherwise)

    def binary(self, node: ir.Binary) -> ir.Expr:
        if node.op not in ir.LOGICAL:
            return super().binary(node)
        left = self._test(node.left)
        reaching = self._reaches(node.left) if node.op == "&&" else self._reaching(node.left) is False
        right, _ = self._either(reaching, lambda: self._test(node.right), False, lambda: node)
        return replace(node, left=left, right=right)

    def _either(self, reaching: bool, then: Callable[[], T], falling: bool, otherwise: Callable[[], T]) -> tuple[T, T]:
        """Return what is done in either case: what is touched and written is so in both."""
        behind, touched, surely = self._behind, self._touched, self._surely
        self._behind, self._touched, self._surely = behind or reaching, {*touched}, {*surely}
        first = then()
        ends = self._touched, self._surely
        self._behind, self._touched, self._surely = behind or falling, {*touched}, {*surely}
        second = otherwise()
        self._behind, self._touched, self._surely = behind, self._touched & ends[0], self._surely & ends[1]
        return first, second

    def _test(self, test: ir.Expr) -> ir.Expr:
        reaching = self._reaching(test)
        return self.expression(test) if reaching is None else ir.Var(REACHES if reaching else FALLS_SHORT, INT)

    def _reaches(self, test: ir.Expr) -> bool:
        """Say whether there is a place ``reach`` before where a test holds."""
        return any(self._reaching(one) for one in conjuncts(test))

    def _reaching(self, test: ir.Expr) -> bool | None:
        """Say whether a test holds just where there is a place ``reach`` before, or just where there is none."""
        match test:
            case ir.Binary(op="<" | "<=" | ">" | ">=" as op, left=left, right=right):
                sides = [exact_polynomial(one, self.scope, self._changing) for one in (left, right)]
            case _:
                return None
        if sides[0] is None or sides[1] is None:
            return None
        more = sides[0] - sides[1] if op in (">", ">=") else sides[1] - sides[0]
        if op in ("<", ">"):
            more = more - 1
        beyond = Polynomial.symbol(INDICES[0]) - Polynomial.symbol(self._reach.name)
        return True if more == beyond else False if more == -beyond - 1 else None

    def _named(self, node: ir.Element) -> tuple[str, bool]:
        """Return the scalar that stands for a thread's own element, and whether it is the one ``reach`` before."""
        reach = Polynomial.symbol(self._reach.name)
        at = exact_polynomial(node.indices[0], self.scope, self._changing)
        base = ZERO if at is None else at - Polynomial.symbol(INDICES[0])
        before = base.coefficient(self._reach.name) == -ONE
        base = base + reach if before else base
        varying = self._declared | {*INDICES, self._reach.name, *self._types}
        self._known &= (
            at is not None
            and node.part is None
            and node.type.size in (4, 8)
            and node.array in self._block.arrays
            and not base.symbols & varying
        )
        name = self._names.setdefault((node.array, base), f"own {len(self._names)}")
        self._types[name] = node.type
        return name, before

    def _exists(self, name: str) -> bool:
        """Say whether there is an element for each place: each thread touches it, or the array has so many."""
        array, base = next(key for key, one in self._names.items() if one == name)
        extents = self._block.arrays[array]
        sizes = [one for one in extents if one is not None]
        return name in self._touched or (base == ZERO and len(sizes) == len(extents) and product(sizes) == self._width)

    def _apart(self, one: _Key, other: _Key) -> bool:
        """Say whether no two places have one element, each of its kind: bases differ by an odd number of widths."""
        if one[0] != other[0]:
            return True
        widths = (one[1] - other[1]).divide_exactly(self._width)
        if widths is None or not widths.whole:
            return False
        rest = {**widths.terms()}
        odd = rest.pop((), Fraction(0))
        return odd != 0 if not rest else odd % 2 == 1 and all(one % 2 == 0 for one in rest.values())


def _of_one_warp(step: _Step, count: int, taken: set[str]) -> Body:
    """Return all steps of ``count`` times 32 places."""
    thread = ir.Var(INDICES[0], ScalarType.UNSIGNED_INT)
    lane = ir.Cast(INT, thread)
    own = [
        {name: ir.Var(fresh(f"{array}_warp", taken), step.types[name]) for name, (array, _) in step.keys.items()}
        for _ in range(count)
    ]
    code: list[ir.Stmt] = []
    for values, name, element in _elements(step, own, lane):
        code.append(ir.Declare(values[name].name, element.type, None if name in step.unset else element))
    places = {name: name for name in step.keys}
    steps = (WARP_SIZE * count).bit_length() - 1
    for reach in (1 << number for number in range(steps)):
        for part, others in zip(step.parts, step.others, strict=True):
            for number, values in enumerate(own):
                known: dict[str, ir.Expr] = {name: values[place] for name, place in places.items()}
                for name, other in others.items():
                    place = places[name]
                    if reach >= WARP_SIZE:
                        known[other] = own[max(number - reach // WARP_SIZE, 0)][place]
                        continue
                    handed: ir.Expr = values[place]
                    if number:
                        last = ir.binary(">=", lane, ir.IntConst(WARP_SIZE - reach))
                        handed = ir.Conditional(last, own[number - 1][place], handed, handed.type)
                    read = ir.Var(fresh(f"{step.keys[name][0]}_other", taken), handed.type)
                    call = ir.Call(SHUFFLE, (handed, ir.binary("+", lane, ir.IntConst(WARP_SIZE - reach))), handed.type)
                    code.append(ir.Declare(read.name, read.type, call))
                    known[other] = read
                known[step.reach] = ir.IntConst(reach)
                known[INDICES[0]] = ir.binary("+", thread, ir.IntConst(number * WARP_SIZE)) if number else thread
                reaches = number * WARP_SIZE >= reach
                for name, op, met in ((REACHES, ">=", reaches), (FALLS_SHORT, "<", not reaches)):
                    some = number == 0 and reach < WARP_SIZE
                    known[name] = ir.binary(op, lane, ir.IntConst(reach)) if some else ir.IntConst(int(met))
                code += without_unread(_Decided().body(copied(part, known, taken)))
        places = {name: places[step.turns[name]] for name in places}
    code += [ir.Assign(element, "", values[name]) for values, name, element in _elements(step, own, lane)]
    counts = [one for _ in range(steps) for one in copied(step.counts, {}, taken)]
    return (ir.If(ir.binary("<", lane, ir.IntConst(WARP_SIZE)), tuple(code)), ir.Barrier(), *counts)


def _elements(
    step: _Step, own: Sequence[Mapping[str, ir.Var]], lane: ir.Expr
) -> Iterator[tuple[Mapping[str, ir.Var], str, ir.Element]]:
    """Yield the scalars of each place of a lane, and each of its elements with the name of its scalar."""
    for number, values in enumerate(own):
        place = ir.binary("+", lane, ir.IntConst(number * WARP_SIZE)) if number else lane
        for name, (array, base) in step.keys.items():
            index = ir.binary("+", code_of(base, step.symbols), place) if base else place
            yield values, name, ir.Element(array, (index,), step.types[name])


class _Decided(Rewriter):
    """Drops the branches that are never taken."""

    def branch(self, node: ir.If) -> ir.Stmt | Body:
        if isinstance(node.condition, ir.IntConst):
            return self.body(node.then if node.condition.value else node.otherwise)
        return super().branch(node)

    def conditional(self, node: ir.Conditional) -> ir.Expr:
        if isinstance(node.condition, ir.IntConst):
            return self.expression(node.then if node.condition.value else node.otherwise)
        return super().conditional(node)
