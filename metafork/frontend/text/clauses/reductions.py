"""``meta_reduction(op: name)`` in front of a ``meta_for``: what its iterations add up, in any order, of integers.

``before --> after``, of a result ``sum`` (an array of one element, or a scalar of the block whose threads add up)::

    meta_reduction(+: sum)                 meta_for (int i = 0; i < n / B; i++) {
    meta_for (int i = 0; i < n / B; i++)     int sum_part[1];
      meta_for (int j = 0; j < B; j++)       meta_for (int j = 0; j < B; j++)
        *sum += x[i * B + j];                  if (j == 0) sum_part[0] = 0;
                                    -->      meta_for (int j = 0; j < B; j++) {
                                               unsigned sum_own = 0;
                                               sum_own += x[i * B + j];
                                               meta_atomic sum_part[0] += sum_own;
                                             }
                                             meta_for (int j = 0; j < B; j++)
                                               if (j == 0) meta_atomic sum[0] += sum_part[0];
                                           }

A thread adds up in a register, a block in its shared memory, the blocks in global memory.  Sums and products count
modulo 2^w, as those of C do where they are defined, so that every order gives the same.  Updates of an array with more
elements become atomic ones where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.atomics import operation
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.atomic_updates import updated
from metafork.ir.messages.source import Span
from metafork.ir.rewriting import names_in
from metafork.ir.visitor import Rewriter

_DOING = {"+": "adding", "*": "multiplying", "min": "comparing", "max": "comparing"}
_ONE_ORDER = "updates of elements are atomic, and those of floating-point numbers have no order."
_SCALAR = "add up in a scalar that is declared in front of the loops of threads, and store it behind them."

OPERATORS = ("+", "*", "&", "|", "^", "min", "max")


class _Part(Struct, frozen=True):
    """What a block adds up in: its array, the one element of that, and the clause that it is for."""

    array: ir.Array
    element: ir.Element
    clause: syntax.Reduction


class Reductions(Struct, frozen=True):
    """Rewrites statements that were built; ``fresh`` gives names that nothing in the program has.

    Floating-point results are refused unless the user asked to ``reassociate``; what becomes of them is in
    ``metafork.frontend.schedules.ordered_sums``.
    """

    reporter: Reporter
    fresh: Callable[[str], str]
    reassociate: bool = False

    def of_grid(
        self, body: tuple[ir.Stmt, ...], results: Sequence[tuple[ir.Array, syntax.Reduction]]
    ) -> tuple[ir.Stmt, ...]:
        """Return block-level code in which the threads of all blocks update arrays; raises ``RefusedError``."""
        phases = [stmt for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Phase)]
        parts: list[_Part] = []
        ends: list[ir.Stmt] = []
        for array, clause in results:
            self._check_members(array, clause)
            self.check_type(array.element, clause)
            if not phases or not _single(array):
                body = over_phases(body, partial(self.of_array, array=array, clause=clause))
                continue
            target = ir.Element(array.name, (ir.IntConst(0),) * len(array.extents), array.element, clause.span)
            parts.append(self._part(array.name, array.element, clause))
            element = parts[-1].element
            body = over_phases(body, partial(self._accumulated, target=target, part=element, clause=clause))
            ends.append(ir.Assign(target, clause.op, element, clause.span, atomic=True))
        if not parts:
            return body
        return (*self._begun(phases[0], parts), *body, self._by_one(phases[0], ends))

    def of_array(self, phase: ir.Phase, array: ir.Array, clause: syntax.Reduction) -> ir.Phase:
        """Return a phase that updates the elements of an array atomically; raises ``RefusedError``."""
        self._check_members(array, clause)
        self.check_type(array.element, clause)
        self._check_atomic(array, clause)
        body = self.updates(phase.body, array.name, clause, lambda update, _: update)
        return replace(phase, body=body)

    def of_block(self, phase: ir.Phase, results: Sequence[tuple[ir.Var, syntax.Reduction]]) -> tuple[ir.Stmt, ...]:
        """Return what adds up in scalars of the block; raises ``RefusedError``."""
        parts: list[_Part] = []
        ends: list[ir.Stmt] = []
        inside = phase
        for variable, clause in results:
            self.check_type(variable.type, clause)
            parts.append(self._part(variable.name, variable.type, clause))
            element = parts[-1].element
            inside = self._accumulated(inside, target=variable, part=element, clause=clause)
            value = updated(ir.Assign(variable, clause.op, element, clause.span))
            ends.append(ir.Assign(variable, "", value, clause.span))
        return (*self._begun(phase, parts), inside, *ends)

    def check_type(self, type_: ScalarType, clause: syntax.Reduction) -> None:
        """Refuse a result whose value depends on the order of what is added up; raises ``RefusedError``."""
        message = f"`{clause.name.name}` has type `{type_.spelling}`"
        if type_.floating and clause.op not in ("+", "*", "min", "max"):
            raise self.reporter.refuse("MF0225", clause.span, message, reason=f"`{clause.op}` is for integers.")
        if type_.small:
            way_out = "add up in a `float`."
            raise self.reporter.refuse("MF0225", clause.span, message, reason="sums are rounded once.", way_out=way_out)
        if type_.floating and not self.reassociate:
            raise self.reporter.refuse(
                "MF0225",
                clause.name.span,
                f"{_DOING[clause.op]} `{type_.spelling}` numbers in another order gives another result",
                reason="threads do not go on in the order of the loop, and no result changes unless you allow it.",
                way_out="allow it: add `--reassociate` to the command. The result is then the same on every GPU and in "
                "the serial code, because the order is fixed.",
            )
        if type_ is ScalarType.BOOL:
            way_out = "make it an `int`."
            raise self.reporter.refuse(
                "MF0225", clause.span, message, reason="what is added up are numbers.", way_out=way_out
            )

    def _check_members(self, array: ir.Array, clause: syntax.Reduction) -> None:
        """Refuse structures of several types; raises ``RefusedError``."""
        if array.slots:
            raise self.reporter.refuse(
                "MF0225",
                clause.span,
                f"`{array.name}` has structures of several types",
                reason="what is added up are numbers of one type.",
                way_out="write `meta_atomic` in front of each update of a member that is an integer.",
            )

    def check_single(self, array: ir.Array, clause: syntax.Reduction) -> None:
        """Refuse an array of several floating-point results; raises ``RefusedError``."""
        if not _single(array):
            message = f"`{array.name}` has several elements of type `{array.element.spelling}`"
            raise self.reporter.refuse("MF0225", clause.span, message, reason=_ONE_ORDER, way_out=_SCALAR)

    def _check_atomic(self, array: ir.Array, clause: syntax.Reduction) -> None:
        """Refuse what would become atomic updates of floating-point elements; raises ``RefusedError``."""
        if array.element.floating:
            message = f"the elements of `{array.name}` have type `{array.element.spelling}`"
            raise self.reporter.refuse("MF0225", clause.span, message, reason=_ONE_ORDER, way_out=_SCALAR)

    # --- the pieces -------------------------------------------------------------------------------------------

    def _part(self, name: str, type_: ScalarType, clause: syntax.Reduction) -> _Part:
        array = ir.Array(self.fresh(f"{name}_part"), type_, (ir.IntConst(1),), clause.span)
        return _Part(array, ir.Element(array.name, (ir.IntConst(0),), type_, clause.span), clause)

    def _begun(self, phase: ir.Phase, parts: Sequence[_Part]) -> tuple[ir.Stmt, ...]:
        """Return the declarations of what a block adds up in, and what that is at first."""
        first = [
            ir.Assign(part.element, "", _neutral(part.clause.op, part.element.type), part.clause.span) for part in parts
        ]
        return (*(ir.BlockArray(part.array, part.clause.span) for part in parts), self._by_one(phase, first))

    def _by_one(self, phase: ir.Phase, body: Sequence[ir.Stmt]) -> ir.Phase:
        """Return a phase of the same threads in which the first of them does something."""
        threads = tuple(replace(loop, var=self.fresh(loop.var)) for loop in phase.threads)
        test: ir.Expr | None = None
        for loop in threads:
            here = ir.binary("==", ir.Var(loop.var, loop.type), ir.IntConst(0))
            test = here if test is None else ir.binary("&&", test, here)
        assert test is not None
        return ir.Phase(threads, (ir.If(test, tuple(body), (), phase.span),), phase.span)

    def _accumulated(
        self, phase: ir.Phase, target: ir.Var | ir.Element, part: ir.Element, clause: syntax.Reduction
    ) -> ir.Phase:
        """Return a phase whose threads add up in registers, and in the block's element at their end."""
        name = target.name if isinstance(target, ir.Var) else target.array
        if name not in names_in(phase.body):
            return phase
        type_ = target.type if clause.op in ("min", "max") else _modular(target.type)
        own = ir.Var(self.fresh(f"{name}_own"), type_, clause.span)

        def kept(update: ir.Assign, _: ir.Assign) -> ir.Assign:
            plain = replace(update, target=own, atomic=False)
            return replace(plain, op="", value=updated(plain)) if plain.op in ("min", "max") else plain

        body = self.updates(phase.body, name, clause, kept)
        start = ir.Declare(own.name, type_, _neutral(clause.op, type_), clause.span)
        end = ir.Assign(part, clause.op, own, clause.span, atomic=True)
        return replace(phase, body=(start, *body, end))

    def updates(
        self,
        body: tuple[ir.Stmt, ...],
        name: str,
        clause: syntax.Reduction,
        change: Callable[[ir.Assign, ir.Assign], ir.Assign],
    ) -> tuple[ir.Stmt, ...]:
        """Return thread code with every update of a result changed; it may stand in nothing else.

        ``change`` is given the update, and the assignment that it was.
        """

        def one(stmt: ir.Stmt) -> ir.Stmt:
            stmt = _with_guard_apart(stmt, name)
            update = self._update(stmt, name, clause)
            if update is not None:
                return change(*update)
            match stmt:
                case ir.If(then=then, otherwise=otherwise):
                    stmt = replace(stmt, then=tuple(map(one, then)), otherwise=tuple(map(one, otherwise)))
                case ir.For(body=inner) | ir.While(body=inner):
                    stmt = replace(stmt, body=tuple(map(one, inner)))
                case _:
                    pass
            for expr in ir.expressions_of(stmt):
                self._check_unused(expr, name, clause)
            if isinstance(stmt, ir.For):
                for clause_ in (stmt.init, stmt.step):
                    for expr in () if clause_ is None else ir.expressions_of(clause_):
                        self._check_unused(expr, name, clause)
            return stmt

        return tuple(map(one, body))

    def _update(self, stmt: ir.Stmt, name: str, clause: syntax.Reduction) -> tuple[ir.Assign, ir.Assign] | None:
        """Return a statement as an update of the result by the clause's operation, and as an assignment.

        ``None`` for any other statement.
        """
        match stmt:
            case ir.If(
                condition=condition,
                then=(ir.Assign(target=target, op="", value=value) as inner,),
                otherwise=(),
            ) if _name(target) == name and clause.op in ("min", "max") and name in _named(condition):
                type_ = ir.binary("+", value, target).type
                stmt = replace(inner, value=ir.Conditional(condition, value, target, type_, stmt.span))
            case ir.Assign(target=target) if _name(target) == name:
                pass
            case _:
                return None
        assert isinstance(stmt, ir.Assign)
        op, value = _extremum(stmt) or operation(stmt)
        doubtful = value.type.floating and not stmt.target.type.floating
        if ("+" if op == "-" else op) != clause.op or name in _named(value) or doubtful:
            raise self._refused(stmt.span, clause)
        if (
            clause.op in ("min", "max")
            and not stmt.target.type.holds(value.type)
            and not isinstance(value, ir.IntConst)
        ):
            raise self._refused(stmt.span, clause)
        if isinstance(stmt.target, ir.Element) and any(name in _named(index) for index in stmt.target.indices):
            raise self._refused(stmt.span, clause)
        return replace(stmt, op=op or "", value=value, atomic=True), stmt

    def _check_unused(self, expr: ir.Expr, name: str, clause: syntax.Reduction) -> None:
        for part in ir.walk_expression(expr):
            if isinstance(part, ir.Var | ir.Element) and _name(part) == name:
                raise self._refused(part.span, clause)

    def _refused(self, span: Span, clause: syntax.Reduction) -> RefusedError:
        message = f"`{clause.name.name}` is added up by `{clause.op}`, and used otherwise here"
        return self.reporter.refuse("MF0225", span, message, related=((clause.span, "the clause"),))


def _extremum(stmt: ir.Assign) -> tuple[str, ir.Expr] | None:
    """Return the operation and the value of ``x = fmaxf(x, v)``, whose operands have one type."""
    value, type_ = stmt.value, stmt.target.type
    while isinstance(value, ir.Cast) and value.operand.type is value.type:
        value = value.operand
    if stmt.op or not isinstance(value, ir.Call) or value.type is not type_:
        return None
    op = {"fmin": "min", "fminf": "min", "fmax": "max", "fmaxf": "max"}.get(value.name)
    others = [one for one in value.arguments if one != stmt.target]
    return (op, others[0]) if op and len(others) == 1 and others[0].type is type_ else None


def _with_guard_apart(stmt: ir.Stmt, name: str) -> ir.Stmt:
    """Return ``if (guard) if (v > x) x = v;`` for ``if (guard && v > x) x = v;``, and likewise for ``?:``.

    What stands behind the comparison comes in front of it, where that may be evaluated always.
    """
    match stmt:
        case ir.If(condition=condition, then=(ir.Assign(),), otherwise=()):
            pass
        case ir.Assign(
            target=target, op="", value=ir.Conditional(condition=condition, then=then, otherwise=otherwise)
        ) if otherwise == target and _name(target) == name:
            if name not in _named(condition):
                return ir.If(condition, (replace(stmt, value=then),), (), stmt.span)
        case _:
            return stmt
    parts = list(_conjuncts(condition))
    places = [place for place, part in enumerate(parts) if name in _named(part)]
    if len(places) != 1 or len(parts) == 1 or not all(map(_is_harmless, parts[places[0] + 1 :])):
        return stmt
    compared = parts.pop(places[0])
    guard = reduce(lambda left, right: ir.binary("&&", left, right), parts)
    if isinstance(stmt, ir.If):
        return replace(stmt, condition=guard, then=(replace(stmt, condition=compared),))
    assert isinstance(stmt.value, ir.Conditional)
    return ir.If(guard, (replace(stmt, value=replace(stmt.value, condition=compared)),), (), stmt.span)


def _conjuncts(condition: ir.Expr) -> Iterator[ir.Expr]:
    if isinstance(condition, ir.Binary) and condition.op == "&&":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


def _is_harmless(expr: ir.Expr) -> bool:
    """Return whether an expression reads no memory and divides by nothing."""
    return not any(
        isinstance(one, ir.Element | ir.Call) or (isinstance(one, ir.Binary) and one.op in ("/", "%"))
        for one in ir.walk_expression(expr)
    )


def _name(target: ir.Var | ir.Element) -> str:
    return target.name if isinstance(target, ir.Var) else target.array


def _named(expr: ir.Expr) -> set[str]:
    return {_name(part) for part in ir.walk_expression(expr) if isinstance(part, ir.Var | ir.Element)}


def _single(array: ir.Array) -> bool:
    return all(isinstance(extent, ir.IntConst) and extent.value == 1 for extent in array.extents)


def _modular(type_: ScalarType) -> ScalarType:
    """Return the unsigned type in which sums and products agree with those of a type, as far as that holds."""
    return ScalarType.UNSIGNED_INT if type_.size <= 4 else ScalarType.UNSIGNED_LONG_LONG


def _neutral(op: str, type_: ScalarType) -> ir.Expr:
    wide = ir.INT if type_.size < 4 else type_
    match op:
        case "*":
            return ir.IntConst(1)
        case "&":
            return ir.unary("~", ir.IntConst(0))
        case "min":
            return ir.IntConst(type_.greatest, wide)
        case "max":
            most = ir.unary("-", ir.IntConst(type_.greatest, wide))
            return ir.binary("-", most, ir.IntConst(1)) if type_.signed else ir.IntConst(0)  # C has no least constant
        case _:
            return ir.IntConst(0)


def over_phases(body: tuple[ir.Stmt, ...], change: Callable[[ir.Phase], ir.Phase]) -> tuple[ir.Stmt, ...]:
    """Return block-level code with every phase in it changed."""
    return _Phases(change).body(body)


class _Phases(Rewriter):
    def __init__(self, change: Callable[[ir.Phase], ir.Phase]) -> None:
        self._change = change

    def phase(self, node: ir.Phase) -> ir.Phase:
        return self._change(node)
