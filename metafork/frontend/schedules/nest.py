"""The loop nest of a schedule: grid loops, block level, phases of threads, thread code.

``meta_for``s are counted on every way from the schedule to its innermost code; those outside of the serial code between
them are the grid, those inside the threads of a phase, and where there is no such code the outer half is the grid.
``meta_grid`` says otherwise.  The part that has fewer of them gets loops of extent 1.  Scalars that are declared
between loops of one part move into the innermost of them.
Every local gets a name of its own within the program; it keeps the user's where that is free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

from msgspec import Struct

from metafork.frontend.nests.shape import border, items_of, meta_loops
from metafork.frontend.schedules.inlining.functions import Functions
from metafork.frontend.schedules.ordered_sums import OrderedSums, SecondPass
from metafork.frontend.schedules.scopes import Scopes
from metafork.frontend.schedules.statements import StatementBuilder, first_word
from metafork.frontend.schedules.symbols import ArraySymbol, Origin, ScalarSymbol, Symbol
from metafork.frontend.schedules.targets import Level
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import CLAUSES
from metafork.frontend.text.clauses.reductions import Reductions
from metafork.frontend.text.constants import integer_constant
from metafork.frontend.text.other_languages.heads import lone_loop
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import TypeNames
from metafork.frontend.text.tokens import hull
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span

MOST_DIMENSIONS = 3
"""Dimensions of a grid and of a block."""


class Nest(Struct, frozen=True):
    """The loops and statements of a schedule, and the names of the host that it uses.

    Where it adds up floating-point numbers, ``ordered`` are the extents of the nests of threads that do, and ``second``
    is what comes then of what the blocks have added up.
    """

    grid: tuple[ir.MetaFor, ...]
    body: tuple[ir.Stmt, ...]
    scalars: frozenset[str]
    arrays: frozenset[str]
    written: frozenset[str]
    ordered: tuple[tuple[ir.Expr, ...], ...] = ()
    second: SecondPass | None = None


class NestBuilder:
    """Builds the nest of one schedule.

    ``host`` maps names of the host to symbols, ``file`` does so for ``functions`` of the file; ``reserved`` are the
    host's names that the program uses, which no local may have.  Floating-point reductions are taken where
    ``reassociate`` is given: names that must mean in the file what they do.
    """

    def __init__(
        self,
        reporter: Reporter,
        typedefs: TypeNames,
        host: Callable[[str], Symbol | None],
        file: Callable[[str], Symbol | None],
        functions: Functions | None,
        host_names: list[str],
        reserved: frozenset[str],
        schedule: syntax.ScheduleStatement,
        reassociate: Collection[str] | None = None,
    ) -> None:
        self._reporter = reporter
        self._schedule = schedule
        self._ranks: dict[Origin, int] = {}
        self._of_grid: dict[str, set[str]] = {}
        spoken = frozenset(declarator.name for declarator in syntax.declarators_in(schedule.body))
        self._scopes = Scopes(reporter, host, file, host_names, reserved, spoken)
        self._spoken = frozenset(reassociate or ())
        self._reductions = Reductions(reporter, self._scopes.fresh, reassociate is not None)
        self._ordered = OrderedSums(self._reductions, self._unspoken)
        self._ordered_nests: dict[tuple[ir.Expr, ...], None] = {}
        self._statements = StatementBuilder(
            reporter, typedefs, self._scopes, self._phase, functions, reassociate=reassociate is not None
        )
        self._statements.named_results |= {name.name for name in syntax.results_of(schedule)}

    def build(self) -> Nest:
        """Return the nest; raises ``RefusedError`` where there is none to speak of (all faults are reported)."""
        schedule = self._schedule
        outermost = self._outermost(schedule)
        self._check_counts(schedule, outermost)
        with self._scopes.scope():
            grid, innermost, sunk = self._chain(outermost, Origin.GRID_INDEX)
            for clause in self._clauses(outermost, Origin.GRID_INDEX):
                self._of_grid.setdefault(clause.name.name, set()).add(clause.op)
            body = (*sunk, *self._statements.iteration(innermost, Level(Origin.BLOCK)))
            body, second = self._reduced_by_blocks(body, grid, outermost)
        self._statements.check_uniform_reads()
        return Nest(
            grid,
            body,
            frozenset(self._scopes.scalars),
            frozenset(self._scopes.arrays),
            frozenset(self._statements.written),
            tuple(self._ordered_nests),
            second,
        )

    @property
    def undeclared(self) -> set[str]:
        """Names that were reported as not declared."""
        return self._statements.expressions.undeclared

    def _unspoken(self, name: str) -> str:
        """Return a name that nothing in the program has, and that can be put into the text of the file."""
        found = self._scopes.fresh(name)
        while found in self._spoken:
            found = self._scopes.fresh(f"{name}_in_order")
        return found

    def _outermost(self, schedule: syntax.ScheduleStatement) -> syntax.ForStatement:
        items = items_of(schedule.body)
        nests = [item for item in items if isinstance(item, syntax.ForStatement) and item.meta]
        if not items:
            raise self._reporter.refuse("MF0014", schedule.keyword, "this schedule is empty")
        if not meta_loops(schedule.body):
            if any(isinstance(item, syntax.Opaque) for item in items):
                raise RefusedError  # reported where it was parsed; what it would have been cannot be told
            raise self._without_meta_for(schedule)
        others = [item for item in items if item not in nests]
        for other in others:
            self._refuse_among(other, "the loops of the grid")
        for second in nests[1:]:
            self._reporter.error(
                "MF0107", second.head, "a second nest in one schedule", related=((nests[0].head, "the first one"),)
            )
        if others or len(nests) != 1:
            raise RefusedError
        return nests[0]

    def _refuse_among(self, statement: syntax.Statement, loops: str) -> None:
        if isinstance(statement, syntax.ScheduleStatement | syntax.Opaque):
            return  # reported where it was parsed
        place = _first_line(statement)
        message, reason, way_out = f"this statement stands among {loops}", None, None
        match statement:
            case syntax.ExpressionStatement(expression=syntax.Invocation(callee=syntax.Name(name=word))) if (
                word in CLAUSES
            ):
                message = f"`{word}` belongs behind the word `meta_schedule`"
                reason = f"`{word}` says something of the whole schedule."
                head = self._reporter.written(hull(self._schedule.keyword, place)).partition("{")[0]
                clause = self._reporter.written(statement.expression.span)
                way_out = f"write `{' '.join(head.split())} {clause} {{`, and remove this line."
            case syntax.Declaration(declarators=[first, *_]) if first.type.extents:
                message = f"`{first.name}` is declared among {loops}"
                reason = "an array of the whole schedule is in global memory."
                way_out = (
                    "move this line in front of `meta_schedule`. For an array of each block, in shared memory, move it "
                    "between the loops of blocks and those of threads, with the size of a block."
                )
            case _:
                pass
        self._reporter.error("MF0106", place, message, reason=reason, way_out=way_out)

    def _without_meta_for(self, schedule: syntax.ScheduleStatement) -> RefusedError:
        """Refuse a schedule of loops that are all serial."""
        message = "this schedule has no `meta_for`"
        reason = "only `meta_for` says that iterations may run at the same time."
        loop = next(
            (one for one in syntax.walk_statements(schedule.body) if isinstance(one, syntax.ForStatement)), None
        )
        if loop is None:
            return self._reporter.refuse("MF0112", schedule.keyword, message, reason=reason)
        head = f"meta_{' '.join(self._reporter.written(loop.head).split())}"
        way_out = f"write `{head}`"
        if schedule.block is None and schedule.grid is None:
            way_out += ", and give the size of a block, here a parameter `int B`: `meta_schedule meta_block(B) {`"
        return self._reporter.refuse("MF0112", first_word(loop.head, "for"), message, reason=reason, way_out=way_out)

    def _check_counts(self, schedule: syntax.ScheduleStatement, outermost: syntax.ForStatement) -> None:
        counts = meta_loops(schedule.body)
        if len(counts) > 1:
            most = max(counts)
            least = min(counts)
            raise self._reporter.refuse(
                "MF0102",
                counts[least].head,
                f"there are {least} `meta_for`s on the way to here, and {most} on another",
                related=((counts[most].head, f"the {most}th `meta_for` of another way"),),
            )
        (total,) = counts
        said = schedule.grid
        if said is not None and not said.loops:
            raise RefusedError  # reported where it was parsed
        grid = border(outermost, total) if said is None else said.loops
        if grid is None and total == 1:
            before, behind = schedule.keyword.start, outermost.head.start
            advice = lone_loop(self._reporter.text(0, before), self._reporter.text(before, behind))
            raise self._reporter.advise("MF0101", first_word(outermost.head, "meta_for"), advice)
        if grid is None:
            raise self._reporter.refuse("MF0101", outermost.head, f"this nest has {total} `meta_for`s")
        if said is not None and grid >= total:
            message = f"of {total} `meta_for`s, {grid} are the grid's, and none is left for the threads"
            raise self._reporter.refuse("MF0101", said.span, message)
        if max(grid, total - grid) > MOST_DIMENSIONS:
            message = f"{grid} of the {total} `meta_for`s of this nest are the grid's"
            raise self._reporter.refuse("MF0101", outermost.head, message)
        self._ranks = {Origin.GRID_INDEX: grid, Origin.THREAD_INDEX: total - grid}

    def _phase(self, outermost: syntax.ForStatement) -> tuple[ir.Stmt, ...]:
        results = [one for one in self._results(outermost, Origin.THREAD_INDEX) if not self._is_of_grid(*one)]
        scalars = {symbol.name for _, symbol in results if isinstance(symbol, ScalarSymbol)}
        with self._scopes.scope():
            self._statements.reduced |= scalars
            threads, innermost, sunk = self._chain(outermost, Origin.THREAD_INDEX)
            body = self._statements.iteration(innermost, Level(Origin.THREAD))
            self._statements.reduced -= scalars
        phase = ir.Phase(threads, (*sunk, *body), outermost.span)
        exact: list[tuple[ir.Var, syntax.Reduction]] = []
        floating: list[tuple[ir.Var, syntax.Reduction]] = []
        for clause, symbol in results:
            if isinstance(symbol, ArraySymbol):
                phase = self._reductions.of_array(phase, symbol.array, clause)
                continue
            self._reductions.check_type(symbol.type, clause)
            sums = floating if symbol.type.floating else exact
            sums.append((ir.Var(symbol.name, symbol.type, clause.span), clause))
        if floating:
            self._ordered_nests[tuple(loop.extent for loop in threads)] = None
        before, phase, behind = self._ordered.of_block(phase, floating)
        return (*before, *(self._reductions.of_block(phase, exact) if exact else (phase,)), *behind)

    def _reduced_by_blocks(
        self, body: tuple[ir.Stmt, ...], grid: tuple[ir.MetaFor, ...], outermost: syntax.ForStatement
    ) -> tuple[tuple[ir.Stmt, ...], SecondPass | None]:
        exact: list[tuple[ir.Array, syntax.Reduction]] = []
        floating: list[tuple[ir.Array, syntax.Reduction]] = []
        for clause, symbol in self._results(outermost, Origin.GRID_INDEX):
            if isinstance(symbol, ArraySymbol):
                self._reductions.check_type(symbol.array.element, clause)
                if symbol.array.element.floating:
                    self._reductions.check_single(symbol.array, clause)
                sums = floating if symbol.array.element.floating else exact
                sums.append((symbol.array, clause))
        body = self._reductions.of_grid(body, exact)
        if floating:
            phases = [one for one in ir.walk_statements(body) if isinstance(one, ir.Phase)]
            self._ordered_nests |= dict.fromkeys(tuple(loop.extent for loop in phase.threads) for phase in phases)
        return self._ordered.of_grid(body, grid, floating)

    def _results(
        self, outermost: syntax.ForStatement, origin: Origin
    ) -> list[tuple[syntax.Reduction, ArraySymbol | ScalarSymbol]]:
        """Return what the loops of one half of a nest add up; raises ``RefusedError``."""
        found: list[tuple[syntax.Reduction, ArraySymbol | ScalarSymbol]] = []
        for clause in self._clauses(outermost, origin):
            symbol = self._statements.expressions.symbol(clause.name.name, clause.name.span)
            of_block = isinstance(symbol, ScalarSymbol) and symbol.origin is Origin.BLOCK
            if not isinstance(symbol, ArraySymbol) and not (of_block and origin is Origin.THREAD_INDEX):
                if isinstance(symbol, ScalarSymbol):
                    self._reductions.check_type(symbol.type, clause)
                message = f"`{clause.name.name}` is no array and no scalar of the block"
                hint = None
                if isinstance(symbol, ScalarSymbol) and symbol.origin is Origin.HOST and symbol.type.integer:
                    message += ", and the schedule is not the only one that may write it"
                    hint = f"write `{symbol.type.spelling} {symbol.name}[1]`, and `{symbol.name}[0]` for its value."
                raise self._reporter.refuse("MF0225", clause.name.span, message, way_out=hint)
            assert isinstance(symbol, ArraySymbol | ScalarSymbol)
            if symbol.const:
                raise self._reporter.refuse("MF0305", clause.name.span, f"`{clause.name.name}` is `const`")
            found.append((clause, symbol))
        return found

    def _clauses(self, outermost: syntax.ForStatement, origin: Origin) -> Iterator[syntax.Reduction]:
        """Yield the clauses of the loops of one half of a nest."""
        here: syntax.ForStatement | None = outermost
        for _ in range(self._ranks[origin]):
            if here is None:
                break
            yield from here.reductions
            items = items_of(here.body)
            here = next((one for one in items if isinstance(one, syntax.ForStatement) and one.meta), None)

    def _is_of_grid(self, clause: syntax.Reduction, symbol: ArraySymbol | ScalarSymbol) -> bool:
        """Return whether a clause of threads says of a result what one of the grid says already."""
        of_grid = clause.op in self._of_grid.get(clause.name.name, ())
        return of_grid and isinstance(symbol, ArraySymbol) and symbol.array.name == clause.name.name

    def _chain(
        self, outermost: syntax.ForStatement, origin: Origin
    ) -> tuple[tuple[ir.MetaFor, ...], syntax.Statement, tuple[ir.Stmt, ...]]:
        """Return the loops of one half, the innermost body, and the declarations that move into it."""
        loops: list[ir.MetaFor] = []
        sunk: list[ir.Stmt] = []
        name = "the loops of the grid" if origin is Origin.GRID_INDEX else "the loops of a nest of threads"
        level = Level(Origin.BLOCK if origin is Origin.GRID_INDEX else Origin.THREAD)
        here = outermost
        while True:
            loops.append(self._meta_for(here, origin))
            if len(loops) == self._ranks[origin]:
                return (*self._padding(origin, outermost), *loops), here.body, tuple(sunk)
            following: syntax.ForStatement | None = None
            for item in items_of(here.body):
                if isinstance(item, syntax.ForStatement) and item.meta and following is None:
                    following = item
                elif isinstance(item, syntax.Declaration) and following is None:
                    sunk.extend(self._sink(item, level, name))
                else:
                    self._refuse_among(item, name)
            if following is None:
                raise RefusedError
            here = following

    def _padding(self, origin: Origin, outermost: syntax.ForStatement) -> tuple[ir.MetaFor, ...]:
        """Return loops of extent 1 where the other half of the nest has more dimensions than this one."""
        missing = max(self._ranks.values()) - self._ranks[origin]
        return tuple(
            ir.MetaFor(self._scopes.fresh("one"), ir.IntConst(1), ScalarType.INT, outermost.head)
            for _ in range(missing)
        )

    def _sink(self, declaration: syntax.Declaration, level: Level, loops: str) -> tuple[ir.Stmt, ...]:
        """Build a declaration that stands between two loops of one half, to be repeated by every iteration."""
        reads_before = len(self._statements.uniform_reads)
        declared = self._statements.declare(declaration, level)
        for statement in declared:
            inside = [one for part in ir.walk_statements((statement,)) for one in ir.expressions_of(part)]
            reads = [part for one in inside for part in ir.walk_expression(one)]
            if isinstance(statement, ir.BlockArray) or any(isinstance(part, ir.Element) for part in reads):
                del self._statements.uniform_reads[reads_before:]
                self._refuse_among(declaration, loops)
                return ()
            if isinstance(statement, ir.Declare):
                self._statements.shared[statement.name] = statement.span
        return declared

    def _meta_for(self, loop: syntax.ForStatement, origin: Origin) -> ir.MetaFor:
        """Build the head of a ``meta_for`` and declare its variable; a fault costs only the head."""
        init = loop.init
        if (
            not isinstance(init, syntax.Declaration)
            or len(init.declarators) != 1
            or init.declarators[0].type.extents
            or init.declarators[0].type.pointers
        ):
            at = init.span if init is not None else loop.head
            if not (isinstance(init, syntax.Unsupported) and not init.what):
                self._reporter.error("MF0103", at, "a `meta_for` declares its variable")
            raise RefusedError
        declarator = init.declarators[0]
        var = declarator.name
        type_ = self._statements.expressions.named_type(declarator.type)
        if type_.floating:
            self._reporter.error("MF0103", init.span, "the variable of a `meta_for` is an integer")
        start = declarator.value
        if not (isinstance(start, syntax.Constant) and integer_constant(start.text) == (0, ScalarType.INT)):
            at = start.span if start is not None else init.span
            self._reporter.error("MF0103", at, "a `meta_for` starts at 0")
        extent: ir.Expr = ir.IntConst(1)
        condition = loop.condition
        if isinstance(condition, syntax.Unsupported) and not condition.what:
            pass
        elif (
            isinstance(condition, syntax.Infix)
            and condition.op == "<"
            and isinstance(condition.left, syntax.Name)
            and condition.left.name == var
        ):
            with suppress(RefusedError):
                self._refuse_changing(loop, condition.right, origin)
                extent = self._statements.extent(condition.right)
        else:
            at = condition.span if condition is not None else loop.head
            self._reporter.error("MF0103", at, f"a `meta_for` ends with `{var} < extent`")
        step = loop.step
        if not (isinstance(step, syntax.Unsupported) and not step.what) and not _steps_by_one(step, var):
            at = step.span if step is not None else loop.head
            self._reporter.error("MF0103", at, f"a `meta_for` steps with `{var}++`")
        name = self._scopes.introduce(var, ScalarSymbol("", type_, origin, declarator.name_span), declarator.name_span)
        return ir.MetaFor(name, extent, type_, loop.head)

    def _refuse_changing(self, loop: syntax.ForStatement, limit: syntax.Expression, origin: Origin) -> None:
        """Refuse a number of threads that depends on the block."""
        if origin is not Origin.THREAD_INDEX:
            return
        for part in syntax.walk(limit):
            symbol = self._scopes.resolve(part.name) if isinstance(part, syntax.Name) else None
            if not isinstance(symbol, ScalarSymbol) or symbol.origin is not Origin.GRID_INDEX:
                continue
            name = self._reporter.written(part.span)
            sizes = ", ".join(f"B{number}" for number in range(self._ranks[Origin.GRID_INDEX] + self._ranks[origin]))
            raise self._reporter.refuse(
                "MF0105",
                part.span,
                f"the number of threads `{self._reporter.written(limit.span)}` changes from block to block",
                reason="all blocks of a launch have the same number of threads.",
                way_out="let metafork cut the loops into blocks. It leaves out what no loop reaches. "
                f"With block sizes as parameters: `meta_schedule meta_block({sizes}) {{`",
                related=((symbol.span, f"`{name}` counts blocks"),),
            )


def _steps_by_one(step: syntax.Expression | None, var: str) -> bool:
    match step:
        case (
            syntax.Postfix(op="++", operand=syntax.Name(name=name))
            | syntax.Prefix(op="++", operand=syntax.Name(name=name))
            | syntax.Assignment(op="+=", target=syntax.Name(name=name), value=syntax.Constant(text="1"))
        ):
            return name == var
        case _:
            return False


def _first_line(statement: syntax.Statement) -> Span:
    """Return the part of a statement that says what it is: the head of a loop, else the whole."""
    match statement:
        case syntax.ForStatement(head=head):
            return head
        case syntax.IfStatement(span=span):
            return first_word(span, "if")
        case syntax.WhileStatement(is_do=is_do, span=span):
            return first_word(span, "do" if is_do else "while")
        case syntax.SwitchStatement(span=span):
            return first_word(span, "switch")
        case _:
            return statement.span
