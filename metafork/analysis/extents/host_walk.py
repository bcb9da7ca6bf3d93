"""Which elements of an array a schedule touches, found out by the host: a program that goes through the indices alone.

``before --> after``, of an array ``x`` without extents::

    meta_for (int i = 0; i < n; i++) {
      float s = 0;
      for (int k = first[i]; k < first[i + 1]; k++)
        s += v[k] * x[col[k]];
      y[i] = s;
    }
    -->
    meta_for (int i = 0; i < n; i++)
      for (int k = first[i]; k < first[i + 1]; k++) {
        long at = col[k];
        if (at < least_x) least_x = at;
        if (most_x < at) most_x = at;
      }

What decides an index or whether it is reached stays (conditions, loops, the scalars in them), and is evaluated in the
order and the types of the text, so that the host reads no element that the text does not read.  The rest goes, and a
loop in which nothing changes of what stays runs once.  All that is read must stay what it is: no array that the
schedule writes.  This is the inspector of Saltz and others (Run-time scheduling and execution of loops, 1991).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.references import left_early
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.names import fresh
from metafork.ir.rewriting import names_of, variables

Body = tuple[ir.Stmt, ...]


class HostWalk(Struct, frozen=True):
    """A ``program`` that finds the ``least`` and the greatest (``most``) first index of arrays, by their names.

    These are variables of type ``long``.  Elements of packed rows are handed to ``metafork_row`` with one of
    ``tables``.  The host reads the arrays ``read``, rows where a name is empty;
    ``loops`` are the variables of the loops that it goes through.
    """

    program: ir.Program
    least: Mapping[str, str]
    most: Mapping[str, str]
    tables: Mapping[str, str]
    read: tuple[str, ...]
    loops: tuple[str, ...]

    @property
    def scalars(self) -> tuple[str, ...] | None:
        """The integers of the host that decide what is found, with what is read; ``None`` if there are others."""
        program = self.program
        given = {one.name: one.type for one in program.parameters}
        given |= {one.name: one.type for one in program.values} | {one.name: one.type for one in program.derived}
        heads = [name for loop in program.grid for name in variables(loop.extent)]
        used = [name for name in given if name in {*_names(program.body), *heads}]
        return tuple(used) if not self.tables and all(given[name].integer for name in used) else None

    @property
    def effort(self) -> str:
        """What the host does."""
        loops = ", ".join(f"`{one}`" for one in self.loops)
        return f"looks at all indices (loop{'s' * (len(self.loops) > 1)} {loops})" if loops else "looks at the indices"


def host_walk(program: ir.Program) -> HostWalk | None:
    """Return the program that finds out what is touched of arrays without extents; ``None`` where there is none."""
    views = {one.name: one.whole or one.name for one in program.arrays if one.endless or one.table}
    found = _walk_of(program, views) if views else None
    if found is None and len(views) > 1:
        views = {name: whole for name, whole in views.items() if _walk_of(program, {name: whole}) is not None}
        found = _walk_of(program, views) if views else None
    return found


def _walk_of(program: ir.Program, views: Mapping[str, str]) -> HostWalk | None:
    taken = set(names_of(program))
    packed = {one.name for one in program.arrays if one.table and one.name in views}
    plain = [name for name in dict.fromkeys(views.values()) if name not in packed]
    least, most = ({name: fresh(f"metafork_{end}_{name}", taken) for name in plain} for end in ("least", "most"))
    tables = {name: fresh(f"metafork_table_{name}", taken) for name in sorted(packed)}
    walk = _Walk(views, least, most, tables, fresh("metafork_at", taken))
    needed: set[str] = set()
    body: Body = ()
    names = {*least.values(), *most.values(), *tables.values()}
    while not names <= needed:
        needed |= names
        try:
            body = walk.body(program.body, needed)
        except _NotWalkedError:
            return None
        names = _names(body) | {name for loop in program.grid for name in variables(loop.extent)}
    grid = tuple(_once(loop, body) for loop in program.grid)
    walked = replace(program, grid=grid, body=body)
    read = _read(walked)
    loops = [one.var for one, loop in zip(program.grid, grid, strict=True) if one == loop]
    if not body or not read.isdisjoint(_changing(program)):
        return None
    tabled = {one.name for one in program.arrays if one.table}
    known = sorted({"" if name in tabled else name for name in read})
    return HostWalk(walked, least, most, tables, tuple(known), (*loops, *_loops(body)))


def _read(program: ir.Program) -> set[str]:
    """Return the arrays that a program reads, by their names in the host's text."""
    wholes = {one.name: one.whole or one.name for one in program.arrays}
    heads = (loop.extent for loop in program.grid)
    parts = [*ir.parts_of(program.body), *(part for head in heads for part in ir.walk_expression(head))]
    tables = {table.array.name for table in program.tables}
    return {wholes.get(part.array, part.array) for part in parts if isinstance(part, ir.Element)} - tables


def _changing(program: ir.Program) -> set[str]:
    """Return the arrays that a program writes or declares, by their names in the host's text."""
    wholes = {one.name: one.whole or one.name for one in program.arrays}
    found = {one.name for one in program.arrays if one.scalar}
    for stmt in ir.walk_statements(program.body):
        match stmt:
            case ir.Assign(target=ir.Element(array=array)) | ir.BlockArray(array=ir.Array(name=array)):
                found.add(wholes.get(array, array))
            case ir.PrivateArray(array=ir.Array(name=array)):
                found.add(array)
            case _:
                pass
    return found


def _names(body: Body) -> set[str]:
    """Return the scalars that statements read."""
    found: set[str] = set()
    for stmt in ir.walk_statements(body):
        assigned = isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var)
        for expr in ir.expressions_of(stmt)[1 if assigned else 0 :]:
            found |= variables(expr)
    return found


def _once(loop: ir.MetaFor, body: Body) -> ir.MetaFor:
    """Return a parallel loop, of at most one iteration where all of them are alike."""
    if loop.var in _names(body):
        return loop
    some = ir.binary("<", ir.IntConst(0), loop.extent)
    return replace(loop, extent=ir.Conditional(some, ir.IntConst(1), ir.IntConst(0), ir.INT))


def _loops(body: Body) -> list[str]:
    """Return the variables of loops that run more than once."""
    found: list[str] = []
    for stmt in ir.walk_statements(body):
        match stmt:
            case ir.Phase(threads=threads, body=inner):
                found += [one.var for one in threads if one.var in _names(inner)]
            case ir.For(init=ir.Declare(name=name) | ir.Assign(target=ir.Var(name=name)), body=inner) if inner[-1:] != (
                ir.Break(),
            ):
                found.append(name)
            case _:
                pass
    return list(dict.fromkeys(found))


class _NotWalkedError(Exception):
    """An access stands where it is made more often than the statement that it would be noted in front of."""


class _Walk(Struct, frozen=True):
    """Leaves the accesses of arrays, by their views, and what decides them."""

    views: Mapping[str, str]
    least: Mapping[str, str]
    most: Mapping[str, str]
    tables: Mapping[str, str]
    at: str

    def body(self, body: Body, needed: Collection[str]) -> Body:
        """Return what is left of a body where the scalars ``needed`` are."""
        return tuple(one for stmt in body for one in self._statement(stmt, needed))

    def _statement(self, stmt: ir.Stmt, needed: Collection[str]) -> Body:
        match stmt:
            case ir.Declare(name=name, value=value) | ir.Assign(target=ir.Var(name=name), value=value):
                return (*self._probes(value), *([stmt] if name in needed else []))
            case ir.Assign(target=target, value=value):
                return (*self._probes(value), *self._probes(target))
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                ways = self.body(then, needed), self.body(otherwise, needed)
                return (*self._probes(condition), *_branch(condition, *ways))
            case ir.For(init=init, condition=condition, step=step, body=inner):
                first = self._probes(None if init is None else init.value)
                heads = [condition, None if step is None else step.value]
                return (*first, *self._loop(stmt, heads, self.body(inner, needed), needed))
            case ir.While(condition=condition, body=inner):
                return self._loop(stmt, [condition], self.body(inner, needed), needed)
            case ir.Phase(threads=threads, body=inner):
                left = self.body(inner, needed)
                return (replace(stmt, threads=tuple(_once(one, left) for one in threads), body=left),) if left else ()
            case ir.Break() | ir.Continue():
                return (stmt,)
            case ir.BlockArray() | ir.PrivateArray() | ir.Barrier():
                return ()
            case _:
                assert_never(stmt)

    def _loop(
        self, loop: ir.For | ir.While, heads: Sequence[ir.Expr | None], left: Body, needed: Collection[str]
    ) -> Body:
        """Return a loop of whose body something is left; it runs once where its iterations are alike."""
        if any(self._probes(head) for head in heads):
            raise _NotWalkedError
        notes = {*self.least.values(), *self.most.values()}
        own = {one.name for one in ir.walk_statements(left) if isinstance(one, ir.Declare)}
        noted = self.at in own
        changed = {name for one in ir.walk_statements(left) if (name := _assigned(one))} - own - notes
        counters = {name for one in _heads(loop) if (name := _assigned(one))}
        local = {one.name for one in _heads(loop) if isinstance(one, ir.Declare)}
        kept = (counters - local) & {*needed}
        if not (noted or changed or kept):
            return ()
        alike = not (changed or kept or left_early(left) or counters & _names(left))
        return (replace(loop, body=(*left, ir.Break()) if alike and isinstance(loop, ir.For) else left),)

    def _probes(self, expr: ir.Expr | None) -> Body:
        """Return statements that note the accesses of an expression, each where it is evaluated."""
        match expr:
            case None:
                return ()
            case ir.Binary(op="&&" | "||" as op, left=left, right=right):
                holds = left if op == "&&" else ir.unary("!", left)
                return (*self._probes(left), *_branch(holds, self._probes(right), ()))
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                return (*self._probes(condition), *_branch(condition, self._probes(then), self._probes(otherwise)))
            case ir.Element(array=array, indices=indices) if array in self.views:
                inner = tuple(one for index in indices for one in self._probes(index))
                return (*inner, self._noted(self.views[array], indices))
            case _:
                return tuple(one for part in ir.subexpressions(expr) for one in self._probes(part))

    def _noted(self, array: str, indices: Sequence[ir.Expr]) -> ir.Stmt:
        at = ir.Var(self.at, ScalarType.LONG)
        if array in self.tables:
            places = (ir.Cast(ScalarType.LONG, index) for index in indices)
            noted = ir.Call("metafork_row", (ir.Var(self.tables[array], ScalarType.LONG), *places), ScalarType.LONG)
            return ir.If(ir.IntConst(1), (ir.Declare(self.at, ScalarType.LONG, noted), ir.If(at, ())))
        least, most = ir.Var(self.least[array], ScalarType.LONG), ir.Var(self.most[array], ScalarType.LONG)
        note = (
            ir.Declare(self.at, ScalarType.LONG, ir.Cast(ScalarType.LONG, indices[0])),
            ir.If(ir.binary("<", at, least), (ir.Assign(least, "", at),)),
            ir.If(ir.binary("<", most, at), (ir.Assign(most, "", at),)),
        )
        return ir.If(ir.IntConst(1), note)  # a scope of its own


def _branch(condition: ir.Expr, then: Body, otherwise: Body) -> Body:
    return (ir.If(condition, then, otherwise),) if then or otherwise else ()


def _heads(loop: ir.For | ir.While) -> list[ir.Declare | ir.Assign]:
    return [one for one in (loop.init, loop.step) if one is not None] if isinstance(loop, ir.For) else []


def _assigned(stmt: ir.Stmt) -> str:
    """Return the scalar that a statement gives a value, empty where it is none."""
    match stmt:
        case ir.Declare(name=name) | ir.Assign(target=ir.Var(name=name)):
            return name
        case _:
            return ""
