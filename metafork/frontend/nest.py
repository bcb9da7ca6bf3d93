"""The loop nest of a schedule: grid loops, block level, phases of threads, thread code.

``meta_for``s are counted on every way from the schedule to its innermost code; the outer half is the grid, the inner
half are the threads of a phase.  Scalars that are declared between loops of one half move into the innermost of them.
Every local gets a name of its own within the program; it keeps the user's where that is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from metafork import ir
from metafork.frontend import syntax
from metafork.frontend.expressions import (
    ArraySymbol,
    ExpressionBuilder,
    Origin,
    ScalarSymbol,
    Symbol,
    UnusableSymbol,
    integer_constant,
)
from metafork.frontend.reporter import RefusedError, Reporter
from metafork.frontend.vocabulary import DEVICE_WORDS
from metafork.source import Span
from metafork.types import ScalarType


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops and statements of a schedule, and the names of the host that it uses."""

    grid: tuple[ir.MetaFor, ...]
    body: tuple[ir.Stmt, ...]
    scalars: frozenset[str]
    arrays: frozenset[str]
    written: frozenset[str]


@dataclass(slots=True)
class _Level:
    """Where a statement stands: at block level or in a thread, and how many serial loops are around it there."""

    origin: Origin
    serial_loops: int = 0


@dataclass(slots=True)
class _Scope:
    symbols: dict[str, Symbol] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)


def meta_loops(statement: syntax.Statement) -> dict[int, syntax.ForStatement]:
    """Return, for every number of ``meta_for``s that some way into the statement crosses, the innermost of one way."""
    if isinstance(statement, syntax.ForStatement) and statement.meta:
        below = meta_loops(statement.body)
        return {count + 1: loop for count, loop in below.items()} or {1: statement}
    found: dict[int, syntax.ForStatement] = {}
    for child in syntax.direct_statements(statement):
        for count, loop in meta_loops(child).items():
            found.setdefault(count, loop)
    return found


def items_of(statement: syntax.Statement) -> list[syntax.Statement]:
    """Return the statements of a block, or the statement alone; empty statements left out."""
    if isinstance(statement, syntax.Block):
        items: list[syntax.Statement] = [item for item in statement.items if not isinstance(item, syntax.Empty)]
        return items_of(items[0]) if len(items) == 1 and isinstance(items[0], syntax.Block) else items
    return [] if isinstance(statement, syntax.Empty) else [statement]


class NestBuilder:
    """Builds the nest of one schedule.

    ``host`` maps names of the host to symbols; ``reserved`` are the host's names that the program uses, which no local
    may have.
    """

    def __init__(
        self,
        reporter: Reporter,
        typedefs: dict[str, ScalarType],
        host: Callable[[str], Symbol | None],
        host_names: list[str],
        reserved: frozenset[str],
    ) -> None:
        self._reporter = reporter
        self._host = host
        self._host_names = host_names
        self._taken = set(reserved)
        self._spoken: set[str] = set()
        self._scopes: list[_Scope] = []
        self._shared: dict[str, Span] = {}
        self._half = 0
        self._scalars: set[str] = set()
        self._arrays: set[str] = set()
        self._written: set[str] = set()
        self._uniform_reads: list[ir.Element] = []
        self._expressions = ExpressionBuilder(reporter, typedefs, self._resolve, self._visible)

    def build(self, schedule: syntax.ScheduleStatement) -> Nest:
        """Return the nest; raises ``RefusedError`` where there is none to speak of (all faults are reported)."""
        self._spoken = {
            declarator.name
            for statement in syntax.walk_statements(schedule.body)
            for declarator in _declarators(statement)
        }
        outermost = self._outermost(schedule)
        self._check_counts(schedule, outermost)
        with self._scope():
            grid, innermost, sunk = self._chain(outermost, Origin.GRID_INDEX)
            body = (*sunk, *self._statements(innermost, _Level(Origin.BLOCK)))
        self._check_uniform_reads()
        return Nest(grid, body, frozenset(self._scalars), frozenset(self._arrays), frozenset(self._written))

    # --- the shape --------------------------------------------------------------------------------------------

    def _outermost(self, schedule: syntax.ScheduleStatement) -> syntax.ForStatement:
        items = items_of(schedule.body)
        nests = [item for item in items if isinstance(item, syntax.ForStatement) and item.meta]
        if not items:
            raise self._reporter.refuse("MF0014", schedule.keyword, "this schedule is empty")
        if not meta_loops(schedule.body):
            if any(isinstance(item, syntax.Opaque) for item in items):
                raise RefusedError  # reported where it was parsed; what it would have been cannot be told
            raise self._reporter.refuse("MF0112", schedule.keyword, "this schedule has no `meta_for`")
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
        self._reporter.error("MF0106", _first_line(statement), f"this statement stands among {loops}")

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
        if total not in (2, 4, 6):
            raise self._reporter.refuse("MF0101", outermost.head, f"this nest has {total} `meta_for`s")
        self._half = total // 2

    def _chain(
        self, outermost: syntax.ForStatement, origin: Origin
    ) -> tuple[tuple[ir.MetaFor, ...], syntax.Statement, tuple[ir.Stmt, ...]]:
        """Return the loops of one half, the innermost body, and the declarations that move into it."""
        loops: list[ir.MetaFor] = []
        sunk: list[ir.Stmt] = []
        name = "the loops of the grid" if origin is Origin.GRID_INDEX else "the loops of a nest of threads"
        level = _Level(Origin.BLOCK if origin is Origin.GRID_INDEX else Origin.THREAD)
        here = outermost
        while True:
            loops.append(self._meta_for(here, origin))
            if len(loops) == self._half:
                return tuple(loops), here.body, tuple(sunk)
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

    def _sink(self, declaration: syntax.Declaration, level: _Level, loops: str) -> tuple[ir.Stmt, ...]:
        """Build a declaration that stands between two loops of one half, to be repeated by every iteration."""
        reads_before = len(self._uniform_reads)
        declared = self._declare(declaration, level)
        for statement in declared:
            reads = [part for one in ir.expressions_of(statement) for part in ir.walk_expression(one)]
            if isinstance(statement, ir.BlockArray) or any(isinstance(part, ir.Element) for part in reads):
                del self._uniform_reads[reads_before:]
                self._refuse_among(declaration, loops)
                return ()
            if isinstance(statement, ir.Declare):
                self._shared[statement.name] = statement.span
        return declared

    def _meta_for(self, loop: syntax.ForStatement, origin: Origin) -> ir.MetaFor:
        """Build the head of a ``meta_for`` and declare its variable; a fault costs only the head."""
        form = "write `meta_for (int v = 0; v < extent; v++)` and compute other indices in the body."
        init = loop.init
        if (
            not isinstance(init, syntax.Declaration)
            or len(init.declarators) != 1
            or init.declarators[0].type.extents
            or init.declarators[0].type.pointers
        ):
            at = init.span if init is not None else loop.head
            if not (isinstance(init, syntax.Unsupported) and not init.what):
                self._reporter.error("MF0103", at, "a `meta_for` declares its variable", way_out=form)
            raise RefusedError
        declarator = init.declarators[0]
        var = declarator.name
        type_ = self._expressions.named_type(declarator.type)
        if type_.floating:
            self._reporter.error("MF0103", init.span, "the variable of a `meta_for` is an integer", way_out=form)
        start = declarator.value
        if not (isinstance(start, syntax.Constant) and integer_constant(start.text) == (0, ScalarType.INT)):
            at = start.span if start is not None else init.span
            self._reporter.error("MF0103", at, "a `meta_for` starts at 0", way_out=form)
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
                extent = self._extent(condition.right)
        else:
            at = condition.span if condition is not None else loop.head
            self._reporter.error("MF0103", at, f"a `meta_for` ends with `{var} < extent`", way_out=form)
        step = loop.step
        if not (isinstance(step, syntax.Unsupported) and not step.what) and not _steps_by_one(step, var):
            at = step.span if step is not None else loop.head
            self._reporter.error("MF0103", at, f"a `meta_for` steps with `{var}++`", way_out=form)
        name = self._introduce(var, ScalarSymbol("", type_, origin, declarator.name_span), declarator.name_span)
        return ir.MetaFor(name, extent, type_, loop.head)

    def _extent(self, expression: syntax.Expression) -> ir.Expr:
        """Build an extent: an integer expression over parameters."""
        extent = self._expressions.build(expression)
        for part in ir.walk_expression(extent):
            if isinstance(part, ir.Element):
                raise self._reporter.refuse("MF0105", part.span, f"this extent reads the array `{part.array}`")
            if isinstance(part, ir.Call):
                raise self._reporter.refuse("MF0105", part.span, f"this extent calls `{part.name}`")
            if isinstance(part, ir.Var) and (symbol := self._local(part.name)) is not None:
                message = f"this extent depends on `{part.name}`, a variable of {symbol.origin.value}"
                raise self._reporter.refuse("MF0105", part.span, message, related=((symbol.span, "declared here"),))
        if extent.type.floating:
            message = f"this extent has type `{extent.type.spelling}`"
            raise self._reporter.refuse("MF0104", expression.span, message)
        return extent

    # --- statements -------------------------------------------------------------------------------------------

    def _statements(self, statement: syntax.Statement, level: _Level) -> tuple[ir.Stmt, ...]:
        """Build a statement with a scope of its own."""
        built: list[ir.Stmt] = []
        items = statement.items if isinstance(statement, syntax.Block) else (statement,)
        with self._scope():
            for item in items:
                try:
                    built.extend(self._statement(item, level))
                except RefusedError:
                    continue
        return tuple(built)

    def _statement(self, statement: syntax.Statement, level: _Level) -> tuple[ir.Stmt, ...]:
        match statement:
            case syntax.Block():
                return self._statements(statement, level)
            case syntax.Declaration():
                return self._declare(statement, level)
            case syntax.ExpressionStatement(expression=expression, span=span):
                return self._effect(expression, span, level)
            case syntax.IfStatement(condition=condition, then=then, otherwise=otherwise, span=span):
                test = self._condition(condition, level)
                yes = self._statements(then, level)
                no = () if otherwise is None else self._statements(otherwise, level)
                return () if test is None else (ir.If(test, yes, no, span),)
            case syntax.ForStatement(meta=True):
                if level.origin is not Origin.BLOCK:
                    raise self._reporter.refuse(
                        "MF0106", statement.head, "a `meta_for` stands inside the code of a thread"
                    )
                return (self._phase(statement),)
            case syntax.ForStatement():
                return self._for(statement, level)
            case syntax.WhileStatement(is_do=True, span=span):
                raise self._reporter.refuse("MF0210", _word(span, "do"), "a `do` loop stands in a schedule")
            case syntax.WhileStatement(condition=condition, body=body, span=span):
                test = self._condition(condition, level)
                inner = self._statements(body, _Level(level.origin, level.serial_loops + 1))
                return () if test is None else (ir.While(test, inner, span),)
            case syntax.Jump(word=word, span=span):
                return self._jump(word, span, level)
            case syntax.SwitchStatement(span=span):
                raise self._reporter.refuse("MF0211", _word(span, "switch"), "a `switch` stands in a schedule")
            case syntax.LabelledStatement(label=label, span=span):
                raise self._reporter.refuse("MF0204", _word(span, label), "a label stands in a schedule")
            case syntax.Empty() | syntax.Opaque() | syntax.ScheduleStatement():
                return ()  # nothing, or reported where it was parsed

    def _phase(self, outermost: syntax.ForStatement) -> ir.Phase:
        with self._scope():
            threads, innermost, sunk = self._chain(outermost, Origin.THREAD_INDEX)
            body = self._statements(innermost, _Level(Origin.THREAD))
        return ir.Phase(threads, (*sunk, *body), outermost.span)

    def _condition(self, condition: syntax.Expression, level: _Level) -> ir.Expr | None:
        try:
            return self._value(condition, level)
        except RefusedError:
            return None

    def _for(self, loop: syntax.ForStatement, level: _Level) -> tuple[ir.Stmt, ...]:
        with self._scope():
            ahead: tuple[ir.Stmt, ...] = ()
            fault = False
            try:
                if isinstance(loop.init, syntax.Declaration):
                    ahead = self._declare(loop.init, level)
                elif loop.init is not None:
                    ahead = self._effect(loop.init, loop.init.span, level)
            except RefusedError:
                fault = True
            test = None if loop.condition is None else self._condition(loop.condition, level)
            step: ir.Assign | None = None
            if loop.step is not None:
                try:
                    step = self._step(loop.step, level)
                except RefusedError:
                    fault = True
            body = self._statements(loop.body, _Level(level.origin, level.serial_loops + 1))
        if fault or (test is None and loop.condition is not None):
            return ()
        init: ir.Declare | ir.Assign | None = None
        if ahead and isinstance(ahead[-1], ir.Declare | ir.Assign):
            init, ahead = ahead[-1], ahead[:-1]
        return (*ahead, ir.For(init, test, step, body, loop.span))

    def _step(self, step: syntax.Expression, level: _Level) -> ir.Assign:
        if isinstance(step, syntax.Comma):
            raise self._reporter.refuse(
                "MF0214",
                step.span,
                "a comma operator stands in the step of a loop",
                way_out="step one variable here and compute the others from it in the body.",
            )
        (built,) = self._effect(step, step.span, level)
        assert isinstance(built, ir.Assign)
        return built

    def _jump(self, word: str, span: Span, level: _Level) -> tuple[ir.Stmt, ...]:
        match word:
            case "goto":
                raise self._reporter.refuse("MF0204", span, "a `goto` stands in a schedule")
            case "return":
                raise self._reporter.refuse("MF0212", span, "a `return` stands in a schedule")
            case _ if not level.serial_loops:
                raise self._reporter.refuse("MF0111", span, f"this `{word}` would leave a `meta_for`")
            case "break":
                return (ir.Break(span),)
            case _:
                return (ir.Continue(span),)

    # --- declarations -----------------------------------------------------------------------------------------

    def _declare(self, declaration: syntax.Declaration, level: _Level) -> tuple[ir.Stmt, ...]:
        if not declaration.declarators:
            raise self._reporter.refuse("MF0205", declaration.span, "a structure is declared in a schedule")
        built: list[ir.Stmt] = []
        for declarator in declaration.declarators:
            try:
                built.append(self._declarator(declarator, level))
            except RefusedError:
                # The name is known from here on, so that its uses are not reported as well.
                symbol = UnusableSymbol("", "", declarator.name_span)
                self._scopes[-1].symbols.setdefault(declarator.name, symbol)
        return tuple(built)

    def _declarator(self, declarator: syntax.Declarator, level: _Level) -> ir.Stmt:
        type_, name, span = declarator.type, declarator.name, declarator.span
        if "typedef" in type_.storage:
            raise self._reporter.refuse("MF0220", span, "a type is defined in a schedule")
        if type_.function:
            raise self._reporter.refuse("MF0220", span, f"the function `{name}` is declared in a schedule")
        if type_.pointers:
            raise self._reporter.refuse("MF0201", span, f"`{name}` is a pointer")
        words = (type_.storage & {"static", "extern", "_Thread_local"}) | (type_.qualifiers & {"volatile", "_Atomic"})
        if words:
            raise self._reporter.refuse("MF0217", span, f"`{name}` is declared `{min(words)}` in a schedule")
        scalar = self._expressions.named_type(
            syntax.TypeName(type_.words, type_.qualifiers, type_.storage, (), 0, False, type_.span)
        )
        if type_.extents:
            return self._block_array(declarator, scalar, level)
        symbol = ScalarSymbol("", scalar, level.origin, declarator.name_span, "const" in type_.qualifiers)
        unique = self._introduce(name, symbol, declarator.name_span)
        value = None if declarator.value is None else self._value(declarator.value, level)
        return ir.Declare(unique, scalar, value, span)

    def _block_array(self, declarator: syntax.Declarator, element: ScalarType, level: _Level) -> ir.BlockArray:
        name, span = declarator.name, declarator.span
        if level.origin is not Origin.BLOCK:
            raise self._reporter.refuse("MF0209", span, f"the array `{name}` is declared in the code of a thread")
        if declarator.value is not None:
            raise self._reporter.refuse("MF0221", span, f"the block's array `{name}` is initialised")
        if element is ScalarType.BOOL:
            raise self._reporter.refuse("MF0216", span, f"the array `{name}` has elements of type `_Bool`")
        extents: list[ir.Expr] = []
        for extent in declarator.type.extents:
            if extent is None:
                raise self._reporter.refuse("MF0208", span, f"the array `{name}` has no extent")
            extents.append(self._extent(extent))
        self._check_scope(name, declarator.name_span)
        unique = self._fresh(name)
        array = ir.Array(unique, element, tuple(extents), span)
        self._scopes[-1].symbols[name] = ArraySymbol(array, "const" in declarator.type.qualifiers, of_block=True)
        return ir.BlockArray(array, span)

    # --- effects ----------------------------------------------------------------------------------------------

    def _effect(self, expression: syntax.Expression, span: Span, level: _Level) -> tuple[ir.Stmt, ...]:
        """Build what an expression statement does: assignments, ``++`` and ``--``."""
        match expression:
            case syntax.Assignment(op=op, target=target, value=value):
                return (self._assign(target, op.removesuffix("="), value, span, level),)
            case (
                syntax.Postfix(op="++" | "--" as op, operand=target)
                | syntax.Prefix(op="++" | "--" as op, operand=target)
            ):
                return (self._assign(target, op[0], syntax.Constant("1", expression.span), span, level),)
            case syntax.Comma(items=items):
                return tuple(statement for item in items for statement in self._effect(item, item.span, level))
            case syntax.Conversion(type=syntax.TypeName(words=("void",))):
                return ()
            case _:
                self._value(expression, level)
                raise self._reporter.refuse("MF0219", span, "this statement has no effect")

    def _assign(
        self, target: syntax.Expression, op: str, value: syntax.Expression, span: Span, level: _Level
    ) -> ir.Assign:
        built: ir.Var | ir.Element | None = None
        with suppress(RefusedError):
            built = self._target(target, level)
        right = self._value(value, level)
        if built is None:
            raise RefusedError
        if op in ("%", "&", "|", "^", "<<", ">>"):
            self._expressions.require_integers(f"{op}=", (built, right), span)
        return ir.Assign(built, op, right, span)

    def _target(self, target: syntax.Expression, level: _Level) -> ir.Var | ir.Element:
        if isinstance(target, syntax.Subscript):
            element = self._expressions.element(target)
            self._note(element, level, reads=False)
            symbol = self._array(element.array)
            if symbol.const:
                message = f"the array `{element.array}` is `const`"
                raise self._reporter.refuse(
                    "MF0305", target.span, message, related=((symbol.array.span, "declared here"),)
                )
            if level.origin is Origin.BLOCK:
                raise self._reporter.refuse("MF0108", target.span, f"`{element.array}` is written at block level")
            self._written.add(element.array)
            return element
        if not isinstance(target, syntax.Name):
            self._expressions.build(target)  # reports pointers and structures by their own codes
            raise self._reporter.refuse("MF0311", target.span, "this cannot be assigned")
        found = self._expressions.build(target)
        if not isinstance(found, ir.Var):
            raise self._reporter.refuse("MF0311", target.span, "a constant cannot be assigned")
        self._check_write(target, found, level)
        return found

    def _check_write(self, target: syntax.Name, found: ir.Var, level: _Level) -> None:
        symbol = self._local(found.name)
        if symbol is None:
            host = self._host(target.name)
            related = ((host.span, "declared here"),) if isinstance(host, ScalarSymbol) else ()
            message = f"`{target.name}` is declared outside the schedule and written in it"
            raise self._reporter.refuse("MF0304", target.span, message, related=related)
        related = ((symbol.span, "declared here"),)
        if symbol.const:
            raise self._reporter.refuse("MF0305", target.span, f"`{target.name}` is `const`", related=related)
        if symbol.origin in (Origin.GRID_INDEX, Origin.THREAD_INDEX):
            message = f"`{target.name}` is the variable of a `meta_for`"
            raise self._reporter.refuse("MF0113", target.span, message, related=related)
        if found.name in self._shared or (symbol.origin is Origin.BLOCK and level.origin is Origin.THREAD):
            message = f"`{target.name}` is shared by the iterations that write it here"
            raise self._reporter.refuse("MF0109", target.span, message, related=related)

    def _value(self, expression: syntax.Expression, level: _Level) -> ir.Expr:
        built = self._expressions.build(expression)
        self._note(built, level)
        return built

    def _note(self, expression: ir.Expr, level: _Level, reads: bool = True) -> None:
        """Note the arrays that an expression reads at block level."""
        if level.origin is Origin.BLOCK:
            for part in ir.walk_expression(expression):
                if isinstance(part, ir.Element) and (reads or part is not expression):
                    self._uniform_reads.append(part)

    def _check_uniform_reads(self) -> None:
        for read in self._uniform_reads:
            if read.array in self._written:
                self._reporter.error(
                    "MF0110", read.span, f"`{read.array}` is read at block level and written in the same schedule"
                )

    # --- names ------------------------------------------------------------------------------------------------

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self._scopes.append(_Scope())
        try:
            yield
        finally:
            self._scopes.pop()

    def _resolve(self, name: str) -> Symbol | None:
        for scope in reversed(self._scopes):
            if name in scope.symbols:
                symbol = scope.symbols[name]
                if isinstance(symbol, UnusableSymbol):
                    raise RefusedError
                return symbol
        found = self._host(name)
        if isinstance(found, ScalarSymbol):
            self._scalars.add(name)
        elif isinstance(found, ArraySymbol):
            self._arrays.add(name)
        return found

    def _visible(self) -> list[str]:
        return [name for scope in self._scopes for name in scope.symbols] + self._host_names

    def _local(self, unique: str) -> ScalarSymbol | None:
        for scope in reversed(self._scopes):
            for symbol in scope.symbols.values():
                if isinstance(symbol, ScalarSymbol) and symbol.name == unique:
                    return symbol
        return None

    def _array(self, unique: str) -> ArraySymbol:
        for scope in reversed(self._scopes):
            for symbol in scope.symbols.values():
                if isinstance(symbol, ArraySymbol) and symbol.array.name == unique:
                    return symbol
        found = self._host(unique)
        assert isinstance(found, ArraySymbol)
        return found

    def _check_scope(self, name: str, span: Span) -> None:
        before = self._scopes[-1].spans.get(name)
        if before is not None:
            related = ((before, "declared here first"),)
            raise self._reporter.refuse("MF0307", span, f"`{name}` is declared twice in one scope", related=related)
        self._scopes[-1].spans[name] = span

    def _introduce(self, name: str, symbol: ScalarSymbol, span: Span) -> str:
        self._check_scope(name, span)
        unique = self._fresh(name)
        self._scopes[-1].symbols[name] = ScalarSymbol(unique, symbol.type, symbol.origin, symbol.span, symbol.const)
        return unique

    def _fresh(self, name: str) -> str:
        unique, number = name, 0
        while unique in self._taken or unique in DEVICE_WORDS or (number and unique in self._spoken):
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(unique)
        return unique


def _declarators(statement: syntax.Statement) -> tuple[syntax.Declarator, ...]:
    if isinstance(statement, syntax.ForStatement) and isinstance(statement.init, syntax.Declaration):
        return statement.init.declarators
    return statement.declarators if isinstance(statement, syntax.Declaration) else ()


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


def _word(span: Span, word: str) -> Span:
    """Return the span of the first word of a statement."""
    length = len(word)
    return Span(span.line, span.column, span.line, span.column + length, span.start, span.start + length)


def _first_line(statement: syntax.Statement) -> Span:
    """Return the part of a statement that says what it is: the head of a loop, else the whole."""
    match statement:
        case syntax.ForStatement(head=head):
            return head
        case syntax.IfStatement(span=span):
            return _word(span, "if")
        case syntax.WhileStatement(is_do=is_do, span=span):
            return _word(span, "do" if is_do else "while")
        case syntax.SwitchStatement(span=span):
            return _word(span, "switch")
        case _:
            return statement.span
